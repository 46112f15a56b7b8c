"""Running other programs: pinned, with a deadline, and with an error that says which one failed."""

import os
import shlex
import signal
import socket
import subprocess
import time


# An emulated machine says how much slower than others it is (tests/vm); all deadlines here know.
SLOWDOWN = int(os.environ.get("LINTEL_TEST_SLOWDOWN", "1"))


class CommandError(Exception):
    """A program failed, or took longer than it may."""


def use_nice(value):
    """This program, and thus every one that it starts from now on, runs with this nice value."""
    if value == 0:
        return
    os.setpriority(os.PRIO_PROCESS, 0, value)
    try:
        # Where the kernel groups processes by session, only the value of the group counts.
        with open("/proc/self/autogroup", "w") as group:
            group.write(str(value))
    except OSError:
        pass


def _prepare(cpus):
    def in_child():
        os.setpgid(0, 0)
        if cpus:
            os.sched_setaffinity(0, cpus)

    return in_child


def start(command, cpus=(), environment=None):
    """Starts `command` on the cores `cpus` (none: where the caller runs); its output is captured."""
    return subprocess.Popen(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
        preexec_fn=_prepare(cpus),
    )


def stop(process):
    """Ends `process` and its children, if it still runs."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.communicate()


def finish(process, timeout_s=60):
    """Standard output of `process` after it has ended well; raises CommandError otherwise."""
    name = shlex.join(process.args)
    try:
        output, errors = process.communicate(timeout=timeout_s * SLOWDOWN)
    except subprocess.TimeoutExpired:
        stop(process)
        raise CommandError(f"no end within {timeout_s} s: {name}") from None
    except BaseException:
        stop(process)  # interrupted: nothing measured stays behind
        raise
    if process.returncode != 0:
        raise CommandError(f"status {process.returncode} from {name}\n{(errors or output).strip()[-800:]}")
    return output


def run(command, cpus=(), environment=None, timeout_s=60):
    return finish(start(command, cpus, environment), timeout_s)


def output_of(command, timeout_s=60):
    """All that `command` says, with whatever status it ends."""
    said = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=timeout_s * SLOWDOWN)
    return said.stdout


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_listener(port, process, timeout_s=10):
    """Returns when some process of this machine, or of the network namespace of `process`, listens on TCP `port`.

    Asks the kernel's table: a trial connection would be taken for the peer.
    """
    wanted = f":{port:04X}"
    deadline = time.monotonic() + timeout_s * SLOWDOWN
    while time.monotonic() < deadline:
        if process.poll() is not None:
            finish(process)
            raise CommandError(f"ended before it listened: {shlex.join(process.args)}")
        for table in (f"/proc/{process.pid}/net/tcp", f"/proc/{process.pid}/net/tcp6"):
            try:
                with open(table) as lines:
                    if any(f[1].endswith(wanted) and f[3] == "0A" for f in map(str.split, lines)):
                        return
            except FileNotFoundError:
                continue
        time.sleep(0.005)
    stop(process)
    raise CommandError(f"does not listen on port {port}: {shlex.join(process.args)}")
