"""Compares docs/configuration.md with `ptl_info --json`: the table of the page must have the
variables of the configuration table, in its order, with unit, default and allowed values.

Usage: check_configuration.py <source directory> <ptl_info>
"""
import json
import os
import pathlib
import re
import subprocess
import sys

source, ptl_info = pathlib.Path(sys.argv[1]), sys.argv[2]

# What the environment sets must not show.
clean = {name: value for name, value in os.environ.items() if not name.startswith("PTL_")}
facts = json.loads(subprocess.run([ptl_info, "--json"], env=clean, check=True,
                                  stdout=subprocess.PIPE).stdout)


def shown(variable):
    default = variable["default"] or "empty"
    if variable["unit"]:
        default += " " + variable["unit"]
    return [variable["name"], default, variable["allowed"]]


expected = [shown(variable) for variable in facts["configuration"]]

page = (source / "docs/configuration.md").read_text()
rows = [[cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
        for line in page.splitlines() if re.match(r"\| `PTL_", line)]
written = [row[:3] for row in rows]

problems = [f"not as ptl_info has it: {row}, but {want}"
            for row, want in zip(written, expected) if row != want]
if len(written) != len(expected):
    problems.append(f"{len(written)} variables in the table of the page, {len(expected)} in ptl_info")
for name, _, _ in expected:
    if not re.search(rf"^#+ .*`{name}`", page, re.MULTILINE):
        problems.append(f"no section about {name}")

if problems:
    print("docs/configuration.md:", *problems, sep="\n  ")
    print("the rows as they should be:")
    for name, default, allowed in expected:
        print(f"| `{name}` | {default} | {allowed} |")
    sys.exit(1)
print(f"{len(expected)} variables agree")
