"""Jobs whose processes are listed in the environment."""
import ipaddress
import os
import re
import signal
import sys
import time

from support import case, check, check_examples, check_places, deadline_for, finish, run, start


def numbers(programs, count):
    nid = run([programs.probe, "nid"])[0].strip()
    # Far from the pids that PTL_PID_ANY yields, and different in concurrent tests.
    first = 30000 + os.getpid() % 1000 * 30
    return [nid] * count, [str(first + rank) for rank in range(count)]


def launch(command, nids, pids, changes=None, ranks=None):
    """Starts the processes; `changes(rank)` returns further variables."""
    return [start(command, {"PTL_MY_RID": rank, "PTL_NIDMAP": ":".join(nids), "PTL_PIDMAP": ":".join(pids),
                            **(changes(rank) if changes else {})})
            for rank in (ranks or range(len(nids)))]


def run_all(command, nids, pids, **options):
    return "".join(finish(process)[0] for process in launch(command, nids, pids, **options))


@case
def by_hand(programs):
    for count in (1, 2, 3, 5):
        output = run_all([programs.probe, "map"], *numbers(programs, count))
        found = check_places(output, count, "environment")
        check([found[rank]["local_rank"] for rank in range(count)] == list(range(count)), found)


@case
def by_hand_values(programs):
    run_all([programs.probe, "values"], *numbers(programs, 3))
    run_all([programs.probe, "interfaces"], *numbers(programs, 3))
    run_all([programs.probe, "same-interface"], *numbers(programs, 3))
    run_all([programs.probe, "ptl-abort"], *numbers(programs, 2))


@case
def by_hand_examples(programs):
    nids, pids = numbers(programs, 4)
    check_examples(programs, lambda program: run_all([program], nids, pids))


@case
def by_hand_refused(programs):
    """Another key is refused at once, and nobody waits for that to change. So is another user."""
    for variable in ("PTL_JOB_KEY", "PTL_NETWORK_SECURITY"):
        values = {"PTL_JOB_KEY": ("alpha", "beta"), "PTL_NETWORK_SECURITY": ("off", "encrypted")}[variable]
        started = time.monotonic()
        processes = launch([programs.probe, "map"], *numbers(programs, 2),
                           changes=lambda rank: {"PTL_TRANSPORT": "udp", "PTL_WAIT_S": 45, "PTL_JOB_KEY": "key",
                                                 variable: values[rank]})
        errors = [finish(process, code=9)[1] for process in processes]
        check(time.monotonic() - started < 30, f"{time.monotonic() - started} s: {errors}")
        for error in errors:
            check(re.search(r"error: rank \d: .*rank \d \(nid \d+\.\d+\.\d+\.\d+, pid \d+\) and this process do not connect: .*" + variable,
                            error), error)
            check("was not started" not in error, error)


@case
def by_hand_late(programs):
    """The other processes report that they wait for one that starts later, and report nothing else."""
    nids, pids = numbers(programs, 3)
    early = launch([programs.probe, "map"], nids, pids, ranks=[2, 0])
    address = ipaddress.ip_address(int(nids[1]))
    with deadline_for(early[1]):
        said = early[1].stderr.readline()
        check(f"warn: rank 0 waits for rank 1 (nid {address}, pid {pids[1]}), for 60 s at most (PTL_WAIT_S)" in said,
              said)
        late = launch([programs.probe, "map"], nids, pids, ranks=[1])
        ended = [finish(process) for process in early + late]
    check_places("".join(output for output, _ in ended), 3, "environment")
    for _, error in ended:
        check(error == "" or " waits for rank " in error and error.count("\n") == 1, error)


@case
def by_hand_dying_rank(programs):
    processes = launch([programs.probe, "death"], *numbers(programs, 4))
    for rank, process in enumerate(processes):
        finish(process, code=-signal.SIGKILL if rank == 3 else 0)


@case
def by_hand_memory(programs):
    """Processes of one node meet in memory of their launcher. Its first word says that a process has ended."""
    memory = os.memfd_create("job")
    os.ftruncate(memory, 4096)
    os.pwrite(memory, (1).to_bytes(4, sys.byteorder), 16)
    path = f"/proc/{os.getpid()}/fd/{memory}"

    def launch_with(name, count, ranks=None, **more):
        return launch([programs.probe, name], *numbers(programs, count), ranks=ranks,
                      changes=lambda rank: {"PTL_JOB_MEMORY": path, **more})

    # The second job finds the memory as the first one has left it.
    for _ in range(2):
        check_places("".join(finish(process)[0] for process in launch_with("map", 3)), 3, "environment")
    for process in launch_with("values", 3):
        finish(process)
    passed = int.from_bytes(os.pread(memory, 4, 8), sys.byteorder)
    check(passed >= 3, f"{passed} barriers were passed in the memory")
    os.pwrite(memory, bytes(16), 0)
    (process,) = launch_with("map", 2, ranks=[1], PTL_WAIT_S=1)
    _, error = finish(process, code=None)
    check("1 of 2 processes have not called PtlJobInit within 1 s (PTL_WAIT_S)" in error, error)
    os.pwrite(memory, b"\1" + bytes(15), 0)
    (process,) = launch_with("map", 2, ranks=[1])
    _, error = finish(process, code=None)
    check("a process of the job has ended" in error, error)
    os.pwrite(memory, (2).to_bytes(4, sys.byteorder), 16)
    (process,) = launch_with("map", 2, ranks=[1])
    _, error = finish(process, code=None)
    check("version 2, must be 1: use the launcher of this library" in error, error)
    os.ftruncate(memory, 100)
    for other, text in (("/proc/self/fd/999", "No such file"), (path, "not a file of 4096 bytes")):
        (process,) = launch([programs.probe, "map"], *numbers(programs, 2), ranks=[0],
                            changes=lambda rank: {"PTL_JOB_MEMORY": other})
        _, error = finish(process, code=None)
        check(f"PTL_JOB_MEMORY={other}: {text}" in error, error)


@case
def by_hand_keys(programs):
    """With one key all processes connect. With another key, or none, none does, and the message names the key."""
    nids, pids = numbers(programs, 2)
    processes = launch([programs.probe, "map"], nids, pids, changes=lambda rank: {"PTL_JOB_KEY": "one"})
    check_places("".join(finish(process)[0] for process in processes), 2, "environment")
    for other in ({"PTL_JOB_KEY": "other"}, {}):
        nids, pids = numbers(programs, 2)
        processes = launch([programs.probe, "map"], nids, pids,
                           changes=lambda rank: {"PTL_WAIT_S": 30, **({"PTL_JOB_KEY": "one"} if rank == 0 else other)})
        errors = [finish(process, code=None)[1] for process in processes]
        for error in errors:
            check("and this process do not connect: its job key (PTL_JOB_KEY) is another one" in error, error)
            check(error.count("is gone") <= 2, error)


@case
def by_hand_mistakes(programs):
    nids, pids = numbers(programs, 2)
    right = {"PTL_MY_RID": 0, "PTL_NIDMAP": ":".join(nids), "PTL_PIDMAP": ":".join(pids)}
    other_nid = str((int(nids[0]) + 1) % 2**32)
    for changes, text in (({"PTL_MY_RID": "2"}, "PTL_MY_RID=2 is not a rank below 2"),
                          ({"PTL_MY_RID": "x"}, "PTL_MY_RID=x is not a number"),
                          ({"PTL_PIDMAP": "1:2:3"}, "PTL_NIDMAP names 2 processes, PTL_PIDMAP 3"),
                          ({"PTL_NIDMAP": "1:zwei"}, "PTL_NIDMAP: the entry of rank 1, 'zwei', is not a number: "),
                          ({"PTL_PIDMAP": f"{pids[0]}:65535"}, "PTL_PIDMAP: the entry of rank 1, '65535', is not a number below 65535"),
                          ({"PTL_PIDMAP": f"{pids[0]}:{pids[0]}"}, "give ranks 0 and 1 the same nid "),
                          ({"PTL_PIDMAP": ""}, "PTL_MY_RID is set, but PTL_PIDMAP is not"),
                          ({"PTL_NIDMAP": f"{other_nid}:{nids[1]}"}, "PTL_NIDMAP and PTL_PIDMAP say nid")):
        _, error = run([programs.probe, "map"], {**right, **changes}, code=9)
        check(text in error, f"{changes}: {error}")
