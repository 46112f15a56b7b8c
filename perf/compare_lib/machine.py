"""What the numbers were measured on."""

import os
import platform


def _read(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return None


def _field(path, name):
    for line in (_read(path) or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def describe(cpus):
    """Facts about this machine that a reader needs in order to judge the numbers."""
    memory_kib = (_field("/proc/meminfo", "MemTotal") or "0").split()[0]
    return {
        "processor": _field("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "cores_used": list(cpus),
        "virtual": "hypervisor" in (_field("/proc/cpuinfo", "flags") or "").split(),
        "memory_gib": round(int(memory_kib) / 2**20, 1),
        "kernel": platform.release(),
        "distribution": (_read("/etc/os-release") or "").partition('PRETTY_NAME="')[2].partition('"')[0],
        "governor": _read(f"/sys/devices/system/cpu/cpu{cpus[0]}/cpufreq/scaling_governor"),
        "transparent_huge_pages": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "ptrace_scope": _read("/proc/sys/kernel/yama/ptrace_scope"),
        "load_before": os.getloadavg()[0],
    }


def headline(facts):
    kind = "virtual machine" if facts["virtual"] else "machine"
    return (
        f"{facts['processor']}, {facts['cores']} cores ({kind}), Linux {facts['kernel']}, "
        f"cores {facts['cores_used'][0]} and {facts['cores_used'][1]} used, load before {facts['load_before']:.2f}"
    )
