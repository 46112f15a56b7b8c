"""Summarises the output of libFuzzer with -print_coverage=1 (standard input). For each source file of the library
that the inputs reached: functions and edges of the control flow, reached and in total.

Usage: coverage.py [--missed]
  --missed  also the functions of these files that no input reached
"""
import collections
import re
import sys

line = re.compile(
    r"^(UN)?COVERED_FUNC: hits: \d+ edges: (\d+)/(\d+) (.*) \S*?/((?:src|pmix)/\S+):\d+$"
)


class File:
    def __init__(self):
        self.functions = [0, 0]
        self.edges = [0, 0]
        self.missed = []


files = collections.defaultdict(File)
for text in sys.stdin.buffer.read().decode(errors="replace").splitlines():
    found = line.match(text)
    if not found:
        continue
    missed, reached, edges, name, path = found.groups()
    file = files[path]
    file.functions[0] += missed is None
    file.functions[1] += 1
    file.edges[0] += int(reached)
    file.edges[1] += int(edges)
    if missed:
        file.missed.append(name)

for path, file in sorted(files.items()):
    if file.functions[0] == 0:
        continue
    print(
        f"{path:44} functions {file.functions[0]:3} of {file.functions[1]:3}, edges {file.edges[0]:4} of {file.edges[1]:4}"
    )
    if "--missed" in sys.argv[1:]:
        for name in sorted(file.missed):
            print(f"    not reached: {name}")
