"""Reads a Containerfile. Its stages are lists of (instruction, rest of the line)."""
import re


def read_stages(path):
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE)
    stages = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if not line.strip():
            continue
        instruction, rest = line.split(maxsplit=1)
        if instruction == "FROM":
            stages.append([])
        else:
            stages[-1].append((instruction, rest.strip()))
    return stages
