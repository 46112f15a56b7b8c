"""Sweeps over message size and list depth, for the plots.

At each message size the programs take turns, as in the rows of the table: only neighbouring runs compare.
"""

from .commands import CommandError
from .distance import step
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


def _at_one_distance(around, limit_ns):
    """The rounds that began and ended with the cores near, if there are any; else those with them far; else all."""
    if limit_ns is None:
        return range(len(around))
    near = [index for index, readings in enumerate(around) if max(readings) < limit_ns]
    far = [index for index, readings in enumerate(around) if min(readings) > limit_ns]
    return near or far or range(len(around))


def _beside(sources, sizes, schedule, say):
    """name -> (size -> one value a round), of rounds with the cores at one distance. `sources`: name -> function of a
    size. A program that fails is left out, with its reason."""
    if not sources:
        return {}
    failed = set()

    def once(name, size):
        if name not in failed:
            try:
                return sources[name](size)
            except CommandError as error:
                failed.add(name)
                say(f"no curve of {name}: {error}")
        return None

    rounds = {size: schedule.alternate({name: lambda name=name, size=size: once(name, size) for name in sources})
              for size in sizes}
    limit = step([reading for values in rounds.values() for around in values.cache_lines_ns for reading in around])
    return {name: {size: [values[name][index] for index in _at_one_distance(values.cache_lines_ns, limit)]
                   for size, values in rounds.items()}
            for name in sources if name not in failed}


def _points(values):
    """[lower quartile, median, upper quartile] of each point."""
    made = {size: Summary.of(several) for size, several in values.items()}
    return {size: [one.lower_quartile, one.median, one.upper_quartile] for size, one in made.items()}


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


def over_size(peers, sizes, schedule, say):
    """Half round trip (ns), rate (1/s) and bandwidth (GiB/s) over the message size of programs that use one
    transport. `peers`: name -> (latency of a size, rate of a size), the second may be None."""
    latency = _beside({name: latency for name, (latency, _) in peers.items()}, sizes, schedule, say)
    rates = _beside({name: rate for name, (_, rate) in peers.items() if rate}, sizes, schedule, say)
    rates = {name: _points(values) for name, values in rates.items()}
    return {
        "latency_ns": {name: _points(values) for name, values in latency.items()},
        "rate_per_s": rates,
        "bandwidth_gib_per_s": {name: {size: [rate * size / 2**30 for rate in point] for size, point in curve.items()}
                                for name, curve in rates.items()},
    }


def peers_by_transport(programs, over):
    """transport -> programs for over_size(). `over`: transport -> (Lintel over it, UCX over it or None)."""
    def of(program):
        return program.latency_ns, lambda size: program.stream(size)[0]

    peers = {}
    for transport, (lintel, ucx) in over.items():
        peers[transport] = {"Lintel": (lambda size, lintel=lintel: lintel.put_latencies_ns([size])[size],
                                       lambda size, lintel=lintel: lintel.put_streams([size])[size][0])}
        if ucx:
            peers[transport][f"UCX, {transport}"] = of(ucx)
    libfabric, mpi = programs["libfabric"], programs["mpi"]
    if libfabric:
        peers["shm"]["libfabric shm"] = (libfabric.latency_ns, None)
    if mpi:
        peers["shm"]["Open MPI"] = (lambda size: mpi.latencies_ns([size])[size], lambda size: mpi.streams([size])[size][0])
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
