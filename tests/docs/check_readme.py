"""Compares docs/programs.md and docs/reference.md with the library: the example, limits, status registers.

Usage: check_readme.py <source directory> <print_limits>
"""
import pathlib
import re
import subprocess
import sys

source, print_limits = pathlib.Path(sys.argv[1]), sys.argv[2]
programs = (source / "docs/programs.md").read_text()
reference = (source / "docs/reference.md").read_text()
problems = []


def rows(first_cell):
    """Rows of tables of the reference whose first cell matches, as lists of cells without backticks."""
    for line in reference.splitlines():
        cells = [cell.strip().replace("`", "") for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and re.fullmatch(first_cell, cells[0]):
            yield cells


def number(text):
    """Converts 1,048,576 or 2^48 - 1 to a number."""
    text = text.replace(",", "")
    power = re.fullmatch(r"2\^(\d+)( - 1)?", text)
    if power:
        return 2 ** int(power[1]) - (1 if power[2] else 0)
    return int(text) if text.isdigit() else text


# Limits: name, default, least, most.
granted = subprocess.run([print_limits], check=True, stdout=subprocess.PIPE, text=True).stdout
expected = {name: [int(value) for value in values]
            for name, *values in (line.split() for line in granted.splitlines())}
written = {cells[0]: [number(cell) for cell in cells[1:4]] for cells in rows(r"max_\w+")}
for name in expected.keys() | written.keys():
    if expected.get(name) != written.get(name):
        problems.append(f"limit {name}: {written.get(name)} written, {expected.get(name)} granted")

# Status registers: those of the headers, with their indexes.
defined = {}
for header in ("portals4_types.h", "portals4_lintel.h"):
    text = (source / "include" / header).read_text()
    defined |= {name: int(index) for name, index in
                re.findall(r"^#define (PTL_SR_\w+) (\d+)u", text, re.MULTILINE)}
for not_a_register in ("PTL_SR_LINTEL_KINDS", "PTL_SR_LINTEL_END"):
    del defined[not_a_register]
written = {cells[0]: number(cells[1]) for cells in rows(r"PTL_SR_\w+")}
for name in defined.keys() | written.keys():
    if defined.get(name) != written.get(name):
        problems.append(f"register {name}: {written.get(name)} written, {defined.get(name)} defined")

# The example.
listings = re.findall(r"^```c\n(.*?)^```", programs, re.MULTILINE | re.DOTALL)
if (source / "examples/hello.c").read_text() not in listings:
    problems.append("the C program is not that of examples/hello.c")

if problems:
    print("docs/programs.md and docs/reference.md:", *sorted(problems), sep="\n  ")
    sys.exit(1)
print(f"{len(expected)} limits, {len(defined)} names of registers and the example agree")
