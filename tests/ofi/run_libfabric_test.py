#!/usr/bin/env python3
"""Programs of libfabric (package libfabric-bin) and of Open MPI, unmodified, over the provider.

Usage: run_libfabric_test.py --list
       run_libfabric_test.py <directory of the provider> <manual page> <case>
SPDX-License-Identifier: BSD-3-Clause
"""
import os
import pathlib
import re
import shutil
import socket
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "jobs"))
import support  # noqa: E402
from support import check, finish, run, skip, start  # noqa: E402

HELLO = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("the sum is %d\n", sum);
  return MPI_Finalize();
}
"""


def need(program, package):
    if shutil.which(program) is None:
        skip(f"{program} (package {package}) is not installed")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in lines)


@support.case
def info(provider, page):
    """fi_info lists the provider, and each of its variables with the default that the manual page names."""
    need("fi_info", "libfabric-bin")
    output, _ = run(["fi_info", "-p", "lintel"], {"FI_PROVIDER_PATH": provider})
    check(re.search(r"provider: lintel\n.*type: FI_EP_RDM", output, re.DOTALL), output)
    output, _ = run(["fi_info", "-g", "lintel"], {"FI_PROVIDER_PATH": provider})
    variables = dict(re.findall(r"^# (FI_LINTEL_\w+):.*?\(default: (\d+)\)", output, re.MULTILINE | re.DOTALL))
    check(variables, output)
    text = pathlib.Path(page).read_text()
    documented = dict(re.findall(r"^\.B (FI_LINTEL_\w+)\n[^(]*\(default: (\w+)", text, re.MULTILINE))
    if documented.get("FI_LINTEL_UNEXPECTED_RESERVE") == "a":  # a quarter of the memory
        quarter = os.sysconf("SC_PHYS_PAGES") // 4 * os.sysconf("SC_PAGESIZE")
        documented["FI_LINTEL_UNEXPECTED_RESERVE"] = str(min(max(quarter, 256 << 20), 8 << 30))
    check(documented == variables, f"the page has {documented}, the provider {variables}")


@support.case
def ptl_info(provider, _page):
    """ptl_info says whether libfabric finds the provider, and what to do otherwise."""
    program = pathlib.Path(provider).parents[2] / "bin" / "ptl_info"
    if not program.exists():
        skip("there is no ptl_info")
    output, _ = run([program], {"FI_PROVIDER_PATH": f"/nowhere:{provider}"})
    check(f"it finds the provider lintel in {provider}" in output, output)
    output, _ = run([program], {"FI_PROVIDER_PATH": "/nowhere"})
    check(f"export FI_PROVIDER_PATH={provider}" in output, output)


def pingpong(provider, transport):
    need("fi_pingpong", "libfabric-bin")
    changes = {"FI_PROVIDER_PATH": provider, "PTL_TRANSPORT": transport}
    port = free_port()
    command = ["fi_pingpong", "-p", "lintel", "-e", "rdm", "-c", "-I", 10, "-S", "all", "-B", port]
    server = start(command, changes)
    with support.deadline_for(server):
        while not listens(port):  # the client tries once only
            check(server.poll() is None, "the server ended")
        output, _ = run([*command[:-2], "-P", port, "127.0.0.1"], changes)
        finish(server)
    sizes = re.findall(r"^(\S+) +10 +=10 ", output, re.MULTILINE)
    check(len(sizes) >= 20, output)
    print(f"{transport}: {len(sizes)} sizes, the largest {sizes[-1]}")


@support.case
def pingpong_shm(provider, _page):
    """fi_pingpong, which compares what it receives, with all its sizes."""
    pingpong(provider, "local,shm")


@support.case
def pingpong_udp(provider, _page):
    pingpong(provider, "local,udp")


@support.case
def open_mpi(provider, _page):
    """A small program over mtl/ofi. tests/clients has the long ones."""
    need("mpicc", "libopenmpi-dev")
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory) / "hello.c"
        source.write_text(HELLO)
        program = source.with_suffix("")
        run(["mpicc", source, "-o", program])
        output, _ = run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", 4, "--mca", "pml", "cm", "--mca", "mtl", "ofi",
                         "--mca", "mtl_ofi_provider_include", "lintel", program], {"FI_PROVIDER_PATH": provider})
    check("the sum is 6" in output, output)


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(support.CASES))
        return
    if len(sys.argv) != 4 or sys.argv[3] not in support.CASES:
        sys.exit(__doc__)
    for name in list(os.environ):
        if name.startswith(("PTL_", "PMIX_", "OMPI_", "FI_")):
            del os.environ[name]
    support.CASES[sys.argv[3]](sys.argv[1], sys.argv[2])


if __name__ == "__main__":
    main()
