#!/usr/bin/env python3
"""Tests of what ptl_info finds wrong on a node. Each fault is forced on ptl_info alone: by mounts in namespaces of
its own, a limit, or a system call that is refused. The sentence, the advice and the severity are compared.

Usage: run_doctor_test.py --list
       run_doctor_test.py <ptl_info> <case>
SPDX-License-Identifier: BSD-3-Clause
"""

import ctypes
import json
import os
import platform
import re
import resource
import struct
import subprocess
import sys

SKIPPED = 77  # for ctest
DEADLINE_S = 50
# Numbers of system calls.
X86_64 = {"process_vm_readv": 310, "userfaultfd": 323, "membarrier": 324}
# A device of sysfs, as the kernel shows it. Nothing can be sent by it.
RDMA_PORT = """
mkdir -p /sys/class/infiniband/mlx5_7/ports/1/gids
cd /sys/class/infiniband/mlx5_7/ports/1
echo '4: ACTIVE' > state; echo InfiniBand > link_layer; echo '100 Gb/sec (4X EDR)' > rate
echo fe80:0000:0000:0000:0000:0000:0000:0001 > gids/0
"""
# In the place of /sys/class, with the network interfaces of before.
SYSFS = """
mkdir /dev/shm/net
cp -d /sys/class/net/* /dev/shm/net
mount -t tmpfs class /sys/class
cp -a /dev/shm/net /sys/class
rm -r /dev/shm/net
"""

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def refuse(*calls):
    """Of this process and those it starts, the kernel refuses these system calls (EPERM), as the profile of a
    container does."""
    # Of classic BPF: load a word of seccomp_data, compare it, give the result.
    load, equal, give = 0x20, 0x15, 0x06
    program = [(load, 0, 0, 0)]
    for name in calls:
        program += [(equal, 0, 1, X86_64[name]), (give, 0, 0, 0x00050000 | 1)]
    program += [(give, 0, 0, 0x7fff0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    filters = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, by_filter = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0 or libc.prctl(set_seccomp, by_filter, filters, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


class Doctor:
    def __init__(self, program):
        self.program = program

    def findings(self, script="", user=0, before=None, environment=None):
        """(id, severity, what, advice) of all that ptl_info finds, after a script of the shell in a mount namespace
        of its own with an empty /dev/shm. `user`: the effective user id that ptl_info sees."""
        script = "set -e\nmount -t tmpfs shm /dev/shm\n" + script + "\ncd /\nexec "
        if user != 0:
            script += f"unshare --map-user={user} --map-group={user} "
        script += '"$@"'
        outside = ["unshare", "--mount", "--map-root-user"]
        if subprocess.run([*outside, "mount", "-t", "tmpfs", "shm", "/dev/shm"], stderr=subprocess.DEVNULL,
                          check=False).returncode != 0:
            skip("namespaces may not be made")
        command = [*outside, "sh", "-c", script, "sh", self.program]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PTL_")} | (environment or {})
        outputs = []
        for options in (["--json"], []):
            done = subprocess.run(command + options, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  timeout=DEADLINE_S, env=environment, preexec_fn=before, check=False)
            if done.returncode not in (0, 1) or not done.stdout:
                sys.exit(f"FAILED: {command} exited with {done.returncode}: {done.stderr}")
            outputs.append(done.stdout)
        found = [(finding["id"], finding["severity"], finding["what"], finding["advice"])
                 for finding in json.loads(outputs[0])["findings"]]
        if (done.returncode == 1) != any(finding[1] == "problem" for finding in found) or "lintel[" in done.stderr:
            sys.exit(f"FAILED: {command} exited with {done.returncode} and said {done.stderr!r}, but found {found}")
        # The screen has them, too, with other line breaks. Free memory is not the same twice.
        screen = " ".join(outputs[1].split())
        for identifier, severity, what, advice in found:
            for sentence in (f"{severity}: {what}", advice):
                if identifier != "shm_small" and " ".join(sentence.split()) not in screen:
                    sys.exit(f"FAILED: the screen does not say: {sentence}\n{outputs[1]}")
        return found

    def expect(self, identifier, severity, what, advice, **how):
        """Exactly one finding has that identifier; `what` is a regular expression, the others are the text."""
        found = self.findings(**how)
        fitting = [one for one in found if one[0] == identifier]
        if len(fitting) != 1 or fitting[0][1] != severity or fitting[0][3] != advice or \
                not re.fullmatch(what, fitting[0][2]):
            sys.exit(f"FAILED: expected {identifier}, {severity}:\n  {what}\n  {advice}\nfound:\n  "
                     + "\n  ".join(map(repr, found)))

    def expect_none(self, identifier, **how):
        found = [one for one in self.findings(**how) if one[0] == identifier]
        if found:
            sys.exit(f"FAILED: unexpected: {found}")


def on_x86_64():
    if platform.machine() != "x86_64":
        skip("the numbers of system calls are those of x86-64")


@case
def shared_memory(doctor):
    doctor.expect("shm_small", "problem", r"/dev/shm has [\d.]+ [KM]?i?B left, and each process takes up to 16 MiB",
                  "mount -o remount,size=50% /dev/shm; in a container: --shm-size or --ipc=host",
                  script="mount -t tmpfs -o size=1m shm /dev/shm")
    doctor.expect("shm_unusable", "problem", "/dev/shm cannot be used: Read-only file system",
                  "processes of a node need a /dev/shm that they may write to; in a container: --ipc=host, or a tmpfs "
                  "there", script="mount -t tmpfs -o ro shm /dev/shm")
    for identifier in ("shm_small", "shm_unusable"):
        doctor.expect_none(identifier)
    # Then no network has a secret by which processes know each other, unless there is a job key.
    read_only = "mount -t tmpfs -o ro shm /dev/shm"
    doctor.expect("transport_unusable", "problem", "udp cannot be used: it reaches no process: without PTL_JOB_KEY a secret in "
                  "/dev/shm shows which processes are of this user, and /dev/shm cannot be written",
                  "docs/troubleshooting.md; PTL_TRANSPORT without it ends this message", script=read_only,
                  environment={"PTL_TRANSPORT": "udp"})
    doctor.expect_none("transport_unusable", script=read_only, environment={"PTL_TRANSPORT": "udp", "PTL_JOB_KEY": "k" * 40})


@case
def nid(doctor):
    """A nid by which other nodes cannot reach this one, and a list of processes without this node."""
    advice = "set PTL_NID to a network interface with carrier that leads to them, or, if there are no other nodes, " \
             "PTL_TRANSPORT=shm"
    loopback = r"other nodes cannot reach this one: its nid 127\.0\.0\.1 is an address of the loopback, which every node has"
    doctor.expect("nid_unreachable", "problem", loopback, advice, environment={"PTL_NID": "lo"})
    doctor.expect_none("nid_unreachable", environment={"PTL_NID": "lo", "PTL_TRANSPORT": "shm"})
    alone = ["unshare", "--net", "true"]
    if os.geteuid() == 0 and subprocess.run(alone, stderr=subprocess.DEVNULL, check=False).returncode == 0:
        doctor.expect("nid_unreachable", "problem", loopback, advice,
                      before=lambda: ctypes.CDLL(None).unshare(0x40000000))  # CLONE_NEWNET
    advice = "correct PTL_NIDMAP, or set PTL_NID to the network interface whose address it has"
    by_hand = {"PTL_NID": "lo", "PTL_TRANSPORT": "shm", "PTL_NIDMAP": "10.1.1.1:10.1.1.2", "PTL_PIDMAP": "1:2"}
    doctor.expect("nid_map", "problem", r"PTL_NIDMAP does not have the nid of this node, 127\.0\.0\.1", advice,
                  environment=by_hand)
    doctor.expect("nid_map", "problem", r"PTL_NIDMAP gives rank 1, this process, nid 10\.1\.1\.2, but the nid of this node is "
                  r"127\.0\.0\.1", advice, environment=by_hand | {"PTL_MY_RID": "1"})
    doctor.expect_none("nid_map", environment=by_hand | {"PTL_MY_RID": "1", "PTL_NIDMAP": "10.1.1.1:127.0.0.1"})


@case
def reading_memory(doctor):
    on_x86_64()
    refused = r"processes may not read each other's memory \(refused: Operation not permitted%s; large messages go " \
              r"through shared memory with two copies\)"
    # What the kernel says of itself is a file in the place of its own.
    yama = "mount -t tmpfs kernel /proc/sys/kernel; mkdir /proc/sys/kernel/yama; echo 1 > /proc/sys/kernel/yama/ptrace_scope"
    doctor.expect("process_vm_readv", "note", refused % r" \(kernel\.yama\.ptrace_scope = 1\)",
                  "sysctl -w kernel.yama.ptrace_scope=0", script=yama, before=lambda: refuse("process_vm_readv"))
    none = "mount -t tmpfs kernel /proc/sys/kernel"
    doctor.expect("process_vm_readv", "note", refused % "",
                  "permit process_vm_readv in the seccomp profile of the container", script=none,
                  before=lambda: refuse("process_vm_readv"))


@case
def membarrier(doctor):
    on_x86_64()
    doctor.expect("membarrier", "note", "the kernel has no expedited membarrier for several processes: every message pays "
                  "for a full fence", "Linux 4.16 or later, and a seccomp profile that permits membarrier",
                  before=lambda: refuse("membarrier"))


@case
def receive_buffers(doctor):
    def limit(value):
        return f"echo {value} > /dev/shm/limit; mount --bind /dev/shm/limit /proc/sys/net/core/rmem_max"

    doctor.expect("rmem_max", "note", "UDP sockets get a receive buffer of 208 KiB at most",
                  "sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304", script=limit(212992), user=1000)
    doctor.expect_none("rmem_max", script=limit(4194304), user=1000)
    # A privileged process may exceed the limit.
    doctor.expect_none("rmem_max", script=limit(212992))


@case
def locked_memory(doctor):
    def limit(size):
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (size, size))

    doctor.expect("memlock", "problem", "this process may lock 64 KiB of memory, which RDMA devices need",
                  "ulimit -l unlimited; for all users: memlock in /etc/security/limits.conf, LimitMEMLOCK=infinity for "
                  "slurmd", script=SYSFS + RDMA_PORT, before=lambda: limit(64 << 10))
    most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    if most == resource.RLIM_INFINITY or most >= 64 << 20:
        doctor.expect_none("memlock", script=SYSFS + RDMA_PORT, before=lambda: limit(64 << 20))
    # Without a device nothing needs it.
    doctor.expect_none("memlock", script=SYSFS, before=lambda: limit(64 << 10))


@case
def userfaultfd(doctor):
    on_x86_64()
    doctor.expect("userfaultfd", "note", "userfaultfd is not permitted: memory is registered with RDMA devices for each long "
                  "transfer", "sysctl -w vm.unprivileged_userfaultfd=1", script=SYSFS + RDMA_PORT,
                  before=lambda: refuse("userfaultfd"))
    doctor.expect_none("userfaultfd", script=SYSFS, before=lambda: refuse("userfaultfd"))


@case
def rdma_port(doctor):
    doctor.expect("rdma_port_down", "note", "RDMA port mlx5_7:1 is DOWN",
                  "look at the cable and, with InfiniBand, at the subnet manager (ibstat)",
                  script=SYSFS + RDMA_PORT + "echo '1: DOWN' > state")
    doctor.expect_none("rdma_port_down", script=SYSFS + RDMA_PORT)


@case
def modules(doctor):
    """A module is missed by who needs it."""
    libraries = subprocess.run(["ldd", doctor.program], stdout=subprocess.PIPE, text=True, check=True).stdout
    directory = os.path.dirname(os.path.realpath(re.search(r"libportals\.so\.4 => (\S+)", libraries)[1])) + "/lintel"
    empty = f"mount -t tmpfs modules '{directory}'\n"
    for name, script, environment in (("verbs", SYSFS + RDMA_PORT, {}), ("crypto", "", {"PTL_JOB_KEY": "k" * 40}),
                                      ("dpdk", "", {"PTL_DPDK_PORTS": "0000:3b:02.1"}),
                                      ("pmix", "", {"PMIX_NAMESPACE": "job.1"})):
        doctor.expect("module_missing", "problem", f"the module {name} is not installed",
                      "install the package of that module, or name its directory in PTL_MODULE_PATH",
                      script=empty + script, environment=environment)
    doctor.expect_none("module_missing", script=empty)


@case
def interface(doctor):
    def no_address_space():
        resource.setrlimit(resource.RLIMIT_AS, (100 << 20, 100 << 20))

    doctor.expect("interface_unusable", "problem", r"the interface cannot be opened: .*address space.* "
                  r"\(PtlNIInit returned PTL_NO_SPACE\); this process may use 100 MiB of address space \(ulimit -v\)",
                  "ulimit -v unlimited, in the shell or script that starts it", before=no_address_space)
    doctor.expect_none("log", before=no_address_space)
    doctor.expect("interface_unusable", "problem", "the interface cannot be opened: PTL_TRANSPORT names \"vebrs\", which is not a "
                  r"transport; there are [a-z, ]+ \(PtlNIInit returned PTL_FAIL\)",
                  "correct PTL_TRANSPORT; without it all transports are used", environment={"PTL_TRANSPORT": "shm,vebrs"})
    doctor.expect_none("log", environment={"PTL_TRANSPORT": "shm,vebrs"})


@case
def configuration_files(doctor):
    """Each line that is none is said once, and a file that cannot be read."""
    script = "mkdir /dev/shm/conf; echo nonsense > /dev/shm/conf/lintel.conf"
    doctor.expect("configuration", "problem", r"/dev/shm/conf/lintel\.conf:1: ignored, as it is not a line NAME = value",
                  "ptl_info --config --all lists what is allowed", script=script,
                  environment={"XDG_CONFIG_HOME": "/dev/shm/conf"})
    doctor.expect("configuration", "problem", r"/dev/shm/lintel\.conf cannot be read: Is a directory",
                  "make it a file that this user may read, or remove it", script="mkdir /dev/shm/lintel.conf",
                  environment={"XDG_CONFIG_HOME": "/dev/shm"})


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(CASES))
        return
    if len(sys.argv) != 3 or sys.argv[2] not in CASES:
        sys.exit(__doc__)
    CASES[sys.argv[2]](Doctor(os.path.abspath(sys.argv[1])))


if __name__ == "__main__":
    main()
