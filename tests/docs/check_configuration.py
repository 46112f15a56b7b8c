"""Compares docs/configuration.md with `ptl_info --json`. The table of the page must be the configuration table,
without the variables for tests. Every variable in any page must exist.

Usage: check_configuration.py <source directory> <ptl_info> [--update]
"""
import json
import os
import pathlib
import re
import subprocess
import sys

source, ptl_info = pathlib.Path(sys.argv[1]), sys.argv[2]
update = "--update" in sys.argv[3:]

# The environment must not influence the output.
clean = {name: value for name, value in os.environ.items() if not name.startswith("PTL_")}
facts = json.loads(subprocess.run([ptl_info, "--json"], env=clean, check=False,
                                  stdout=subprocess.PIPE).stdout)


def row(variable):
    default = variable["default"] or "empty"
    if variable["unit"]:
        default += " " + variable["unit"]
    return f"| `{variable['name']}` | {default} | {variable['allowed']} | {variable['help']} |\n"


rows = [row(variable) for variable in facts["configuration"] if not variable["for_tests"]]
begin, end = "<!-- variables: begin -->\n", "<!-- variables: end -->\n"
generated = "| variable | default | allowed | meaning |\n| --- | --- | --- | --- |\n" + "".join(rows)
page = source / "docs/configuration.md"
text = page.read_text()
if text.count(begin) != 1 or text.count(end) != 1:
    sys.exit(f"{page} has no place for the table")
before, rest = text.split(begin)
written, after = rest.split(end)
if update:
    page.write_text(before + begin + generated + end + after)
    sys.exit()

problems = [f"not in the table: {line}" for line in generated.splitlines()
            if line not in written.splitlines()]
problems += [f"wrong in the table: {line}" for line in written.splitlines()
             if line not in generated.splitlines()]
if not problems and written != generated:
    problems.append("the order of the table is not that of src/util/config.cc")

# A variable mentioned in a page must exist, and all variables for users must be documented. Most
# names with PTL_ are constants of the headers.
headers = "".join(path.read_text() for path in source.glob("include/*.h"))
constants = set(re.findall(r"\bPTL_\w+", headers))
for_users = {variable["name"] for variable in facts["configuration"] if not variable["for_tests"]}
to_document = for_users | set(facts["runtime_names"])
known = to_document | {variable["name"] for variable in facts["configuration"]}
documented = set()
for path in [source / "README.md", *sorted((source / "docs").glob("*.md"))]:
    text = path.read_text()
    documented |= set(re.findall(r"\bPTL_\w+", text))
    named = {*re.findall(r"`(PTL_[A-Z0-9_]*[A-Z0-9])(?:=[^`]*)?`", text),
             *re.findall(r"\b(PTL_[A-Z0-9_]*[A-Z0-9])=", text)}
    problems += [f"{path.name}: {name} is neither a variable nor in a header"
                 for name in sorted(named - known - constants)]
problems += [f"{name} is not documented" for name in sorted(to_document - documented)]

if problems:
    print("docs/configuration.md (the option --update writes the table):", *problems, sep="\n  ")
    sys.exit(1)
print(f"{len(rows)} variables agree")
