#!/usr/bin/env python3
"""Unmodified Open MPI with the library: the MPI programs of tests/clients/mpi and public suites use the four Portals
components of Open MPI, or its components for libfabric over the provider of the library. The transports are shared memory, UDP, and RDMA devices of this machine or of a guest
(tests/vm/run_on_device).

Usage: run_client_test.py --list
       run_client_test.py <build directory> <directory for what is built here> <case>

The case `prepare` installs the library, builds the components and the programs; the others need it.
SPDX-License-Identifier: BSD-3-Clause
"""
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "jobs"))
import suites  # noqa: E402 (needs support.py of the tests of jobs)
import support  # noqa: E402
from support import check, skip, start, finish  # noqa: E402

# Set in an emulated guest, which is too slow for the long forms of the programs.
SLOWDOWN = int(os.environ.get("LINTEL_TEST_SLOWDOWN", "1"))
if SLOWDOWN > 1:
    os.environ.pop("LINTEL_TEST_LONG", None)
LONG = bool(os.environ.get("LINTEL_TEST_LONG"))
DEADLINE_S = (1800 if LONG else 300) * SLOWDOWN
MPICH_DEADLINE_S = 90 * SLOWDOWN
FLOOD_DEADLINE_S = 100 * SLOWDOWN
FLOW_CONTROL = "Entering flowctl_start_recover"  # printed by the MTL when flow control begins
REFUSED_TWICE = "refusal witness: a message was refused twice"  # openmpi/refusal_witness.c
FLOODS = 30 if LONG else 1
MOST_REFUSED_TWICE = 25  # for each successful flood
GUEST_TIME_LIMIT_S = 2300

# The components that a job uses. The BTL needs options: it loses messages longer than its eager
# limit, and messages that arrive when its blocks are full (docs/porting.md).
MTL = ["--mca", "pml", "cm", "--mca", "mtl", "portals4"]
OFI = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "lintel", "--mca", "coll", "^portals4"]
CLIENTS = {
    "mtl": [*MTL, "--mca", "osc", "pt2pt", "--mca", "coll", "^portals4"],
    "logical": [*MTL, "--mca", "mtl_portals4_use_logical", "1", "--mca", "osc", "pt2pt", "--mca", "coll", "^portals4"],
    "btl": ["--mca", "pml", "ob1", "--mca", "btl", "portals4,self", "--mca", "osc", "pt2pt", "--mca", "coll", "^portals4",
            "--mca", "btl_portals4_max_send_size", "32768", "--mca", "btl_portals4_recv_md_num", "64"],
    # Over the provider of libfabric.
    "ofi": [*OFI, "--mca", "osc", "pt2pt"],
    "ofi_rdma": [*OFI, "--mca", "btl", "ofi,self", "--mca", "btl_ofi_provider_include", "lintel", "--mca", "osc", "rdma",
                 "--mca", "osc_rdma_btls", "ofi"],
    # Without Lintel, to compare with.
    "vader": ["--mca", "pml", "ob1", "--mca", "btl", "vader,self"],
    "vader_rdma": ["--mca", "pml", "ob1", "--mca", "btl", "vader,self", "--mca", "osc", "rdma",
                   "--mca", "osc_rdma_btls", "vader"],
    "osc": [*MTL, "--mca", "osc", "portals4,sm", "--mca", "coll", "^portals4"],
    "coll": [*MTL, "--mca", "osc", "pt2pt", "--mca", "coll_portals4_priority", "100"],
}
WITHOUT_LINTEL = {"ofi": "vader", "ofi_rdma": "vader_rdma"}
# The longest message that each client can truncate. Beyond it Open MPI waits for ever (mtl) or
# writes past the buffer (ob1); see docs/porting.md.
LONGEST_TRUNCATED = {"mtl": 2048, "logical": 2048, "btl": 30000, "ofi": 1000000}
# Longest message, repetitions, options. The BTL crashes if the last message is long; see
# docs/porting.md.
REPETITIONS = 200 if LONG else 20
NETPIPE = {
    "mtl": [(2, "netpipe", 1000000, REPETITIONS), (2, "netpipe", 1000000, REPETITIONS, "-a", "-2"),
            (2, "netpipe", 4000000, REPETITIONS, "-S", "-z")],
    "logical": [(2, "netpipe", 1000000, REPETITIONS, "-a")],
    "ofi": [(2, "netpipe", 1000000, REPETITIONS), (2, "netpipe", 1000000, REPETITIONS, "-a", "-2")],
    "btl": [(2, "netpipe", 30000, REPETITIONS), (2, "netpipe", 30000, REPETITIONS, "-a", "-2")],
}
EIGHT = (8,) if LONG else ()


# Room for messages to a rank that is without a processor for a while. Otherwise flow control may
# begin, and the MTL loses messages that are refused twice (docs/porting.md).
ROOM = ["--mca", "mtl_portals4_recv_event_queue_size", "65536", "--mca", "mtl_portals4_short_recv_num", "64"]


def point_to_point(client, *sizes):
    return [(ranks, "point_to_point", LONGEST_TRUNCATED[client]) for ranks in sizes]


def cases():
    """Returns for each case its transport, and runs of (client, ranks, program, argument...)."""
    found = {}

    def case(name, transport, client, *runs):
        found[f"{name}_{transport}"] = (transport, [(client, *run) for run in runs])

    for transport in ("shm", "udp"):
        for client in ("mtl", "logical", "btl", "ofi"):
            # Open MPI's BTL self does not report a truncation.
            sizes = (2, 4) if client == "btl" else (1, 2, 4)
            case(f"{client}_point_to_point", transport, client, *point_to_point(client, *sizes, *EIGHT))
            # ob1 searches all messages that arrived early for each receive.
            case(f"{client}_unexpected", transport, client, (2, "unexpected"), (4, "unexpected"),
                 *((ranks, "unexpected") for ranks in EIGHT if client != "btl"))
            case(f"{client}_collectives", transport, client, (2, "collectives"),
                 (8 if LONG or client == "btl" else 4, "collectives"))
        for client in ("mtl", "logical", "ofi"):
            case(f"{client}_threads", transport, client, (1, "threads"), (2, "threads"), (3, "threads"))
        case("ofi_rdma_onesided", transport, "ofi_rdma", *((ranks, "onesided") for ranks in (2, 4, *EIGHT)))
        case("ofi_mpich", transport, "ofi", *((ranks, "mpich", test) for test, ranks in suites.MPICH_MESSAGES))
        case("ofi_rdma_mpich", transport, "ofi_rdma", *((ranks, "mpich", test) for test, ranks in suites.MPICH_MEMORY))
        for part in suites.MPICH_FOLDERS if LONG else ():
            case(f"ofi_mpich_{part}", transport, "ofi_rdma" if part == "memory" else "ofi", (0, "all_of_mpich", part))
        case("osc_onesided", transport, "osc", (2, "onesided"), (4, "onesided"), (8, "onesided"))
        case("coll_collectives", transport, "coll", *((ranks, "collectives") for ranks in (2, 5, *EIGHT)))
        case("mtl_flood_expected", transport, "mtl", (2, "flood", "expected", 3000, 100))
        if LONG:
            # Several senders are often refused twice, and then the MTL fails.
            case("mtl_flood_of_several", transport, "mtl", (4, "flood", "expected", 1000, 100))
        for client in ("mtl", "btl", "coll", "ofi"):
            case(f"{client}_hpcc", transport, client, (2, "hpcc"), (4, "hpcc"), *((ranks, "hpcc") for ranks in EIGHT))
        for client in NETPIPE:
            case(f"{client}_netpipe", transport, client, *NETPIPE[client])
    case("mtl_flood_unexpected", "shm", "mtl", (2, "flood", "unexpected", 40000, 2000))

    # A guest needs a while to start, and is slow.
    found["some_verbs"] = ("verbs", [("mtl", *run) for run in point_to_point("mtl", 2, 8)] +
                           [("osc", 2, "onesided"), ("coll", 2, "collectives")])
    case("mtl", "verbs", "mtl", *point_to_point("mtl", 2, 4, 8), (2, "unexpected"), (4, "unexpected"),
         (2, "collectives"), (8, "collectives"), NETPIPE["mtl"][0])
    case("btl", "verbs", "btl", *point_to_point("btl", 2), (2, "unexpected"), (2, "collectives"), *NETPIPE["btl"])
    case("osc", "verbs", "osc", (2, "onesided"), (4, "onesided"), (8, "onesided"))
    case("mtl_threads", "verbs", "mtl", (2, "threads"))
    case("mtl_flood", "verbs", "mtl", (2, "flood", "expected", 3000, 100))
    case("mtl_hpcc", "verbs", "mtl", (2, "hpcc"))
    return found


CASES = cases()


class Work:
    """The results of `prepare` for the other cases."""

    def __init__(self, build, directory):
        self.build = pathlib.Path(build)
        self.directory = pathlib.Path(directory)
        self.prefix = self.directory / "prefix"
        self.openmpi = self.directory / "openmpi"
        self.components = self.openmpi / "components"
        self.programs = self.directory / "programs"
        self.mpich = self.directory / "mpich"
        self.witness = self.directory / "refusal_witness.so"
        self.unavailable = self.openmpi / "unavailable"

    def require(self, case):
        for reason in (self.unavailable, self.mpich / "unavailable"):
            if reason.exists() and (reason == self.unavailable or "_mpich" in case):
                skip(reason.read_text().removeprefix("SKIPPED: ").strip())
        check(self.components.exists(), "the case prepare has not been run")


def call(command, **options):
    """Runs a step of the preparation; prints its output if it fails."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **options)
    if done.returncode not in (0, support.SKIP):
        print(done.stdout)
        sys.exit(f"FAILED: {command} exited with {done.returncode}")
    return done


def build_programs(work):
    work.programs.mkdir(parents=True, exist_ok=True)
    support_h = HERE / "mpi" / "support.h"
    for source in sorted((HERE / "mpi").glob("*.cc")):
        program = work.programs / source.stem
        newest = max(source.stat().st_mtime, support_h.stat().st_mtime)
        if program.exists() and program.stat().st_mtime > newest:
            continue
        print("-- compiling", source.name)
        call(["mpicxx", "-std=c++20", "-O2", "-pthread", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-DOMPI_SKIP_MPICXX",
              source, "-o", program])


def prepare(work):
    work.openmpi.mkdir(parents=True, exist_ok=True)
    call(["cmake", "--install", work.build, "--prefix", work.prefix])
    built = call([HERE / "openmpi" / "build", work.prefix, work.openmpi])
    print(built.stdout)
    if built.returncode == support.SKIP:
        sys.exit(support.SKIP)
    build_programs(work)
    some = () if LONG else [program for program, _ in suites.MPICH_MESSAGES + suites.MPICH_MEMORY]
    print(call([HERE / "mpich" / "build_suite", work.mpich, *some]).stdout)
    call(["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{work.prefix}/include",
          HERE / "openmpi" / "refusal_witness.c", "-ldl", "-o", work.witness])


def mpirun(work, client, transport, ranks, program, *arguments, options=(), deadline_s=DEADLINE_S, code=0, **process):
    """Runs one program to its end; returns its output."""
    system = call(["ompi_info", "--parsable", "--path", "pkglibdir"]).stdout.strip().rsplit(":", 1)[-1]
    environment = {
        "OMPI_MCA_mca_base_component_path": f"{work.components}:{system}",
        "PTL_TRANSPORT": "local," + transport,
        "FI_PROVIDER_PATH": ":".join(str(path.parent) for path in work.prefix.glob("lib*/lintel/ofi/liblintel-fi.so")),
    }
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", ranks, *CLIENTS[client], *options,
               work.programs / program, *arguments]
    return finish(start(command, environment, **process), code, deadline_s=deadline_s)


def run_program(work, client, transport, ranks, program, *arguments, excuse=None, **options):
    """Runs one program and reads its report about the checks; returns the output of the components. If that
    contains `excuse`, nothing is checked."""
    output, error = mpirun(work, client, transport, ranks, program, *arguments, code="any" if excuse else 0, **options)
    if excuse and excuse in error:
        return error
    found = re.search(rf"^{program}: .*$", output, re.MULTILINE)
    check(found, f"{program} printed: {output}{error}")
    check(f"checks on {ranks} ranks" in found.group(0), output)
    print(f"{ranks} ranks, {client} over {transport}: {found.group(0)}")
    return error


def run_flood(work, client, transport, ranks, *arguments):
    """On a busier machine, the receiver must make no calls for longer until the flood has arrived. Also, the MTL
    loses a message more often that flow control has refused twice (docs/porting.md). Only in these cases the flood
    is repeated."""
    computing_ms, survived, refused_twice = 200, 0, 0
    while survived < FLOODS:
        said = run_one_flood(work, client, transport, ranks, *arguments, computing_ms)
        if REFUSED_TWICE in said:
            refused_twice += 1
            check(refused_twice < MOST_REFUSED_TWICE * FLOODS, f"{refused_twice} floods had a message that was refused twice")
        elif FLOW_CONTROL in said:
            survived += 1
        else:
            check(computing_ms <= 2000, "the flood did not set off flow control: " + said[-2000:])
            computing_ms *= 10
    print(f"{survived} floods survived flow control; {refused_twice} had a message that was refused twice")


def run_one_flood(work, client, transport, ranks, *arguments):
    options = ["--mca", "mtl_base_verbose", "1", "-x", f"LD_PRELOAD={work.witness}"]
    return run_program(work, client, transport, ranks, "flood", *arguments, options=options,
                       deadline_s=FLOOD_DEADLINE_S, excuse=REFUSED_TWICE)


def run_suite(work, client, transport, ranks, program, *arguments):
    def launch(*command, **process):
        return "".join(mpirun(work, client, transport, ranks, *command, options=ROOM, **process))

    print(f"{ranks} ranks, {client} over {transport}: ", end="")
    if program == "mpich":
        suites.mpich(launch, work.mpich, *arguments)
    elif program == "hpcc":
        suites.hpcc(launch, ranks, *((1000, 64) if LONG else (200, 20)))
    else:
        suites.netpipe(launch, *arguments)


def run_all_of_mpich(work, own_client, transport, part):
    def passes(client, ranks, program, *arguments):
        def launch(*command, **process):
            return "".join(mpirun(work, client, transport, ranks, *command, code="any",
                                  deadline_s=MPICH_DEADLINE_S, **process))

        try:
            return suites.mpich_passes(launch, work.mpich, program, *arguments)
        except SystemExit:  # it took too long
            return False

    suites.all_of_mpich(passes, work.mpich, part, own_client, WITHOUT_LINTEL[own_client])


def run_case(work, transport, runs):
    for client, ranks, program, *arguments in runs:
        if program == "flood":
            run_flood(work, client, transport, ranks, *arguments)
        elif program == "all_of_mpich":
            run_all_of_mpich(work, client, transport, *arguments)
        elif program in ("hpcc", "netpipe", "mpich"):
            run_suite(work, client, transport, ranks, program, *arguments)
        else:
            run_program(work, client, transport, ranks, program, *arguments, options=ROOM)


def go_on_where_devices_are(work, case):
    """Replaces this process by one that runs it again on this machine or in a guest, with LINTEL_TEST_NEEDS_RDMA
    set."""
    form = [] if case == "some_verbs" else ["--long"]
    run_on_device = str(HERE.parent / "vm" / "run_on_device")
    sys.stdout.flush()
    os.execv(run_on_device, [run_on_device, *form, "--shards", "1", "--time-limit", str(GUEST_TIME_LIMIT_S), "--cache",
                             str(work.build / "vm"), sys.executable, "-B", *sys.argv])


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(["prepare", *CASES]))
        return
    if len(sys.argv) != 4 or sys.argv[3] not in ("prepare", *CASES):
        sys.exit(__doc__)
    # The tests must not depend on a job in which they run themselves, nor on settings of the user.
    for name in list(os.environ):
        if name.startswith(("PTL_", "PMIX_", "PMI_", "OMPI_", "SLURM_")):
            del os.environ[name]
    work = Work(sys.argv[1], sys.argv[2])
    if sys.argv[3] == "prepare":
        prepare(work)
        return
    work.require(sys.argv[3])
    if "_ofi" in "_" + sys.argv[3] and not list(work.prefix.glob("lib*/lintel/ofi/*.so")):
        skip("the provider of libfabric was not built (libfabric-dev)")
    if CASES[sys.argv[3]][0] == "verbs" and not os.environ.get("LINTEL_TEST_NEEDS_RDMA"):
        go_on_where_devices_are(work, sys.argv[3])
    run_case(work, *CASES[sys.argv[3]])


if __name__ == "__main__":
    main()
