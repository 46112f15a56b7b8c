"""Compares statements of the pages with the code and with the behaviour of programs: pids and ports, senders
through shared memory, the return code for a misspelt transport, socket buffers, build options, the duration of
ptl_perf, address space by limit.

Usage: check_facts.py <source directory> <print_limits> <ptl_perf> <example_footprint>
"""
import os
import pathlib
import re
import subprocess
import sys

source = pathlib.Path(sys.argv[1])
print_limits, ptl_perf, footprint = sys.argv[2:]
problems = []
clean = {name: value for name, value in os.environ.items() if not name.startswith("PTL_")}


def page(name):
    return (source / "docs" / name).read_text()


def says(name, text):
    if text not in " ".join(page(name).split()):
        problems.append(f"docs/{name} does not say: {text}")


def output(program, *arguments, **variables):
    result = subprocess.run([program, *arguments], env=clean | variables, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return result.returncode, result.stdout


def constant(file, pattern):
    found = re.findall(pattern, (source / file).read_text())
    if len(found) != 1:
        sys.exit(f"{file}: {pattern} occurs {len(found)} times")
    return int(found[0])


first = constant("src/wiring/registry.cc", r"first_any_pid = (\d+);")
last = first + constant("src/wiring/registry.cc", r"any_pids = (\d+);") - 1
offset = constant("src/util/node_identity.h", r"unprivileged_port = (\d+);")
for name in ("reference.md", "cluster.md"):
    says(name, f"`PTL_PID_ANY` gives {'a pid' if name == 'cluster.md' else 'pids'} from {first} to {last}.")
says("cluster.md", f"pid + {offset}")
says("cluster.md", f"ports {first + offset} to {last + offset}.")

lanes = {}
for kib in (16384, 4096, 1024):
    _, text = output(print_limits, PTL_LOG_LEVEL="info", PTL_SHM_MEMORY_KIB=str(kib))
    found = re.search(r"(\d+) lanes in", text)
    lanes[kib] = found[1] if found else "?"
says("configuration.md", ", ".join(f"{number} with {kib}" for kib, number in lanes.items()))
says("reference.md", f"{lanes[16384]} with the default `PTL_SHM_MEMORY_KIB`")

status, text = output(print_limits, PTL_TRANSPORT="smh")
code = re.search(r"PtlNIInit: return code (\d+)", text)
if status == 0 or not code or 'names "smh"' not in text:
    problems.append(f"a misspelt PTL_TRANSPORT: exit status {status}, {text}")
else:
    types = (source / "include/portals4_types.h").read_text()
    name = re.search(rf"^#define (PTL_\w+) {code[1]} ", types, re.MULTILINE)[1]
    says("configuration.md", f"A misspelt name makes PtlNIInit fail with `{name}`")
    sections = re.split(r"^### ", page("troubleshooting.md"), flags=re.MULTILINE)
    where = [section.split("\n")[0] for section in sections if "is not a transport" in section]
    if where != [f"PtlNIInit returns `{name}`"]:
        problems.append(f"docs/troubleshooting.md: a misspelt transport gives {name}, not {where}")

buffers = constant("src/udp/udp_socket.cc", r"wanted_buffer_bytes = (\d+) << 20;") << 20
says("cluster.md", f"sysctl -w net.core.rmem_max={buffers} net.core.wmem_max={buffers}")

# The options of the build; LINTEL_FUZZ is for tests.
options = re.findall(r"^option\((\w+) ", (source / "cmake/options.cmake").read_text(), re.MULTILINE)
for option in set(options) - {"LINTEL_FUZZ"}:
    says("install.md", f"`{option}`")
if "LINTEL_FUZZ" not in options:
    problems.append("cmake/options.cmake has no options, or not in the form that this test reads")

_, text = output(ptl_perf, "--help")
seconds = re.search(r"takes about (\d+) seconds", text)[1]
for name in ("install.md", "performance.md"):
    says(name, f"about {seconds} s")

# Sizes of types; resident memory depends on the machine and is not compared.
_, text = output(footprint)
sizes = re.findall(r"^ +max_\w+ +\d+ bytes$", text, re.MULTILINE)
if len(sizes) != 6:
    problems.append(f"{footprint} prints {len(sizes)} limits")
for size in sizes:
    says("reference.md", " ".join(size.split()))

if problems:
    sys.exit("\n".join(problems))
print("the facts of the pages are those of the code")
