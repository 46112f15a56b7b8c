"""The rows: which program is counted for each, and what is counted of it."""

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from compare_lib import commands, programs, setup

from . import callgrind

# Instructions of a tagged 8-byte message of UCX 1.13 over shared memory from a process to itself
# (Debian 12, x86-64), for machines without UCX.
UCX_INSTRUCTIONS = 744

# The transports that do not depend on devices of the machine; no thread but the caller's.
SETTINGS = {"PTL_PROGRESS": "caller", "PTL_TRANSPORT": "local,shm,udp"}


class Unavailable(Exception):
    """A row cannot be counted here; the text says why."""


@dataclass
class Program:
    words: list  # the command; the number of messages follows
    environment: dict
    launcher: tuple = ()  # in front of valgrind
    only_in: str = ""  # the function outside of which nothing is counted
    processes: int = 1  # how many are counted together

    def count(self, messages):
        """The profile of one message: what `messages`[1] cost more than `messages`[0], divided."""
        shorter, longer = (self._profile(number) for number in messages)
        return longer.per_message(shorter, messages[1] - messages[0])

    def _profile(self, messages):
        with tempfile.TemporaryDirectory() as directory:
            options = ["--tool=callgrind", f"--callgrind-out-file={directory}/%p"]
            if self.only_in:
                options.append(f"--toggle-collect={self.only_in}")
            commands.run([*self._with_environment(), *self.launcher, "valgrind", *options, *self.words, messages],
                         timeout_s=300)
            # Each process has a file of its own, also those that MPI starts.
            profiles = sorted((self._read(path) for path in Path(directory).iterdir()),
                              key=lambda profile: profile.total)[-self.processes:]
            return sum(profiles[1:], profiles[0])

    def _with_environment(self):
        """The caller's settings of the library are not what is counted."""
        unset = (word for name in os.environ if name.startswith("PTL_") for word in ("-u", name))
        return ["env", *unset, *(f"{name}={value}" for name, value in self.environment.items())]

    @staticmethod
    def _read(path):
        with open(path) as lines:
            return callgrind.read(lines)


def _built(build, name):
    program = build / "bin" / name
    if not program.exists():
        raise Unavailable(f"no {program}: build the target {name}")
    return program


def _put(row):
    return lambda build: Program([_built(build, "perf_instructions_puts"), "--row", row, "--messages"], SETTINGS)


def _pair(row, processes=2):
    return lambda build: Program([_built(build, "perf_instructions_puts"), "--row", row, "--messages"], SETTINGS,
                                 only_in="perf_instructions_step", processes=processes)


def _reliable(build):
    return Program([_built(build, "perf_instructions_reliable"), "--row", "reliable", "--messages"], {})


def _provider(row):
    return lambda build: Program([_built(build, "perf_instructions_provider"), "--row", row, "--messages"],
                                 {**SETTINGS, "FI_PROVIDER": "lintel", "FI_PROVIDER_PATH": build / "lib/lintel/ofi"},
                                 only_in="perf_instructions_step")


def _ucx(_):
    if shutil.which("ucx_perftest") is None:
        raise Unavailable("no ucx_perftest: install the package ucx-utils")
    return Program(["ucx_perftest", "-l", "-t", "tag_lat", "-s", "8", "-w", "100", "-n"], {"UCX_TLS": "posix"})


def _mpi(build, choice, environment):
    if shutil.which("mpicxx") is None:
        raise Unavailable("no mpicxx: install the package libopenmpi-dev")
    program = setup.compile_program("mpicxx", build / "perf" / "perf_instructions_mpi",
                                    [setup.ROOT / "perf" / "instructions_driver" / "mpi_row.cc"],
                                    ["-DOMPI_SKIP_MPICXX"], lambda text: None)
    words = [word for name, value in choice for word in ("--mca", name, value)]
    return Program([program, "--row", "mpi", "--messages"], environment,
                   ("mpirun", "--allow-run-as-root", "-n", "1", *words), "perf_instructions_to_itself")


def _mpi_mtl(build):
    # Built by the test clients.prepare, or by perf/compare.
    places = (build / "clients" / "openmpi" / "components", build / "perf" / "openmpi" / "components")
    components = next((place.resolve() for place in places if place.exists()), None)
    if components is None:
        raise Unavailable("no Portals components of Open MPI: ctest -R clients.prepare builds them")
    return _mpi(build, programs.PORTALS_MTL, {
        **programs.components_first(components), **SETTINGS,
        "LD_LIBRARY_PATH": (build / "lib").resolve()})


def _mpi_ob1(build):
    return _mpi(build, programs.OWN_SHARED_MEMORY, {})


@dataclass
class Row:
    name: str
    title: str
    program: Callable  # of a build directory; may raise Unavailable
    has_stages: bool = True


ROWS = (
    Row("counted", "matching put, full event at the target, counted acknowledgement", _put("counted")),
    Row("lane", "the same with 72 bytes, through a lane as between processes of a node", _put("lane")),
    Row("counters", "list entry, counters at both ends", _put("counters")),
    Row("events", "matching put, three full events", _put("events")),
    Row("lane_events", "the same with 72 bytes, through a lane", _put("lane_events")),
    Row("pair", "as counted, between two processes of a node, both ends without idle polls", _pair("pair")),
    Row("pair_counters", "as counters, between two processes", _pair("pair_counters")),
    Row("pair_events", "as events, between two processes", _pair("pair_events")),
    Row("use_once", "receiver of a put to an entry that is used once: append, deliver, PtlEQGet", _pair("use_once", 1)),
    Row("reliable", "message of the reliability layer, one way", _reliable),
    Row("fi_receive", "receiver of a tagged message over libfabric: fi_trecv, deliver, fi_cq_read",
        _provider("fi_receive")),
    Row("fi_send", "its sender: fi_tinjectdata", _provider("fi_send")),
    Row("mpi_mtl", "Open MPI over the library: MPI_Irecv, MPI_Send, MPI_Wait", _mpi_mtl),
    Row("mpi_ob1", "the same over Open MPI's own components (ob1, self)", _mpi_ob1, has_stages=False),
    Row("ucx", "UCX, tagged message (ucx_perftest)", _ucx, has_stages=False),
)


def valgrind_version():
    return re.search(r"[\d.]+\d", commands.run(["valgrind", "--version"])).group()
