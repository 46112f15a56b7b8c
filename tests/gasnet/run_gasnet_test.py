"""Runs a case of the tests of jobs: starts probes, checks output, exit of the job and what is left.

Usage: run_gasnet_test.py --list | <directory of programs> <mode> <case>
"""
import ctypes
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

GRACE_S = 5  # after the end of a job none of its processes may be left for longer


class Job:
    """One run of a program. A variable in the environment of its processes identifies them."""

    def __init__(self, command, **variables):
        self.marker = f"LINTEL_GASNET_CASE={uuid.uuid4()}"
        environment = {**os.environ, **variables}
        name, value = self.marker.split("=")
        environment[name] = value
        start = time.monotonic()
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        try:
            self.out, self.err = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            for pid in self.left():
                os.kill(pid, signal.SIGKILL)
            self.process.kill()
            self.out, self.err = self.process.communicate()
            sys.exit(f"{command} did not end:\n{self.out}{self.err}")
        self.seconds = time.monotonic() - start
        self.code = self.process.returncode

    def left(self):
        """Processes of the job that still exist."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if self.marker.encode() in path.read_bytes():
                    found.append(int(path.parent.name))
            except OSError:
                pass
        return found

    def check(self, code, text=""):
        deadline = time.monotonic() + GRACE_S
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(0.02)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        where = f"\nstandard output:\n{self.out}\nstandard error:\n{self.err}"
        if left:
            sys.exit(f"{len(left)} processes were left after {GRACE_S} s{where}")
        if self.code != code:
            sys.exit(f"the job ended with {self.code}, not with {code}{where}")
        if "Sanitizer:" in self.err:
            sys.exit(f"a sanitizer has found something{where}")
        if code == 0 and "its process is gone" in self.err:
            sys.exit(f"a rank ended while others expected a message of it{where}")
        if not re.search(text, self.out + self.err):
            sys.exit(f"{text!r} was not printed{where}")
        return self


if sys.argv[1] != "--list":
    programs, mode, case = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    probe = programs / f"gasnet_probe_{mode}"
    run = str(programs / "gasnetrun_portals4")


def fork(ranks, *arguments, options=(), **variables):
    return Job([run, "-spawner=fork", *options, "-n", str(ranks), str(probe), *map(str, arguments)], **variables)


def mpi(ranks, *arguments, **variables):
    if not shutil.which("mpirun"):
        print("mpirun is not installed")
        sys.exit(77)
    return Job([run, "-spawner=mpi", "-n", str(ranks), str(probe), *map(str, arguments)], **variables)


def alone(*arguments, **variables):
    return Job([str(probe), *map(str, arguments)], **variables)


def queries():
    alone("queries").check(0)
    fork(4, "queries").check(0)
    fork(4, "queries", GASNET_SUPERNODE_MAXSIZE="2").check(0)


def segments():
    alone("segments", "64KB").check(0, "segments of 1 ranks")
    fork(5, "segments", "1GB").check(0, "segments of 5 ranks")
    fork(5, "segments", "64KB", GASNET_SUPERNODE_MAXSIZE="2").check(0, "segments of 5 ranks")
    if mode == "seq":
        fork(70, "segments", "64KB").check(0, "segments of 70 ranks")


def memory_of_launcher():
    """Processes of the spawner fork meet in its memory, or find each other through Portals."""
    def through(script, text="segments of 5 ranks"):
        return Job([run, "-spawner=fork", "-n", "5", "sh", "-c", script, "sh", str(probe), "segments", "64KB"]).check(0, text)

    for without in ("PTL_JOB_MEMORY", "GASNETRUN_MEMORY", "PTL_JOB_MEMORY GASNETRUN_MEMORY"):
        through(f'unset {without}; exec "$@"')
    # The setting of rank 0 counts.
    for ranks in ("= 0", "!= 0"):
        through(f'test $PTL_MY_RID {ranks} && export GASNET_SUPERNODE_MAXSIZE=2; exec "$@"')
    # Of several programs only the first can use the memory.
    through('"$@" && "$@" && "$@"', "(segments of 5 ranks\\s+){3}")
    # A process that ends before it joins the job does not leave others waiting.
    Job([run, "-spawner=fork", "-n", "3", "sh", "-c", 'test $PTL_MY_RID = 1 || exec "$@"', "sh", str(probe), "queries"]).check(
        134, "a process of the job has ended")
    # Memory of another layout.
    other = 'test $PTL_MY_RID != 0 || printf "\\115" | dd of=$GASNETRUN_MEMORY conv=notrunc status=none; exec "$@"'
    Job([run, "-spawner=fork", "-n", "2", "sh", "-c", other, "sh", str(probe), "queries"]).check(
        134, "has layout 77, this library has 2: run all processes of a job with the same library")


def attach_time():
    """8 GiB of address space, of which nothing is touched."""
    job = fork(2, "attach-time", GASNET_MAX_SEGSIZE="8GB").check(0, "attach_us=")
    microseconds = int(re.search(r"attach_us=(\d+)", job.out)[1])
    if is_emulated():
        print(f"attaching 8 GiB took {microseconds} us, which is not checked: the emulator enters each page of a mapping")
    elif microseconds > 50_000:
        sys.exit(f"attaching 8 GiB took {microseconds} us, more than 50000")


def segment_limits():
    memory = int(re.search(r"memory=(\d+)", alone("limits").check(0).out)[1])
    for text, wanted in (("64MB", 64 << 20), ("64MB/P", 64 << 20), ("64MB/H", 32 << 20), ("3/4 GB", 3 << 28),
                         ("1048576", 1 << 20), ("100", 4096)):
        fork(2, "limits", GASNET_MAX_SEGSIZE=text).check(0, f"limit={wanted} ")
    whole = int(re.search(r"limit=(\d+)", alone("limits", GASNET_MAX_SEGSIZE="0.5").check(0).out)[1])
    shared = int(re.search(r"limit=(\d+)", fork(2, "limits", GASNET_MAX_SEGSIZE="0.5/H").check(0).out)[1])
    if whole > memory // 2 or abs(whole - 2 * shared) > 8192:
        sys.exit(f"half of {memory} is {whole}, for each of two processes {shared}")
    fork(2, "limits", GASNET_MAX_SEGSIZE="much").check(134, "GASNET_MAX_SEGSIZE=much: give a size")


def environment():
    script = 'test "$PTL_MY_RID" = 0 && PROBE_VALUE="of rank 0" || PROBE_VALUE=other; export PROBE_VALUE; exec "$@"'
    Job([run, "-spawner=fork", "-n", "3", "sh", "-c", script, "sh", str(probe), "environment"]).check(0)
    fork(2, "queries", GASNET_VERBOSEENV="1").check(0, r"GASNET_MAX_SEGSIZE = 0.85/H +\(default\)")


def exits():
    # The modes differ in locks only, so only one of them runs with several numbers of ranks.
    for ranks in (1, 2, 4) if mode == "seq" else (3,):
        for what in ("one", "all", "plain", "signal", "atexit", "no-attach", "return", "quick", "handler", "reply"):
            fork(ranks, what, 7).check(7)
    if mode == "seq":
        fork(16, "one", 7).check(7)
        fork(16, "all", 7).check(7)
    fork(4, "one", 0).check(0)
    fork(4, "all", 0).check(0)
    fork(3, "return", 0).check(0)
    fork(2, "early").check(14)
    if mode != "seq":
        fork(3, "thread", 9).check(9)


def exits_of_threads():
    """For the thread sanitizer: each way to end once, in one neighbourhood and in several."""
    for most in ("0", "1"):
        for what in ("all", "signal", "atexit", "handler", "reply", "thread", "together"):
            fork(3, what, 7, GASNET_SUPERNODE_MAXSIZE=most).check(7)


def exits_between_neighbourhoods():
    for what in ("one", "all", "plain", "signal", "handler", "reply"):
        fork(5, what, 7, GASNET_SUPERNODE_MAXSIZE="2").check(7)
    fork(3, "one", 8, GASNET_SUPERNODE_MAXSIZE="1").check(8)


def is_emulated():
    """Whether the probe is a program for another processor than this one: user-mode emulation."""
    def machine(program):
        with open(program, "rb") as file:
            return file.read(20)[18:]
    return machine(probe) != machine(sys.executable)


def is_sanitized():
    return any(name in probe.read_bytes() for name in (b"__asan_init", b"__tsan_init"))


def deaths():
    # No sanitizer must handle the fault: the library does.
    for options in ("ASAN_OPTIONS", "TSAN_OPTIONS"):
        os.environ[options] = ":".join(filter(None, [os.environ.get(options), "handle_segv=0"]))
    fork(3, "killed").check(128 + signal.SIGKILL)
    fork(3, "fault").check(128 + signal.SIGSEGV, r"rank 2 of 3\) caught a fatal signal: SIGSEGV")
    fork(3, "fault", GASNET_NO_CATCH_SIGNAL="segv").check(128 + signal.SIGSEGV)
    # A sanitizer ends the process at the write.
    if not is_sanitized():
        for backtrace in ("0", "1"):
            fork(3, "heap", GASNET_BACKTRACE=backtrace).check(
                128 + signal.SIGABRT, r"rank 2 of 3\) caught a fatal signal: SIGABRT")
    fork(2, "fatal", GASNET_BACKTRACE="1", GASNET_BACKTRACE_TYPE="EXECINFO").check(
        128 + signal.SIGABRT, r"rank 1 of 2\) in main at .*probe.c:\d+: the reason is 42[^$]*EXECINFO")


def by_hand(ranks, *arguments):
    """Runs the probe without the spawner, which would end the others. Returns codes and pids."""
    shown = Job([run, "-spawner=fork", "-t", "-n", str(ranks), "true"]).check(0).err
    nids = re.search(r"PTL_NIDMAP=(\S+)", shown)[1]
    # Not those of the spawner, which other tests use at the same time.
    first = 31000 + os.getpid() % 1000 * 10
    pids = [str(first + rank) for rank in range(ranks)]
    processes = [subprocess.Popen([probe, *arguments], env={**os.environ, "PTL_MY_RID": str(rank), "PTL_NIDMAP": nids,
                                                           "PTL_PIDMAP": ":".join(pids)}) for rank in range(ranks)]
    try:
        return [process.wait(timeout=30) for process in processes], pids
    finally:
        for process in processes:
            process.kill()


def deaths_by_hand():
    """The other processes detect the death."""
    for what, code in (("killed", -signal.SIGKILL), ("one", 7)):
        codes, _ = by_hand(3, what, "7")
        others = 1 if what == "killed" else 7
        if codes != [others, others, code]:
            sys.exit(f"{what}: the processes ended with {codes}")


def left_in_shared_memory(pids):
    """Files with nid and Portals pid in their names, and links to memory of ended processes."""
    files = [path for pid in pids for path in pathlib.Path(f"/dev/shm/lintel.{os.getuid()}").glob(f"*.{pid}.*")]
    links = pathlib.Path("/dev/shm").glob(f"lintel-map.{os.getuid()}.*")
    return files + [link for link in links if not os.path.lexists(os.path.dirname(os.path.dirname(os.readlink(link))))]


def nothing_is_left():
    """In /dev/shm. At the end, threads are in the library ("all", "return") or compute ("one")."""
    for what, code in (("all", 0), ("all", 7), ("return", 0), ("one", 7), ("one", 0)):
        codes, pids = by_hand(3, what, str(code))
        left = left_in_shared_memory(pids)
        if codes != [code] * 3 or left:
            sys.exit(f"{what} {code}: the processes ended with {codes} and left {left}")
    # The spawner removes what a killed process leaves.
    killed = fork(3, "killed", options=["-v"]).check(128 + signal.SIGKILL)
    if left := left_in_shared_memory(re.search(r"PTL_PIDMAP=(\S+)", killed.err)[1].split(":")):
        sys.exit(f"after the end of a killed process {left} is left")


def trace_files():
    directory = pathlib.Path(f"/tmp/gasnet-trace-{uuid.uuid4()}")
    directory.mkdir()
    try:
        fork(3, "all", 0, GASNET_TRACEFILE=f"{directory}/trace.%", GASNET_TRACENODES="0,2").check(0)
        names = sorted(path.name for path in directory.iterdir())
        if names != ["trace.0", "trace.2"]:
            sys.exit(f"expected the files trace.0 and trace.2, found {names}")
        if "(I) rank 2 of 3" not in (directory / "trace.2").read_text():
            sys.exit("the trace does not name its rank")
        fork(2, "all", 0, GASNET_TRACEFILE=f"{directory}/masked.%", GASNET_TRACEMASK="^I", GASNET_TRACEFLUSH="1",
             GASNET_STATSFILE=f"{directory}/statistics.%", GASNET_STATSNODES="1", GASNET_STATSMASK="H").check(0)
        if "(I)" in (directory / "masked.0").read_text() or (directory / "statistics.0").exists():
            sys.exit("a masked category was traced, or a rank that was not selected wrote statistics")
        if not (directory / "statistics.1").exists():
            sys.exit("there is no file of statistics")
        # Each kind of call writes lines, and is counted unless it is masked.
        names = {"A": "active messages handled", "B": "barriers", "X": "collectives", "O": "atomics", "P": "puts", "G": "gets"}
        for program, letters in (("coll_probe_seq random 20 1", "ABX"), ("vis_probe_seq 1 20", "PG"),
                                 ("ratomic_probe_seq 1 20", "O")):
            name, *arguments = program.split()
            Job([run, "-spawner=fork", "-n", "2", str(programs / f"gasnet_{name}"), *arguments], GASNET_SUPERNODE_MAXSIZE="1",
                GASNET_TRACEFILE=f"{directory}/calls.%", GASNET_STATSFILE=f"{directory}/counts.%",
                GASNET_STATSMASK="^G").check(0)
            lines, counts = ((directory / f"{file}.1").read_text() for file in ("calls", "counts"))
            for letter in letters:
                if f"> ({letter}) " not in lines:
                    sys.exit(f"the trace of {program} has no line of category {letter}")
                if bool(re.search(rf"\({letter}\) \d+ {names[letter]}", counts)) != (letter != "G"):
                    sys.exit(f"of {program}, {names[letter]} should be counted, unless they are masked:\n{counts}")
            if "X" in letters and "gex_TM_Split: team" not in lines:
                sys.exit("the trace has no line for a new team")
        # So do transfers to mapped memory, with the source line that the program sets.
        for local, puts in (("1", 2), ("0", 1)):
            fork(2, "traced", GASNET_TRACEFILE=f"{directory}/local{local}.%", GASNET_STATSFILE=f"{directory}/counts.%",
                 GASNET_TRACELOCAL=local).check(0)
            lines, counts = ((directory / f"{file}.1").read_text() for file in (f"local{local}", "counts"))
            if ("[own.c:11] (P) 8 bytes" in lines) != (local == "1") or "[near.c:22] (P) 8 bytes" not in lines:
                sys.exit(f"GASNET_TRACELOCAL={local}: the trace has the wrong puts:\n{lines}")
            if f"(P) {puts} puts" not in counts:
                sys.exit(f"GASNET_TRACELOCAL={local}: expected {puts} puts:\n{counts}")
        sums = [str(programs / "gasnet_trace"), "-c", "PB", f"{directory}/local1.0", f"{directory}/local1.1"]
        for text in (r"\(P\) puts +4 +32 .* 2\n", r"\(B\) barriers +2 +0 ", r"\(P\) near.c:22 +2 +16 "):
            Job(sums).check(0, text)
        if "(I)" in Job(sums).check(0).out:
            sys.exit("gasnet_trace prints a category that was not selected")
        Job([sums[0], f"{directory}/counts.1"]).check(0, r"\(P\) puts +1 ")
        Job([sums[0], "-o", f"{directory}/sums", f"{directory}/counts.1"]).check(0)
        if "(P) puts" not in (directory / "sums").read_text():
            sys.exit("gasnet_trace -o has not written its file")
        Job([sums[0], f"{directory}/none"]).check(2, "none: No such file")
        Job([sums[0], "-z", "x"]).check(2, "Usage: gasnet_trace")
    finally:
        shutil.rmtree(directory)


def teams_in_turn():
    """The memory that neighbours share for a team serves another one later."""
    with tempfile.TemporaryDirectory() as directory:
        Job([run, "-spawner=fork", "-n", "4", str(programs / "gasnet_team_probe_par")],
            GASNET_TRACEFILE=f"{directory}/trace.%").check(0, "are good")
        lines = re.findall(r"gex_TM_Split: team .*", pathlib.Path(directory, "trace.0").read_text())
        if len(lines) < 40 or not all(line.endswith("places: 1") for line in lines[-40:]):
            sys.exit("\n".join(["expected 40 teams of neighbours in one place, found:", *lines]))


def frozen():
    """Processes that wait for a debugger, and a backtrace on request."""
    wanted = "Process frozen for a debugger"
    for variables, number, text in (({"GASNET_FREEZE": "1"}, None, wanted),
                                    ({"GASNET_FREEZE_SIGNAL": "SIGUSR1"}, signal.SIGUSR1, wanted),
                                    ({"GASNET_BACKTRACE_SIGNAL": "usr2", "GASNET_BACKTRACE": "1",
                                      "GASNET_BACKTRACE_TYPE": "EXECINFO"}, signal.SIGUSR2, "EXECINFO|gasnet_probe")):
        process = subprocess.Popen([probe, "compute"], env={**os.environ, **variables}, stderr=subprocess.PIPE, text=True)
        try:
            for line in process.stderr:
                if number and line == "computing\n":
                    process.send_signal(number)
                elif re.search(text, line):
                    break
            else:
                sys.exit(f"{variables}: the process ended and did not print {text!r}")
        finally:
            process.kill()
            process.communicate()
    process = subprocess.Popen([probe, "fatal"], env={**os.environ, "GASNET_FREEZE_ON_ERROR": "1"},
                               stderr=subprocess.PIPE, text=True)
    if not any(wanted in line for line in process.stderr):
        sys.exit("GASNET_FREEZE_ON_ERROR: the process was not frozen")
    process.kill()
    process.communicate()


def variables():
    """The effects of other variables of the environment."""
    fork(2, "leave", 5, GASNET_CATCH_EXIT="0").check(5, "still here")
    fork(1, "queries", GASNET_EXITTIMEOUT="0").check(134, "GASNET_EXITTIMEOUT=0: give at least")
    fork(2, "all", 0, GASNET_EXITTIMEOUT_MAX="3", GASNET_EXITTIMEOUT_MIN="1", GASNET_EXITTIMEOUT_FACTOR="0.5",
         GASNET_FS_SYNC="1", GASNET_VERBOSEENV="1").check(0, "GASNET_EXITTIMEOUT = 2")
    fork(2, "fatal", GASNET_BACKTRACE="1", GASNET_BACKTRACE_TYPE="EXECINFO", GASNET_BACKTRACE_NODES="1").check(
        134, "EXECINFO")
    if "EXECINFO" in fork(2, "fatal", GASNET_BACKTRACE="1", GASNET_BACKTRACE_TYPE="EXECINFO",
                          GASNET_BACKTRACE_NODES="0,2-5").check(134).err:
        sys.exit("rank 1 wrote a backtrace, but GASNET_BACKTRACE_NODES does not list it")
    threads = Job([run, "-spawner=fork", "-n", "2", str(programs / "gasnet_rma_probe_par"), "4", "2"],
                  GASNET_MAX_THREADS="2")
    threads.check(134, "raise GASNET_MAX_THREADS")


def misuse():
    """The misuse that debug builds detect."""
    in_handler = "in a handler of an active message, where it is not allowed"
    locked, prepared = "while a handler-safe lock is held", "between prepare and commit"
    cases = {"request-in-request": f"gex_AM_RequestShort was called {in_handler}",
             "prepare-in-request": f"gex_AM_PrepareRequest was called {in_handler}",
             "poll-in-request": f"gasnet_AMPoll was called {in_handler}",
             "put-in-request": f"put or get was called {in_handler}",
             "get-in-request": f"put or get was called {in_handler}",
             "test-in-request": f"gex_Event_Test was called {in_handler}",
             "test-all-in-request": f"gex_NBI_Test was called {in_handler}",
             "region-in-request": f"gex_NBI_BeginAccessRegion was called {in_handler}",
             "barrier-in-request": f"gex_Coll_BarrierNB was called {in_handler}",
             "register-in-request": f"gex_EP_RegisterHandlers was called {in_handler}",
             "rank-in-request": f"gex_TM_TranslateJobrankToRank was called {in_handler}",
             "bound-in-request": f"gex_EP_QueryBoundSegmentNB was called {in_handler}",
             "never-self": "A put or get to this process has a flag GEX_FLAG_PEER_NEVER_",
             "never-near": "A put or get to (rank 0, a neighbour, has|this process has a flag) GEX_FLAG_PEER_NEVER_",
             "locked-reply": f"gex_AM_ReplyShort was called {locked}",
             "kept-lock": "handler 200 has returned while it holds",
             "left-prepared": "handler 200 has returned between prepare and commit",
             "lock-twice": "assertion failed: .*MUTEX_OWNED", "mutex-twice": "assertion failed: .*MUTEX_OWNED",
             "lock-free": "unlocked by a thread that holds none", "mutex-free": "assertion failed: .*MUTEX_OWNED",
             "rwlock-free": "assertion failed: .*RWLOCK_IS_READ", "rwlock-not-read": "assertion failed: .*RWLOCK_IS_READ",
             "rwlock-written": "assertion failed: .*RWLOCK_IS_WRITTEN", "rwlock-both": "pthread_rwlock_rdlock.* returned",
             "prepared-reply": f"gex_AM_ReplyShort was called {prepared}",
             "second-reply": "gex_AM_ReplyShort was called a second time",
             "reply-in-reply": "gex_AM_ReplyShort was called outside the handler of a request",
             "request-in-reply": f"gex_AM_RequestShort was called {in_handler}",
             "wait-in-reply": f"gex_Event_WaitAll was called {in_handler}",
             "block-in-reply": f"GASNET_BLOCKUNTIL was called {in_handler}",
             "locked-request": f"gex_AM_RequestShort was called {locked}",
             "locked-poll": f"gasnet_AMPoll was called {locked}",
             "locked-put": f"put or get was called {locked}",
             "prepared-request": f"gex_AM_RequestShort was called {prepared}",
             "prepared-poll": f"gasnet_AMPoll was called {prepared}"}
    program = programs / "gasnet_misuse_probe"
    if subprocess.run([program]).returncode == 77:
        print("not a debug build")
        sys.exit(77)
    command = [run, "-spawner=fork", "-n", "2", str(program)]
    Job([*command, "correct"]).check(0)
    # Each job sleeps most of its time.
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda case: Job([*command, case[0]]).check(128 + signal.SIGABRT, case[1]), cases.items()))
    Job([*command, "put-in-request"], GASNET_SUPERNODE_MAXSIZE="1").check(134, cases["put-in-request"])


def info():
    program = str(programs / "gasnet_info")
    Job([program]).check(0, "GASNET_MAX_SEGSIZE +0.85/H +default")
    command = [run, "-spawner=fork", "-n", "3", program]
    shown = Job(command, GASNET_AM_CREDITS="99").check(0, r"processes +3\n").out
    for text in (r"rank 2 +puts and gets: loads and stores", r"small ones by a ring in shared memory, others by Portals over shm",
                 r"Medium +8192 bytes", r"put copied at once +[1-9]", r"GASNET_AM_CREDITS +99 +rank 0"):
        if not re.search(text, shown):
            sys.exit(f"{text!r} is not in {shown}")
    Job(command, GASNET_SUPERNODE_MAXSIZE="2", PTL_TRANSPORT="udp").check(
        0, r"rank 2 +puts and gets: Portals\n +because it is in another neighbourhood of this host.*\n +messages: Portals over udp")


def refused():
    """Some clients go on without a network when they are refused, and end with 0."""
    job = alone("refused").check(0, "(?s)has FAILED in process .*flags has other bits .*not part of a job")
    if (count := job.err.count("has FAILED in process")) != 4:
        sys.exit(f"{count} of 4 refusals are reported")


def reports():
    """GASNET_VERBOSEENV lists every variable once, with where its value comes from."""
    shown = fork(3, "setenv", GASNET_VERBOSEENV="1", GASNET_TRACEFLUSH="y", GASNET_UNKNOWN="7", GASNET_PSHM_NODES="4").check(0).err
    header = (pathlib.Path(__file__).parents[2] / "gasnet" / "tools" / "variables.h").read_text()
    names = re.findall(r'\{"(GASNET_\w+)", ', header)
    lines = [line for line in shown.splitlines() if line.startswith("ENV parameter: ")]
    for name in names:
        found = [line for line in lines if line.startswith(f"ENV parameter: {name} = ")]
        if len(found) != 1 or not re.search(r"\((default|rank 0|program)\)$", found[0]):
            sys.exit(f"{name}: {found}")
    for text in (r"GASNET_TRACEFLUSH = YES +\(rank 0\)", r"GASNET_UNKNOWN = 7 +\(rank 0; this library does not read it\)",
                 r"GASNET_PSHM_NODES = 4 +\(rank 0\)", r"GASNET_FS_SYNC = YES +\(program\)", r"GASNET_BARRIER = DISSEM +\(default\)"):
        if not re.search(text, shown):
            sys.exit(f"{text!r} is not in {shown}")


def choices():
    fork(2, "queries", GASNET_BARRIER="carousel").check(134, "GASNET_BARRIER=carousel: give one of DISSEM, AMDISSEM")
    fork(2, "queries", GASNET_BARRIER="amdissem", GASNET_COLL_SCRATCH_SIZE="2MB").check(0)
    fork(2, "queries", GASNET_HOST_DETECT="oracle").check(134, "GASNET_HOST_DETECT=oracle: give one of conduit, gethostid, hostname")
    for way in ("conduit", "gethostid", "hostname"):
        fork(3, "segments", "64KB", GASNET_HOST_DETECT=way).check(0, "segments of 3 ranks")
    script = 'test "$PTL_MY_RID" = 0 || export GASNET_HOST_DETECT=hostname; exec "$@"'
    Job([run, "-spawner=fork", "-n", "3", "sh", "-c", script, "sh", str(probe), "queries"]).check(
        134, "set GASNET_HOST_DETECT for all")


def launcher():
    Job([run, "-n", "2", "-spawner=fork", "-t", "true"]).check(0, "2 processes of this host")
    Job([run, "-n", "4", "-N", "2", "-c", "3", "-E", "HOME,USER", "-spawner=mpi", "-t", "p", "-x"],
        GASNET_SOMETHING="1").check(0, r"mpirun -n 4 .*ppr:2:node:pe=3 -x HOME -x USER .*-x GASNET_SOMETHING.* p -x")
    Job([run, "-n", "4", "-N", "2", "-c", "3", "-t", "--", "p"], GASNET_PORTALS4_SPAWNER="PMIX").check(
        0, "srun --mpi=pmix -n 4 -N 2 -c 3 p")
    # -k prints the command, as -v does, and starts the job. Without them nothing is printed.
    command = [run, "-spawner=fork", "-n", "2"]
    for option in ("-k", "-v"):
        Job([*command, option, "echo", "started"]).check(0, "started\nstarted\n[^$]*2 processes of this host, PTL_NIDMAP=")
    if (said := Job([*command, "-c", "2", "echo", "started"]).check(0)).err or said.out != "started\nstarted\n":
        sys.exit(f"without -v it prints {said.err!r} and {said.out!r}")
    if "started" in Job([*command, "-t", "echo", "started"]).check(0, "2 processes of this host").out:
        sys.exit("-t has started the job")
    if "srun" not in Job([run, "-n", "2", "-t", "p"], SLURM_JOB_ID="1").check(0).err:
        sys.exit("in a Slurm allocation pmix is not the default")
    Job([run, "-np", "2", "-spawner=FORK", "--", "sh", "-c", 'test "$1" = -v', "sh", "-v"]).check(0)
    Job([run, "-h"]).check(0, "Usage: gasnetrun_portals4 -n")
    for options, text in ((["-n"], "-n needs a value"), (["-n", "0"], "-n 0: give a number from 1 on"),
                          (["-n", "2x"], "-n 2x: give a number"), (["-n", "2", "-c", "-1"], "-c -1: give a number"),
                          (["-n", "2", "-N", "3", "p"], "-N is larger than -n"), (["-n", "2"], "give a program"),
                          (["-n", "2", "-N", "2", "-spawner=fork", "p"], "-N 2: the spawner fork starts processes on this host only")):
        Job([run, *options]).check(2, text)
    Job([run, "-n", "2000", "-spawner=fork", "p"]).check(1, r"Portals pids for \d+ processes left; use -spawner=mpi")
    Job([run, "-z", "p"]).check(2, "-z: unknown option")
    Job([run, "p"]).check(2, "number of processes")
    Job([run, "-n", "2", "-spawner=ssh", "p"]).check(2, "spawner ssh: there are")
    Job([run, "-n", "2", "-spawner=fork", "/no/such/program"]).check(127, "cannot be started")
    Job([run, "-n", "3", "-spawner=fork", "sh", "-c", "test $PTL_MY_RID != 1 || exit 4"]).check(4)
    # A launcher that has started all ranks, and is late, finds that several have ended: the killed
    # one is the cause.
    late = ("case $PTL_MY_RID in 0) sleep 0.5; kill -STOP $PPID; (sleep 1; kill -CONT $PPID) & exit 1;; 1) sleep 1.1;; "
            "2) sleep 1; kill -KILL $$;; esac; exit 1")
    Job([run, "-n", "3", "-spawner=fork", "sh", "-c", late]).check(128 + signal.SIGKILL)


class Wrapped:
    """A job whose ranks are started by wrappers, so that they are no children of the launcher. Each rank is a shell that
    waits for a file `go` and then writes a file. qemu-aarch64 7.2 refuses PR_SET_CHILD_SUBREAPER, with which the launcher
    adopts them, so there the ranks take the place of their wrappers."""

    def __init__(self, directory, before=""):
        self.directory = pathlib.Path(directory)
        self.marker = f"LINTEL_GASNET_CASE={uuid.uuid4()}"
        name, value = self.marker.split("=")
        rank = "echo $$ > rank.$PTL_MY_RID; until test -e go; do sleep 0.3; done; echo done > done.$PTL_MY_RID"
        wrapper = "exec sh -c \"$RANK\"" if is_emulated() else "sh -c \"$RANK\"; true"
        script = f"{before} {run} -spawner=fork -n 3 sh -c '{wrapper}'; true"
        self.shell = subprocess.Popen(["sh", "-c", script], cwd=directory, stderr=subprocess.PIPE, text=True,
                                      env={**os.environ, name: value, "RANK": rank})
        self.await_that("three ranks", lambda: len(list(self.directory.glob("rank.*"))) == 3)
        outer = self.child_of(self.shell.pid)
        self.launchers = [outer, self.child_of(outer)]

    @staticmethod
    def child_of(pid):
        return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def left(self):
        return Job.left(self)

    def await_that(self, what, condition):
        deadline = time.monotonic() + 20
        while not condition():
            if time.monotonic() > deadline:
                left = self.left()
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
                sys.exit(f"waited for {what} in vain; processes: {left}")
            time.sleep(0.1)

    def await_end(self):
        self.await_that("the end of all processes", lambda: not self.left())
        return self.shell.communicate()[1]


def closed_descriptors():
    """The launcher without standard input, output and error: its ranks get /dev/null, and none of its files. The kernel
    opens the program for an emulator, which keeps it open: as standard input, which rank 0 inherits."""
    with tempfile.TemporaryDirectory() as directory:
        rank = 'found=$(readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2); echo "$found" > link.$PTL_MY_RID'
        Job(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", run, "-spawner=fork", "-n", "2", "sh", "-c", f"cd {directory}; {rank}"]).check(0)
        for number in "01":
            found = pathlib.Path(directory, f"link.{number}").read_text().splitlines()
            if is_emulated() and number == "0" and found[0] == os.path.realpath(run):
                print("the emulator keeps the program open: standard input of rank 0 is not checked")
                found[0] = "/dev/null"
            if found != ["/dev/null"] * 3:
                sys.exit(f"rank {number} has the files {found}")


def taken_pids():
    """The names that reserve pids are open to all users. One has taken them all, and uses a few of the pids."""
    clone_newnet = 0x40000000
    if ctypes.CDLL(None).unshare(clone_newnet) != 0:
        print("no right to make a network namespace, in which the names disturb nobody else")
        sys.exit(77)
    held = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(8, 1024, 8)]
    for index, name in enumerate(held):
        name.bind(f"\0gasnetrun-pids-{8 + 8 * index}")
    fork(4, "queries").check(0)
    Job([run, "-n", "2000", "-spawner=fork", "p"]).check(1, r"Portals pids for \d+ processes left; use -spawner=mpi")
    # Those of a gasnetrun_portals4 of this user are kept.
    for name in held:
        name.listen()
    fork(4, "queries").check(1, "Portals pids for 0 processes left")


def stuck_job_ends(transport):
    job = fork(3, "progress", "stuck", options=["-limit=2"], **transport)
    job.check(124, "all 3 processes that are left have only waited for each other for the 2 s of -limit")
    if job.seconds < 2:
        sys.exit(f"the job has ended after {job.seconds} s")


def limit():
    """A job ends when all its ranks only wait for each other, and only where the user sets a limit."""
    # Most of them sleep, so they run at the same time.
    together = [lambda: stuck_job_ends({}), lambda: stuck_job_ends({"PTL_TRANSPORT": "udp"}),
                lambda: fork(2, "progress", "meets", options=["-limit=1"]).check(0),
                # Programs that use no GASNet, and those that have not started yet, are not stuck.
                lambda: Job([run, "-n", "2", "-spawner=fork", "-limit=1", "sleep", "3"]).check(0)]
    # On two processors three ranks wait in another way.
    together += [lambda ranks=ranks: fork(ranks, "progress", "computes", options=["-limit=2"]).check(0)
                 for ranks in (2, 3)]
    with ThreadPoolExecutor() as pool:
        for job in [pool.submit(work) for work in together]:
            job.result()
    Job([run, "-n", "2", "-spawner=fork", "-limit=x", "p"]).check(2, "-limit=x: give seconds from 1 on")
    Job([run, "-n", "2", "-spawner=mpi", "-limit=1", "p"]).check(2, "mpirun --timeout or srun --time")


def killed_launcher():
    """When one of the processes of the spawner fork or their parent ends, all ends that the ranks have started."""
    if is_emulated():
        print("the emulator refuses PR_SET_CHILD_SUBREAPER: what wrappers of ranks have started is not checked")
    for victim, number in ((0, signal.SIGKILL), (1, signal.SIGKILL), (0, signal.SIGTERM), (0, signal.SIGINT)):
        with tempfile.TemporaryDirectory() as directory:
            job = Wrapped(directory)
            os.kill(job.launchers[victim], number)
            job.await_end()
    with tempfile.TemporaryDirectory() as directory:
        job = Wrapped(directory)
        job.shell.kill()
        if "the process that started it has ended" not in (said := job.await_end()):
            sys.exit(f"the launcher does not say that its parent has ended: {said}")
    # Under nohup the job goes on.
    with tempfile.TemporaryDirectory() as directory:
        job = Wrapped(directory, "nohup")
        job.shell.kill()
        job.shell.wait()
        pathlib.Path(directory, "go").touch()
        job.await_end()
        if len(list(pathlib.Path(directory).glob("done.*"))) != 3:
            sys.exit("under nohup the job has ended with its parent")


def mpirun():
    mpi(3, "segments", "1MB").check(0, "segments of 3 ranks")
    mpi(3, "queries").check(0)
    mpi(3, "one", 7).check(7)
    mpi(3, "all", 0).check(0)


def slurm():
    """Two nodes of a cluster that the tests of jobs start: two neighbourhoods."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "jobs"))
    from cases_slurm import cluster
    made = cluster(2)
    output, _ = made.srun(2, 4, probe, "segments", "1MB")
    if "segments of 4 ranks" not in output:
        sys.exit(f"not the output of 4 ranks: {output}")
    made.srun(2, 4, probe, "queries")
    made.srun(2, 4, probe, "all", "0")
    made.srun(2, 4, probe, "one", "7", code=7)


every_mode = [queries, segments, exits]
once = [memory_of_launcher, attach_time, segment_limits, environment, exits_of_threads, exits_between_neighbourhoods, deaths, deaths_by_hand,
        nothing_is_left, trace_files, teams_in_turn, frozen, variables, refused, reports, choices, misuse, info, launcher, taken_pids, closed_descriptors, killed_launcher, limit, mpirun, slurm]
cases = {function.__name__: function for function in every_mode + once}
if sys.argv[1] == "--list":
    print("\n".join([f"{m} {f.__name__}" for m in ("seq", "par", "parsync") for f in every_mode] +
                    [f"par {f.__name__}" for f in once]))
else:
    cases[case]()
