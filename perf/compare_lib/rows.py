"""The targets of the library, and how each is measured.

A row compares the median of its values with two bounds: what must be reached at least, and the aim.
Nothing here knows a result; only the bounds are written down.
"""

from dataclasses import dataclass, field

from .programs import AF_PACKET, MEMIF, TwoHosts, Veth, over_dpdk
from .rounds import Summary, ratios

KIB = 1024
MIB = 1024 * KIB
DEEP = 10_000
SHALLOW_UNEXPECTED = 10


@dataclass
class Target:
    """Bounds in the row's unit, to two decimals. `upwards`: larger values are better."""

    at_least: float
    aim: float
    upwards: bool = False

    def verdict(self, value):
        rounded = round(value, 2)

        def reaches(bound):
            return rounded >= bound if self.upwards else rounded <= bound

        if reaches(self.aim):
            return "aim reached"
        return "reached" if reaches(self.at_least) else "MISSED"


@dataclass
class Row:
    name: str
    unit: str
    target: Target
    values: list  # one a round; their median is the result
    # Name with unit -> the plain numbers behind a ratio.
    measured: dict = field(default_factory=dict)
    note: str = ""
    # (before, after) each round: how far apart the cores were.
    cache_lines_ns: list = field(default_factory=list)

    @property
    def summary(self):
        return Summary.of(self.values)

    @property
    def verdict(self):
        return self.target.verdict(self.summary.median)

    def as_dict(self):
        return {
            "name": self.name,
            "unit": self.unit,
            "at_least": self.target.at_least,
            "aim": self.target.aim,
            "larger_is_better": self.target.upwards,
            "verdict": self.verdict,
            "result": self.summary.as_dict(),
            "values": self.values,
            "cache_lines_ns": self.cache_lines_ns,
            "measured": {name: Summary.of(values).as_dict() for name, values in self.measured.items()},
            "note": self.note,
        }


def latency_rows(lintel, ucx, floor, schedule):
    """8-byte half round trips beside UCX and beside the machine's cache line."""
    values = schedule.alternate(
        {
            "cache line": floor.cache_line_ns,
            "Lintel put": lambda: lintel.put_latency_ns(8),
            **({"UCX tag_lat": lambda: ucx.latency_ns(8)} if ucx else {}),
            "Lintel list entry": lambda: lintel.list_entry_latency_ns(8),
        }
    )
    put, line, plain = values["Lintel put"], values["cache line"], values["Lintel list entry"]
    rows = []
    if ucx:
        tag = values["UCX tag_lat"]
        rows.append(Row("8-byte matching put, full events, half round trip", "x tag_lat", Target(1.0, 0.65),
                        ratios(put, tag), {"Lintel ns": put, "UCX tag_lat ns": tag}))
    rows.append(Row("the same beside the cache-line ping-pong", "x cache line", Target(3, 2),
                    ratios(put, line), {"Lintel ns": put, "cache line ns": line}))
    if ucx:
        rows.append(Row("8-byte put to a list entry, counting events", "x tag_lat", Target(0.8, 0.6),
                        ratios(plain, tag), {"Lintel ns": plain, "UCX tag_lat ns": tag}))
    return values.tell(rows)


def rate_rows(lintel, ucx, schedule):
    values = schedule.alternate(
        {"Lintel rate": lambda: lintel.put_rate(8), "UCX tag_bw": lambda: ucx.rate(8)}
    )
    ours, theirs = values["Lintel rate"], values["UCX tag_bw"]
    return values.tell([Row("8-byte puts a second, counted acknowledgments, window 256", "x tag_bw",
                Target(1.0, 1.4, upwards=True), ratios(ours, theirs),
                {"Lintel 1/s": ours, "UCX tag_bw 1/s": theirs})])


def bandwidth_rows(lintel, ucx, schedule):
    rows = []
    for size, name in ((4 * KIB, "4 KiB"), (64 * KIB, "64 KiB"), (MIB, "1 MiB")):
        values = schedule.alternate(
            {
                f"Lintel {name}": lambda size=size: lintel.put_bandwidth(size),
                f"UCX {name}": lambda size=size: ucx.bandwidth(size),
            }
        )
        ours, theirs = values.values()
        rows += values.tell([Row(f"bandwidth at {name}, one buffer reused", "x tag_bw", Target(1.0, 1.3, upwards=True),
                                 ratios(ours, theirs), {"Lintel GiB/s": ours, "UCX tag_bw GiB/s": theirs})])
    return rows


def depth_rows(lintel, schedule):
    values = schedule.alternate(
        {
            "match depth": lambda: lintel.depth_latencies_ns([0, DEEP]),
            "unexpected depth": lambda: lintel.appends_ns([SHALLOW_UNEXPECTED, DEEP]),
        }
    )
    match, unexpected = values.values()
    none, deep = ([run[depth] for run in match] for depth in (0, DEEP))
    few, many = ([run[depth] for run in unexpected] for depth in (SHALLOW_UNEXPECTED, DEEP))
    return values.tell([
        Row(f"half round trip with {DEEP:,} entries before the match", "x none", Target(1.1, 1.0),
            ratios(deep, none), {"none ns": none, f"{DEEP:,} ns": deep}),
        Row(f"append that claims one of {DEEP:,} unexpected headers", f"x that of {SHALLOW_UNEXPECTED}",
            Target(1.5, 1.1), ratios(many, few), {f"{SHALLOW_UNEXPECTED} ns": few, f"{DEEP:,} ns": many}),
    ])


def udp_rows(lintel, ucx, floor, schedule):
    """UDP between two network namespaces, with frames of Ethernet and with jumbo frames."""
    rows = []
    for mtu in (1500, 9000):
        with TwoHosts(mtu) as hosts:
            rows += _udp_rows_between(hosts, lintel, ucx, floor, schedule)
    return rows


def _udp_rows_between(hosts, lintel, ucx, floor, schedule):
    over_udp = lintel.between(hosts)
    losing = lintel.between(hosts, {"PTL_FAULTS": "drop=0.01,seed=1"})
    sealed = {level: lintel.between(hosts, {"PTL_JOB_KEY": "perf/compare", "PTL_NETWORK_SECURITY": level})
              for level in ("authenticated", "encrypted")}
    tcp = ucx and ucx.between(hosts)
    name = f"UDP between hosts, {hosts.mtu:,}-byte packets"
    values = schedule.alternate(
        {
            "bare sockets": lambda: floor.measure(hosts),
            "Lintel put": lambda: over_udp.median_put_latency_ns(8),
            "Lintel streams": lambda: over_udp.put_streams([65536, MIB]),
            "Lintel 1 MiB with losses": lambda: losing.put_bandwidth(MIB),
            **{f"Lintel 1 MiB, {level}": lambda over=over: over.put_bandwidth(MIB) for level, over in sealed.items()},
            **({"UCX tag_lat": lambda: tcp.latency_ns(8), "UCX 64 KiB": lambda: tcp.bandwidth(65536),
                "UCX 1 MiB": lambda: tcp.bandwidth(MIB)} if tcp else {}),
        }
    )
    bare, put, lossy = values["bare sockets"], values["Lintel put"], values["Lintel 1 MiB with losses"]
    small, stream = ([run[size][1] for run in values["Lintel streams"]] for size in (65536, MIB))
    waiting, asking, plain, plain_tcp = ([run[key] for run in bare] for key in (
        "one_way_waiting_ns", "one_way_asking_ns", "stream_gib_per_s", "tcp_stream_gib_per_s"))
    rows = [
        Row(f"{name}: 8-byte put, half round trip", "x sendto/recvfrom that wait", Target(1.3, 1.05),
            ratios(put, waiting), {"Lintel ns": put, "bare, waiting ns": waiting}),
        Row("the same beside sockets that never wait", "x sendto/recvfrom that ask", Target(1.15, 1.05),
            ratios(put, asking), {"bare, asking ns": asking}),
        Row(f"{name}: 1 MiB stream", "x bare UDP, segments of packet size", Target(0.85, 0.95, upwards=True),
            ratios(stream, plain), {"Lintel GiB/s": stream, "bare GiB/s": plain}),
        Row("the same beside a TCP stream", "x bare TCP", Target(0.8, 1.0, upwards=True),
            ratios(stream, plain_tcp), {"bare TCP GiB/s": plain_tcp}),
        Row(f"{name}: 1 MiB stream with 1 % loss", "x without", Target(0.7, 0.95, upwards=True),
            ratios(lossy, stream), {"with losses GiB/s": lossy}),
        *(Row(f"{name}: 1 MiB stream, {level}", "x off", bound, ratios(values[f"Lintel 1 MiB, {level}"], stream),
              {f"{level} GiB/s": values[f"Lintel 1 MiB, {level}"]})
          for level, bound in (("authenticated", Target(0.8, 0.95, upwards=True)),
                               ("encrypted", Target(0.7, 0.9, upwards=True)))),
    ]
    if tcp:
        latency, few, many = (values[f"UCX {what}"] for what in ("tag_lat", "64 KiB", "1 MiB"))
        rows += [
            Row(f"{name}: 8-byte put beside UCX over tcp", "x tag_lat", Target(0.65, 0.6), ratios(put, latency),
                {"UCX tcp ns": latency}),
            Row(f"{name}: 64 KiB stream beside UCX over tcp", "x tag_bw", Target(0.8, 1.2, upwards=True),
                ratios(small, few), {"64 KiB GiB/s": small, "UCX tcp 64 KiB GiB/s": few}),
            Row(f"{name}: 1 MiB stream beside UCX over tcp", "x tag_bw", Target(0.8, 1.2, upwards=True),
                ratios(stream, many), {"UCX tcp GiB/s": many}),
        ]
    return values.tell(rows)


def ethernet_rows(lintel, floor, schedule):
    """Ethernet ports through DPDK beside the bare ports, which do nothing but move frames."""
    with Veth():
        rows = _ethernet_rows_of(lintel, floor, schedule, "net_af_packet over veth", AF_PACKET)
    return rows + _ethernet_rows_of(lintel, floor, schedule, "net_memif", MEMIF)


def _ethernet_rows_of(lintel, floor, schedule, name, ports):
    over = lintel.with_environment(over_dpdk(ports))
    losing = lintel.with_environment({**over_dpdk(ports), "PTL_FAULTS": "drop=0.01,seed=1"})
    values = schedule.alternate(
        {
            f"bare {name}": lambda: floor.measure(ports),
            f"Lintel put over {name}": lambda: over.median_put_latency_ns(8),
            f"Lintel 1 MiB over {name}": lambda: over.put_bandwidth(MIB),
            f"Lintel 1 MiB over {name}, losses": lambda: losing.put_bandwidth(MIB),
        }
    )
    bare, put, stream, lossy = values.values()
    one_way = [run["one_way_ns"] for run in bare]
    delivery = Target(0.8, 1.0, upwards=True) if ports == MEMIF else Target(0.7, 0.9, upwards=True)
    plain, delivered = ([run[key] for run in bare] for key in ("stream_gib_per_s", "delivered_gib_per_s"))
    if ports == MEMIF:
        latency = Row(f"{name}, 8-byte put, half round trip", "us above the bare port", Target(0.25, 0.15),
                      [(ours - theirs) / 1e3 for ours, theirs in zip(put, one_way)],
                      {"Lintel ns": put, "bare ns": one_way})
    else:
        latency = Row(f"{name}, 8-byte put, half round trip", "x bare port", Target(1.5, 1.15),
                      ratios(put, one_way), {"Lintel ns": put, "bare ns": one_way})
    return values.tell([
        latency,
        Row(f"{name}, 1 MiB stream, 9000-byte frames", "x bare windowed stream", Target(0.7, 0.9, upwards=True),
            ratios(stream, plain), {"Lintel GiB/s": stream, "bare GiB/s": plain}),
        Row(f"{name}, 1 MiB stream beside frames that are filled and read", "x bare stream from buffer to buffer",
            delivery, ratios(stream, delivered), {"bare, delivered GiB/s": delivered}),
        Row(f"{name}, 1 MiB stream with 1 % loss", "x without", Target(0.6, 0.9, upwards=True),
            ratios(lossy, stream), {"with losses GiB/s": lossy}),
    ])


def mpi_rows(paths, schedule):
    """MPI over Lintel beside the best that Open MPI itself has on the same path: vader, tcp."""
    values = schedule.alternate(
        {
            f"{name}, {what}": measure
            for name, mpi in paths.items()
            for what, measure in {
                "latency": lambda mpi=mpi: mpi.latencies_ns([8])[8],
                "streams": lambda mpi=mpi: mpi.streams([8, MIB]),
            }.items()
        }
    )

    def latency(name):
        return values[f"{name}, latency"]

    def rate(name):
        return [run[8][0] for run in values[f"{name}, streams"]]

    def bandwidth(name):
        return [run[MIB][1] for run in values[f"{name}, streams"]]

    rows = []
    for path, own, bound in (("shm", "vader", 1.5), ("udp", "tcp", 1.0)):
        mtl, btl = f"MTL over {path}", f"BTL over {path}"
        rows += [
            Row(f"MPI over {path}, 8 bytes, half round trip", f"x ob1 with {own}", Target(bound, 1.0),
                ratios(latency(mtl), latency(own)),
                {f"{name} ns": latency(name) for name in (mtl, btl, own)}),
            Row(f"MPI over {path}, 1 MiB, stream", f"x ob1 with {own}", Target(0.8, 1.0, upwards=True),
                ratios(bandwidth(mtl), bandwidth(own)),
                {f"{name} GiB/s": bandwidth(name) for name in (mtl, btl, own)}),
            Row(f"MPI over {path}, 8-byte messages a second", f"x ob1 with {own}", Target(0.7, 1.0, upwards=True),
                ratios(rate(mtl), rate(own)),
                {f"{name}, 8-byte messages 1/s": rate(name) for name in (mtl, btl, own)}),
        ]
    return values.tell(rows)


def provider_rows(programs, schedule):
    """MPI and fi_pingpong over the provider for libfabric beside what Open MPI and libfabric have of their own."""
    measures = {}
    for name, program in programs.items():
        if name.startswith("fi_pingpong"):
            measures[name] = lambda program=program: program.latency_ns(8)
        else:
            measures[f"{name}, latency"] = lambda program=program: program.latencies_ns([8, 4 * KIB])
            measures[f"{name}, streams"] = lambda program=program: program.streams([8, MIB])
    values = schedule.alternate(measures)

    def latency(name, size):
        return [run[size] for run in values[f"MPI, {name}, latency"]]

    def stream(name, size, which):
        return [run[size][which] for run in values[f"MPI, {name}, streams"]]

    rows = []
    for path, own, short, page, rate, long in (("shm", "vader", (1.0, 0.85), (0.6, 0.5), (0.75, 1.0), (2.0, 2.3)),
                                               ("udp", "tcp", (0.8, 0.7), None, None, (1.2, 1.5))):
        ours, unit = f"provider over {path}", f"x ob1 with {own}"
        for size, bounds, text in ((8, short, "8 bytes"), (4 * KIB, page, "4 KiB")):
            if bounds:
                rows.append(Row(f"MPI through libfabric over {path}, {text}, half round trip", unit, Target(*bounds),
                                ratios(latency(ours, size), latency(own, size)),
                                {f"{name} ns": latency(name, size) for name in (ours, own)}))
        if rate:
            rows.append(Row(f"MPI through libfabric over {path}, 8 bytes, window of 64", unit, Target(*rate, upwards=True),
                            ratios(stream(ours, 8, 0), stream(own, 8, 0)),
                            {f"{name}, messages 1/s": stream(name, 8, 0) for name in (ours, own)}))
        rows.append(Row(f"MPI through libfabric over {path}, 1 MiB, stream", unit, Target(*long, upwards=True),
                        ratios(stream(ours, MIB, 1), stream(own, MIB, 1)),
                        {f"{name} GiB/s": stream(name, MIB, 1) for name in (ours, own)}))
    ours, own = values["fi_pingpong, provider"], values["fi_pingpong, shm"]
    rows.append(Row("fi_pingpong over the provider, 8 bytes", "x libfabric's shm", Target(0.8, 0.6), ratios(ours, own),
                    {"provider ns": ours, "shm ns": own}))
    return values.tell(rows)


def alone_rows(lintel, schedule):
    """What needs nobody to compare with."""
    values = schedule.alternate(
        {
            "chain of triggered increments": lintel.triggered_increment_ns,
            "idle processes": lintel.idle,
            "get from a computing process": lintel.get_from_computing_ms,
            "8 processes on 2 cores": lambda: lintel.crowd_latency_us(8),
        }
    )
    chain, idle, computing, crowd = values.values()
    return values.tell([
        Row("one triggered increment in a chain", "ns", Target(50, 10), chain),
        Row("processor time of an idle process", "% of a core", Target(0.5, 0.0), [cpu for cpu, _ in idle]),
        Row("4 MiB get from a process that computes", "ms", Target(5, 1.5), computing),
        Row("8 processes waiting on 2 cores, ping-pong", "us", Target(40, 10), crowd),
        Row("resident memory with one default interface", "MiB", Target(24, 8), [mib for _, mib in idle]),
    ])
