"""Jobs over several hosts: network namespaces with separate names, addresses and /dev/shm."""
import json
import os
import pathlib
import re
import subprocess

from support import (case, case_with_tools, check, check_examples, check_places, deadline_for, isolated, need, run, skip,
                     start, work_directory)

# mpirun starts this in place of ssh: <agent> [options] <host> <command>...
AGENT = """#!/bin/bash
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
exec nsenter --net=/run/netns/$host unshare --uts --ipc --mount sh -c "
  hostname $host; mount -t tmpfs tmpfs /dev/shm; $*"
"""


class Hosts:
    """A bridge, and a namespace for each host."""

    def __init__(self, directory, count):
        self.count = count
        self.agent = pathlib.Path(directory) / "agent"
        self.agent.write_text(AGENT)
        self.agent.chmod(0o755)
        commands = ["mkdir -p /run/netns", "mount -t tmpfs tmpfs /run/netns", "ip link add lbr type bridge",
                    "ip addr add 10.99.7.254/24 dev lbr", "ip link set lbr up"]
        for i in range(count):
            commands += [f"ip netns add h{i}", f"ip link add v{i} type veth peer name eth0 netns h{i}",
                         f"ip link set v{i} master lbr up", f"ip -n h{i} addr add 10.99.7.{i + 1}/24 dev eth0",
                         f"ip -n h{i} link set eth0 up", f"ip -n h{i} link set lo up"]
        for command in commands:
            subprocess.run(command, shell=True, check=True)

    def ports(self, count):
        """Gives each host `count` interfaces for DPDK on a switch; returns PTL_DPDK_PORTS."""
        commands = ["ip link add switch type bridge", "ip link set switch mtu 9000 up"]
        for i in range(self.count):
            for j in range(count):
                # The driver computes a number from process id and interface index, which must be
                # unique on a host.
                commands += [f"ip -n h{i} link add port{j} mtu 9000 index {16384 * (j + 1)} type veth "
                             f"peer name s{i}p{j} mtu 9000 netns {os.getpid()}",
                             f"ip link set s{i}p{j} master switch up", f"ip -n h{i} link set port{j} up"]
        for command in commands:
            subprocess.run(command, shell=True, check=True)
        ring = "qdisc_bypass=1,blocksz=36864,framesz=9216,framecnt=512"
        return ";".join(f"net_af_packet0,iface=port{j},{ring}" for j in range(count))

    def narrow_path(self):
        """A separate network between the first two hosts, with a router. The second host accepts only shorter
        frames, which the first one does not know. Returns the interface name on the hosts."""
        commands = ["echo 1 > /proc/sys/net/ipv4/ip_forward"]
        for i, mtu in enumerate((9000, 1500)):
            here, there = f"10.98.{i}", f"10.98.{1 - i}"
            commands += [f"ip -n h{i} link add far mtu {mtu} type veth peer name r{i} mtu {mtu} netns {os.getpid()}",
                         f"ip addr add {here}.254/24 dev r{i}", f"ip link set r{i} up",
                         f"ip -n h{i} addr add {here}.1/24 dev far", f"ip -n h{i} link set far up",
                         f"ip -n h{i} route add {there}.0/24 via {here}.254"]
        for command in commands:
            subprocess.run(command, shell=True, check=True)
        return "far"

    def mpirun(self, slots, *command, options=(), code=0, changes=None):
        return run(self.command(slots, *command, options=options), changes, code)

    def command(self, slots, *command, options=()):
        """`slots`: number of ranks on each host."""
        hosts = ",".join(f"h{i}:{count}" for i, count in enumerate(slots))
        return ["mpirun", "--allow-run-as-root", "--mca", "plm_rsh_agent", self.agent, "--mca", "oob_tcp_if_include",
                "10.99.7.0/24", "-H", hosts, "-n", sum(slots), *options, *command]


def hosts(count):
    need("mpirun", "openmpi-bin")
    need("ip", "iproute2")
    isolated()
    directory = work_directory()
    made = Hosts(directory.name, count)
    made.temporary = directory
    return made


@case
def hosts_placement(programs):
    """Maps and nodes; the ranks of a host exchange messages through shared memory."""
    several = hosts(3)
    found = check_places(several.mpirun((2, 1, 3), programs.probe, "local-map")[0], 6, "pmix", 3)
    check([found[rank]["node"] for rank in range(6)] == [0, 0, 1, 2, 2, 2], found)
    addresses = [0x0a630701 + found[rank]["node"] for rank in range(6)]
    check([found[rank]["nid"] for rank in range(6)] == addresses, found)


@case
def hosts_ranks_not_in_node_order(programs):
    several = hosts(3)
    output, _ = several.mpirun((2, 2, 2), programs.probe, "local-map", options=["--map-by", "node"])
    found = check_places(output, 6, "pmix", 3)
    check([found[rank]["node"] for rank in range(6)] == [0, 1, 2, 0, 1, 2], found)


@case
def hosts_many_ranks(programs):
    """The processes of a host fetch the map together."""
    several = hosts(3)
    found = check_places(several.mpirun((11, 14, 10), programs.probe, "local-map")[0], 35, "pmix", 3)
    check([found[rank]["local_size"] for rank in (0, 11, 25)] == [11, 14, 10], found)


def connected_hosts(programs, count):
    """Hosts, if the library has a transport between them."""
    interfaces = json.loads(run([programs.info, "--json"], code="any")[0])["interfaces"]
    names = {transport["name"] for interface in interfaces if interface["default"] for transport in interface["transports"]}
    if not names - {"local", "shm"}:
        skip("the default interface has no transport between nodes: " + ", ".join(sorted(names)))
    return hosts(count)


@case_with_tools
def hosts_messages(programs):
    """Every rank reaches every other: within a host through shared memory, between hosts over the network."""
    several = connected_hosts(programs, 3)
    check_places(several.mpirun((2, 1, 3), programs.probe, "map")[0], 6, "pmix", 3)
    check_places(several.mpirun((2, 2, 2), programs.probe, "map", options=["--map-by", "node"])[0], 6, "pmix", 3)


@case_with_tools
def hosts_examples(programs):
    several = connected_hosts(programs, 2)
    check_examples(programs, lambda program: several.mpirun((2, 2), program)[0])


@case_with_tools
def hosts_perf(programs):
    several = connected_hosts(programs, 2)
    output, _ = several.mpirun((2, 2), programs.perf, "put", "--across-nodes", "--verify", "--sizes", "8,5000", "--time",
                               "0.01", "--json", "-")
    check("pairs across nodes: 0-2, 1-3" in json.loads(output)["processes"], output)


@case_with_tools
def hosts_perf_without_launcher(programs):
    """`ptl_perf --listen` on one host and `ptl_perf HOST` on another, without configuration, measure the
    network."""
    several = connected_hosts(programs, 2)
    listener = start([several.agent, "h1", programs.perf, "--listen"])
    with deadline_for(listener):
        check("listening" in listener.stderr.readline(), "it does not listen")
        output, _ = run([several.agent, "h0", programs.perf, "10.99.7.2", "put", "--verify", "--sizes", "8,5000", "--time",
                         "0.01", "--json", "-"])
    document = json.loads(output)
    check(document["processes"].startswith("2 processes, here and on 10.99.7.2"), document["processes"])
    check("nid 10.99.7.1 " in document["interface"], document["interface"])
    path, = document["paths"]
    check(path["transport"] == "udp" and path["device"] == "eth0" and "shm: it is on another node" in path["reason"], path)
    check(len(document["results"]) == 4, output)


@case_with_tools
def hosts_perf_names_dpdk_ports(programs):
    """With its share of what was sent. The kernel counts nothing for them."""
    several = connected_hosts(programs, 2)
    for command in ("ip -n h0 link add more type veth peer name more netns h1", "ip -n h0 link set more up",
                    "ip -n h1 link set more up"):
        subprocess.run(command.split(), check=True)
    ports = "+".join(f"net_af_packet{i},iface={name},qdisc_bypass=0,blocksz=4096,framesz=2048,framecnt=512"
                     for i, name in enumerate(("eth0", "more")))
    changes = {"PTL_TRANSPORT": "dpdk", "PTL_DPDK_PORTS": ports, "PTL_UDP_OPEN": "1"}
    listener = start([several.agent, "h1", programs.perf, "--listen"], changes)
    with deadline_for(listener):
        check("listening" in listener.stderr.readline(), "it does not listen")
        output, error = run([several.agent, "h0", programs.perf, "10.99.7.2", "put", "--sizes", "1000000", "--time", "0.5",
                             "--json", "-"], changes, code="any")
    if "dpdk" in error and not output:
        skip("no DPDK: " + error)
    rails = json.loads(output)["rails"]
    check([rail["interface"] for rail in rails] == ["net_af_packet0", "net_af_packet1"], rails)
    check(all(rail["share"] > 0.05 for rail in rails), rails)


@case_with_tools
def hosts_perf_with_one_name(programs):
    """Two hosts that have the same name are two hosts."""
    several = connected_hosts(programs, 2)
    name = ["hostname", "localhost", "&&"]
    listener = start([several.agent, "h1", *name, programs.perf, "--listen"])
    with deadline_for(listener):
        check("listening at TCP port 32123" in listener.stderr.readline(), "it does not listen")
        output, _ = run([several.agent, "h0", *name, programs.perf, "10.99.7.2", "put", "--sizes", "8", "--time", "0.01", "--json", "-"])
    check(json.loads(output)["processes"].startswith("2 processes, here and on 10.99.7.2"), output)


@case_with_tools
def hosts_narrow_path(programs):
    """Frames fit all of the route. A fragmented one would be lost with any of its fragments."""
    several = connected_hosts(programs, 2)
    network = several.narrow_path()
    changes = {"PTL_TRANSPORT": "udp", "PTL_NID": network, "PTL_STATS": "1"}
    forward = [word for name in changes for word in ("-x", name)]
    output, error = several.mpirun((1, 1), programs.perf, "put", "--verify", "--sizes", "8,100000", "--iterations", "20",
                                   "--json", "-", options=forward, changes=changes)
    check("2 nodes" in json.loads(output)["processes"], output)
    with open("/proc/net/snmp", encoding="ascii") as counters:
        names, values = [line.split()[1:] for line in counters if line.startswith("Ip:")]
    check(int(values[names.index("FragOKs")]) == 0, "the router has fragmented frames: " + error)


@case_with_tools
def hosts_dying_rank(programs):
    """The survivors continue. Over several hosts, mpirun itself does not end after a process was killed."""
    several = connected_hosts(programs, 2)
    process = start(several.command((2, 2), programs.probe, "death", options=["--enable-recovery", "-x", "PTL_LOG_LEVEL"]),
                    {"PTL_LOG_LEVEL": "info"}, stderr=subprocess.STDOUT)
    printed, survivors = "", set()
    with deadline_for(process):
        for line in process.stdout:
            printed += line
            survivors.update(re.findall(r"rank (\d+) survived", line))
            if len(survivors) == 3:
                break
    check(survivors == {"0", "1", "2"}, f"survivors: {survivors}; printed:\n{printed}")


@case_with_tools
def hosts_over_ethernet_ports(programs):
    """DPDK between hosts with a port for each process, and shared memory within hosts."""
    if not (programs.directory.parent / "lib/lintel/dpdk.so").exists():
        skip("built without DPDK (libdpdk-dev)")
    several = connected_hosts(programs, 2)
    changes = {"PTL_TRANSPORT": "shm,dpdk", "PTL_DPDK_PORTS": several.ports(2), "PTL_STATS": "1"}
    forward = [word for name in changes for word in ("-x", name)]
    output, error = several.mpirun((2, 2), programs.probe, "map", options=forward, changes=changes)
    check_places(output, 4, "pmix", 2)
    check(len(re.findall(r" dpdk: .*frames sent [1-9]", error)) == 4, error)
    check_examples(programs, lambda program: several.mpirun((2, 2), program, options=forward, changes=changes)[0])


@case_with_tools
def hosts_one_nid(programs):
    """Two hosts with one nid are an error, and no host gets its own messages for those of the other."""
    several = connected_hosts(programs, 2)
    _, error = several.mpirun((1, 1), programs.probe, "map", options=["-x", "PTL_NID"], changes={"PTL_NID": "lo"}, code=None)
    check(re.search(r"error: rank 0: .*rank 1 is on another node, but both nodes have nid 127\.0\.0\.1: set PTL_NID", error),
          error)


@case_with_tools
def hosts_wrong_key(programs):
    """A connection over the network is refused, reported once with the reason, and counted."""
    several = connected_hosts(programs, 3)
    shell = 'if [ "$PMIX_RANK" = 1 ]; then export PTL_JOB_KEY=wrong; else export PTL_JOB_KEY=right; fi; exec "$@"'
    output, error = several.mpirun((1, 1, 1), "env", "PTL_STATS=1", "sh", "-c", shell, "sh", programs.probe, "keys")
    check(output.count("refused") == 3, output)
    check("its job key (PTL_JOB_KEY) is another one, or only one side has one" in error, error)
    counts = [int(count) for count in re.findall(r"connections refused (\d+)$", error, re.MULTILINE)]
    check(len(counts) == 3 and sum(counts) > 0, error)
