"""Compares the includes of the sources with the table of allowed ones, and searches for cycles.

Usage: check_arrows.py <source directory> [<table> [<part>]]
A part is a folder, such as gasnet, whose sources name their own headers from there. Without it the parts of the
library are compared.
"""
import collections
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1]).resolve()
table = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else pathlib.Path(__file__).with_name("arrows.txt")
part = sys.argv[3] if len(sys.argv) > 3 else None
include_line = re.compile(r'\s*#\s*include\s*["<]([^">]+)[">]')


def read_table():
    arrows, cycles = set(), []
    for number, line in enumerate(table.read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if words[:1] == ["cycle"]:
            cycles.append(set(words[1:]))
        elif len(words) == 3 and words[1] == "->":
            arrows.add((words[0], words[2]))
        elif words:
            sys.exit(f"{table}:{number}: neither an arrow nor a cycle: {line}")
    return arrows, cycles


def files():
    for top in (part,) if part else ("src", "pmix", "tools"):
        yield from (path for path in sorted((source / top).rglob("*")) if path.suffix in (".cc", ".h"))


def name_of(path):
    """The name of a file in the table. src/core/events/x.h is core/events/x.h. In a part, names begin there; the
    public headers are include, and those of the library are ../include."""
    name = path.relative_to(source)
    if part:
        return name.relative_to(part) if name.parts[0] == part else pathlib.Path("..") / name
    return name.relative_to("src") if name.parts[0] == "src" else name


def includes():
    """Yields (file, line, included file) for includes of files of the project; names as in the table."""
    for path in files():
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = include_line.match(line)
            if not match:
                continue
            roots = (path.parent, source / "src", source / "include", source / "tools", source / "pmix")
            if part:
                roots = (path.parent, source / part, source / part / "include", source / "include")
            found = next((root / match[1] for root in roots if (root / match[1]).is_file()), None)
            if found is not None:
                yield name_of(path), number, name_of(found.resolve())


def within(name, part):
    return name == part or name.startswith(part + "/")


def components(graph):
    """Sets of folders that include each other, directly or indirectly."""
    def reachable(start):
        seen, todo = set(), [start]
        while todo:
            for following in graph[todo.pop()] - seen:
                seen.add(following)
                todo.append(following)
        return seen
    reach = {folder: reachable(folder) for folder in list(graph)}
    found = {frozenset(b for b in reach[a] if a in reach.get(b, ())) for a in reach}
    return [set(component) for component in found if len(component) > 1]


allowed, allowed_cycles = read_table()
used, errors, graph = set(), [], collections.defaultdict(set)
count = 0
for path, number, included in includes():
    count += 1
    origin, target = str(path.parent), str(included.parent)
    if origin == target:
        continue
    graph[origin].add(target)
    needed = {(a, b) for a, b in allowed if within(origin, a) and within(str(included), b)}
    used |= needed
    if not needed:
        errors.append(f"{path}:{number} includes {included}: {origin} -> {target} is not allowed")
if count == 0:
    sys.exit(f"no includes found in {source}")
errors += [f"no include needs {a} -> {b}" for a, b in sorted(allowed - used)]
cycles = components(graph)
errors += ["a cycle: " + " ".join(sorted(cycle)) for cycle in cycles if cycle not in allowed_cycles]
errors += ["no such cycle: " + " ".join(sorted(cycle)) for cycle in allowed_cycles if cycle not in cycles]
if errors:
    sys.exit("\n".join(errors) + f"\nThe table is {table}; see CONTRIBUTING.md, What goes where")
print(f"{count} includes, {len(allowed)} arrows")
