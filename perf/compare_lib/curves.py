"""Sweeps over message size and list depth, for the plots."""

import statistics

from .commands import CommandError

SIZES = [8 * 4**power for power in range(0, 10)]  # 8 B to 2 MiB
DEPTHS = [0, 1, 10, 100, 1000, 10_000, 100_000]


def _medians(sweeps):
    """The median of each point over several sweeps (each size -> value)."""
    return {x: statistics.median(sweep[x] for sweep in sweeps) for x in sweeps[0]}


def _one_by_one(measure):
    return lambda: {size: measure(size) for size in SIZES}


def _sweep(sources, repetitions, progress, say):
    """name -> (x -> median); the programs take turns. One that fails is left out, with its reason."""
    sweeps = {name: [] for name in sources}
    for repetition in range(repetitions):
        for name, source in sources.items():
            progress(f"sweep {repetition + 1} of {repetitions}: {name}")
            try:
                sweeps[name].append(source())
            except CommandError as error:
                say(f"no curve of {name}: {error}")
    return {name: _medians(done) for name, done in sweeps.items() if done}


def over_size(programs, repetitions, progress, say):
    """Half round trip (ns), rate (1/s) and bandwidth (GiB/s) over the message size."""
    lintel, ucx, libfabric, mpi = (programs[name] for name in ("lintel", "ucx", "libfabric", "mpi"))
    latencies = {"Lintel": lambda: lintel.put_latencies_ns(SIZES)}
    streams = {"Lintel": lambda: lintel.put_streams(SIZES)}
    if ucx:
        latencies["UCX tag_lat"] = _one_by_one(ucx.latency_ns)
        streams["UCX tag_bw"] = _one_by_one(ucx.stream)
    if libfabric:
        latencies["libfabric shm"] = _one_by_one(libfabric.latency_ns)
    if mpi:
        latencies["Open MPI"] = lambda: mpi.latencies_ns(SIZES)
        streams["Open MPI"] = lambda: mpi.streams(SIZES)
    latency = _sweep(latencies, repetitions, progress, say)
    rates = _sweep(
        {name: lambda source=source: {size: rate for size, (rate, _) in source().items()}
         for name, source in streams.items()},
        repetitions, progress, say,
    )
    return {
        "latency_ns": latency,
        "rate_per_s": rates,
        "bandwidth_gib_per_s": {name: {size: rate * size / 2**30 for size, rate in curve.items()}
                                for name, curve in rates.items()},
    }


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
