"""Reads a Spack recipe without Spack: enough of its directives to know the dependencies and the arguments that its
defaults give to CMake."""
import dataclasses
import runpy
import sys
import types


@dataclasses.dataclass
class Recipe:
    dependencies: set
    variants: dict
    arguments: list


def read_recipe(path):
    recipe = Recipe(set(), {}, [])

    def depends_on(spec, **_):
        recipe.dependencies.add(spec.split("@")[0])

    def variant(name, default, **_):
        recipe.variants[name] = default

    class CMakePackage:
        run_tests = False

        @staticmethod
        def define(name, value):
            text = ("ON" if value else "OFF") if isinstance(value, bool) else str(value)
            return f"-D{name}:{'BOOL' if isinstance(value, bool) else 'STRING'}={text}"

        def define_from_variant(self, name, variant_name):
            return self.define(name, recipe.variants[variant_name])

    def ignore(*_, **__):
        pass

    module = types.ModuleType("spack.package")
    module.__dict__.update(CMakePackage=CMakePackage, depends_on=depends_on, variant=variant, version=ignore,
                           license=ignore, conflicts=ignore)
    sys.modules["spack"], sys.modules["spack.package"] = types.ModuleType("spack"), module
    recipe_class = runpy.run_path(str(path))["Lintel"]
    # What Spack's own CMake builder adds.
    recipe.arguments = [f"-DCMAKE_BUILD_TYPE:STRING={recipe.variants['build_type']}",
                        *recipe_class().cmake_args()]
    return recipe
