"""Public suites of MPI programs in packages of Debian, and how to read their results: HPC Challenge (package hpcc),
NetPIPE (package netpipe-openmpi), and the tests of MPICH (source package mpich, built by mpich/build_suite).

Each function runs one suite with `launch(program, *arguments, **options of the process)`, which returns the output.
SPDX-License-Identifier: BSD-3-Clause
"""
import pathlib
import re
import shutil
import tempfile

import support
from support import check

# Each line contains a value and its meaning; all combinations are solved. Small values are enough
# for all kinds of messages: HPC Challenge also measures with messages of 8 bytes and of 2 MB.
HPCC_INPUT = """\
HPLinpack benchmark input file
of a test
HPL.out   output file name, ignored
8         device, ignored
1         number of problem sizes
{size}    problem sizes
1         number of block sizes
{block}   block sizes
0         process mapping
1         number of process grids
{rows}    rows of processes
{columns} columns of processes
16.0      threshold of the residual
1         number of panel factorizations
2         panel factorizations
1         number of recursive stopping criteria
4         stopping criteria
1         number of panels in recursion
2         panels
1         number of recursive factorizations
1         recursive factorizations
6         number of broadcasts
0 1 2 3 4 5 broadcasts
2         number of depths of look-ahead
0 1       depths
2         swapping
64        swapping threshold
0         form of L1
0         form of U
1         equilibration
8         alignment in doubles
this line is ignored
0         number of additional problem sizes of PTRANS
1200
0         number of additional block sizes of PTRANS
40
"""
HPL_SOLUTIONS = 6 * 2
PTRANS_TRANSPOSITIONS = 5


def hpcc(launch, ranks, size, block):
    """HPC Challenge: solves and checks linear systems (HPL), transposes (PTRANS), updates tables at random places
    (RandomAccess), transforms (FFT), and measures latency and bandwidth."""
    support.need("hpcc", "hpcc")
    rows = 2 if ranks % 4 == 0 else 1
    with tempfile.TemporaryDirectory(prefix="lintel-hpcc-") as directory:
        directory = pathlib.Path(directory)
        (directory / "hpccinf.txt").write_text(
            HPCC_INPUT.format(size=size, block=block, rows=rows, columns=ranks // rows))
        launch(shutil.which("hpcc"), cwd=directory)
        text = (directory / "hpccoutf.txt").read_text()
    summary = dict(re.findall(r"^(\w+)=(\S+)$", text, re.MULTILINE))

    def expect(condition, what):
        check(condition, f"hpcc: {what}; it wrote:\n{text}")

    expect("End of HPC Challenge tests." in text, "it did not come to its end")
    expect(summary.get("Success") == "1", "it reports a failure")
    expect(summary.get("CommWorldProcs") == str(ranks), f"not {ranks} ranks")
    solutions = re.findall(r"^\|\|Ax-b\|\|_oo/.*= *(\S+) \.{6} (\w+)$", text, re.MULTILINE)
    expect(len(solutions) == HPL_SOLUTIONS and all(float(residual) < 16 and verdict == "PASSED"
                                                   for residual, verdict in solutions), "residuals of HPL")
    transposed = re.findall(r"^WALL .* (\w+) +\S+ +(\S+)$", text, re.MULTILINE)
    expect(transposed == [("PASSED", "0.00")] * PTRANS_TRANSPOSITIONS, "transpositions")
    for name in ("MPIRandomAccess", "MPIRandomAccess_LCG"):
        expect(summary.get(name + "_Errors") == "0" and int(summary[name + "_ExeUpdates"]) > 0, name)
    expect(float(summary["MPIFFT_maxErr"]) < 1e-12 and int(summary["MPIFFT_Procs"]) > 1, "transforms")
    expect(float(summary["MaxPingPongLatency_usec"]) > 0 and float(summary["RandomlyOrderedRingBandwidth_GBytes"]) > 0,
           "latency and bandwidth")
    worst = max(float(residual) for residual, _ in solutions)
    print(f"hpcc: {len(solutions)} systems of {size} solved, largest residual {worst:g}; {len(transposed)} transpositions;"
          f" {summary['MPIRandomAccess_ExeUpdates']} updates; error of the transform {summary['MPIFFT_maxErr']}")


def netpipe(launch, longest_bytes, repetitions, *options):
    """NetPIPE: round trips of messages of growing size, each of which is compared with what was sent."""
    support.need("NPopenmpi", "netpipe-openmpi")
    with tempfile.TemporaryDirectory(prefix="lintel-netpipe-") as directory:
        text = launch(shutil.which("NPopenmpi"), "-i", "-u", longest_bytes, "-n", repetitions, *options, cwd=directory)
    lengths = re.findall(r"^ *\d+: +(\d+) bytes +(\d+) times -->  Integrity check (\w+)$", text, re.MULTILINE)
    check(all(times == str(repetitions) and verdict == "passed" for _, times, verdict in lengths), text)
    # Each length is 1.5 times the one before.
    check(len(lengths) >= 20 and int(lengths[-1][0]) * 2 > longest_bytes, text)
    print(f"netpipe {' '.join(options)}: {len(lengths)} lengths of up to {lengths[-1][0]} bytes, "
          f"{repetitions} times each")


# Tests of MPICH: program, ranks, arguments. These ask most of a provider.
MPICH_MESSAGES = [
    ("pt2pt/sendrecv2", 2), ("pt2pt/sendall", 4), ("pt2pt/anyall", 2), ("pt2pt/isendirecv", 4), ("pt2pt/bsendpending", 2),
    ("pt2pt/icprobe", 4), ("pt2pt/probe_unexp", 4), ("pt2pt/rqfreeb", 4), ("pt2pt/rcancel", 2), ("pt2pt/cancelanysrc", 2),
    ("pt2pt/many_isend", 3), ("pt2pt/manylmt", 2), ("pt2pt/huge_underflow", 2), ("pt2pt/huge_anysrc", 2),
    ("pt2pt/huge_ssend", 2), ("pt2pt/recv_any", 2), ("pt2pt/large_tag", 2), ("comm/dup", 2), ("comm/probe_intercomm", 2),
    ("coll/allredmany", 4), ("coll/alltoallw2", 4), ("coll/bcasttest", 4), ("threads/pt2pt/threaded_sr", 2),
    ("threads/pt2pt/multisend", 2)]
MPICH_MEMORY = [
    ("rma/putfidx", 4), ("rma/accfence2", 4), ("rma/transpose7", 2), ("rma/lockcontention2", 4), ("rma/mixedsync", 4),
    ("rma/contention_putget", 4), ("rma/compare_and_swap", 4), ("rma/fetch_and_op_long", 4), ("rma/reqops", 4),
    ("rma/win_dynamic_acc", 4), ("rma/pscw_ordering", 4)]
MPICH_FOLDERS = {
    "messages": ("pt2pt", "comm", "attr", "group", "init", "topo", "threads/pt2pt", "threads/comm", "threads/init"),
    "collectives": ("coll",), "datatypes": ("datatype",), "memory": ("rma",)}
# Faults of Open MPI with any provider. A cancelled send crashes; a synchronous send whose message
# is claimed (MPI_Mrecv) is not acknowledged. osc/rdma without osc/sm has no shared windows, and its
# cache of registrations ends jobs that free the memory of a window first. It reads the key of a
# dynamic window's region from the target's table without the lock of the table: another rank of the
# node that attaches memory meanwhile moves the regions, and the access has a wrong key.
MPICH_FAULTS_OF_MTL = {"pt2pt/issendselfcancel", "pt2pt/scancel", "pt2pt/scancel2", "pt2pt/pscancel", "pt2pt/cancelrecv",
                       "pt2pt/scancel_unmatch", "pt2pt/mprobe"}
MPICH_FAULTS_OF_OSC = re.compile("rma/(win_shared|test3|fence_shm|mutex_bench_shared|strided_.*_shared|win_zero|win_info|rma_contig|linked_list)")


def mpich_passes(launch, directory, program, *arguments):
    """Runs one test of MPICH, which says what is wrong."""
    path = pathlib.Path(directory) / "tests" / program
    return "No Errors" in launch(path, *arguments, cwd=path.parent)


def mpich(launch, directory, program, *arguments):
    check(mpich_passes(launch, directory, program, *arguments), f"{program} reports errors")
    print("mpich:", program, *arguments)


def lines_of_mpich(directory, folder):
    """Yields program, ranks and arguments of the tests of a folder that were built, without those for settings of MPICH
    alone, and those of long duration or for much memory."""
    source = next(pathlib.Path(directory).glob("source-*/mpich/test/mpi"))
    found = [path / folder / name for path in (pathlib.Path(directory) / "tests", source)
             for name in ("testlist", "testlist.in")]
    seen = set()
    for line in next(path for path in found if path.exists()).read_text().splitlines():
        words = line.split("#")[0].split()
        options = [word.partition("=")[::2] for word in words[2:]]
        if len(words) < 2 or any(name in ("env", "mem", "resultTest", "timeLimit") for name, _ in options):
            continue
        test = (f"{folder}/{words[0]}", min(int(words[1]), 4), *(value for name, value in options if name == "arg"))
        if test not in seen and (pathlib.Path(directory) / "tests" / test[0]).exists():
            seen.add(test)
            yield test


def all_of_mpich(passes, directory, part, client, other):
    """`passes(client, ranks, program, argument...)` runs a test. Nothing may fail with a client that passes with the
    other one."""
    tests = [(ranks, program, *arguments) for folder in MPICH_FOLDERS[part]
             for program, ranks, *arguments in lines_of_mpich(directory, folder)
             if program not in MPICH_FAULTS_OF_MTL and not MPICH_FAULTS_OF_OSC.match(program)]
    failed = [test for test in tests if not passes(client, *test)]
    worse = [test for test in failed if passes(other, *test)]
    print(f"mpich, {part}: {len(tests)} tests, {len(failed)} fail with {client}, {len(worse)} of these not with {other}")
    check(len(tests) > 10 and not worse, f"these pass with {other} only: {worse}")
