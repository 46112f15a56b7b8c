"""Common functions of the cases: running programs with a deadline, and reading their output."""
import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref

DEADLINE_S = 50
SKIP = 77  # the exit code that ctest takes for a skipped test

CASES = {}
# Names of those that run ptl_perf or ptl_info.
CASES_WITH_TOOLS = set()
# Directories that exist until this process ends.
OWN_DIRECTORIES = []
EXAMPLES = ("hello", "ring", "stencil", "reduction", "work_queue")


def case(function):
    CASES[function.__name__] = function
    return function


def case_with_tools(function):
    """A case that runs ptl_perf or ptl_info, which some builds leave out."""
    CASES_WITH_TOOLS.add(function.__name__)
    return case(function)


def check(condition, message):
    if not condition:
        sys.exit("FAILED: " + str(message))


def skip(reason):
    print("SKIPPED:", reason)
    sys.exit(SKIP)


class Programs:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.probe = self.directory / "job_probe"
        self.floor = self.directory / "pmix_floor"
        self.perf = self.directory / "ptl_perf"
        self.info = self.directory / "ptl_info"

    def example(self, name):
        return self.directory / ("job_" + name)


def end_with_parent():
    """Called in a child: creates a session, and requests SIGKILL for the end of the test."""
    os.setsid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def environment(changes=None):
    return {**os.environ, **{name: str(value) for name, value in (changes or {}).items()}}


def start(command, changes=None, stderr=subprocess.PIPE, **options):
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=stderr, text=True,
                            env=environment(changes), preexec_fn=end_with_parent, **options)


def finish(process, code=0, deadline_s=DEADLINE_S):
    """Waits for a process that must exit with `code` (None: anything except 0; "any": anything)."""
    try:
        output, error = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, error = process.communicate()
        print(output, error, sep="\n")
        sys.exit(f"FAILED: {process.args} did not end within {deadline_s} s")
    fits = code == "any" or (process.returncode != 0 if code is None else process.returncode == code)
    if not fits:
        print(output, error, sep="\n")
        sys.exit(f"FAILED: {process.args} exited with {process.returncode}")
    return output, error


@contextlib.contextmanager
def deadline_for(process, deadline_s=DEADLINE_S):
    """A process that is used within a block. It is killed after `deadline_s`, or when the block ends."""
    timer = threading.Timer(deadline_s, lambda: os.killpg(process.pid, signal.SIGKILL))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run(command, changes=None, code=0, **options):
    return finish(start(command, changes, **options), code)


def places(output):
    """The lines that `job_probe map` prints, by rank."""
    found = {}
    for line in re.findall(r"^rank \d+ of .*$", output, re.MULTILINE):
        numbers = dict(re.findall(r"(rank|of|local|node|nid) (\d+)", line))
        words = line.split()
        found[int(words[1])] = {"size": int(words[3]), "local_rank": int(words[5]), "local_size": int(words[7]),
                                "node": int(words[9]), "nodes": int(words[11]), "launcher": words[13],
                                "nid": int(numbers["nid"])}
    return found


def check_places(output, size, launcher, nodes=1):
    found = places(output)
    check(sorted(found) == list(range(size)), f"ranks {sorted(found)} instead of {size}:\n{output}")
    for rank, place in found.items():
        check(place["size"] == size and place["launcher"] == launcher and place["nodes"] == nodes, f"{rank}: {place}")
    return found


def check_examples(programs, launch):
    """Runs every example with `launch(program)`, which returns the output."""
    for name in EXAMPLES:
        output = launch(programs.example(name))
        check(re.search(rf"^{name}: ", output, re.MULTILINE), f"{name} printed: {output}")


def no_leftovers(pattern="lintel*"):
    """The files of this user in /dev/shm, which ended jobs must not leave."""
    return sorted(path.name for path in pathlib.Path("/dev/shm").glob(pattern) if path.lstat().st_uid == os.geteuid())


def await_condition(what, condition, deadline_s=20):
    deadline = time.monotonic() + deadline_s
    while not condition():
        check(time.monotonic() < deadline, f"{what} did not come within {deadline_s} s")
        time.sleep(0.02)


def need(program, package):
    if shutil.which(program) is None and not os.path.exists("/usr/sbin/" + program):
        skip(f"{program} is not installed (package {package})")


def isolated():
    """Restarts this program in new namespaces for hosts, ports, daemons and shared memory. All of them end with
    this process."""
    if os.geteuid() != 0:
        skip("only root may make namespaces for hosts and daemons")
    if os.environ.get("LINTEL_TEST_ISOLATED"):
        # Without a network, some daemons cannot resolve any name, not even a numeric one.
        subprocess.run("mount --make-rprivate / && mount -t tmpfs tmpfs /dev/shm && ip link set lo up && "
                       "ip link add lnet0 type veth peer name lnet1 && ip addr add 10.99.8.1/24 dev lnet0 && "
                       "ip link set lnet0 up && ip link set lnet1 up", shell=True, check=True)
        # Open MPI names its directories after host and process: other tests have the same names.
        OWN_DIRECTORIES.append(IsolatedDirectory())
        os.environ["TMPDIR"] = OWN_DIRECTORIES[-1].name
        return
    probe = subprocess.run(["unshare", "--net", "--mount", "--pid", "--ipc", "--uts", "--fork", "true"],
                           stderr=subprocess.PIPE, text=True)
    if probe.returncode != 0:
        skip("no namespaces here: " + probe.stderr.strip())
    os.environ["LINTEL_TEST_ISOLATED"] = "1"
    os.execvp("unshare", ["unshare", "--net", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child",
                          "--mount-proc", sys.executable, "-B", *sys.argv])


class IsolatedDirectory:
    """A tmpfs in the mount namespace of the test, because daemons write to it until they end with the test."""

    def __init__(self):
        self.name = tempfile.mkdtemp(prefix="lintel-job-")
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", self.name], check=True)
        weakref.finalize(self, self.remove, self.name)

    @staticmethod
    def remove(name):
        subprocess.run(["umount", "--lazy", name], check=True)
        os.rmdir(name)


def work_directory():
    if os.environ.get("LINTEL_TEST_ISOLATED"):
        return IsolatedDirectory()
    return tempfile.TemporaryDirectory(prefix="lintel-job-")
