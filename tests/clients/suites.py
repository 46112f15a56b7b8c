"""Public suites of MPI programs in packages of Debian, and how to read their results: HPC Challenge (package hpcc)
and NetPIPE (package netpipe-openmpi).

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
