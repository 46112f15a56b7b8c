#!/usr/bin/env python3
"""Tests of ptl_perf and ptl_info as a user meets them: run, look at the output and the exit code.

Usage: run_tool_test.py --list
       run_tool_test.py <ptl_perf> <ptl_info> <fault shim> <case>
SPDX-License-Identifier: BSD-3-Clause
"""

import contextlib
import csv
import io
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

DEADLINE_S = 50
TINY = ["--time", "0.005"]

# Exit codes of ptl_perf, as docs/performance.md gives them.
USAGE, WRONG_DATA, PEER_LOST, DEADLINE = 2, 3, 4, 5
SKIPPED = 77  # for ctest

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def check(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


class Tools:
    def __init__(self, perf, info, shim):
        self.perf_program = perf
        self.info_program = info
        self.shim = shim

    def run(self, command, code=0, environment=None):
        """Runs a command that shall exit with `code`; returns its standard output and error."""
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=DEADLINE_S,
                              env={**os.environ, **(environment or {})})
        codes = code if isinstance(code, tuple) else (code,)
        if done.returncode not in codes:
            print(done.stdout, done.stderr, sep="\n")
        check(done.returncode in codes, f"{command} exited with {done.returncode}, not {code}")
        return done.stdout, done.stderr

    def perf(self, *arguments, code=0, environment=None):
        return self.run([self.perf_program, *arguments], code, environment)

    def results(self, *arguments, environment=None):
        document = json.loads(self.perf(*arguments, "--json", "-", environment=environment)[0])
        check(document["results"], "no results")
        for row in document["results"]:
            check_row(row)
        return document["results"]

    def info(self, *arguments, code=(0, 1), environment=None):
        """1: it has found something wrong, as it may on any node."""
        return self.run([self.info_program, *arguments], code, environment)


def check_row(row):
    for key in ("test", "metric", "configuration", "meaning"):
        check(row.get(key), f"{key} is missing in {row}")
    if "median_ns" in row:
        ordered = [row["min_ns"], row["median_ns"], row["p99_ns"], row["max_ns"]]
        check(0 < ordered[0] and ordered == sorted(ordered), f"the distribution is not in order: {row}")
        check(row["min_ns"] * 0.999 <= row["mean_ns"] <= row["max_ns"] * 1.001, f"mean out of range: {row}")
        check(row["operations"] == row["batch"] * row["samples"], f"operations, batch, samples: {row}")
    if "bandwidth_bytes_per_s" in row:
        expected = row["rate_per_s"] * row["size_bytes"]
        check(abs(row["bandwidth_bytes_per_s"] - expected) <= 1e-6 * expected, f"bandwidth and rate: {row}")


def check_verified(tools, test, sizes, *variants):
    """Runs a test with --verify in several ways; every one must give the sizes that were asked for."""
    for variant in variants:
        rows = tools.results(test, "--verify", *TINY, "--sizes", ",".join(map(str, sizes)), *variant.split())
        for row in rows:
            check(row["test"] == test, f"{row['test']} instead of {test}")
        check({row["size_bytes"] for row in rows} == set(sizes), f"sizes of {test} {variant}")


WAYS = ("--window 16", "--window 16 --no-matching --events counting", "--window 5 --logical --wait poll",
        "--window 16 --no-matching --logical", "--window 16 --events counting --wait poll --buffers 3")
ODD_SIZES = (0, 1, 7, 8, 64, 65, 500, 4096, 5000, 70000, 300001)


@case
def perf_put(tools):
    check_verified(tools, "put", ODD_SIZES, *WAYS)


@case
def perf_put_acknowledgments(tools):
    for ack in ("full", "ct", "oc", "none"):
        check_verified(tools, "put", (8, 3000), f"--metric rate,bandwidth --ack {ack}",
                       f"--metric bandwidth --ack {ack} --window 6 --no-matching --events counting")
    for ack in ("full", "ct", "oc"):
        check_verified(tools, "put", (8, 3000), f"--metric completion --ack {ack}")


@case
def perf_put_without_direct_reading(tools):
    rows = tools.results("put", "get", "--verify", *TINY, "--window", "8", "--sizes", "100000,1M",
                         environment={"PTL_SHM_CMA": "0"})
    check(len(rows) == 8, f"{len(rows)} rows")


@case
def perf_get(tools):
    check_verified(tools, "get", ODD_SIZES, *WAYS)


@case
def perf_atomic(tools):
    for operation in ("sum", "min", "max", "diff", "prod", "lor", "land", "bor", "band", "lxor", "bxor"):
        check_verified(tools, "atomic", (4, 100), f"--operation {operation} --datatype int32")
    check_verified(tools, "atomic", (8, 512), *WAYS, "--datatype double", "--metric completion")


@case
def perf_fetch_atomic(tools):
    for operation in ("sum", "min", "max", "diff", "prod", "lor", "land", "bor", "band", "lxor", "bxor"):
        check_verified(tools, "fetch-atomic", (4, 100), f"--operation {operation} --datatype int32")
    check_verified(tools, "fetch-atomic", (8, 512), *WAYS, "--datatype double")


@case
def perf_swap(tools):
    check_verified(tools, "swap", (8, 512), *WAYS, "--datatype double")
    check_verified(tools, "swap", (8,), "--swap-operation mswap", "--swap-operation cswap --metric latency",
                   "--swap-operation cswap --metric latency --datatype double")


@case
def perf_triggered(tools):
    for way in ("", "--no-matching --logical"):
        rows = tools.results("triggered", "--verify", *TINY, "--chain", "160", "--sizes", "8,100", *way.split())
        check([row["metric"] for row in rows] == ["increment"] * 2 + ["arm"] * 2 + ["ping-pong"] * 2, "metrics")
        check(rows[0]["parameter_value"] == 160, "length of the chain")


@case
def perf_match_depth(tools):
    for shapes in ("exact", "mixed"):
        rows = tools.results("match-depth", "--verify", *TINY, "--depths", "0,1,300", "--shapes", shapes)
        check([row["parameter_value"] for row in rows] == [0, 1, 300], "depths")


@case
def perf_unexpected_depth(tools):
    for order in ("oldest", "newest", "random"):
        rows = tools.results("unexpected-depth", *TINY, "--depths", "0,1,300", "--claim", order)
        check([row["parameter_value"] for row in rows] == [0, 1, 300], "depths")


@case
def perf_overlap(tools):
    rows = tools.results("overlap", "--verify", "--iterations", "3", "--compute-ms", "20", "--sizes", "8,1M")
    check(all(0 <= row["in_time_percent"] <= 100 for row in rows), "share of gets in time")


@case
def perf_idle(tools):
    rows = tools.results("idle", "--idle-seconds", "0.3")
    check([row["metric"] for row in rows] == ["no calls", "in PtlEQWait", "in PtlCTWait"], "states")
    check(all(row["resident_mib"] > 1 for row in rows), "resident memory")


@case
def perf_pairs(tools):
    rows = tools.results("put", "--pairs", "4", "--verify", *TINY, "--sizes", "8,5000")
    check(len(rows) == 4, f"{len(rows)} rows")


@case
def perf_short_run(tools):
    text, _ = tools.perf("--time", "0.02")
    for needed in ("library", "machine", "kernel", "processes", "half round trip", "median us", "p99 us", "max us",
                   "rate 1/s", "MiB/s", "put latency", "put rate", "put bandwidth", "get latency"):
        check(needed in text, f"'{needed}' is missing in the output")


@case
def perf_csv(tools):
    rows = list(csv.DictReader(io.StringIO(tools.perf("put", "idle", *TINY, "--sizes", "8,64", "--idle-seconds", "0.2",
                                                      "--csv", "-")[0])))
    check(len(rows) == 4 + 3, f"{len(rows)} rows")
    check(all(None not in row and None not in row.values() for row in rows), "rows of different length")
    check(float(rows[0]["mean_ns"]) > 0 and rows[0]["size_bytes"] == "8", f"first row {rows[0]}")
    check(float(rows[-1]["processor_percent"]) >= 0, f"last row {rows[-1]}")


@case
def perf_json_file(tools):
    path = f"perf-{os.getpid()}.json"
    try:
        text, _ = tools.perf("put", *TINY, "--sizes", "8", "--json", path)
        check("put latency" in text, "the table is missing when JSON goes to a file")
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    finally:
        if os.path.exists(path):
            os.remove(path)
    for key in ("library", "interface", "machine", "processes", "pinning", "clock", "settings", "terms"):
        check(key in document, f"{key} is missing")


@case
def perf_iterations(tools):
    row, = tools.results("put", "--metric", "latency", "--sizes", "8", "--iterations", "1000", "--batch", "10",
                         "--warm-up", "0")
    check((row["operations"], row["batch"], row["samples"]) == (1000, 10, 100), f"iterations: {row}")


@case
def perf_bad_options(tools):
    for arguments, needed in (
            (["nothing"], "put|get|atomic"),
            (["put", "--events", "some"], "counting|full"),
            (["put", "--sizes", "3x"], "KiB"),
            (["put", "--sizes", "3GiB"], "up to 2 GiB"),
            (["put", "--window", "0"], "range 1"),
            (["put", "--min", "8k", "--max", "4k"], "--max"),
            (["put", "--metric", "speed"], "latency|completion"),
            (["put", "--interface", "fast"], "ptl_info"),
            (["put", "--metric", "completion", "--ack", "none"], "full|ct|oc"),
            (["atomic", "--operation", "bor", "--datatype", "double"], "int32|int64"),
            (["match-depth", "--no-matching"], "match list entries"),
            (["put", "--no-such-option"], "--no-such-option"),
            (["put", "--json", "/nonexistent/file"], "/nonexistent/file"),
            (["atomic", "--sizes", "3"], "multiples of 8 B")):
        _, error = tools.perf(*arguments, code=USAGE)
        check(needed in error, f"{arguments}: the complaint does not say '{needed}': {error}")


@case
def perf_notices_wrong_data(tools):
    for fault, needed in (("data", "wrong data"), ("behind", "behind the end")):
        environment = {"LD_PRELOAD": tools.shim, "TOOL_TEST_FAULT": fault,
                       "ASAN_OPTIONS": "verify_asan_link_order=0"}
        _, error = tools.perf("put", "--metric", "latency", "--sizes", "1000", "--iterations", "100", "--verify",
                              code=WRONG_DATA, environment=environment)
        check(needed in error, f"{fault}: {error}")


def with_stand_ins(tools):
    """The environment in which programs find the stand-ins for drivers of accelerators."""
    directory = pathlib.Path(tools.perf_program).resolve().parent.parent / "lib/fake_drivers"
    if not directory.is_dir():
        print("the stand-ins for drivers are not built")
        sys.exit(SKIPPED)
    return {"LD_LIBRARY_PATH": str(directory)}


@case
def perf_names_devices(tools):
    for arguments in ("put --memory gpu:0", "put --memory cuda", "put --memory cuda:x", "put --memory host,cuda:0,ze:0",
                      "atomic --memory cuda:0", "--memory cuda:0"):
        _, errors = tools.perf(*arguments.split(), code=USAGE)
        check("--memory" in errors, f"{arguments}: {errors}")
    _, errors = tools.perf("put", *TINY, "--memory", "cuda:7", code=1, environment=with_stand_ins(tools))
    check("cuda:7" in errors, errors)


@case
def perf_memory_of_devices(tools):
    environment = {**with_stand_ins(tools), "FAKE_DEVICE_DELAY_US": "2"}
    for memory in ("cuda:0", "host,hip:0", "ze:0,host"):
        for way in ("--window 8", "--no-matching --events counting --window 5 --buffers 2"):
            rows = tools.results("put", "get", "--verify", *TINY, *way.split(), "--sizes", "8,5000,300001",
                                 "--memory", memory, environment=environment)
            check({row["size_bytes"] for row in rows} == {8, 5000, 300001}, memory)
            check(all("memory of" in row["configuration"] for row in rows), memory)


@case
def perf_says_the_way_of_data(tools):
    """The line at the first message with each peer, and PTL_STATS."""
    environment = {**with_stand_ins(tools), "PTL_STATS": "1", "PTL_LOG_LEVEL": "info"}
    for no_export, way, counted in (("0", "the device copies", "messages copied by the device"),
                                    ("1", "through buffers of the host, since ", "messages staged")):
        _, errors = tools.perf("put", *TINY, "--sizes", "300001", "--memory", "cuda:0",
                               environment={**environment, "FAKE_DEVICE_NO_EXPORT": no_export})
        check(re.search(rf"memory of devices, messages with .+ by shm: {way}", errors), errors)
        check(re.search(rf"interface \d+ memory of devices: {counted} [1-9]", errors), errors)


@case
def info_lists_accelerators(tools):
    environment = {**with_stand_ins(tools), "FAKE_DEVICE_COUNT": "2"}
    facts = json.loads(tools.info("--json", environment=environment)[0])["accelerators"]
    check([each["driver"] for each in facts] == ["cuda", "hip", "ze"], facts)
    check(all(each["usable"] and each["devices"] == ["Stand-in 0", "Stand-in 1"] for each in facts), facts)
    check(all(each["within_node"] == "the device copies" for each in facts), facts)
    check(all("dmabuf" in each["by_networks"] for each in facts), facts)
    screen, _ = tools.info(environment=environment)
    check("cuda:1  Stand-in 1" in screen and "within a node  the device copies" in screen, screen)
    facts = json.loads(tools.info("--json", environment={**environment, "FAKE_DEVICE_NO_EXPORT": "1"})[0])
    check(all("buffers of the host" in each["within_node"] for each in facts["accelerators"]), facts)
    facts = json.loads(tools.info("--json", environment={**environment, "PTL_DEVICE_MEMORY": "off"})[0])["accelerators"]
    check(not any(each["usable"] for each in facts), facts)
    check(all(each["reason"] == "PTL_DEVICE_MEMORY=off" for each in facts), facts)


@case
def info_shows_distances(tools):
    """Of ports from accelerators, by a tree of PCI devices in the place of sysfs."""
    script = """set -e
        mount -t tmpfs class /sys/class; mount -t tmpfs bus /sys/bus
        roots=/sys/class/roots; devices=/sys/bus/pci/devices
        mkdir -p $devices $roots/pci0000:3a/0000:3b:00.0 $roots/pci0000:ae/0000:3c:00.0 $roots/pci0000:3a/0000:3d:00.0
        mkdir -p /sys/class/net/port0 /sys/class/net/without
        ln -s $roots/pci0000:3a/0000:3b:00.0 $roots/pci0000:ae/0000:3c:00.0 $devices
        ln -s $roots/pci0000:3a/0000:3d:00.0 /sys/class/net/port0/device
        exec "$@" """
    outside = ["unshare", "--mount", "--map-root-user"]
    if subprocess.run([*outside, "mount", "-t", "tmpfs", "class", "/sys/class"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("namespaces may not be made")
        sys.exit(SKIPPED)
    environment = {**os.environ, **with_stand_ins(tools), "FAKE_DEVICE_COUNT": "2"}
    done = subprocess.run([*outside, "sh", "-c", script, "sh", tools.info_program, "--json"], stdout=subprocess.PIPE, text=True,
                          env=environment, timeout=DEADLINE_S, check=False)
    facts = json.loads(done.stdout)["accelerators"]
    wanted = ["Stand-in 0 (ports: port0 at the same root)", "Stand-in 1 (ports: port0 far)"]
    check([each["devices"] for each in facts] == [wanted] * 3, facts)


def start_long(tools, *arguments):
    """ptl_perf at work for much longer than the test; returns it and its two processes."""
    process = subprocess.Popen([tools.perf_program, "put", *arguments], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    children_file = f"/proc/{process.pid}/task/{process.pid}/children"
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end and process.poll() is None:
        with open(children_file, encoding="ascii") as file:
            children = [int(word) for word in file.read().split()]
        if len(children) == 2 and all(processor_time(child) > 0.2 for child in children):
            return process, children
        time.sleep(0.02)
    process.kill()
    return sys.exit(f"FAILED: ptl_perf did not start to work: {process.communicate()[1]}")


def processor_time(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def finish(process, code):
    try:
        _, error = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return sys.exit("FAILED: ptl_perf hangs")
    check(process.returncode == code, f"exit code {process.returncode}, not {code}: {error}")
    return error


@case
def perf_notices_killed_process(tools):
    for victim in (0, 1):
        process, children = start_long(tools, "--metric", "latency", "--sizes", "8", "--time", "600")
        os.kill(children[victim], signal.SIGKILL)
        error = finish(process, PEER_LOST)
        check("signal 9" in error or "cannot be reached" in error, error)


@case
def perf_ends_with_the_reader_of_its_output(tools):
    """Without a complaint, as in `ptl_perf | head`."""
    process = subprocess.Popen([tools.perf_program, "put", "--metric", "latency", "--time", "1", "--sizes", "8,64,512"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while "size" not in process.stdout.readline():
        pass
    process.stdout.close()
    error = process.stderr.read()
    check(process.wait(DEADLINE_S) != 0 and not error, error)


@case
def perf_keeps_deadline(tools):
    process, children = start_long(tools, "--time", "1", "--deadline", "1")
    os.kill(children[1], signal.SIGSTOP)
    error = finish(process, DEADLINE)
    check("no progress" in error, error)


@case
def perf_job_from_environment(tools):
    nid = json.loads(tools.info("--json")[0])["opened"]["nid"]
    base = 5000 + 4 * (os.getpid() % 10000)
    job = {"PTL_NIDMAP": f"{nid}:{nid}", "PTL_PIDMAP": f"{base}:{base + 1}"}
    command = [tools.perf_program, "put", "unexpected-depth", "--depths", "10", "--verify", *TINY, "--sizes", "8,5000",
               "--json", "-"]
    # The first rank to come waits for the other one: start them in this order and in the other.
    for order in ((0, 1), (1, 0)):
        ranks = {}
        for rank in order:
            ranks[rank] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                           env={**os.environ, **job, "PTL_MY_RID": str(rank)})
            time.sleep(0.1)
        outputs = {rank: process.communicate(timeout=DEADLINE_S) for rank, process in ranks.items()}
        for rank, process in ranks.items():
            check(process.returncode == 0, f"rank {rank}: {outputs[rank][1]}")
        check(len(json.loads(outputs[0][0])["results"]) == 5, "results of rank 0")
        check(outputs[1][0] == "", "rank 1 printed something")
    for wrong, needed in (({"PTL_MY_RID": "2"}, "below 2"), ({"PTL_MY_RID": "0", "PTL_PIDMAP": "1"}, "PTL_PIDMAP 1"),
                          ({"PTL_MY_RID": "0", "PTL_NIDMAP": "a:b"}, "'a'")):
        _, error = tools.perf("put", code=USAGE, environment={**job, **wrong})
        check(needed in error, f"{wrong}: {error}")


@case
def perf_says_that_processes_are_bound(tools):
    """Each to a core of its own, as launchers do: they do not share the core that each may use."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        print("skipped: it needs two cores")
        sys.exit(SKIPPED)
    base = 5000 + 4 * (os.getpid() % 10000)
    nid = json.loads(tools.info("--json")[0])["opened"]["nid"]
    ranks = [subprocess.Popen([tools.perf_program, "put", *TINY, "--sizes", "8"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, preexec_fn=lambda core=core: os.sched_setaffinity(0, {core}),
                              env={**os.environ, "PTL_NIDMAP": f"{nid}:{nid}", "PTL_PIDMAP": f"{base}:{base + 1}",
                                   "PTL_MY_RID": str(rank)}) for rank, core in enumerate(cores)]
    outputs = [process.communicate(timeout=DEADLINE_S) for process in ranks]
    check("; bound by the launcher: each process has 1 core of its own\n" in outputs[0][0], outputs)


@case
def perf_statistics(tools):
    """PTL_STATS tells of each transport, with host, process and rank."""
    base = 5000 + 4 * (os.getpid() % 10000) + 2
    nid = json.loads(tools.info("--json")[0])["opened"]["nid"]
    with tempfile.TemporaryDirectory() as directory:
        for wanted in ("1", f"file:{directory}/stats"):
            ranks = [subprocess.Popen([tools.perf_program, "put", *TINY, "--sizes", "8"], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True,
                                      env={**os.environ, "PTL_NIDMAP": f"{nid}:{nid}", "PTL_MY_RID": str(rank),
                                           "PTL_PIDMAP": f"{base}:{base + 1}", "PTL_STATS": wanted})
                     for rank in (0, 1)]
            errors = [process.communicate(timeout=DEADLINE_S)[1] for process in ranks]
            check([process.returncode for process in ranks] == [0, 0], errors)
            if wanted == "1":
                for rank, error in enumerate(errors):
                    line = rf"^lintel\[\S+:{ranks[rank].pid} rank {rank}\] interface 0 shm: peers 1, messages sent [1-9]"
                    check(re.search(line, error, re.MULTILINE), error)
            else:
                with open(f"{directory}/stats", encoding="utf-8") as file:
                    lines = [json.loads(line) for line in file]
                check({(line["rank"], line["process"]) for line in lines}
                      == {(rank, process.pid) for rank, process in enumerate(ranks)}, lines)
                for line in lines:
                    check(line["transports"]["shm"]["messages sent"] > 0 and line["host"] and line["nid"] == nid, line)
                    check(line["messages"]["put"]["messages received"] > 0, line)


@case
def perf_shows_progress_on_a_terminal(tools):
    terminal, other_end = pty.openpty()
    process = subprocess.Popen([tools.perf_program, "put", "--metric", "latency", "--sizes", "8,64", *TINY],
                               stdout=subprocess.PIPE, stderr=other_end, text=True)
    os.close(other_end)
    seen = b""
    while select.select([terminal], [], [], DEADLINE_S)[0]:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        seen += chunk
    output, _ = process.communicate(timeout=DEADLINE_S)
    check(process.returncode == 0, f"exit code {process.returncode}")
    check(b"[1/2] put latency 8 B" in seen and b"[2/2] put latency 64 B" in seen, f"progress: {seen!r}")
    check("[1/2]" not in output, "progress on standard output")


@case
def perf_says_which_transport_serves(tools):
    """Not the one that was thought of: what the peer really got, in all forms of the output."""
    for transport, others in (("udp", "shm: PTL_TRANSPORT does not list it"), ("shm", "")):
        environment = {"PTL_TRANSPORT": transport}
        text, _ = tools.perf("put", *TINY, "--sizes", "8", environment=environment)
        head = re.search(r"^transport +(\S+) \(.+?\)(.*)$", text, re.MULTILINE)
        check(head and head[1] == transport and others in head[2], text)
        check(re.search(r"^interface +default, nid \d+\.\d+\.\d+\.\d+ pid \d+$", text, re.MULTILINE), text)
        document = json.loads(tools.perf("put", *TINY, "--sizes", "8", "--json", "-", environment=environment)[0])
        path, = document["paths"]
        check((path["from"], path["to"], path["transport"]) == (0, 1, transport), path)
        check(document["transport"] == transport and path["device"] and others in path["reason"], document["paths"])
        row, = csv.DictReader(io.StringIO(tools.perf("put", "--metric", "latency", *TINY, "--sizes", "8", "--csv", "-",
                                                     environment=environment)[0]))
        check(row["transport"] == transport and row["device"] == path["device"], row)
        _, said = tools.perf("put", *TINY, "--sizes", "8", environment=environment | {"PTL_LOG_LEVEL": "info"})
        line = rf"^lintel\[\S+:\d+\] info: nid \d+\.\d+\.\d+\.\d+ pid \d+ is reached by {transport} \(.+\).*{others}"
        check(re.search(line, said, re.MULTILINE), said)


@case
def perf_marks_few_samples(tools):
    """The median of two samples lies between them, and such a row is marked."""
    command = ["put", "--metric", "latency", "--sizes", "8", "--batch", "10"]
    row, = tools.results(*command, "--iterations", "20")
    check(row["samples"] == 2 and row.get("few_samples") is True, row)
    check(abs(row["median_ns"] - (row["min_ns"] + row["max_ns"]) / 2) < 0.01 * row["median_ns"], row)
    text, _ = tools.perf(*command, "--iterations", "20")
    check(re.search(r"  2 few$", text, re.MULTILINE) and "few: too few samples" in " ".join(text.split()), text)
    check("few_samples" not in tools.results(*command, "--iterations", "200")[0], "many samples are marked")
    check("few" not in tools.perf(*command, "--iterations", "200")[0], "many samples are marked")


@case
def perf_fails_fast_without_a_transport(tools):
    """A transport that is named but not there is warned of, and the run ends at once with the reason."""
    if os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"):
        return
    start = time.monotonic()
    _, error = tools.perf("put", *TINY, code=PEER_LOST, environment={"PTL_TRANSPORT": "verbs"})
    check(time.monotonic() - start < 10, "it took long")
    check("warn: interface 0 opens without verbs: there is no RDMA device on this node" in error, error)
    check("rank 1 cannot be reached: " in error and "verbs: there is no RDMA device" in error, error)
    _, error = tools.perf("put", *TINY, code=1, environment={"PTL_TRANSPORT": "vebrs"})
    check('PTL_TRANSPORT names "vebrs", which is not a transport; there are local, shm, verbs, dpdk, udp' in error, error)


@contextlib.contextmanager
def listening(tools, *prefix, environment=None):
    """`ptl_perf --listen` at a free port, which is yielded."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    process = subprocess.Popen([*prefix, tools.perf_program, "--listen", "--port", str(port)], stderr=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
    try:
        check("listening" in process.stderr.readline(), "it does not listen")
        yield port
    finally:
        process.kill()
        process.communicate()


@case
def perf_between_hosts(tools):
    """`ptl_perf --listen` serves one `ptl_perf HOST` after the other."""
    with listening(tools) as port:
        for transport in ("udp", "shm"):
            document = json.loads(tools.perf("127.0.0.1", "put", "get", "--verify", *TINY, "--sizes", "8,5000", "--port",
                                             str(port), "--json", "-", environment={"PTL_TRANSPORT": transport + ",udp"})[0])
            check(len(document["results"]) == 8, f"{len(document['results'])} rows")
            check(document["processes"] == "2 processes started by hand on this machine", document["processes"])
    _, error = tools.perf("127.0.0.1", "put", "--port", str(port), code=1)
    check("start `ptl_perf --listen` there" in error, error)


@case
def perf_fails_fast_with_another_key(tools):
    """The peer refuses the first put, which asks for no acknowledgement."""
    def environment(key):
        return {"PTL_TRANSPORT": "udp", "PTL_JOB_KEY": key * 40}

    for options in ([], ["--events", "counting"], ["--iterations", "10"]):
        with listening(tools, environment=environment("a")) as port:
            start = time.monotonic()
            _, error = tools.perf("127.0.0.1", "put", *TINY, *options, "--port", str(port), code=PEER_LOST,
                                  environment=environment("b"))
        check(time.monotonic() - start < 10, f"it took long with {options}")
        check("rank 1 cannot be reached: " in error and "job key" in error, error)


@case
def info_screen(tools):
    text, _ = tools.info()
    check(len(text.splitlines()) < 60, f"{len(text.splitlines())} lines")
    for needed in ("Portals 4.3", "PTL_IFACE_DEFAULT", "shm", "nid", "Devices", "ptl_info --all"):
        check(needed in text, f"'{needed}' is missing")


@case
def info_says_what_is_wrong(tools):
    environment = {"PTL_PROGRESS_CPUS": "0-4095", "PTL_VERBS_PKEY": "zz", "PTL_UDP_FRAMES": "9000",
                   "PTL_VERBS_DEVICE": "mlx5_99"}
    text, said = tools.info(environment=environment, code=1)
    check(said == "", said)
    findings = json.loads(tools.info("--json", environment=environment)[0])["findings"]
    for identifier, needed in (("progress_cpus", "PTL_PROGRESS_CPUS names processor"),
                               ("configuration", "PTL_VERBS_PKEY=zz is not usable; allowed: 1 to 65535"),
                               ("configuration", "PTL_UDP_FRAMES is not a variable of this library; did you mean "
                                                 "PTL_UDP_FRAME_BYTES?"),
                               ("transport_unusable", "mlx5_99")):
        check(any(finding["id"] == identifier and needed in finding["what"] and finding["severity"] == "problem"
                  for finding in findings), f"{needed}: {findings}")
    check("What is wrong, and what to do" in text and "mlx5_99" in text, text)


@case
def info_checks_every_variable(tools):
    """A value that cannot be meant is a finding that names the variable or the value, for each variable."""
    document = json.loads(tools.info("--json")[0])
    bad = {variable["name"]: "zz?" for variable in document["configuration"]} | dict.fromkeys(document["runtime_names"], "zz?")
    # Any text can be a key, and arguments of DPDK are read only with a port.
    for name in ("PTL_JOB_KEY", "PTL_DPDK_EAL"):
        del bad[name]
    bad |= {"PTL_STATS": "file:/nowhere/zz?", "PTL_JOB_KEY_FILE": "/nowhere/zz?", "PTL_MODULE_PATH": "/nowhere/zz?"}
    modules = {name for name, installed in document["modules"].items() if installed}
    for name, value in bad.items():
        if name.startswith(("PTL_DPDK_PORTS", "PTL_VERBS_DEVICE")) and name.split("_")[1].lower() not in modules:
            continue
        environment = {name: value}
        output = subprocess.run([tools.info_program, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, **environment}, check=False).stdout
        found = [finding["what"] for finding in json.loads(output)["findings"] if finding["severity"] == "problem"]
        check(any(name in what or value in what for what in found), f"{name}={value}: {found}")


@case
def info_small_shared_memory(tools):
    """A /dev/shm in which no segment has room is not called used."""
    script = "mount -t tmpfs -o size=4k tmpfs /dev/shm && exec \"$@\""
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh", tools.info_program, "--json"]
    if subprocess.run(command[:-2] + ["true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        return
    document = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)
    shm = [transport for transport in document["interfaces"][0]["transports"] if transport["name"] == "shm"][0]
    check(not shm["used"] and "no room in /dev/shm" in shm["reason"], shm)
    found = {finding["id"] for finding in document["findings"]}
    check({"shm_small", "transport_unusable"} <= found, found)


@case
def info_json_schema(tools):
    """What is written is what tools/ptl_info/schema.json says."""
    # Debian's packages are not on the path of another interpreter.
    sys.path.append("/usr/lib/python3/dist-packages")
    try:
        import jsonschema
    except ImportError:
        print("skipped: it needs python3-jsonschema")
        sys.exit(SKIPPED)
    path = os.path.join(os.path.dirname(__file__), "..", "ptl_info", "schema.json")
    with open(path, encoding="utf-8") as file:
        schema = json.load(file)
    for arguments, environment, code in ((["--json"], {"PTL_UDP_FRAMES": "1"}, 1), (["--json", "--interface", "999"], {}, 1)):
        document = json.loads(tools.info(*arguments, environment=environment, code=code)[0])
        jsonschema.validate(document, schema)
    document["version"] = 1
    try:
        jsonschema.validate(document, schema)
    except jsonschema.ValidationError:
        return
    check(False, "the schema takes anything")


@case
def info_config_file(tools):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "lintel.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write("# of this user\nPTL_SPIN_US = 33\nPTL_PEER_TIMEOUT_MS = 77\n")
        environment = {"XDG_CONFIG_HOME": directory, "PTL_PEER_TIMEOUT_MS": "88"}
        text, _ = tools.info("--config", environment=environment)
        check(f"PTL_SPIN_US = 33 us  (from {path}:2; default 50)" in text, text)
        check("PTL_PEER_TIMEOUT_MS = 88 ms  (from the environment; default 10000)" in text, text)


@case
def info_text(tools):
    text, _ = tools.info("--all")
    for needed in ("Portals 4.3", "PTL_IFACE_DEFAULT", "shm", "max_entries", "PTL_SR_DROP_COUNT", "process_vm_readv",
                   "membarrier", "nid", "PTL_LOG_LEVEL"):
        check(needed in text, f"'{needed}' is missing")


@case
def info_json(tools):
    document = json.loads(tools.info("--json")[0])
    opened = document["opened"]
    check(document["node"]["nid"] == opened["nid"], f"nid of the node and of the interface: {document['node']}")
    check(opened["limits_default"]["max_pt_index"] >= 249, "max_pt_index (spec 3.6.1)")
    check(opened["limits_default"]["max_waw_ordered_size"] >= 64, "max_waw_ordered_size (spec 3.6.1)")
    for name, value in opened["limits_largest"].items():
        check(value >= opened["limits_default"][name] > 0, f"{name}: {value}")
    check(sum(interface["default"] for interface in document["interfaces"]) == 1, "one default interface")
    for interface in document["interfaces"]:
        check(all(transport["reason"] for transport in interface["transports"]), f"reasons of {interface}")
    indexes = [register["index"] for register in document["status_registers"]]
    check(indexes == sorted(set(indexes)), "indexes of the status registers")


@case
def info_says_why_not(tools):
    document = json.loads(tools.info("--json", "--interface", "2", environment={"PTL_TRANSPORT": "local"})[0])
    shm = [transport for transport in document["interfaces"][0]["transports"] if transport["name"] == "shm"]
    check(shm and not shm[0]["used"] and "PTL_TRANSPORT" in shm[0]["reason"], f"shm: {shm}")


@case
def info_config(tools):
    environment = {"PTL_SPIN_US": "77", "PTL_JOB_KEY": "tell-nobody"}
    text, _ = tools.info("--config", environment=environment)
    check("Interfaces" not in text, "--config shows more than the configuration")
    check("tell-nobody" not in text, "the job key is shown")
    check(re.search(r"PTL_SPIN_US = 77 us +\(from the environment", text), "PTL_SPIN_US")
    rows = {row["name"]: row for row in json.loads(tools.info("--json", environment=environment)[0])["configuration"]}
    check(rows["PTL_SPIN_US"]["origin"] == "environment" and rows["PTL_SPIN_US"]["value"] == "77", "origin")
    check(rows["PTL_LOG_LEVEL"]["origin"] == "default", "origin of what is not set")
    check(all(row["help"] and row["allowed"] for row in rows.values()), "help")


@case
def info_says_that_a_cipher_library_does_not_fit(tools):
    if subprocess.run(["cc", "-fsyntax-only", "-include", "intel-ipsec-mb.h", "-x", "c", "/dev/null"],
                      stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: there is no intel-ipsec-mb.h, so IPsec Multi-Buffer is not used")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", f"{directory}/libIPSec_MB.so.1"], check=True, text=True,
                       input="unsigned imb_get_version(void) { return 0x70100; }"
                             "const char* imb_get_version_str(void) { return \"7.1.0\"; }")
        _, log = tools.info(environment={"LD_LIBRARY_PATH": directory, "PTL_TRANSPORT": "udp", "PTL_JOB_KEY": "k" * 40,
                                         "PTL_LOG_LEVEL": "info"})
    check(re.search(r"IPsec Multi-Buffer 7\.1\.0 is not used: this was built for \d+\.\d+\.\d+\)", log), log)


@case
def info_bad_options(tools):
    tools.info("--no-such-option", code=USAGE)
    text, error = tools.info("--interface", "999", code=1)
    check(error == "" and "problem: the interface cannot be opened: there is no interface 999" in text, text + error)
    check("ptl_info --all lists the interfaces" in text, text)


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(CASES))
        return
    if len(sys.argv) != 5 or sys.argv[4] not in CASES:
        sys.exit(__doc__)
    # A job that the tests run in is none of the tools' business.
    for name in ("PTL_MY_RID", "PTL_NIDMAP", "PTL_PIDMAP"):
        os.environ.pop(name, None)
    CASES[sys.argv[4]](Tools(*sys.argv[1:4]))


if __name__ == "__main__":
    main()
