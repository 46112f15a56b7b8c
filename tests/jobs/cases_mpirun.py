"""Jobs under mpirun on one host."""
import json
import os
import statistics
import time

from support import case, case_with_tools, check, check_examples, check_places, need, run


def mpirun(size, *command, options=(), code=0, changes=None):
    need("mpirun", "openmpi-bin")
    return run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", size, *options, *command], changes, code)


def check_size(programs, size):
    found = check_places(mpirun(size, programs.probe, "map")[0], size, "pmix")
    check(all(place["local_rank"] == rank and place["local_size"] == size for rank, place in found.items()), found)
    check_examples(programs, lambda program: mpirun(size, program)[0])


@case
def mpirun_1(programs):
    check_size(programs, 1)


@case
def mpirun_2(programs):
    check_size(programs, 2)


@case
def mpirun_4(programs):
    check_size(programs, 4)


@case
def mpirun_16(programs):
    check_size(programs, 16)


@case
def mpirun_64(programs):
    check_size(programs, 64)


@case
def mpirun_values(programs):
    output, _ = mpirun(4, programs.probe, "values")
    check(output.count("secret of 64 characters") == 4, output)
    for size in (4, 36):  # fetched by each, fetched together
        mpirun(size, programs.probe, "interfaces")
        mpirun(size, programs.probe, "same-interface")
    mpirun(2, programs.probe, "ptl-abort")


@case
def mpirun_closed_descriptors(programs):
    mpirun(2, programs.probe, "no-descriptors")


@case
def mpirun_dying_rank(programs):
    output, _ = mpirun(4, programs.probe, "death", options=["--enable-recovery"], code="any")
    for rank in range(3):
        check(f"rank {rank} survived" in output, output)


@case
def mpirun_abort(programs):
    begin = time.monotonic()
    _, error = mpirun(4, programs.probe, "abort", code=42)
    check("the job is aborted with code 42: aborted on purpose" in error, error)
    check(time.monotonic() - begin < 20, "the others were ended soon")


def with_keys(*keys):
    """A shell that sets PTL_JOB_KEY by rank, or does not set it."""
    cases = "".join(f"{rank}) export PTL_JOB_KEY={key};;" for rank, key in enumerate(keys) if key)
    return ["sh", "-c", f'case $PMIX_RANK in {cases} esac; exec "$@"', "sh"]


@case
def mpirun_wrong_key(programs):
    output, _ = mpirun(3, *with_keys("right", "wrong", "right"), programs.probe, "keys")
    check(output.count("refused") == 3, output)


@case
def mpirun_missing_key(programs):
    """Rank 0 has a key and rank 1 has none: rank 1 must not continue without a key."""
    _, error = mpirun(2, *with_keys("right", None), programs.probe, "keys", code=None)
    check("rank 0 has PTL_JOB_KEY or PTL_JOB_KEY_FILE set, this process has neither" in error, error)
    # In the opposite case the key is simply wrong.
    output, _ = mpirun(3, *with_keys(None, "own", None), programs.probe, "keys")
    check(output.count("refused") == 3, output)


@case
def mpirun_start_up_64(programs):
    """The time until the map is complete, with 64 ranks. It must be below 2 s, and below three times the time of
    the launcher alone. If that is more than a second, it must be below twice that time."""
    if not programs.floor.exists():
        check(not os.path.exists("/usr/include/pmix.h"), "pmix_floor was not built")
    times = {programs.floor: [], programs.probe: []}
    for _ in range(5):
        for program, arguments in ((programs.floor, []), (programs.probe, ["set-up"])):
            begin = time.monotonic()
            mpirun(64, program, *arguments)
            times[program].append(time.monotonic() - begin)
    floor, ours = (statistics.median(times[program]) for program in (programs.floor, programs.probe))
    print(f"launcher alone {floor:.3f} s, with the map {ours:.3f} s")
    if os.environ.get("LINTEL_TEST_SANITIZED"):
        return
    check(ours < min(2 * max(1, floor), 3 * floor), f"{ours} s, the launcher alone {floor} s")


def check_perf(output, processes):
    """The JSON document of rank 0; no other rank prints."""
    document = json.loads(output)
    check(f"of {processes} processes" in document["processes"], document["processes"])
    return document["results"]


@case_with_tools
def mpirun_perf(programs):
    tiny = ["--time", "0.005", "--json", "-"]
    rows = check_perf(mpirun(4, programs.perf, "put", "get", "--sizes", "8,4096", "--logical", "--verify", *tiny)[0], 4)
    check(len(rows) == 8 and all(row["operations"] > 0 for row in rows), rows)
    rows = check_perf(mpirun(6, programs.perf, "all-pairs", "--verify", *tiny)[0], 6)
    pairs = sorted((row["rank"], row["peer_rank"]) for row in rows)
    check(pairs == [(a, b) for a in range(6) for b in range(a + 1, 6)], pairs)
    output, _ = mpirun(2, programs.perf, "put", "--sizes", "8", "--time", "0.005")
    check(output.count("put latency:") == 1, "one table: " + output)
    check("processes may use 1 core" not in output, "mpirun gave each process a core: " + output)
    _, error = mpirun(3, programs.perf, "put", code=None)
    check("the job has an odd number of processes, 3" in error, error)
    _, error = mpirun(2, programs.perf, "put", "--across-nodes", code=None)
    check("--across-nodes: all processes are on one node" in error, error)
