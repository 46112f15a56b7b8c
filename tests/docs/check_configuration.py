"""Compares docs/configuration.md with `ptl_info --json`: the tables of the page must have the
variables of the configuration table, in its order, with unit, default and allowed values. Every variable that
any page names must be known.

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


# The table of the page for users, then that for tests and measurements.
expected = [shown(variable) for of_tests in (False, True) for variable in facts["configuration"]
            if variable["for_tests"] == of_tests]

page = (source / "docs/configuration.md").read_text()
rows = [[cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
        for line in page.splitlines() if re.match(r"\| `PTL_", line)]
former = [row for row in rows if len(row) == 2]
written = [row[:3] for row in rows if len(row) == 3]

problems = [f"not as ptl_info has it: {row}, but {want}"
            for row, want in zip(written, expected) if row != want]
if len(written) != len(expected):
    problems.append(f"{len(written)} variables in the tables of the page, {len(expected)} in ptl_info")
if dict(former) != facts["former_names"]:
    problems.append(f"former names: {dict(former)}, but {facts['former_names']}")
for name, _, _ in expected:
    if not re.search(rf"^#+ .*`{name}`", page, re.MULTILINE):
        problems.append(f"no section about {name}")

# What the documentation calls a variable is one, and what the library knows is documented. Most names with PTL_
# are constants of the headers.
headers = "".join(path.read_text() for path in source.glob("include/*.h"))
constants = set(re.findall(r"\bPTL_\w+", headers))
known = {name for name, _, _ in expected} | set(facts["former_names"]) | set(facts["runtime_names"])
documented = set()
for path in [source / "README.md", *sorted((source / "docs").glob("*.md"))]:
    text = path.read_text()
    documented |= set(re.findall(r"\bPTL_\w+", text))
    named = {*re.findall(r"`(PTL_[A-Z0-9_]*[A-Z0-9])(?:=[^`]*)?`", text),
             *re.findall(r"\b(PTL_[A-Z0-9_]*[A-Z0-9])=", text)}
    problems += [f"{path.name}: {name} is neither a variable nor in a header"
                 for name in sorted(named - known - constants)]
    if path.name not in ("configuration.md",):
        problems += [f"{path.name}: {name} is a former name of {facts['former_names'][name]}"
                     for name in sorted(named & set(facts["former_names"]))]
problems += [f"{name} is not documented" for name in sorted(known - documented)]

if problems:
    print("docs/configuration.md:", *problems, sep="\n  ")
    print("the rows as they should be:")
    for name, default, allowed in expected:
        print(f"| `{name}` | {default} | {allowed} |")
    sys.exit(1)
print(f"{len(expected)} variables agree")
