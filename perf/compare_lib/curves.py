"""Sweeps over message size and list depth, for the plots."""

from .commands import CommandError
from .rounds import Summary

SIZES = [8 * 4**power for power in range(0, 10)]  # 8 B to 2 MiB
QUICK_SIZES = [8, 512, 4096, 65536, 2**20]
DEPTHS = [0, 1, 10, 100, 1000, 10_000, 100_000]


def plan(quick):
    """(sweeps, sizes). Each point has quartiles, so it is measured several times in a quick run, too."""
    return 3, QUICK_SIZES if quick else SIZES


def _quartiles(sweeps):
    """[lower quartile, median, upper quartile] of each point over several sweeps (each size -> value)."""
    summaries = {x: Summary.of([sweep[x] for sweep in sweeps]) for x in sweeps[0]}
    return {x: [one.lower_quartile, one.median, one.upper_quartile] for x, one in summaries.items()}


def _one_by_one(measure, sizes):
    return lambda: {size: measure(size) for size in sizes}


def _sweep(sources, repetitions, progress, say):
    """name -> (x -> quartiles); the programs take turns. One that fails is left out, with its reason."""
    sweeps = {name: [] for name in sources}
    for repetition in range(repetitions):
        for name, source in sources.items():
            progress(f"sweep {repetition + 1} of {repetitions}: {name}")
            try:
                sweeps[name].append(source())
            except CommandError as error:
                say(f"no curve of {name}: {error}")
    return {name: _quartiles(done) for name, done in sweeps.items() if done}


def over_size(peers, sizes, repetitions, progress, say):
    """Half round trip (ns), rate (1/s) and bandwidth (GiB/s) over the message size of programs that use one
    transport. `peers`: name -> (latencies of sizes, streams of sizes), the second may be None."""
    latency = _sweep({name: latencies for name, (latencies, _) in peers.items()}, repetitions, progress, say)
    rates = _sweep(
        {name: lambda streams=streams: {size: rate for size, (rate, _) in streams().items()}
         for name, (_, streams) in peers.items() if streams},
        repetitions, progress, say,
    )
    return {
        "latency_ns": latency,
        "rate_per_s": rates,
        "bandwidth_gib_per_s": {name: {size: [rate * size / 2**30 for rate in point] for size, point in curve.items()}
                                for name, curve in rates.items()},
    }


def peers_by_transport(programs, sizes, over):
    """transport -> programs for over_size(). `over`: transport -> (Lintel over it, UCX over it or None)."""
    def of(program):
        return _one_by_one(program.latency_ns, sizes), _one_by_one(program.stream, sizes)

    peers = {}
    for transport, (lintel, ucx) in over.items():
        peers[transport] = {"Lintel": (lambda lintel=lintel: lintel.put_latencies_ns(sizes),
                                       lambda lintel=lintel: lintel.put_streams(sizes))}
        if ucx:
            peers[transport][f"UCX, {transport}"] = of(ucx)
    libfabric, mpi = programs["libfabric"], programs["mpi"]
    if libfabric:
        peers["shm"]["libfabric shm"] = (_one_by_one(libfabric.latency_ns, sizes), None)
    if mpi:
        peers["shm"]["Open MPI"] = (lambda: mpi.latencies_ns(sizes), lambda: mpi.streams(sizes))
    return peers


def over_depth(lintel, repetitions, progress, say):
    """Half round trip over entries posted before the match; append over unexpected headers (ns)."""
    return _sweep(
        {
            "put, entries without wildcards": lambda: lintel.depth_latencies_ns(DEPTHS),
            "put, four shapes of wildcards": lambda: lintel.depth_latencies_ns(DEPTHS, shapes="mixed"),
            "append that claims an unexpected header": lambda: lintel.appends_ns([d for d in DEPTHS if d]),
        },
        repetitions, progress, say,
    )
