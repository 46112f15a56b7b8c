"""The programs that are compared, each behind the same few questions.

Latencies are half round trips in nanoseconds, bandwidths GiB/s (2^30), rates messages per second. All
programs run as two processes, pinned to the same two cores; every run lasts well under a second.
"""

import json
import os
import re

from . import commands
from .places import Installed

# Posix and System V segments for what is small, reading the other process for what is large: what
# UCX has for two processes of one node.
UCX_TRANSPORTS = "posix,sysv,cma,self"
# Sockets over the loopback, for what is compared with UDP.
UCX_SOCKETS = "tcp,self"

# Lintel over UDP sockets of the loopback.
OVER_UDP = {"PTL_TRANSPORT": "udp", "PTL_NID": "lo"}
# Headers of IPv4 and UDP in each packet.
IP_AND_UDP_BYTES = 28

# Ethernets of two ports for two processes of this machine; what both Lintel and the bare ports use.
MEMIF = ";".join(f"net_memif0,role={role},socket=lintel-compare,id=0,bsize=9216,rsize=10" for role in ("server", "client"))
VETH = ("lintel-cmp0", "lintel-cmp1")
AF_PACKET = ";".join(f"net_af_packet0,iface={name},qdisc_bypass=1,blocksz=36864,framesz=9216,framecnt=512"
                     for name in VETH)
ETHERNET_FRAME_BYTES = 9014


def over_dpdk(ports):
    return {"PTL_TRANSPORT": "dpdk", "PTL_DPDK_PORTS": ports}


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


class TwoHosts:
    """Two network namespaces that a veth joins, while they are needed: what two hosts are to all programs. Needs root."""

    NAMES = ("lintel-cmp-a", "lintel-cmp-b")
    ADDRESSES = ("10.213.7.1", "10.213.7.2")
    DEVICES = ("lintel-a", "lintel-b")

    def __init__(self, mtu):
        self.mtu = mtu

    def __enter__(self):
        if os.geteuid() != 0:
            raise commands.CommandError("network namespaces need root")
        self.__exit__()  # what an interrupted run has left
        try:
            self._connect()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _connect(self):
        for name in self.NAMES:
            commands.run(["ip", "netns", "add", name])
        (first, second), (one, other) = self.NAMES, self.DEVICES
        commands.run(["ip", "link", "add", one, "netns", first, "mtu", self.mtu, "type", "veth", "peer", "name", other,
                      "mtu", self.mtu, "netns", second])
        for name, device, address in zip(self.NAMES, self.DEVICES, self.ADDRESSES):
            commands.run(["ip", "-n", name, "addr", "add", f"{address}/24", "dev", device])
            commands.run(["ip", "-n", name, "link", "set", device, "up"])

    def __exit__(self, *_):
        for name in self.NAMES:
            if os.path.exists(f"/run/netns/{name}"):
                commands.run(["ip", "netns", "del", name])

    def at(self, host, command):
        return ["ip", "netns", "exec", self.NAMES[host], *command]


class UdpFloor:
    """Bare sockets between two hosts."""

    def __init__(self, program, cpus):
        self._command = [program, "--cpus", f"{cpus[0]},{cpus[1]}"]

    def measure(self, hosts):
        """one_way_waiting_ns, one_way_asking_ns (medians), stream_gib_per_s, tcp_stream_gib_per_s"""
        at = [f"{name},{address}" for name, address in zip(hosts.NAMES, hosts.ADDRESSES)]
        return json.loads(commands.run([*self._command, "--segment", hosts.mtu - IP_AND_UDP_BYTES, "--host-a", at[0],
                                        "--host-b", at[1]]))


class Veth:
    """A cable between two network interfaces of this machine, while it is needed. Needs root."""

    def __enter__(self):
        # The driver of DPDK wants interfaces whose numbers differ in their upper halves.
        commands.run(["ip", "link", "add", VETH[0], "index", "16384", "mtu", "9000", "type", "veth", "peer", "name",
                      VETH[1], "mtu", "9000"])
        for name in VETH:
            commands.run(["ip", "link", "set", name, "up"])
        return self

    def __exit__(self, *_):
        commands.run(["ip", "link", "del", VETH[0]])


class DpdkFloor:
    """Bare Ethernet ports."""

    def __init__(self, program, cpus):
        self._command = [program, "--cpus", f"{cpus[0]},{cpus[1]}", "--frame", str(ETHERNET_FRAME_BYTES)]

    def measure(self, ports):
        """one_way_ns (median), stream_gib_per_s, delivered_gib_per_s"""
        return json.loads(commands.run([*self._command, "--ports", ports]))


class Lintel:
    """ptl_perf, which starts two processes by itself and pins them to the cores it may use."""

    name = "Lintel"

    def __init__(self, program, cpus, environment=None):
        self._program = program
        self._cpus = cpus
        self._environment = environment or {}
        self.seconds = 0.12  # of one run
        self.version = commands.run([program, "--version"]).split()[1]

    def with_environment(self, environment):
        return Lintel(self._program, self._cpus, environment)

    def between(self, hosts, environment=None):
        return LintelBetweenHosts(self._program, self._cpus, hosts, environment)

    def _results(self, test, *options, seconds=None):
        text = commands.run([self._program, test, "--time", seconds or self.seconds, "--json", "-", *options],
                            self._cpus, self._environment)
        return json.loads(text)["results"]

    def _puts(self, metric, sizes, *options):
        rows = self._results("put", "--metric", metric, "--sizes", ",".join(map(str, sizes)), *options)
        return {row["size_bytes"]: row for row in rows}

    def _by_parameter(self, test, *options):
        return {row["parameter_value"]: row["mean_ns"] for row in self._results(test, *options)}

    def put_latencies_ns(self, sizes, *options):
        return {size: row["mean_ns"] for size, row in self._puts("latency", sizes, *options).items()}

    def median_put_latency_ns(self, size_bytes):
        return self._puts("latency", [size_bytes])[size_bytes]["median_ns"]

    def put_latency_ns(self, size_bytes, *options):
        return self.put_latencies_ns([size_bytes], *options)[size_bytes]

    def list_entry_latency_ns(self, size_bytes):
        return self.put_latency_ns(size_bytes, "--no-matching", "--events", "counting")

    def put_streams(self, sizes):
        """size -> (messages per second, GiB/s); 256 in flight, acknowledged by counting."""
        rows = self._puts("bandwidth", sizes, "--ack", "ct", "--window", "256")
        return {size: (row["rate_per_s"], row["bandwidth_bytes_per_s"] / 2**30) for size, row in rows.items()}

    def put_rate(self, size_bytes):
        return self.put_streams([size_bytes])[size_bytes][0]

    def put_bandwidth(self, size_bytes):
        return self.put_streams([size_bytes])[size_bytes][1]

    def get_bandwidth(self, size_bytes):
        row, = self._results("get", "--metric", "bandwidth", "--sizes", size_bytes)
        return row["bandwidth_bytes_per_s"] / 2**30

    def depth_latencies_ns(self, depths, shapes="exact"):
        """entries before the match -> half round trip"""
        return self._by_parameter("match-depth", "--sizes", 8, "--shapes", shapes, "--depths",
                                  ",".join(map(str, depths)))

    def appends_ns(self, depths):
        """unexpected headers -> append that claims one of them, in random order"""
        return self._by_parameter("unexpected-depth", "--depths", ",".join(map(str, depths)))

    def triggered_increment_ns(self):
        rows = self._results("triggered", "--sizes", 8)
        return next(row["mean_ns"] for row in rows if row["metric"] == "increment")

    def idle(self):
        """(percent of a core, resident MiB) of a process that makes no calls"""
        rows = self._results("idle", "--idle-seconds", 1)
        row = next(row for row in rows if row["metric"] == "no calls")
        return row["processor_percent"], row["resident_mib"]

    def get_from_computing_ms(self):
        """4 MiB from a process that computes for 50 ms: the median, or the longest if one outlasted that."""
        row, = self._results("overlap", "--sizes", 4 * 2**20, "--iterations", 10, "--warm-up", 1)
        return row["median_ns" if row["in_time_percent"] == 100 else "max_ns"] / 1e6

    def crowd_latency_us(self, processes):
        row, = self._results("put", "--metric", "latency", "--sizes", 8, "--pairs", processes // 2, seconds=0.5)
        return row["mean_ns"] / 1e3


class LintelBetweenHosts(Lintel):
    """ptl_perf at each of two hosts, over UDP."""

    LISTENER_PORT = 32123  # of ptl_perf --listen, unless --port names another

    def __init__(self, program, cpus, hosts, environment):
        super().__init__(program, cpus, {"PTL_TRANSPORT": "udp", **(environment or {})})
        self._hosts = hosts

    def _results(self, test, *options, seconds=None):
        listener = commands.start(self._hosts.at(1, [self._program, "--listen"]), self._cpus[1:], self._environment)
        try:
            commands.wait_for_listener(self.LISTENER_PORT, listener)
            text = commands.run(
                self._hosts.at(0, [self._program, self._hosts.ADDRESSES[1], test, "--time", seconds or self.seconds,
                                   "--json", "-", *options]), self._cpus[:1], self._environment)
        finally:
            commands.stop(listener)
        return json.loads(text)["results"]


class Ucx:
    """ucx_perftest, over shared memory unless another set of transports is named."""

    name = "UCX"

    def __init__(self, cpus, transports=UCX_TRANSPORTS, place=Installed(), hosts=None):
        self._cpus = cpus
        self._place = place
        self._hosts = hosts
        # One that was built with MPI starts that otherwise, and then misses its other rank.
        usage = commands.output_of([*place.command("ucx_perftest"), "-h"])
        self._without_mpi = ["-P", "0"] if "MPI mode" in usage else []
        self._environment = {"UCX_TLS": transports}
        if transports == UCX_SOCKETS and not hosts:
            self._environment["UCX_NET_DEVICES"] = "lo"
        text = commands.run([*place.command("ucx_info"), "-v"])
        self.version = re.search(r"[Vv]ersion[ :=]+(\d\S*)", text).group(1)

    def between(self, hosts):
        return Ucx(self._cpus, UCX_SOCKETS, self._place, hosts)

    def _measure(self, test, size_bytes, iterations):
        port = commands.free_port()
        options = ["-p", port, "-t", test, "-s", size_bytes, "-n", iterations, "-f", *self._without_mpi]
        program = self._place.command("ucx_perftest")
        address = self._hosts.ADDRESSES[1] if self._hosts else "127.0.0.1"
        serve, ask = [*program, *options], [*program, address, *options]
        if self._hosts:
            serve, ask = self._hosts.at(1, serve), self._hosts.at(0, ask)
        server = commands.start(serve, self._cpus[1:], self._environment)
        try:
            commands.wait_for_listener(port, server)
            text = commands.run(ask, self._cpus[:1], self._environment)
            commands.finish(server)
        finally:
            commands.stop(server)
        # Iterations; 50 %, average, overall time in us; average, overall MiB/s; average, overall
        # rate. The overall figures count: the percentile is over samples of single iterations.
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
    """fi_pingpong over the shm provider of libfabric itself, or over another. It measures round trips only."""

    name = "libfabric"

    def __init__(self, cpus, place=Installed(), provider="shm", environment=None):
        self._cpus = cpus
        self._program = place.command("fi_pingpong")
        self._provider = provider
        self._environment = environment
        text = commands.run([*place.command("fi_info"), "--version"])
        self.version = re.search(r"libfabric:\s*(\S+)", text).group(1)

    def latency_ns(self, size_bytes):
        port = commands.free_port()
        options = ["-p", self._provider, "-e", "rdm", "-S", size_bytes, "-I", iterations_for(size_bytes, 60_000, 200_000_000)]
        server = commands.start([*self._program, *options, "-B", port], self._cpus[1:], self._environment)
        try:
            commands.wait_for_listener(port, server)
            text = commands.run([*self._program, *options, "-P", port, "127.0.0.1"], self._cpus[:1], environment=self._environment)
            commands.finish(server)
        finally:
            commands.stop(server)
        words = text.strip().splitlines()[-1].split()
        return float(words[-2]) * 1e3  # bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec


class OpenMpi:
    """Point-to-point messages between two ranks of Open MPI, with its own choice of components or with others."""

    name = "Open MPI"

    def __init__(self, program, cpus, components=(), environment=None):
        self.version = re.search(r"(\d+\.\d+\.\d+)", commands.run(["mpirun", "--version"])).group(1)
        self._environment = environment
        choice = [word for name, value in components for word in ("--mca", name, value)]
        # Two ranks on two cores, pinned by the program as all the others are.
        self._command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", *choice, "-n", "2",
                         program, "--cpus", f"{cpus[0]},{cpus[1]}"]

    def latencies_ns(self, sizes):
        return {row["bytes"]: row["latency_ns"] for row in self._measure(sizes, [])}

    def streams(self, sizes):
        """size -> (messages per second, GiB/s)"""
        rows = self._measure(sizes, ["--bandwidth"])
        return {row["bytes"]: (row["messages_per_s"], row["gib_per_s"]) for row in rows}

    def _measure(self, sizes, options):
        sizes_option = ["--sizes", ",".join(map(str, sizes)), "--duration-ms", "80"]
        return json.loads(commands.run([*self._command, *sizes_option, *options], environment=self._environment))


# What carries the messages of Open MPI: its own best on a path, and Lintel's two components.
OWN_SHARED_MEMORY = (("pml", "ob1"), ("btl", "vader,self"))
OWN_SOCKETS = (("pml", "ob1"), ("btl", "tcp,self"), ("btl_tcp_if_include", "lo"))
# Unused components are left out: each polls its own queue whenever Open MPI waits.
UNUSED = (("coll", "^portals4"), ("osc", "^portals4"))
PORTALS_MTL = (("pml", "cm"), ("mtl", "portals4"), *UNUSED)
PORTALS_BTL = (("pml", "ob1"), ("btl", "portals4,self"), ("btl_portals4_max_send_size", "32768"),
               ("btl_portals4_recv_md_num", "64"), *UNUSED)


PROVIDER_MTL = (("pml", "cm"), ("mtl", "ofi"), ("mtl_ofi_provider_include", "lintel"), *UNUSED)


def over_provider(program, build, cpus, place):
    """name -> Open MPI and fi_pingpong over the provider for libfabric, and what they have of their own."""
    directory = build / "lib" / "lintel" / "ofi"
    if not (directory / "liblintel-fi.so").exists():
        raise FileNotFoundError(f"{directory}: the provider for libfabric was not built")
    ours = {"FI_PROVIDER_PATH": str(directory)}
    over_shm = {**ours, "PTL_TRANSPORT": "local,shm"}
    return {
        "MPI, provider over shm": OpenMpi(program, cpus, PROVIDER_MTL, over_shm),
        "MPI, vader": OpenMpi(program, cpus, OWN_SHARED_MEMORY),
        "MPI, provider over udp": OpenMpi(program, cpus, PROVIDER_MTL, {**ours, **OVER_UDP}),
        "MPI, tcp": OpenMpi(program, cpus, OWN_SOCKETS),
        "fi_pingpong, provider": Libfabric(cpus, place, "lintel", over_shm),
        "fi_pingpong, shm": Libfabric(cpus, place),
    }


def components_first(components):
    """The environment in which Open MPI finds the components in that directory before its own."""
    system = commands.run(["ompi_info", "--parsable", "--path", "pkglibdir"]).strip().rsplit(":", 1)[-1]
    return {"OMPI_MCA_mca_base_component_path": f"{components}:{system}"}


def mpi_paths(program, components, cpus):
    """name -> Open MPI over that; `components` is the directory of the Portals components."""
    ours = components_first(components)
    over_shm = {**ours, "PTL_TRANSPORT": "local,shm"}
    over_udp = {**ours, **OVER_UDP}
    return {
        "MTL over shm": OpenMpi(program, cpus, PORTALS_MTL, over_shm),
        "BTL over shm": OpenMpi(program, cpus, PORTALS_BTL, over_shm),
        "vader": OpenMpi(program, cpus, OWN_SHARED_MEMORY),
        "MTL over udp": OpenMpi(program, cpus, PORTALS_MTL, over_udp),
        "BTL over udp": OpenMpi(program, cpus, PORTALS_BTL, over_udp),
        "tcp": OpenMpi(program, cpus, OWN_SOCKETS),
    }
