"""Prints times of GASNet between two processes, each beside its lower bound, from one run.

Usage: rows.py <directory of perf_gasnet_am, perf_gasnet_rma, perf_gasnet_atomic_vis, perf_gasnet_coll, perf_gasnet_udp_floor, ptl_perf and gasnetrun_portals4> [<row>...]
The rows are am, near, far, atomics, strided, collectives, attach and memory; without a name, all.
"""
import csv
import os
import pathlib
import statistics
import subprocess
import sys
import time

programs = pathlib.Path(sys.argv[1])
UDP = {"PTL_TRANSPORT": "udp"}
APART = {**UDP, "GASNET_SUPERNODE_MAXSIZE": "1"}
REPETITIONS = 5
MIB = 1 << 20


def run(*command, **variables):
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True, text=True,
                          env={**os.environ, **variables}).stdout


def job(ranks, *command, **variables):
    return run(programs / "gasnetrun_portals4", "-n", ranks, "-spawner=fork", *command, **variables)


def numbers(output):
    return {name: float(value) for name, value in map(str.split, output.splitlines())}


def of_ptl_perf(metric, size, **variables):
    output = run(programs / "ptl_perf", "put", "--metric", metric, "--sizes", size, "--csv", "-", **variables)
    return {"ptl_perf_ns": float(next(csv.DictReader(output.splitlines()))["median_ns"])}


def alternately(*measurements):
    """The results of functions that measure in turn, several times. The speed of a machine changes between runs: a
    virtual one has its two processors now in one core complex, now in two."""
    return [{name: value for measure in measurements for name, value in measure().items()} for _ in range(REPETITIONS)]


def show(name, value, unit, floor, floor_name):
    show_medians(name, [None], lambda _: value, unit, lambda _: floor, floor_name)


def show_medians(name, found, value, unit, floor, floor_name):
    """Medians of value(result), of floor(result), and of their ratios."""
    values, floors, ratios = (statistics.median(map(part, found))
                              for part in (value, floor, lambda one: value(one) / floor(one)))
    print(f"{name:45} {values:9.2f} {unit}, {ratios:5.2f} x {floor_name} ({floors:.2f} {unit})")


def am():
    for where, variables in (("neighbours", {}), ("UDP", APART)):
        found = alternately(lambda: numbers(job(2, programs / "perf_gasnet_am", **variables)),
                            lambda: of_ptl_perf("latency", "8", **(UDP if variables else {})))
        halves, floor = (2, "round trip of ptl_perf") if variables else (1, "half round trip of ptl_perf")
        show_medians(f"Short request and reply, {where}", found, lambda one: one["round_trip_ns"] / 1000, "us",
                     lambda one: halves * one["ptl_perf_ns"] / 1000, floor)
        flood_ns = statistics.median(one["flood_ns"] for one in found)
        print(f"{'Short flood, ' + where + ', per message':45} {flood_ns:9.1f} ns")


def near():
    found = numbers(job(2, programs / "perf_gasnet_rma", "near"))
    show("8-byte put, neighbours", found["put_ns"], "ns", found["store_ns"], "a store through a call")
    show("8-byte get, neighbours", found["get_ns"], "ns", found["load_ns"], "a load through a call")


def far():
    found = alternately(lambda: numbers(job(2, programs / "perf_gasnet_rma", "far", **APART)),
                        lambda: of_ptl_perf("bandwidth", "1MiB", **UDP))
    show_medians("8-byte blocking put, UDP", found, lambda one: one["put_ns"] / 1000, "us",
                 lambda one: one["raw_put_ns"] / 1000, "PtlPut, counted")
    # All send one buffer again and again. GASNet and PtlPut start 16 puts and wait for all;
    # ptl_perf has 16 to 32 in flight.
    for name, floor in (("raw_stream_ns", "PtlPut, counted"), ("ptl_perf_ns", "the stream of ptl_perf")):
        show_medians("1 MiB puts, UDP", found, lambda one: MIB / one["stream_ns"], "GB/s",
                     lambda one: MIB / one[name], floor)
    get_ms = statistics.median(one["get_from_busy_ns"] for one in found) / 1e6
    print(f"{'1 MiB get, UDP, from a rank that computes':45} {get_ms:9.2f} ms")


def atomics():
    found = numbers(job(2, programs / "perf_gasnet_atomic_vis", "near"))
    show("fetch-and-add, neighbours", found["fetch_add_ns"], "ns", found["instruction_ns"], "an instruction through a call")
    found = numbers(job(2, programs / "perf_gasnet_atomic_vis", "far", **APART))
    show("fetch-and-add, UDP", found["fetch_add_ns"] / 1000, "us", found["raw_ns"] / 1000, "PtlFetchAtomic")


def strided():
    for where, variables in (("neighbours", {}), ("UDP", APART)):
        for pieces, size in ((512, 256), (512, 8), (64, 4096)):
            found = numbers(job(2, programs / "perf_gasnet_atomic_vis", "strided", pieces, size, **variables))
            name = f"strided put, {pieces} x {size} B, {where}"
            put_us = found["strided_put_ns"] / 1000
            show(name, put_us, "us", found["blocking_puts_ns"] / 1000, "blocking puts")
            show(name, put_us, "us", found["put_loop_ns"] / 1000, "puts in a loop")
            show(name.replace("strided", "gathered"), found["gathered_put_ns"] / 1000, "us", found["put_loop_ns"] / 1000, "puts in a loop")
            show(name.replace("put", "get"), found["strided_get_ns"] / 1000, "us", found["put_loop_ns"] / 1000, "puts in a loop")


def collectives():
    found = numbers(job(2, programs / "perf_gasnet_coll"))
    trip_us = numbers(job(2, programs / "perf_gasnet_am"))["round_trip_ns"] / 1000
    show("barrier of 2, neighbours", found["barrier_ns"] / 1000, "us", trip_us, "a Short and its reply")
    show("sum of 8 bytes of 2, neighbours", found["sum_ns"] / 1000, "us", found["barrier_ns"] / 1000, "the barrier")
    found = numbers(job(4, programs / "perf_gasnet_coll", **APART))
    half_us = of_ptl_perf("latency", "8", **UDP)["ptl_perf_ns"] / 1000
    show("barrier of 4, UDP", found["barrier_ns"] / 1000, "us", 2 * half_us, "2 half round trips of ptl_perf")
    # On fewer processors than ranks each message waits for its receiver to run.
    for name, floor_ns in numbers(run(programs / "perf_gasnet_udp_floor", 4)).items():
        pattern, waiting = name.removesuffix("_ns").split("_")
        show("barrier of 4, UDP", found["barrier_ns"] / 1000, "us", floor_ns / 1000, f"a {pattern} over bare sockets that {waiting}")
    show("sum of 8 bytes of 4, UDP", found["sum_ns"] / 1000, "us", found["barrier_ns"] / 1000, "the barrier")


def attach():
    def seconds(what):
        start = time.time()
        output = job(64, programs / "perf_gasnet_rma", what)
        return max(float(line.split()[1]) for line in output.splitlines()) - start

    # A program that is linked in the same way takes longer to load than one that needs only libc.
    floors = {"the launcher alone": ("true",), "a program linked alike": (programs / "perf_gasnet_rma", "nothing")}
    whole, opened, alone = [], [], {name: [] for name in floors}
    for _ in range(7):
        for name, command in floors.items():
            start = time.time()
            job(64, *command)
            alone[name].append(time.time() - start)
        opened.append(seconds("open"))
        whole.append(seconds("attach"))
    for name, times in (*alone.items(), ("to the end of PtlJobOpen", opened)):
        show("64 ranks to the end of attach", statistics.median(whole) * 1000, "ms", statistics.median(times) * 1000, name)


def memory():
    for where, variables in (("neighbours", {}), ("UDP", APART)):
        found = job(2, programs / "perf_gasnet_rma", "memory", **variables)
        most = max(float(line.split()[1]) for line in found.splitlines())
        print(f"{'memory of a rank, ' + where:45} {most / 1024:9.1f} MiB")


rows = {row.__name__: row for row in (am, near, far, atomics, strided, collectives, attach, memory)}
for name in sys.argv[2:] or rows:
    rows[name]()
