"""A guest under qemu: starts it, forwards its output, and ends it.

Nothing remains after this process: the kernel kills qemu with it, and all files between the two have no names.
SPDX-License-Identifier: BSD-3-Clause
"""

import ctypes
import os
import secrets
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import image
from .kernel import GuestError

QEMU = "qemu-system-x86_64"
# If the guest has not started by then, virtualisation counts as unusable: on some machines guests
# hang with /dev/kvm. Emulation takes a few seconds, and longer on a busy machine.
HARDWARE_START_S = 20
EMULATED_START_S = 240
CONSOLE_TAIL_LINES = 15
# Disables features that are fast in hardware and slow in emulation: string instructions byte by
# byte, five levels of page tables.
EMULATED_CPU = "max,erms=off,fsrm=off,la57=off"
# The factor for the deadlines of tests.
EMULATED_SLOWDOWN = 12
# On a busy host, the kernel's checks for stopped timers and hanging processors give false alarms.
# The clock of the emulated processor is reliable; the kernel would choose one that needs a system
# call. Zeroing huge pages takes most of the time of short processes.
BOOT_OPTIONS = ("console=ttyS0 quiet loglevel=4 panic=-1 no_timer_check nowatchdog rcupdate.rcu_cpu_stall_suppress=1 "
                "tsc=reliable mitigations=off nokaslr random.trust_cpu=on transparent_hugepage=never")


@dataclass
class Options:
    cache: Path
    time_limit_s: float = 300
    memory_mib: int = 3072
    processors: int = 2
    mtu: int = 4200
    locked_memory_kib: str = "unlimited"
    accelerator: str = "auto"
    # Directories that the guest shares with the host.
    writable: list = field(default_factory=list)
    environment: dict = field(default_factory=dict)


class NeverReady(GuestError):
    """The guest has not started."""


def run(kernel, options, command, write):
    """Runs `command` in a guest and returns its status; calls `write` with the bytes that it prints."""
    if shutil.which(QEMU) is None:
        raise GuestError(f"{QEMU} is not there: apt-get install qemu-system-x86")
    deadline = time.monotonic() + options.time_limit_s
    verdict = options.cache / "kvm-unusable"
    if options.accelerator != "tcg" and _may_use_kvm(verdict, options.accelerator):
        try:
            return _Guest(kernel, options, command, "kvm").run(write, deadline, HARDWARE_START_S)
        except NeverReady as error:
            if options.accelerator == "kvm":
                raise
            verdict.write_text(f"{_boot_id()}\n{error}\n")
    try:
        return _Guest(kernel, options, command, "tcg").run(write, deadline, EMULATED_START_S)
    except NeverReady as error:
        write(f"run_in_guest: trying again: {error}\n".encode())
    return _Guest(kernel, options, command, "tcg").run(write, deadline, EMULATED_START_S)


def _boot_id():
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _may_use_kvm(verdict, accelerator):
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        if accelerator == "kvm":
            raise GuestError("/dev/kvm is not there or not ours: without --accelerator kvm the guest is emulated")
        return False
    # The verdict is valid until this machine is restarted.
    return accelerator == "kvm" or not verdict.exists() or _boot_id() not in verdict.read_text()


class _Guest:
    def __init__(self, kernel, options, command, accelerator):
        self._options = options
        self._token = f"guest-{secrets.token_hex(8)}".encode()
        self._console = bytearray()
        self._name = Path(command[0]).name
        self._accelerator = accelerator
        initial = image.build(kernel, self._settings(command))
        output_end, output = os.pipe()
        console_end, console = os.pipe()
        try:
            self._process = self._start(kernel, initial, output, console)
        finally:
            for descriptor in (initial, output, console):
                os.close(descriptor)
        self._output, self._console_pipe = output_end, console_end

    def _settings(self, command):
        """Shell assignments for `session`."""
        shares = [f"share{number}={Path(path).resolve()}" for number, path in enumerate(self._options.writable)]
        lines = [f"token={self._token.decode()}", f"mtu={self._options.mtu}",
                 f"locked_memory_kib={self._options.locked_memory_kib}", f"directory={shlex.quote(os.getcwd())}",
                 f"shares=({shlex.join(shares)})", f"command=({shlex.join(command)})"]
        if self._accelerator == "tcg":
            lines.append(f"export LINTEL_TEST_SLOWDOWN=${{LINTEL_TEST_SLOWDOWN:-{EMULATED_SLOWDOWN}}}")
        lines += [f"export {name}={shlex.quote(value)}" for name, value in self._options.environment.items()]
        return "\n".join(lines) + "\n"

    def _start(self, kernel, initial, output, console):
        options = self._options
        processor = "host" if self._accelerator == "kvm" else EMULATED_CPU
        accelerator = "kvm" if self._accelerator == "kvm" else "tcg,thread=multi"
        command = [
            QEMU, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-net", "none",
            "-machine", "pc", "-accel", accelerator, "-cpu", processor,
            "-smp", str(options.processors), "-m", str(options.memory_mib),
            "-kernel", str(kernel.image), "-initrd", f"/dev/fd/{initial}", "-append", BOOT_OPTIONS,
            "-chardev", f"file,id=console,path=/dev/fd/{console}", "-serial", "chardev:console",
            "-device", "virtio-serial-pci", "-chardev", f"file,id=output,path=/dev/fd/{output}",
            "-device", "virtserialport,chardev=output,nr=1",
            "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
        ]
        for number, path in enumerate(options.writable):
            path = str(Path(path).resolve()).replace(",", ",,")
            command += ["-virtfs", f"local,path={path},mount_tag=share{number},security_model=none,multidevs=remap"]
        parent = os.getpid()

        def end_with_parent():
            set_parent_death_signal = 1
            ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
            if os.getppid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)

        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console, stderr=console,
                                pass_fds=(initial, output, console), preexec_fn=end_with_parent)

    def run(self, write, deadline, start_s):
        started = time.monotonic()
        state, text = "starting", bytearray()
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._output, selectors.EVENT_READ)
                selector.register(self._console_pipe, selectors.EVENT_READ)
                while selector.get_map():
                    limit = min(deadline, started + start_s) if state == "starting" else deadline
                    ready = selector.select(max(0, limit - time.monotonic()))
                    if not ready:
                        break
                    for key, _ in ready:
                        data = os.read(key.fd, 1 << 16)
                        if not data:
                            selector.unregister(key.fd)
                        elif key.fd == self._console_pipe:
                            self._console += data
                        else:
                            text += data
                            state = self._hand_on(text, write, state)
                    if isinstance(state, int):
                        self._report_kernel_faults(write)
                        if state != 0:
                            self._keep_console(write)
                        return state
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._output)
            os.close(self._console_pipe)
        write(bytes(text))
        return self._explain(state, time.monotonic() >= deadline, write)

    def _hand_on(self, text, write, state):
        """Removes whole lines from `text`; lines of the session itself change the state."""
        while (end := text.find(b"\n")) >= 0:
            line = bytes(text[:end + 1])
            before, found, message = line.partition(self._token)
            del text[:end + 1]
            if not found:
                write(line)
                continue
            if before:
                write(before + b"\n")  # the last line of the command was incomplete
            word, _, rest = message.decode(errors="replace").strip().partition(" ")
            if word == "failed":
                raise GuestError(rest)
            state = int(rest) if word == "status" else word
        return state

    def _explain(self, state, timed_out, write):
        if state == "starting":
            tail = "\n".join(self._console.decode(errors="replace").splitlines()[-CONSOLE_TAIL_LINES:])
            raise NeverReady(f"the guest ({self._accelerator}) did not come up; the end of its console:\n{tail}")
        self._keep_console(write)
        if timed_out:
            write(f"run_in_guest: no end within {self._options.time_limit_s:.0f} s, see --time-limit\n".encode())
            return 124
        write(b"run_in_guest: the guest ended before the command did\n")
        return 126

    def _report_kernel_faults(self, write):
        for line in self._console.decode(errors="replace").splitlines():
            if any(word in line for word in ("BUG:", "Oops", "WARNING: CPU", "Out of memory", "Call Trace")):
                write(f"run_in_guest: the guest's kernel says: {line.strip()}\n".encode())

    def _keep_console(self, write):
        path = self._options.cache / f"console-{self._name}.log"
        path.write_bytes(bytes(self._console))
        write(f"run_in_guest: the console of the guest is in {path}\n".encode())
