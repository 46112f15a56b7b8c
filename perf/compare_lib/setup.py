"""What a comparison needs: packages, the built library, and the helper programs."""

import shutil
from pathlib import Path

from . import commands

ROOT = Path(__file__).resolve().parents[2]

# Program -> Debian package that brings it.
PACKAGES = {"ucx_perftest": "ucx-utils", "fi_pingpong": "libfabric-bin", "mpirun": "openmpi-bin",
            "mpicxx": "libopenmpi-dev", "dpkg-source": "dpkg-dev", "ib_send_lat": "perftest",
            "qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "gnuplot": "gnuplot-nox"}


def _with_script_helpers(line, *words, timeout_s):
    """Runs a line of shell that may use what scripts/common offers; `words` are its arguments."""
    commands.run(["bash", "-c", f'source "$0"; {line}', ROOT / "scripts" / "common", *words], timeout_s=timeout_s)


def missing_packages():
    return sorted({package for program, package in PACKAGES.items() if shutil.which(program) is None})


def provide_packages(say):
    """Installs the peers that are missing; says what could not be had, and goes on without."""
    packages = missing_packages()
    if not packages:
        return
    say(f"installing {' '.join(packages)}")
    try:
        _with_script_helpers('install_packages "$@"', *packages, timeout_s=900)
    except commands.CommandError:
        say(f"not compared for want of packages; as root: apt-get install {' '.join(missing_packages())}")


def build_library(say):
    """Builds the library and ptl_perf as scripts/quickstart does; returns the build directory."""
    say("building the library and ptl_perf")
    _with_script_helpers('need_packages "${build_packages[@]}" >&2; build release', timeout_s=3600)
    return ROOT / "build-release"


def _up_to_date(target, sources):
    return target.exists() and all(target.stat().st_mtime >= source.stat().st_mtime for source in sources)


def compile_program(compiler, target, sources, options, say):
    headers = [header for source in sources for header in source.parent.glob("*.h")]
    if _up_to_date(target, [*sources, *headers]):
        return target
    say(f"compiling {target.name}")
    target.parent.mkdir(parents=True, exist_ok=True)
    commands.run([compiler, "-std=c++20", "-O2", "-Wall", "-Wextra", *sources, *options, "-o", target],
                 timeout_s=300)
    return target


def _has_dpdk():
    try:
        commands.run(["pkg-config", "--exists", "libdpdk"])
    except (commands.CommandError, FileNotFoundError):
        return False
    return True


def build_helpers(build, say):
    """The programs of perf/ that are not part of the library's own build; name -> path."""
    perf = ROOT / "perf"
    built = {"floor": compile_program("c++", build / "perf" / "perf_floor", [perf / "floor" / "floor.cc"], [], say),
             "udp_floor": compile_program("c++", build / "perf" / "perf_udp_floor", [perf / "floor" / "udp_floor.cc"],
                                   [], say)}
    if _has_dpdk():
        flags = commands.run(["pkg-config", "--cflags", "--libs", "libdpdk"]).split()
        # The headers of DPDK are not ours to warn of.
        options = [word for flag in flags for word in (["-isystem", flag[2:]] if flag.startswith("-I") else [flag])]
        built["dpdk_floor"] = compile_program("c++", build / "perf" / "perf_dpdk_floor",
                                       [perf / "floor" / "dpdk_floor.cc"], options, say)
    if shutil.which("mpicxx"):
        built["mpi_pair"] = compile_program("mpicxx", build / "perf" / "perf_mpi_pair", [perf / "mpi" / "mpi_pair.cc"],
                                     ["-DOMPI_SKIP_MPICXX"], say)
    return built


def build_mpi_components(build, say):
    """The Portals components of Open MPI, built against the library as it is installed; their directory."""
    say("building Open MPI's Portals components")
    prefix, work = build / "perf" / "prefix", build / "perf" / "openmpi"
    commands.run(["cmake", "--install", build, "--prefix", prefix])
    commands.run([ROOT / "tests" / "clients" / "openmpi" / "build", prefix, work], timeout_s=600)
    return work / "components"
