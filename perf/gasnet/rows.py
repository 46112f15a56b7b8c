"""Prints times of GASNet between two processes, each beside its floor, from one run.

Usage: rows.py <directory of perf_gasnet_am, perf_gasnet_rma, ptl_perf and gasnetrun_portals4> [<row>...]
The rows are am, near, far, attach and memory; without a name, all.
"""
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

programs = pathlib.Path(sys.argv[1])
UDP = {"PTL_TRANSPORT": "udp"}
APART = {**UDP, "GASNET_SUPERNODE_MAXSIZE": "1"}


def run(*command, **variables):
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True, text=True,
                          env={**os.environ, **variables}).stdout


def job(ranks, *command, **variables):
    return run(programs / "gasnetrun_portals4", "-n", ranks, "-spawner=fork", *command, **variables)


def numbers(output):
    return {name: float(value) for name, value in map(str.split, output.splitlines())}


def of_ptl_perf(metric, size, unit, **variables):
    output = run(programs / "ptl_perf", "put", "--metric", metric, "--sizes", size, **variables)
    return float(re.search(rf"^ +{size[0]} {unit} +([\d.]+)", output, re.MULTILINE)[1])


def show(name, value, unit, floor, floor_name):
    print(f"{name:45} {value:9.2f} {unit}, {value / floor:5.2f} x {floor_name} ({floor:.2f} {unit})")


def am():
    for where, variables in (("neighbours", {}), ("UDP", APART)):
        half_us = of_ptl_perf("latency", "8", "B", **(UDP if variables else {}))
        found = numbers(job(2, programs / "perf_gasnet_am", **variables))
        trip_us = found["round_trip_ns"] / 1000
        if variables:
            show(f"Short request and reply, {where}", trip_us, "us", 2 * half_us, "round trip of ptl_perf")
        else:
            show(f"Short request and reply, {where}", trip_us, "us", half_us, "half round trip of ptl_perf")
        print(f"{'Short flood, ' + where + ', per message':45} {found['flood_ns']:9.1f} ns")


def near():
    found = numbers(job(2, programs / "perf_gasnet_rma", "near"))
    show("8-byte put, neighbours", found["put_ns"], "ns", found["store_ns"], "a store through a call")
    show("8-byte get, neighbours", found["get_ns"], "ns", found["load_ns"], "a load through a call")


def far():
    found = numbers(job(2, programs / "perf_gasnet_rma", "far", **APART))
    show("8-byte blocking put, UDP", found["put_ns"] / 1000, "us", found["raw_put_ns"] / 1000, "PtlPut, counted")
    stream = (1 << 20) / found["stream_ns"]
    show("1 MiB puts, UDP", stream, "GB/s", (1 << 20) / found["raw_stream_ns"], "PtlPut, counted")
    output = run(programs / "ptl_perf", "put", "--metric", "bandwidth", "--sizes", "1MiB", **UDP)
    rate = re.search(r"^ +1 MiB +([\d.]+) *$|^ +1 MiB +([\d.]+)", output, re.MULTILINE)
    show("1 MiB puts, UDP", stream, "GB/s", float(rate[1] or rate[2]) / (1 if "GB/s" in output else 1000),
         "the stream of ptl_perf")
    print(f"{'1 MiB get, UDP, from a rank that computes':45} {found['get_from_busy_ns'] / 1e6:9.2f} ms")


def attach():
    whole, alone = [], []
    for _ in range(5):
        start = time.time()
        job(64, "true")
        alone.append(time.time() - start)
        start = time.time()
        output = job(64, programs / "perf_gasnet_rma", "attach")
        whole.append(max(float(line.split()[1]) for line in output.splitlines()) - start)
    show("64 ranks to the end of attach", statistics.median(whole) * 1000, "ms", statistics.median(alone) * 1000,
         "the launcher alone")


def memory():
    for where, variables in (("neighbours", {}), ("UDP", APART)):
        found = job(2, programs / "perf_gasnet_rma", "memory", **variables)
        most = max(float(line.split()[1]) for line in found.splitlines())
        print(f"{'memory of a rank, ' + where:45} {most / 1024:9.1f} MiB")


rows = {row.__name__: row for row in (am, near, far, attach, memory)}
for name in sys.argv[2:] or rows:
    rows[name]()
