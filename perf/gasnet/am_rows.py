"""Prints the times of Shorts between two processes beside ptl_perf's 8-byte matching put, from one run.

Usage: am_rows.py <directory of perf_gasnet_am, ptl_perf and gasnetrun_portals4>
"""
import pathlib
import re
import subprocess
import sys

programs = pathlib.Path(sys.argv[1])


def run(*command):
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True, text=True).stdout


put = run(programs / "ptl_perf", "put", "--metric", "latency", "--sizes", "8")
half_ns = float(re.search(r"^ +8 B +([\d.]+)", put, re.MULTILINE)[1]) * 1000
found = dict(line.split() for line in run(programs / "gasnetrun_portals4", "-n", 2, "-spawner=fork",
                                          programs / "perf_gasnet_am").splitlines())
round_trip_ns = float(found["round_trip_ns"])
print(f"half round trip of an 8-byte put (ptl_perf)  {half_ns:8.1f} ns")
print(f"Short request and reply                      {round_trip_ns:8.1f} ns, {round_trip_ns / half_ns:.2f} x (2 is the floor)")
print(f"Short flood, per message                     {float(found['flood_ns']):8.1f} ns")
