"""The programs that are compared, each behind the same few questions.

Latencies are half round trips in nanoseconds, bandwidths GiB/s (2^30), rates messages per second. All
programs run as two processes, pinned to the same two cores; every run lasts well under a second.
"""

import json
import re

from . import commands

# Posix and System V segments for what is small, reading the other process for what is large: what
# UCX has for two processes of one node.
UCX_TRANSPORTS = "posix,sysv,cma,self"


def iterations_for(size_bytes, most, total_bytes, least=300):
    """So many messages of this size that a run is neither a second long nor too short to count."""
    return max(least, min(most, total_bytes // max(size_bytes, 1)))


class Floor:
    """The machine itself."""

    def __init__(self, program, cpus):
        self._command = [program, "--cpus", f"{cpus[0]},{cpus[1]}"]

    def cache_line_ns(self):
        answer = json.loads(commands.run([*self._command, "--ping-pong", "--duration-ms", "60"]))
        return answer["cache_line_one_way_ns"]["average"]

    def everything(self):
        return json.loads(commands.run(self._command))


class Ucx:
    """ucx_perftest over shared memory."""

    name = "UCX"
    _environment = {"UCX_TLS": UCX_TRANSPORTS}

    def __init__(self, cpus):
        self._cpus = cpus
        text = commands.run(["ucx_info", "-v"])
        self.version = re.search(r"[Vv]ersion\s+(\S+)", text).group(1)

    def _measure(self, test, size_bytes, iterations):
        port = commands.free_port()
        options = ["-p", port, "-t", test, "-s", size_bytes, "-n", iterations, "-f"]
        server = commands.start(["ucx_perftest", *options], self._cpus[1], self._environment)
        try:
            commands.wait_for_listener(port, server)
            text = commands.run(
                ["ucx_perftest", "127.0.0.1", *options], self._cpus[0], self._environment
            )
            commands.finish(server)
        finally:
            commands.stop(server)
        # Iterations; 50 %, average, overall time in us; average, overall MiB/s; average, overall rate.
        # The overall figures count: the percentile is that of a sample of single iterations.
        numbers = [float(word) for word in text.split() if re.fullmatch(r"[0-9.]+", word)]
        if len(numbers) < 8:
            raise commands.CommandError(f"ucx_perftest -t {test}: cannot read its answer:\n{text}")
        return {"overall_us": numbers[-5], "mib_per_s": numbers[-3], "rate": numbers[-1]}

    def latency_ns(self, size_bytes):
        iterations = iterations_for(size_bytes, 200_000, 300_000_000)
        return self._measure("tag_lat", size_bytes, iterations)["overall_us"] * 1e3

    def stream(self, size_bytes):
        """(messages per second, GiB/s)"""
        iterations = iterations_for(size_bytes, 1_500_000, 1_500_000_000)
        answer = self._measure("tag_bw", size_bytes, iterations)
        return answer["rate"], answer["mib_per_s"] / 1024

    def rate(self, size_bytes):
        return self.stream(size_bytes)[0]

    def bandwidth(self, size_bytes):
        return self.stream(size_bytes)[1]


class Libfabric:
    """fi_pingpong over the shm provider. It measures round trips only."""

    name = "libfabric"

    def __init__(self, cpus):
        self._cpus = cpus
        text = commands.run(["fi_info", "--version"])
        self.version = re.search(r"libfabric:\s*(\S+)", text).group(1)

    def latency_ns(self, size_bytes):
        port = commands.free_port()
        options = ["-p", "shm", "-e", "rdm", "-S", size_bytes, "-I", iterations_for(size_bytes, 60_000, 200_000_000)]
        server = commands.start(["fi_pingpong", *options, "-B", port], self._cpus[1])
        try:
            commands.wait_for_listener(port, server)
            text = commands.run(["fi_pingpong", *options, "-P", port, "127.0.0.1"], self._cpus[0])
            commands.finish(server)
        finally:
            commands.stop(server)
        words = text.strip().splitlines()[-1].split()
        return float(words[-2]) * 1e3  # bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec


class OpenMpi:
    """Point-to-point messages between two ranks of Open MPI, with its own choice of components."""

    name = "Open MPI"

    def __init__(self, program, cpus):
        self.version = re.search(r"(\d+\.\d+\.\d+)", commands.run(["mpirun", "--version"])).group(1)
        # Two ranks on two cores, pinned by the program as all the others are.
        self._command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2",
                         program, "--cpus", f"{cpus[0]},{cpus[1]}"]

    def latencies_ns(self, sizes):
        return {row["bytes"]: row["latency_ns"] for row in self._measure(sizes, [])}

    def streams(self, sizes):
        """size -> (messages per second, GiB/s)"""
        rows = self._measure(sizes, ["--bandwidth"])
        return {row["bytes"]: (row["messages_per_s"], row["gib_per_s"]) for row in rows}

    def _measure(self, sizes, options):
        sizes_option = ["--sizes", ",".join(map(str, sizes)), "--duration-ms", "80"]
        return json.loads(commands.run([*self._command, *sizes_option, *options]))
