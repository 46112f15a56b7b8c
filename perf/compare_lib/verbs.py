"""RDMA devices: Lintel over verbs beside perftest, UCX and libfabric on the same device.

Without a device of its own the machine starts a guest with two in software (tests/vm), in which this program
runs once more and measures. Everything there is emulated: only ratios mean anything.
"""

import json
import re
import tempfile
from pathlib import Path

from . import commands
from .rounds import ratios
from .rows import MIB, Row, Target
from .programs import Ucx

ROOT = Path(__file__).resolve().parents[2]
GUEST = ROOT / "tests" / "vm" / "run_in_guest"
GUEST_LIMIT_S = 1800
# Enough messages for devices with a million a second and, emulated, with a thousand.
EMULATED = commands.SLOWDOWN > 1
MEASURE_S = 1.0 if EMULATED else 0.12
LATENCY_ITERATIONS = 2000 if EMULATED else 50_000
RATE_ITERATIONS = 5000 if EMULATED else 500_000
STREAM_ITERATIONS = 100 if EMULATED else 2000
# Sleeping and handing over to the progress thread should be rare beside a round trip; perftest does
# neither. Emulated round trips are longer, and so are these times.
PATIENCE = {"PTL_SPIN_US": "2000", "PTL_PROGRESS_TICK_US": "2000"} if EMULATED else {}


def active_port():
    """(device, port, IPv4 address) of the first active port; None if there is none."""
    for state in sorted(Path("/sys/class/infiniband").glob("*/ports/*/state")):
        if not state.read_text().strip().endswith("ACTIVE"):
            continue
        port = state.parent
        for gid in sorted((port / "gids").glob("*"), key=lambda path: int(path.name)):
            words = gid.read_text().strip().split(":")
            if words[:6] == ["0000"] * 5 + ["ffff"]:
                numbers = [int(word[i:i + 2], 16) for word in words[6:] for i in (0, 2)]
                return port.parent.parent.name, port.name, ".".join(map(str, numbers))
        return port.parent.parent.name, port.name, "127.0.0.1"
    return None


class Perftest:
    """ib_send_lat and its siblings: the device by itself, between two processes of this machine."""

    name = "perftest"

    def __init__(self, device, cpus):
        self._device, self._port, _ = device
        self._cpus = cpus
        # Its status is that of a failure.
        text = "".join(commands.start(["ib_send_lat", "--version"]).communicate())
        self.version = re.search(r"Version:\s*(\S+)", text).group(1)

    def _last_row(self, program, size_bytes, iterations):
        """Measured again if it is 0 as printed: perftest now and then misjudges the clock of a guest."""
        for _ in range(3):
            row = self._measured_row(program, size_bytes, iterations)
            if row[3] > 0 and row[4] > 0:
                return row
        raise commands.CommandError(f"{program}: printed 0 three times")

    def _measured_row(self, program, size_bytes, iterations):
        port = commands.free_port()
        command = [program, "-d", self._device, "-i", self._port, "-F", "-p", port, "-s", size_bytes, "-n", iterations]
        server = commands.start(command, self._cpus[1:])
        try:
            commands.wait_for_listener(port, server)
            text = commands.run([*command, "127.0.0.1"], self._cpus[:1])
            commands.finish(server)
        finally:
            commands.stop(server)
        rows = [line.split() for line in text.splitlines() if re.match(rf"\s*{size_bytes}\s+\d+\s", line)]
        if not rows:
            raise commands.CommandError(f"{program}: cannot read its answer:\n{text[-800:]}")
        return [float(word) for word in rows[-1]]

    def latency_ns(self, size_bytes):
        # Bytes, iterations, least, most, typical (the median), average, deviation, percentiles;
        # half round trips in us.
        return self._last_row("ib_send_lat", size_bytes, LATENCY_ITERATIONS)[4] * 1e3

    def send_rate(self, size_bytes):
        # bytes, iterations, peak, average MiB/s, million messages a second
        return self._last_row("ib_send_bw", size_bytes, RATE_ITERATIONS)[4] * 1e6

    def bandwidth(self, program, size_bytes):
        """GiB/s"""
        return self._last_row(program, size_bytes, STREAM_ITERATIONS)[3] / 1024


class UcxVerbs(Ucx):
    """UCX over connected queue pairs of one device."""

    def __init__(self, device, cpus):
        super().__init__(cpus, "rc_verbs,self")
        self._environment["UCX_NET_DEVICES"] = f"{device[0]}:{device[1]}"

    def _measure(self, test, size_bytes, iterations):
        most = LATENCY_ITERATIONS if test == "tag_lat" else RATE_ITERATIONS if size_bytes < MIB else STREAM_ITERATIONS
        return super()._measure(test, size_bytes, min(iterations, most))


class LibfabricVerbs:
    """fi_pingpong over the verbs provider."""

    name = "libfabric"

    def __init__(self, device, cpus):
        self._cpus, self._address = cpus, device[2]
        commands.run(["fi_info", "-p", "verbs"])

    def latency_ns(self, size_bytes):
        port = commands.free_port()
        options = ["-p", "verbs", "-e", "msg", "-S", size_bytes, "-I", LATENCY_ITERATIONS]
        server = commands.start(["fi_pingpong", *options, "-B", port], self._cpus[1:])
        try:
            commands.wait_for_listener(port, server)
            text = commands.run(["fi_pingpong", *options, "-P", port, self._address], self._cpus[:1])
            commands.finish(server)
        finally:
            commands.stop(server)
        return float(text.strip().splitlines()[-1].split()[-2]) * 1e3


def _peer_or_none(make, trial, say):
    """A peer that answers once, or None: some do not run on some devices."""
    try:
        peer = make()
        trial(peer)
    except (commands.CommandError, FileNotFoundError, AttributeError, ValueError, IndexError) as error:
        say(f"not compared: {str(error).splitlines()[0]}")
        return None
    return peer


def here(lintel, cpus, schedule, say):
    """Rows measured on the device of this machine."""
    device = active_port()
    perftest = Perftest(device, cpus)
    ucx = _peer_or_none(lambda: UcxVerbs(device, cpus), lambda peer: peer.latency_ns(8), say)
    libfabric = _peer_or_none(lambda: LibfabricVerbs(device, cpus), lambda peer: peer.latency_ns(8), say)
    over = lintel.with_environment({"PTL_TRANSPORT": "verbs", "PTL_VERBS_DEVICE": f"{device[0]}:{device[1]}", **PATIENCE})
    over.seconds = MEASURE_S
    values = schedule.alternate(
        {
            "ib_send_lat": lambda: perftest.latency_ns(8),
            "Lintel put": lambda: over.median_put_latency_ns(8),
            "ib_send_bw": lambda: perftest.send_rate(8),
            "Lintel rate": lambda: over.put_rate(8),
            "ib_read_bw": lambda: perftest.bandwidth("ib_read_bw", MIB),
            "Lintel puts": lambda: over.put_bandwidth(MIB),
            "ib_write_bw": lambda: perftest.bandwidth("ib_write_bw", MIB),
            "Lintel gets": lambda: over.get_bandwidth(MIB),
            "ib_send_bw, 1 MiB": lambda: perftest.bandwidth("ib_send_bw", MIB),
            **({"UCX latency": lambda: ucx.latency_ns(8), "UCX rate": lambda: ucx.rate(8),
                "UCX 1 MiB": lambda: ucx.bandwidth(MIB)} if ucx else {}),
            **({"libfabric latency": lambda: libfabric.latency_ns(8)} if libfabric else {}),
        }
    )

    def behind(*names):
        return {f"{name} {unit}": values[name] for name, unit in names if name in values}

    return values.tell([
        Row("verbs, 8-byte put, half round trip", "x ib_send_lat", Target(1.5, 1.1),
            ratios(values["Lintel put"], values["ib_send_lat"]),
            behind(("Lintel put", "ns"), ("ib_send_lat", "ns"), ("UCX latency", "ns"), ("libfabric latency", "ns"))),
        Row("verbs, 8-byte puts a second", "x ib_send_bw", Target(0.5, 0.9, upwards=True),
            ratios(values["Lintel rate"], values["ib_send_bw"]),
            behind(("Lintel rate", "1/s"), ("ib_send_bw", "1/s"), ("UCX rate", "1/s"))),
        Row("verbs, 1 MiB puts", "x ib_read_bw", Target(0.8, 0.95, upwards=True),
            ratios(values["Lintel puts"], values["ib_read_bw"]),
            behind(("Lintel puts", "GiB/s"), ("ib_read_bw", "GiB/s"), ("UCX 1 MiB", "GiB/s"),
                   ("ib_send_bw, 1 MiB", "GiB/s"))),
        Row("verbs, 1 MiB gets", "x ib_write_bw", Target(0.8, 0.95, upwards=True),
            ratios(values["Lintel gets"], values["ib_write_bw"]),
            behind(("Lintel gets", "GiB/s"), ("ib_write_bw", "GiB/s"))),
    ])


def in_guest(build, rounds, say):
    """The same rows as dictionaries, measured in a guest by this program."""
    say(f"no RDMA device here: measuring in a guest, at most {GUEST_LIMIT_S // 60} minutes")
    with tempfile.TemporaryDirectory() as scratch:
        command = [GUEST, "--time-limit", GUEST_LIMIT_S, "--cache", build / "vm", "--writable", scratch,
                   ROOT / "perf" / "compare", "--only", "verbs", "--no-install", "--rounds", rounds,
                   "--build", build, "--output", scratch]
        output = commands.run(command, timeout_s=GUEST_LIMIT_S + 60)
        results = json.loads((Path(scratch) / "results.json").read_text())
    if not results["rows"]:
        raise commands.CommandError(f"in the guest:\n{output[-1500:]}")
    for row in results["rows"]:
        row["name"] += " (guest)"
        row["cache_lines_ns"] = []  # of emulated cores
    return results["rows"]
