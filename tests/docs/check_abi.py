#!/usr/bin/env python3
"""Checks that packaging/abi names the functions that the libraries export.

Usage: check_abi.py <source directory> <library>...
Types are compared by the test packages.abi, which needs libabigail.
"""

import pathlib
import re
import subprocess
import sys


def exported(library):
    """The public names in the table of dynamic symbols. The modules of the library use others."""
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE,
                           text=True).stdout.splitlines()
    symbols = [line.split()[2].partition("@@") for line in lines if line.split()[1] != "A"]
    return {name for name, _, version in symbols if not version.startswith("LINTEL_PRIVATE")}


def recorded(record):
    return set(re.findall(r"<elf-symbol name='(\w+)'", record.read_text()))


def main():
    source, libraries = pathlib.Path(sys.argv[1]), sys.argv[2:]
    differences = []
    for library in libraries:
        name = pathlib.Path(library).name.split(".")[0]
        now, then = exported(library), recorded(source / f"packaging/abi/{name}.abi")
        differences += [f"{name}: {function} is {'new' if function in now else 'gone'}" for function in sorted(now ^ then)]
    if differences:
        sys.exit("\n".join([*differences, "packaging/abi/record says what to do"]))


if __name__ == "__main__":
    main()
