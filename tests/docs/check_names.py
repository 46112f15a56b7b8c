"""Types of the headers of src have different names: with two of one name in a namespace, the linker would take a
function of the one for a function of the other, where modules are linked into one program.

Usage: check_names.py <source directory>
"""
import collections
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
TYPE = re.compile(r"(?:class|struct|union)\s+(?:(?:alignas|LINTEL_\w+)(?:\([^()]*\))?\s+)*(\w+)(?:\s+final)?\s*(?::[^:]|\{)")
defined = collections.defaultdict(list)
for path in sorted((source / "src").rglob("*.h")):
    namespace = ""
    for line in path.read_text().splitlines():
        if match := re.match(r"namespace ([\w:]+) \{", line):
            namespace = match[1]
        elif re.match(r"\}  // namespace", line):
            namespace = ""
        elif match := TYPE.match(line):
            defined[f"{namespace}::{match[1]}"].append(path.relative_to(source))
twice = {name: places for name, places in defined.items() if len(places) > 1}
for name, places in twice.items():
    print(f"{name}: {', '.join(map(str, places))}")
if twice or len(defined) < 300:
    sys.exit(f"{len(twice)} of {len(defined)} names stand twice")
