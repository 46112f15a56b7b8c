"""Installs the library into an empty directory and builds examples/hello.c there with exactly the commands and
CMake lines of docs/programs.md.

Usage: check_hello_installed.py <source directory> <cmake> <generator> <build directory> <C compiler>
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

source = pathlib.Path(sys.argv[1])
cmake, generator, build, compiler = sys.argv[2:]
page = (source / "docs/programs.md").read_text()


def only(what, found):
    if len(found) != 1:
        sys.exit(f"docs/programs.md: {len(found)} times {what}, expected once")
    return found[0]


def run(*command, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            **options)
    if result.returncode != 0:
        sys.exit(f"{command} failed:\n{result.stdout}")
    return result.stdout


compile_line = only("a command with pkg-config",
                    re.findall(r"^ *(cc .*pkg-config.*)$", page, re.MULTILINE))
cmake_lines = only("a CMake listing",
                   re.findall(r"^```cmake\n(.*?)^```", page, re.MULTILINE | re.DOTALL))

with tempfile.TemporaryDirectory() as directory:
    work = pathlib.Path(directory)
    prefix = work / "prefix"
    run(cmake, "--install", build, "--prefix", prefix)
    shutil.copy(source / "examples/hello.c", work)
    pc = only("portals4.pc", list(prefix.rglob("portals4.pc")))
    environment = dict(os.environ, PKG_CONFIG_PATH=str(pc.parent),
                       LD_LIBRARY_PATH=str(pc.parent.parent))
    run("sh", "-c", compile_line.replace("cc ", f"'{compiler}' ", 1), cwd=work, env=environment)
    by_pkg_config = run(work / "hello", env=environment)

    (work / "CMakeLists.txt").write_text(cmake_lines)
    run(cmake, "-G", generator, "-S", work, "-B", work / "built", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={compiler}")
    run(cmake, "--build", work / "built")
    by_cmake = run(work / "built" / "hello")

for how, output in (("pkg-config", by_pkg_config), ("CMake", by_cmake)):
    if not re.search(r'^"hello from process \d+": \d+ bytes, sent by nid', output, re.MULTILINE):
        sys.exit(f"built by {how} it printed: {output}")
print("the program of docs/programs.md works with the installed library, by pkg-config and by CMake")
