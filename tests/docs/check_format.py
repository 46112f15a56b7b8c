"""Tells which sources clang-format would change.

Usage: check_format.py <source directory> <clang-format>
"""
import pathlib
import subprocess
import sys

source, clang_format = pathlib.Path(sys.argv[1]), sys.argv[2]
directories = ("examples", "gasnet", "include", "perf", "pmix", "src", "tests", "tools")
files = sorted(path for directory in directories for path in (source / directory).rglob("*")
               if path.suffix in (".c", ".cc", ".h"))
if not files:
    sys.exit(f"no sources found in {source}")
complaints = subprocess.run([clang_format, "--dry-run", "--Werror", *files], stderr=subprocess.PIPE, text=True)
print(complaints.stderr, end="", file=sys.stderr)
if complaints.returncode:
    sys.exit(f"{clang_format} -i would change these files; see CONTRIBUTING.md, Style")
print(f"{len(files)} files are formatted by .clang-format")
