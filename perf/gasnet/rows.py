#!/usr/bin/env python3
"""Measures GASNet beside its lower bounds, in turn, and compares the ratios with their targets."""

import argparse
import csv
import os
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from compare_lib import distance, machine, report, setup  # noqa: E402
from compare_lib.programs import Floor  # noqa: E402
from compare_lib.rounds import Schedule, ratios  # noqa: E402
from compare_lib.rows import Row, Target  # noqa: E402

UDP = {"PTL_TRANSPORT": "udp"}
APART = {**UDP, "GASNET_SUPERNODE_MAXSIZE": "1"}
MIB = 1 << 20


class Programs:
    """The programs of a build directory, and what they print."""

    def __init__(self, directory):
        self._directory = directory

    def run(self, *command, **variables):
        return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True, text=True,
                              env={**os.environ, **variables}).stdout

    def job(self, ranks, *command, **variables):
        return self.run(self._directory / "gasnetrun_portals4", "-n", ranks, "-spawner=fork", *command, **variables)

    def path(self, name):
        return self._directory / name

    def numbers(self, ranks, name, *arguments, **variables):
        """name -> number, as a job of that program prints them."""
        return self._read(self.job(ranks, self.path(name), *arguments, **variables))

    def udp_floor(self, ranks):
        return self._read(self.run(self.path("perf_gasnet_udp_floor"), ranks))

    def ptl_perf_ns(self, metric, size, **variables):
        output = self.run(self.path("ptl_perf"), "put", "--metric", metric, "--sizes", size, "--csv", "-", **variables)
        return float(next(csv.DictReader(output.splitlines()))["median_ns"])

    @staticmethod
    def _read(output):
        return {name: float(value) for name, value in map(str.split, output.splitlines())}


def row(name, unit, target, above, below, measured=None):
    return Row(name, unit, target, ratios(above, below), measured or {})


def part(found, name, divisor=1):
    return [one[name] / divisor for one in found]


def am(programs, schedule):
    rows = []
    for where, variables, halves, floor, target in (
            ("neighbours", {}, 1, "half round trip of ptl_perf", Target(3, 2.2)),
            ("UDP", APART, 2, "round trip of ptl_perf", Target(1.3, 1.1))):
        found = schedule.alternate({
            "gasnet": lambda: programs.numbers(2, "perf_gasnet_am", **variables),
            "ptl_perf": lambda: halves * programs.ptl_perf_ns("latency", "8", **(UDP if variables else {}))})
        trips = part(found["gasnet"], "round_trip_ns")
        rows += found.tell([row(f"Short request and reply, {where}", f"x {floor}", target, trips, found["ptl_perf"],
                        {"ns": trips, f"{floor}, ns": found["ptl_perf"]})])
        if not variables:
            rows += found.tell([Row("Short flood, neighbours, per message", "ns", Target(150, 70),
                                    part(found["gasnet"], "flood_ns"))])
    return rows


def near(programs, schedule):
    found = schedule.alternate({"gasnet": lambda: programs.numbers(2, "perf_gasnet_rma", "near")})
    gasnet = found["gasnet"]
    return found.tell([
        row(f"8-byte {call}, neighbours", f"x {floor} through a call", Target(3, 1.3), part(gasnet, f"{call}_ns"),
            part(gasnet, f"{floor}_ns"), {"ns": part(gasnet, f"{call}_ns")})
        for call, floor in (("put", "store"), ("get", "load"))])


def far(programs, schedule):
    found = schedule.alternate({
        "gasnet": lambda: programs.numbers(2, "perf_gasnet_rma", "far", **APART),
        "ptl_perf": lambda: programs.ptl_perf_ns("bandwidth", "1MiB", **UDP)})
    gasnet = found["gasnet"]
    # All send one buffer again and again. GASNet and PtlPut start 16 puts and wait for all;
    # ptl_perf has 16 to 32 in flight.
    return found.tell([
        row("8-byte blocking put, UDP", "x PtlPut, counted", Target(1.2, 1.05), part(gasnet, "put_ns"),
            part(gasnet, "raw_put_ns"), {"us": part(gasnet, "put_ns", 1000)}),
        row("1 MiB puts, UDP", "x the stream of ptl_perf", Target(0.9, 1, upwards=True), found["ptl_perf"],
            part(gasnet, "stream_ns"),
            {"GB/s": [MIB / one for one in part(gasnet, "stream_ns")],
             "stream of ptl_perf, GB/s": [MIB / one for one in found["ptl_perf"]],
             "PtlPut, counted, GB/s": [MIB / one for one in part(gasnet, "raw_stream_ns")]}),
        Row("1 MiB get, UDP, from a rank that computes", "ms", Target(5, 1.5), part(gasnet, "get_from_busy_ns", 1e6)),
    ])


def atomics(programs, schedule):
    found = schedule.alternate({
        "near": lambda: programs.numbers(2, "perf_gasnet_atomic_vis", "near"),
        "far": lambda: programs.numbers(2, "perf_gasnet_atomic_vis", "far", **APART)})
    return found.tell([
        row("fetch-and-add, neighbours", "x an instruction through a call", Target(3, 1.3),
            part(found["near"], "fetch_add_ns"), part(found["near"], "instruction_ns"),
            {"ns": part(found["near"], "fetch_add_ns")}),
        row("fetch-and-add, UDP", "x PtlFetchAtomic", Target(1.2, 1.05), part(found["far"], "fetch_add_ns"),
            part(found["far"], "raw_ns"), {"us": part(found["far"], "fetch_add_ns", 1000)}),
    ])


def strided(programs, schedule):
    def measure(pieces, size, variables):
        return lambda: programs.numbers(2, "perf_gasnet_atomic_vis", "strided", pieces, size, **variables)

    shapes = {f"{pieces} x {size} B, {where}": measure(pieces, size, variables)
              for where, variables in (("neighbours", {}), ("UDP", APART))
              for pieces, size in ((512, 256), (512, 8), (64, 4096))}
    found = schedule.alternate(shapes)
    asked = found["512 x 256 B, UDP"]
    rows = [row("strided put, 512 x 256 B, UDP", "x 512 blocking puts", Target(0.1, 0.05),
                part(asked, "strided_put_ns"), part(asked, "blocking_puts_ns"),
                {"us": part(asked, "strided_put_ns", 1000)})]
    for shape in shapes:
        rows += [row(f"{call}, {shape}", f"x {loop}s in a loop", Target(1.05, 1), part(found[shape], value),
                     part(found[shape], f"{loop}_loop_ns"), {"us": part(found[shape], value, 1000)})
                 for call, value, loop in (("strided put", "strided_put_ns", "put"),
                                           ("gathered put", "gathered_put_ns", "put"),
                                           ("strided get", "strided_get_ns", "get"))]
    return found.tell(rows)


def collectives(programs, schedule):
    near = schedule.alternate({"coll": lambda: programs.numbers(2, "perf_gasnet_coll"),
                               "am": lambda: programs.numbers(2, "perf_gasnet_am")})
    far = schedule.alternate({"pair": lambda: programs.numbers(2, "perf_gasnet_coll", **APART),
                              "coll": lambda: programs.numbers(4, "perf_gasnet_coll", **APART),
                              "ptl_perf": lambda: 2 * programs.ptl_perf_ns("latency", "8", **UDP),
                              # On few processors each message waits for its receiver to run.
                              "sockets": lambda: programs.udp_floor(4)})
    barriers = part(far["coll"], "barrier_ns")
    pairs = part(far["pair"], "barrier_ns")
    sockets = {name: part(far["sockets"], name, 1000) for name in far["sockets"][0]}
    return near.tell([
        row(f"{kind} of 2, neighbours", "x a Short and its reply", Target(1.5, 0.7), part(near["coll"], name),
            part(near["am"], "round_trip_ns"), {"us": part(near["coll"], name, 1000)})
        for kind, name in (("barrier", "barrier_ns"), ("named barrier", "named_ns"), ("anonymous barrier", "anonymous_ns"))
    ]) + far.tell([
        # One step of the barrier of 4, with a processor for each rank.
        row("barrier of 2, UDP", "x half round trip of ptl_perf", Target(1.6, 1.1), pairs,
            [two / 2 for two in far["ptl_perf"]], {"us": part(far["pair"], "barrier_ns", 1000)}),
        row("barrier of 4, UDP", "x 2 half round trips of ptl_perf", Target(1.6, 1.1), barriers, far["ptl_perf"],
            {"us": part(far["coll"], "barrier_ns", 1000),
             **{f"a {pattern} over bare sockets that {waiting}, us": times
                for (pattern, waiting), times in
                ((name.removesuffix("_ns").split("_"), times) for name, times in sockets.items())}}),
        row("sum of 8 bytes of 4, UDP", "x the barrier", Target(1.5, 1.1), part(far["coll"], "sum_ns"), barriers,
            {"us": part(far["coll"], "sum_ns", 1000)}),
    ])


def attach(programs, schedule):
    def milliseconds(*command):
        start = time.time()
        output = programs.job(64, *command)
        ends = [float(line.split()[1]) for line in output.splitlines()] or [time.time()]
        return (max(ends) - start) * 1000

    rma = programs.path("perf_gasnet_rma")
    found = schedule.alternate({
        "the launcher alone": lambda: milliseconds("true"),
        # A program that is linked alike takes longer to load than one that needs only libc.
        "a program linked alike": lambda: milliseconds(rma, "nothing"),
        "to the end of PtlJobOpen": lambda: milliseconds(rma, "open"),
        "attached": lambda: milliseconds(rma, "attach")})
    return found.tell([
        row("64 ranks to the end of attach", "x the launcher alone", Target(3, 1.5), found["attached"],
            found["the launcher alone"], {f"{name}, ms": times for name, times in found.items()})])


def memory(programs, schedule):
    def mebibytes(**variables):
        output = programs.job(2, programs.path("perf_gasnet_rma"), "memory", **variables)
        return max(float(line.split()[1]) for line in output.splitlines()) / 1024

    found = schedule.alternate({"neighbours": mebibytes, "UDP": lambda: mebibytes(**APART)})
    return found.tell([Row(f"memory of a rank beside its segment, {where}", "MiB", Target(32, 12), values)
                       for where, values in found.items()])


GROUPS = {group.__name__: group for group in (am, near, far, atomics, strided, collectives, attach, memory)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", type=Path, help="where the programs of this build are: BUILD/bin")
    parser.add_argument("groups", nargs="*", metavar="group", help=f"only these: {', '.join(GROUPS)}")
    parser.add_argument("--rounds", type=int, default=5, help="alternating rounds behind each ratio (5)")
    parser.add_argument("--output", type=Path, metavar="DIR", help="writes gasnet.md and gasnet.json to DIR")
    options = parser.parse_args()
    unknown = set(options.groups) - set(GROUPS)
    if unknown:
        parser.error(f"no such group: {' '.join(sorted(unknown))}")
    console = report.Console()
    programs = Programs(options.programs)
    cpus = sorted(os.sched_getaffinity(0))[:2]
    facts = machine.describe(cpus)
    floor = setup.compile_program("c++", options.programs.parent / "perf" / "perf_floor",
                                  [setup.ROOT / "perf" / "floor" / "floor.cc"], [], console.say)
    schedule = Schedule(options.rounds, console.progress, Floor(floor, cpus).cache_line_ns)
    measured = []
    for name in options.groups or GROUPS:
        console.stage(name)
        measured += [one.as_dict() for one in GROUPS[name](programs, schedule)]
    console.clear()
    apart = distance.apart(measured)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        (options.output / "gasnet.md").write_text(
            report.targets_markdown(measured) + ("\n" + report.apart_markdown(apart) if apart else ""))
        report.write_json(options.output / "gasnet.json", {
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "machine": facts, "rounds": options.rounds,
            "rows": measured})
    print(machine.headline(facts))
    for table in (report.targets_table(measured), report.apart_table(apart) if apart else "",
                  report.measured_table(measured)):
        if table:
            print("\n" + table)


if __name__ == "__main__":
    main()
