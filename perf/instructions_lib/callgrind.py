"""What callgrind writes: instructions by function and source file, and by call."""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple


class Function(NamedTuple):
    object: str
    file: str
    name: str


@dataclass
class Profile:
    # (function, file that the instructions come from: another one where code was inlined) ->
    # instructions
    own: Counter = field(default_factory=Counter)
    # (caller, file that the call comes from, called) -> its instructions, with those of all that it
    # calls
    calls: Counter = field(default_factory=Counter)

    @property
    def total(self):
        return sum(self.own.values())

    def __add__(self, other):
        return Profile(self.own + other.own, self.calls + other.calls)

    def per_message(self, shorter, messages):
        """What each of `messages` messages costs that this profile has and `shorter` has not."""

        def difference(longer, shorter):
            return Counter({key: (count - shorter[key]) / messages
                            for key, count in longer.items() if count != shorter[key]})

        return Profile(difference(self.own, shorter.own), difference(self.calls, shorter.calls))


_NAME = re.compile(r"(c?(?:ob|fl|fi|fe|fn))=\((\d+)\)(?: (.*))?$")


def read(lines):
    """The profile in a file of callgrind (--dump-instr=no --dump-line=yes, one event)."""
    profile = Profile()
    names = {"ob": {}, "fl": {}, "fn": {}}
    functions = {}  # number -> Function: a number stands for one function in one file
    caller = file = object_name = called_object = called_file = called = None
    in_call = False
    for line in lines:
        line = line.rstrip("\n")
        if match := _NAME.match(line):
            key, number, name = match.groups()
            table = names[{"fi": "fl", "fe": "fl"}.get(key[-2:], key[-2:])]
            if name is not None:
                table[number] = name
            name = table[number]
            if key == "ob":
                object_name = name
            elif key in ("fl", "fi", "fe"):
                file = name
            elif key == "fn":
                caller = functions.setdefault(number, Function(object_name, file, name))
            elif key == "cob":
                called_object = name
            elif key in ("cfi", "cfl"):
                called_file = name
            elif key == "cfn":
                called = functions.setdefault(
                    number, Function(called_object or object_name, called_file or file, name))
                called_object = called_file = None
        elif line.startswith("calls="):
            in_call = True
        elif line and (line[0].isdigit() or line[0] in "+-*") and caller is not None:
            count = int(line.split()[1])
            if in_call:
                profile.calls[caller, file, called] += count
                in_call = False
            else:
                profile.own[caller, file] += count
    return profile
