"""The rows: which program is counted for each, and what is counted of it."""

import os
import re
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from compare_lib import commands

from . import callgrind

# Instructions of a tagged message of 8 bytes of UCX 1.13 over shared memory from a process to itself
# (Debian 12, x86-64), for machines without it.
UCX_INSTRUCTIONS = 744

# The transports that do not depend on devices of the machine.
TRANSPORTS = "local,shm,udp"


@dataclass
class Row:
    name: str
    title: str
    program: str  # below bin/ of the build directory, or a command
    options: tuple  # with {row} and {messages}
    environment: dict = field(default_factory=dict)
    has_stages: bool = True

    def path(self, build):
        path = build / "bin" / self.program
        return path if path.exists() else shutil.which(self.program)

    def count(self, build, messages):
        """The profile of one message: what `messages`[1] cost more than `messages`[0], divided."""
        shorter, longer = (self._profile(build, number) for number in messages)
        return longer.per_message(shorter, messages[1] - messages[0])

    def _profile(self, build, messages):
        with tempfile.TemporaryDirectory() as directory:
            output = Path(directory) / "callgrind.out"
            options = (option.format(row=self.name, messages=messages) for option in self.options)
            commands.run([*self._with_environment(), "valgrind", "--tool=callgrind",
                          f"--callgrind-out-file={output}", self.path(build), *options], timeout_s=300)
            with open(output) as lines:
                return callgrind.read(lines)

    def _with_environment(self):
        """The caller's settings of the library are not what is counted."""
        unset = (word for name in os.environ if name.startswith("PTL_") for word in ("-u", name))
        return ["env", *unset, *(f"{name}={value}" for name, value in self.environment.items())]


_SELF = {"PTL_PROGRESS": "caller", "PTL_TRANSPORT": TRANSPORTS}
_OPTIONS = ("--row", "{row}", "--messages", "{messages}")

ROWS = (
    Row("counted", "matching put, full event at the target, counted acknowledgement",
        "perf_instructions_puts", _OPTIONS, _SELF),
    Row("counters", "list entry, counters at both ends", "perf_instructions_puts", _OPTIONS, _SELF),
    Row("events", "matching put, three full events", "perf_instructions_puts", _OPTIONS, _SELF),
    Row("reliable", "message of the reliability layer, one way", "perf_instructions_reliable", _OPTIONS),
    Row("ucx", "UCX, tagged message (ucx_perftest)", "ucx_perftest",
        ("-l", "-t", "tag_lat", "-s", "8", "-w", "100", "-n", "{messages}"), {"UCX_TLS": "posix"}, has_stages=False),
)


def valgrind_version():
    match = re.search(r"[\d.]+\d", commands.run(["valgrind", "--version"]))
    return match.group()
