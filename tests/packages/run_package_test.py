"""Tests of packages, recipes, manual pages and the binary interface.

Usage: run_package_test.py <source directory> <build directory> <C++ compiler> <case>
       run_package_test.py --list

The cases stranger_* run in a separate root directory, which debootstrap makes once. They need root, and the package
archive for which apt is configured.
"""
import functools
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import roots
from containerfile import read_stages
from spack_stub import read_recipe

HELLO = r'^"hello from process \d+": \d+ bytes, sent by nid'
HELLO_CMAKE = """cmake_minimum_required(VERSION 3.20)
project(hello C)
find_package(Portals4 4.3 REQUIRED)
add_executable(hello hello.c)
target_link_libraries(hello PRIVATE Portals4::portals)
"""


def run(*command, **options):
    options.setdefault("stdout", subprocess.PIPE)
    result = subprocess.run(command, stderr=subprocess.STDOUT, text=True, errors="replace", **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed with {result.returncode}:\n{result.stdout}")
    return result.stdout


def need(program):
    if not shutil.which(program):
        print(f"skipped: there is no {program} (scripts/common names its package)")
        sys.exit(77)


def expect_hello(output, how):
    if not re.search(HELLO, output, re.MULTILINE):
        sys.exit(f"hello, built by {how}, printed: {output}")


def complete_in_zsh(functions, directory, environment, line, wanted):
    """What a terminal with zsh shows after the line and a tabulator, until it shows `wanted`. zsh completes on
    terminals only."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(directory)
        os.execvpe("zsh", ["zsh", "-f"], dict(environment, TERM="dumb"))

    def read(until):
        shown, end = "", time.monotonic() + 20
        while until not in shown and time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 4096).decode(errors="replace")
        return shown

    # A line typed before the prompt would not be completed. The quotes keep the echo from looking
    # like the prompt.
    os.write(terminal, f"fpath=({functions} $fpath); autoload -U compinit && compinit -u -D; PS1=rea''dy:\n".encode())
    read("ready:")
    os.write(terminal, line.encode() + b"\t")
    shown = read(wanted)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    os.close(terminal)
    return shown


class Suite:
    def __init__(self, source, build, compiler):
        self.source, self.build, self.compiler = pathlib.Path(source), pathlib.Path(build), compiler
        self.work = self.build / "packages-test"
        self.work.mkdir(exist_ok=True)
        self.packages = self.variant("package") / "packages"
        self.rpms = self.variant("package-rpm") / "packages"

    # Next to the build under test: a compiler cache identifies objects by relative paths of
    # sources.
    def variant(self, name):
        return self.build.with_name(f"{self.build.name}-{name}")

    def build_variant(self, name, *options):
        directory = self.variant(name)
        run("cmake", "-G", "Ninja", "-S", self.source, "-B", directory, "-DLINTEL_WERROR=ON",
            f"-DCMAKE_CXX_COMPILER={self.compiler}", *options)
        run("cmake", "--build", directory)
        return directory

    def case_build(self):
        """Builds deb and rpm packages in the same way as the preset `package`."""
        shutil.rmtree(self.packages, ignore_errors=True)
        shutil.rmtree(self.rpms, ignore_errors=True)
        options = ("-DCMAKE_INSTALL_PREFIX=/usr", "-DCMAKE_SKIP_INSTALL_RPATH=ON", "-DLINTEL_HARDENING=ON")
        # Each at the directories of its distributions. The compiler cache has the objects of the
        # first.
        for name, directories in (("package", ()), ("package-rpm", ("-DCMAKE_INSTALL_LIBDIR=lib64",))):
            run("cmake", "--build", self.build_variant(name, *options, *directories), "--target", "package")
        for suffix in ("deb", "rpm"):
            names = sorted(path.name.split("-0")[0].split("_")[0]
                           for path in (self.packages if suffix == "deb" else self.rpms).glob(f"*.{suffix}"))
            devel = "libportals-dev" if suffix == "deb" else "libportals-devel"
            for wanted in ("libportals4", devel, "lintel-doc", "lintel-tools", "lintel-verbs", "lintel-dpdk", "lintel-pmix",
                           "liblintel-libfabric", "gasnet-portals4", devel.replace("libportals", "gasnet-portals4")):
                if wanted not in names:
                    sys.exit(f"there is no {suffix} package {wanted}, only {names}")
        if not list(self.packages.glob("libportals4-dbgsym*")):
            sys.exit("there is no package of debug symbols")

    def case_lint(self):
        """lintian and rpmlint report nothing that applies here."""
        need("lintian")
        need("rpmlint")
        # It is about uploads to Debian.
        foreign = "initial-upload-closes-no-bugs"
        said = run("lintian", "--allow-root", "--suppress-tags", foreign, "--fail-on", "none",
                   *self.packages.glob("*.deb"))
        # Duplicate reports about a file appear even if they are overridden.
        said = re.sub(r"^Warning in processable .*: Tried to issue duplicate hint .*\n", "", said, flags=re.MULTILINE)
        if said.strip():
            sys.exit(f"lintian says:\n{said}")
        rpms = [path for path in self.rpms.glob("*.rpm") if "debuginfo" not in path.name]
        said = subprocess.run(["rpmlint", "--rpmlintrc", self.source / "packaging/rpm/rpmlintrc", *rpms],
                              stdout=subprocess.PIPE, text=True).stdout
        found = re.findall(r"^\S+: [EW]: .*$", said, re.MULTILINE)
        if found:
            sys.exit("rpmlint says:\n" + "\n".join(found))

    def case_hardening(self):
        """Libraries, modules and programs of the packages are bound at the start, and compiled with stack protector,
        _FORTIFY_SOURCE and control-flow protection."""
        files = [path for path in (*self.variant("package").glob("lib/**/*.so*"), *self.variant("package").glob("bin/*"))
                 if path.is_file() and not path.is_symlink()]
        wrong = []
        for path in files:
            dynamic, symbols = run("readelf", "-d", path), run("readelf", "-W", "--dyn-syms", path)
            if "BIND_NOW" not in dynamic and not re.search(r"FLAGS_1.*NOW", dynamic):
                wrong.append(f"{path.name}: not bound at the start")
            # The linker marks a file only if all its parts are marked. Debian 12's start files are
            # not.
            if os.uname().machine == "x86_64" and "endbr64" not in run("objdump", "-d", path):
                wrong.append(f"{path.name}: without control-flow protection")
            if "portals.so" in path.name and not ("__stack_chk_fail" in symbols and re.search(r"__\w+_chk\b", symbols)):
                wrong.append(f"{path.name}: without stack protector or fortified functions")
        if wrong or len(files) < 6:
            sys.exit("\n".join(wrong) or f"only {len(files)} files")

    def case_strip(self):
        """rpm packages have no symbol tables, even where CPack makes no debuginfo package for a component."""
        with tempfile.TemporaryDirectory() as root:
            for file in (self.build / "lib/lintel/crypto.so", self.build / "bin/ptl_info", self.source / "LICENSE"):
                shutil.copy(file, root)
            before = run("file", *pathlib.Path(root).iterdir()).count("not stripped")
            run(self.source / "packaging/rpm/strip", env=dict(os.environ, RPM_BUILD_ROOT=root))
            after = run("file", *pathlib.Path(root).iterdir()).count("not stripped")
        if (before, after) != (2, 0):
            sys.exit(f"{before} files had symbol tables before, {after} after")

    def case_short_path(self):
        """If the path of the sources is too short for CPack's renaming, rpm packages have no debug information."""
        roots.call("mount", "-t", "tmpfs", "tmpfs", "/mnt")
        for path, wanted in (("/mnt/l", "OFF"), ("/mnt/lintel-0.1.0", "ON")):
            pathlib.Path(path).mkdir()
            roots.call("mount", "--bind", self.source, path)
            said = run("cmake", "-G", "Ninja", "-S", path, "-B", path + "-built", f"-DCMAKE_CXX_COMPILER={self.compiler}")
            settings = pathlib.Path(path + "-built/CPackConfig.cmake").read_text()
            if f'set(CPACK_RPM_DEBUGINFO_PACKAGE "{wanted}")' not in settings or ("shorter" in said) != (wanted == "OFF"):
                sys.exit(f"{path}: CPACK_RPM_DEBUGINFO_PACKAGE is not {wanted}, or nothing was said:\n{said}")

    def case_modulefile(self):
        """The module file finds the installation, hides no manual page of the system, and leaves nothing."""
        init = pathlib.Path("/usr/share/modules/init/bash")
        if not init.exists():
            print("skipped: there is no environment-modules")
            sys.exit(77)
        with tempfile.TemporaryDirectory() as prefix:
            for component in ("tools", "library", "development"):
                run("cmake", "--install", self.build, "--component", component, "--prefix", prefix)
            show = "echo $(pkg-config --variable=prefix portals4 2> /dev/null) ${LD_LIBRARY_PATH:-none} ${MANPATH:-none}"
            said = run("bash", "-c", f"source {init}; unset MANPATH LD_LIBRARY_PATH PKG_CONFIG_PATH; "
                       f"module use {prefix}/share/lintel/modulefiles; module load lintel; {show}; module unload lintel; {show}")
            libraries = next(pathlib.Path(prefix).rglob("libportals.so.4")).parent
            wanted = f"{prefix} {libraries} {prefix}/share/man:\nnone none\n"
        if re.sub(r"/lib[^ ]*/pkgconfig/[./]*(?= )", "", said) != wanted:
            sys.exit(f"expected:\n{wanted}got:\n{said}")

    def case_manual(self):
        """Each public function has a page. The pages and the reference contain no errors."""
        need("mandoc")
        need("doxygen")
        declared = {name for header in (self.source / "include").glob("*.h")
                    for name in re.findall(r"^PTL_API [^;(]*\b(Ptl\w+)\(", header.read_text(), re.MULTILINE)}
        pages = self.build / "manual"
        written = {page.stem for page in (pages / "man3").glob("Ptl*.3")}
        if declared != written or not declared:
            sys.exit(f"functions and pages differ: {sorted(declared ^ written)}")
        types = {page.stem for page in (pages / "man3").glob("ptl_*.3")}
        if types != {"ptl_md_t", "ptl_le_t", "ptl_me_t", "ptl_event_t"}:
            sys.exit(f"pages of structures: {sorted(types)}")
        constants = re.findall(r"\b(PTL_(?:MD|LE|ME|EVENT|NI)_\w+) (?:= \d|\(1u)", (self.source / "include/portals4_types.h").read_text())
        documented = "".join((pages / f"man3/{name}.3").read_text() for name in sorted(types))
        missing = [name for name in constants if f".B {name}\n" not in documented
                   and not re.match(r"PTL_NI_(NO_)?(MATCHING|LOGICAL|PHYSICAL)", name)]
        if missing or len(constants) < 50:
            sys.exit(f"options and events that no page of a structure names: {missing} of {len(constants)}")
        others = [pages / name for name in ("man1/ptl_info.1", "man1/ptl_perf.1", "man1/gasnetrun_portals4.1",
                                           "man1/gasnet_info.1", "man1/gasnet_trace.1", "man5/lintel.conf.5",
                                            "man7/portals4.7", "man7/portals4_runtime.7")]
        said = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *others, *sorted((pages / "man3").iterdir())],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        wrong = [line for line in said.splitlines() if "missing date" not in line]
        if wrong:
            sys.exit("\n".join(wrong))
        text = (pages / "man5/lintel.conf.5").read_text()
        if "PTL_TRANSPORT" not in text:
            sys.exit("lintel.conf(5) does not know PTL_TRANSPORT")
        run("cmake", "--build", self.build, "--target", "reference")
        if not (self.build / "reference/html/portals4_8h.html").exists():
            sys.exit("the reference has no page of portals4.h")

    def case_completion(self):
        """Options, choices, lists of values and tests of the installed tools are completed in bash, zsh and fish; files
        where a file is expected."""
        for shell in ("zsh", "fish"):
            need(shell)
        cases = (("ptl_perf", "--warm", "--warm-up"), ("ptl_perf", "--wait ", "block poll"), ("ptl_perf", "unex", "unexpected-depth"),
                 ("ptl_perf", "--metric rate,band", "rate,bandwidth"), ("ptl_perf", "--sizes 8,51", "8,512"),
                 ("ptl_perf", "--json sha", "share/"), ("ptl_info", "--js", "--json"))
        with tempfile.TemporaryDirectory() as prefix:
            run("cmake", "--install", self.build, "--component", "tools", "--prefix", prefix)
            environment = dict(os.environ, HOME=prefix, PATH=f"{self.build}/bin:{os.environ['PATH']}")
            bash = f"""source {prefix}/share/bash-completion/completions/ptl_perf
complete_words() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _lintel_tool "$1"; echo "${{COMPREPLY[*]}}"; }}
"""
            fish = "".join(f"source {prefix}/share/fish/vendor_completions.d/{program}.fish\n" for program in ("ptl_info", "ptl_perf"))
            for program, words, wanted in cases:
                *before, last = words.split(" ")
                said = {"bash": f"{bash}complete_words {program} {' '.join(before)} '{last}'",
                        "fish": f"{fish}complete -C '{program} {words}'"}
                for shell, script in said.items():
                    # fish adds descriptions behind tabulators.
                    completed = re.sub(r"\t.*", "", run(shell, "-c", script, env=environment, cwd=prefix)).split()
                    # bash itself adds the files.
                    if completed != wanted.split() and not (shell == "bash" and wanted == "share/" and not completed):
                        sys.exit(f"{shell} completed '{program} {words}' with {completed}, expected {wanted}")
                functions = next(pathlib.Path(prefix).rglob("_lintel")).parent
                shown = complete_in_zsh(functions, prefix, environment, f"{program} {words}", wanted.split()[-1])
                if not all(word in shown for word in wanted.split()):
                    sys.exit(f"zsh completed '{program} {words}' with:\n{shown}\nexpected {wanted}")

    def case_abi(self):
        """The public functions and their types, as full debug information describes them, agree with packaging/abi."""
        need("abidw")
        for library in ("libportals", "libportals_runtime"):
            recorded = self.source / f"packaging/abi/{library}.abi"
            with tempfile.NamedTemporaryFile(suffix=".abi") as now:
                run(self.source / "packaging/abi/record", self.variant("package") / f"lib/{library}.so.4", now.name)
                result = subprocess.run(["abidiff", recorded, now.name], stdout=subprocess.PIPE, text=True)
            if result.returncode != 0:
                sys.exit(f"the interface of {library} has changed (packaging/abi/record says what to do):\n"
                         f"{result.stdout}")

    def case_static(self):
        """Static libraries: hello by pkg-config and by CMake, and a shared library made of them; uninstall leaves
        nothing. The build type is Release, for which the compiler gives other warnings."""
        directory = self.build_variant("static", "-DBUILD_SHARED_LIBS=OFF", "-DCMAKE_BUILD_TYPE=Release")
        prefix = self.work / "static-prefix"
        shutil.rmtree(prefix, ignore_errors=True)
        run("cmake", "--install", directory, "--prefix", prefix)
        self.try_hello(prefix)
        pc = next(prefix.rglob("portals4.pc"))
        for options in ((), ("--static",)):
            named = re.findall(r"rte_\w+", run("pkg-config", "--libs", *options, pc))
            if len(named) > 5:
                sys.exit(f"pkg-config {options} names {len(named)} libraries of DPDK: {named}")
        archive = next(prefix.rglob("libportals.a"))
        run("cc", "-shared", "-o", self.work / "hello/whole.so", "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive")
        output = run(prefix / "bin/ptl_perf", "put", "--sizes", "8", "--time", "0.01")
        if "put latency" not in output:
            sys.exit(f"ptl_perf printed: {output}")
        run("cmake", "--build", directory, "--target", "uninstall")
        left = [path for path in prefix.rglob("*") if not path.is_dir()]
        if left:
            sys.exit(f"left by uninstall: {left}")

    def try_hello(self, prefix):
        work = self.work / "hello"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        shutil.copy(self.source / "examples/hello.c", work)
        (work / "CMakeLists.txt").write_text(HELLO_CMAKE)
        pc = next(prefix.rglob("portals4.pc")).parent
        flags = run("pkg-config", "--cflags", "--libs", "portals4",
                    env=dict(os.environ, PKG_CONFIG_PATH=str(pc))).split()
        run("cc", work / "hello.c", "-o", work / "hello", *flags)
        expect_hello(run(work / "hello"), "pkg-config")
        run("cmake", "-S", work, "-B", work / "built", f"-DCMAKE_PREFIX_PATH={prefix}")
        run("cmake", "--build", work / "built")
        expect_hello(run(work / "built/hello"), "CMake")

    def quickstart_says(self, *absent):
        """Runs the part of scripts/common that handles the packages of quickstart. The user has no sudo, and the
        system lacks the packages `absent`. Returns (exit code, output)."""
        with tempfile.TemporaryDirectory() as directory:
            top = pathlib.Path(directory)
            (top / "scripts").mkdir()
            (top / "bin").mkdir()
            shutil.copy(self.source / "scripts/common", top / "scripts")
            for name in ("dirname", "readlink", "nproc"):
                (top / "bin" / name).symlink_to(shutil.which(name))
            programs = {"dpkg-query": f"case ' {' '.join(absent)} ' in *\" $3 \"*) exit 1 ;; esac\n"
                                      "printf 'install ok installed'",
                        "apt-get": "echo 'apt-get was called'; exit 100"}
            for name, text in programs.items():
                (top / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
                (top / "bin" / name).chmod(0o755)
            top.chmod(0o755)
            script = f". {top}/scripts/common; need_packages ${{build_packages[@]}}; echo it builds"
            command = [shutil.which("bash"), "-c", script, "quickstart"]
            if os.geteuid() == 0:
                command = [shutil.which("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", *command]
            done = subprocess.run(command, env={"PATH": str(top / "bin")}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True)
            return done.returncode, done.stdout

    def case_quickstart(self):
        """Without sudo: if a needed package is missing, it exits and prints the command for root. Optional
        packages may be missing."""
        without = "Building without libpmix-dev libdpdk-dev (docs/install.md says what each is for)"
        for absent, code, wanted in (
                ((), 0, ["it builds"]),
                (("libpmix-dev", "libdpdk-dev"), 0, [without, "it builds"]),
                (("g++", "cmake", "libpmix-dev"), 1,
                 ["cannot install what is missing; as root: apt-get install cmake g++\n"])):
            result, said = self.quickstart_says(*absent)
            if result != code or not all(text in said for text in wanted) or "apt-get was called" in said \
                    or (code and "it builds" in said):
                sys.exit(f"without {absent}, exit code {result}:\n{said}")

    # ------------------------------------------------------------------------------------ strangers

    @functools.cached_property
    def base(self):
        return roots.Base(self.work / "root", self.source)

    def case_root(self):
        """Makes a minimal system, which the later cases reuse."""
        need("debootstrap")
        self.base.make()

    def hello_in(self, root, prefix="", options=""):
        """Compiles and runs hello in a root, by pkg-config and by CMake."""
        root.write("/stranger/hello/CMakeLists.txt", HELLO_CMAKE)
        root.write("/stranger/hello/hello.c", (self.source / "examples/hello.c").read_text())
        libraries = root.run(f"dirname $(find {prefix or '/usr'} -name libportals.so.4)").strip()
        environment = "" if not prefix else \
            f"export PKG_CONFIG_PATH={libraries}/pkgconfig LD_LIBRARY_PATH={libraries}; "
        expect_hello(root.run(f"{environment} cd /stranger/hello && cc hello.c -o hello "
                              "$(pkg-config --cflags --libs portals4) && ./hello"), "pkg-config")
        expect_hello(root.run(f"cd /stranger/hello && cmake -B built -DCMAKE_PREFIX_PATH={prefix} {options} . > log && "
                              f"cmake --build built >> log && {environment if options else ''} built/hello"), "CMake")

    def case_stranger_packages(self):
        """apt install ./*.deb; hello; the tools; after apt purge nothing remains. Then the same with rpm."""
        with self.base.open() as root:
            root.install("gcc", "libc6-dev", "make", "cmake", "pkg-config")
            before = root.files()
            for package in self.packages.glob("*.deb"):
                shutil.copy(package, root.path / "stranger")
            root.install("/stranger/*.deb")
            self.hello_in(root)
            if "libportals" not in root.run("ldconfig -p"):
                sys.exit("the dynamic linker does not know the libraries")
            for module in ("crypto", "verbs", "dpdk", "pmix"):
                if "not found" in root.run(f"ldd /usr/lib/*/lintel/{module}.so"):
                    sys.exit(f"the module {module} lacks a library")
            root.run("ptl_info > /dev/null; ptl_perf put --sizes 8 --time 0.01 > /dev/null")
            root.write("/stranger/tour.c", (self.source / "gasnet/examples/tour.c").read_text())
            root.run("cd /stranger && cc tour.c -o tour $(pkg-config --cflags --libs gasnet-portals4-seq) && "
                     "gasnetrun_portals4 -n 2 ./tour")
            for path in ("docs/cluster.md", "examples/hello.c", "examples/concepts/common.h"):
                root.run(f"test -e /usr/share/doc/lintel/{path}")
            root.run("test -x /usr/share/lintel/slurm/portals.sbatch && test -e /usr/share/lintel/modulefiles/lintel")
            names = root.run("dpkg-query -W -f '${Package}\\n' '*portals*' 'lintel*'").split()
            ours = set(root.run(f"dpkg -L {' '.join(names)}").split())
            root.run(f"DEBIAN_FRONTEND=noninteractive apt-get -y -qq purge {' '.join(names)}")
            left = (root.files() - before) & ours
            if len(names) < 6 or not ours or left:
                sys.exit(f"packages {names}; left after their removal: {sorted(left)}")
            self.use_rpms(root)

    def use_rpms(self, root):
        """Without the dependencies, which have names of other distributions; the libraries are there all the
        same."""
        def rpm(*arguments):
            return run("rpm", "--root", root.path, "--force-debian", *arguments)

        need("rpm")
        before = root.files()
        rpm("--install", "--nodeps", *(path for path in self.rpms.glob("*.rpm") if "debuginfo" not in path.name))
        # Debian's linker and CMake do not look into /usr/lib64.
        self.hello_in(root, "/usr", "-DPortals4_DIR=/usr/lib64/cmake/Portals4")
        root.run("export LD_LIBRARY_PATH=/usr/lib64; ptl_info > /dev/null; ptl_perf put --sizes 8 --time 0.01 > /dev/null")
        names = rpm("--query", "--all").split()
        for name in names:
            if not rpm("--query", "--licensefiles", name).strip():
                sys.exit(f"the rpm package {name} has no licence file")
        ours = set(rpm("--query", "--list", *names).split())
        rpm("--erase", "--nodeps", *names)
        left = (root.files() - before) & ours
        if len(names) < 6 or not ours or left:
            sys.exit(f"rpm packages {names}; left after their removal: {sorted(left)}")

    def case_stranger_source(self):
        """cmake -S . -B b && cmake --build b, with the packages of docs/install.md; hello; uninstall."""
        with self.base.open(layer="table") as root:
            root.install_table()
            # Stricter than a build without options, with the same result, and a compiler cache may
            # contain the objects.
            options = "-DLINTEL_WERROR=ON"
            if "LINTEL_TEST_LONG" not in os.environ:
                options += " -DLINTEL_GASNET=OFF"
            root.run(f"cd {self.source} && cmake -S . -B b {options} && cmake --build b -j $(nproc) && "
                     "cmake --install b --prefix /opt/lintel")
            # docs/jobs.md and docs/reference.md name them.
            root.run(f"test -x {self.source}/b/bin/job_hello && test -x {self.source}/b/bin/footprint")
            self.use_in(root, "/opt/lintel")
            root.run(f"cmake --build {self.source}/b --target uninstall")
            left = root.run("[ ! -e /opt/lintel ] || find /opt/lintel ! -type d")
            if left:
                sys.exit(f"left by uninstall: {left}")

    def case_stranger_quickstart(self):
        """scripts/quickstart of a fresh copy, as a user without sudo, without any optional package. Only in the
        long form, like case_stranger_container()."""
        if "LINTEL_TEST_LONG" not in os.environ:
            print("skipped: set LINTEL_TEST_LONG=1")
            sys.exit(77)
        with self.base.open() as root:
            root.install("cmake", "ninja-build", "g++", "pkg-config", "libcli11-dev", "nlohmann-json3-dev")
            root.run(f"mkdir /stranger/home && cd {self.source} && tar -c --exclude='./build*' --exclude=./.git . | "
                     "tar -x -C /stranger/home && chown -R nobody: /stranger/home")
            said = root.run("cd /stranger/home && setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/stranger/home "
                            "scripts/quickstart put --sizes 8 2>&1")
            for wanted in ("Building without ccache", "libibverbs-dev", "transport  shm", "put latency", "What next"):
                if wanted not in said:
                    sys.exit(f"quickstart does not say '{wanted}':\n{said}")

    def case_stranger_spack(self):
        """The contents of the Spack recipe, and its first step. In the long form all its steps in a clean root,
        and hello."""
        recipe = read_recipe(self.source / "packaging/spack/lintel/package.py")
        for wanted in ("cmake", "cxx", "python", "pmix", "rdma-core", "openssl"):
            if wanted not in recipe.dependencies:
                sys.exit(f"the recipe does not depend on {wanted}")
        directory = self.work / "spack"
        shutil.rmtree(directory, ignore_errors=True)
        (_, configure), *_ = recipe.phases(self.source, directory, "/opt/spack/lintel")
        said = run("sh", "-c", configure)
        if "not used by the project" in said:
            sys.exit(f"CMake does not know an option of the recipe:\n{said}")
        if "LINTEL_TEST_LONG" not in os.environ:
            return
        with self.base.open(layer="table") as root:
            root.install_table()
            for name, command in recipe.phases(self.source, self.source / "b", "/opt/spack/lintel"):
                print(f"Spack's step {name}: {command}", flush=True)
                root.run(command)
            self.use_in(root, "/opt/spack/lintel")
            if "dpdk" in root.run("ls /opt/spack/lintel/lib*/lintel"):
                sys.exit("the recipe built a module that its default leaves out")

    def case_containerfile(self):
        """The Containerfile installs the packages of docs/install.md, those that cpack needs, and those that cpack
        makes."""
        build, image = read_stages(self.source / "packaging/container/Containerfile")
        installed = [set(re.search(r"--no-install-recommends ([^&]+)", rest)[1].split())
                     for instruction, rest in (build[0], image[1]) if instruction == "RUN"]
        # The first is for x86 only; the second is for Ethernet ports, which a container does not
        # have.
        wanted = set(roots.table_of_packages(self.source)) - {"libipsec-mb-dev", "libdpdk-dev"} | {"dpkg-dev", "file"}
        if installed[0] != wanted:
            sys.exit(f"the Containerfile and docs/install.md differ: {sorted(installed[0] ^ wanted)}")
        if "/packages/*.deb" not in installed[1] or ("CMD", '["ptl_info"]') not in image:
            sys.exit(f"the image does not install the packages, or has another command: {image}")

    def case_stranger_container(self):
        """The steps of the Containerfile, in roots instead of images. Only in the long form: it takes long unless
        a compiler cache contains the objects."""
        stages = read_stages(self.source / "packaging/container/Containerfile")
        if "LINTEL_TEST_LONG" not in os.environ:
            print("skipped: set LINTEL_TEST_LONG=1")
            sys.exit(77)
        ignore = shutil.ignore_patterns(*(self.source / ".dockerignore").read_text().split())

        def ignore_at_top(directory, names):
            return ignore(directory, names) if pathlib.Path(directory) == self.source else set()

        copies = self.work / "container"
        for stage in stages:
            with self.base.open() as root:
                root.install("ccache")
                for instruction, rest in stage:
                    print(instruction, rest, flush=True)
                    if instruction == "RUN":
                        root.run(rest)
                    elif instruction == "CMD":
                        root.run(" ".join(json.loads(rest)) + " > /dev/null")
                    elif rest.startswith("--from="):
                        shutil.copytree(copies, root.path / rest.split()[-1].strip("/"))
                    elif instruction == "COPY":
                        shutil.copytree(self.source, root.path / rest.split()[-1].strip("/"), symlinks=True,
                                        ignore=ignore_at_top)
                shutil.rmtree(copies, ignore_errors=True)
                copies.mkdir()
                for package in root.path.glob("build/packages/*.deb"):
                    shutil.copy(package, copies)
                if stage is stages[-1]:
                    root.run("ptl_perf put --sizes 8 --time 0.01")
                    root.write("/stranger/hello.c", (self.source / "examples/hello.c").read_text())
                    expect_hello(root.run("cd /stranger && cc hello.c -o hello $(pkg-config --cflags --libs portals4) && "
                                          "./hello"), "the container")

    def use_in(self, root, prefix):
        self.hello_in(root, prefix)
        root.run(f"{prefix}/bin/ptl_perf put --sizes 8 --time 0.01")
        modulefile = root.run(f"cat {prefix}/share/lintel/modulefiles/lintel")
        if f'set prefix "{prefix}"' not in modulefile:
            sys.exit(f"the modulefile does not know its prefix:\n{modulefile}")


def main():
    cases = [name.removeprefix("case_") for name in vars(Suite) if name.startswith("case_")]
    if sys.argv[1:] == ["--list"]:
        print(*cases, sep="\n")
        return
    source, build, compiler, case = sys.argv[1:]
    if case.startswith("stranger_") or case in ("root", "short_path"):
        roots.need_root()
    getattr(Suite(source, build, compiler), f"case_{case}")()


main()
