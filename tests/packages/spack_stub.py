"""Reads a Spack recipe without Spack. It implements the directives that are needed to check them and to determine
the steps of the default variants. A directive, a type or a variant that Spack does not have is an error."""
import dataclasses
import re
import runpy
import sys
import types

PACKAGE = r"[a-z0-9][a-z0-9-]*"
VERSIONS = r"[\w.]*:?[\w.]*"
CONDITION = r"[+~](\w+)"
TYPES = {"build", "link", "run", "test"}


@dataclasses.dataclass
class Recipe:
    dependencies: set
    variants: dict
    arguments: list
    versions: list

    def phases(self, source, build, prefix):
        """The commands of Spack's CMake packages, in their order."""
        arguments = " ".join(f"'{argument}'" for argument in self.arguments)
        return [("cmake", f"cmake -S {source} -B {build} -DCMAKE_INSTALL_PREFIX={prefix} {arguments}"),
                ("build", f"cmake --build {build} -j $(nproc)"),
                ("install", f"cmake --install {build}")]


def read_recipe(path):
    recipe = Recipe(set(), {}, [], [])
    conditions = []

    def expect(pattern, text):
        found = re.fullmatch(pattern, text)
        if not found:
            sys.exit(f"{path}: {text!r} is not what Spack reads here")
        return found

    def depends_on(spec, type=("build", "link"), when=None):
        recipe.dependencies.add(expect(rf"({PACKAGE})(@{VERSIONS})?", spec)[1])
        unknown = {type} - TYPES if isinstance(type, str) else set(type) - TYPES
        if unknown:
            sys.exit(f"{path}: {spec} has the types {unknown}")
        if when:
            conditions.append(expect(CONDITION, when)[1])

    def variant(name, default, description, values=(True, False)):
        if default not in values or not description:
            sys.exit(f"{path}: the default of {name} is none of its values, or it has no description")
        recipe.variants[name] = default

    def version(name, **_):
        recipe.versions.append(name)

    def conflicts(spec, msg, when=None):
        expect(rf"%({PACKAGE})@{VERSIONS}", spec)

    def license(name):
        expect(r"[\w.-]+", name)

    class CMakePackage:
        run_tests = False

        @staticmethod
        def define(name, value):
            text = ("ON" if value else "OFF") if isinstance(value, bool) else str(value)
            return f"-D{name}:{'BOOL' if isinstance(value, bool) else 'STRING'}={text}"

        def define_from_variant(self, name, variant_name):
            return self.define(name, recipe.variants[variant_name])

    module = types.ModuleType("spack.package")
    module.__dict__.update(CMakePackage=CMakePackage, depends_on=depends_on, variant=variant, version=version,
                           license=license, conflicts=conflicts)
    sys.modules["spack"], sys.modules["spack.package"] = types.ModuleType("spack"), module
    recipe_class = runpy.run_path(str(path))["Lintel"]
    unknown = set(conditions) - set(recipe.variants)
    if unknown or not recipe.versions or not recipe_class.__doc__ or not recipe_class.homepage:
        sys.exit(f"{path}: no variants {unknown}, or no version, description or homepage")
    # What Spack's own CMake builder adds.
    recipe.arguments = [f"-DCMAKE_BUILD_TYPE:STRING={recipe.variants['build_type']}",
                        *recipe_class().cmake_args()]
    return recipe
