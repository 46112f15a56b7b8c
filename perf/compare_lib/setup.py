"""What a comparison needs: packages, the built library, and the helper programs."""

import os
import shutil
import subprocess
from pathlib import Path

from . import commands

ROOT = Path(__file__).resolve().parents[2]

# Program -> Debian package that brings it.
PEERS = {"ucx_perftest": "ucx-utils", "fi_pingpong": "libfabric-bin", "mpirun": "openmpi-bin",
         "mpicxx": "libopenmpi-dev"}
TOOLS = {"gnuplot": "gnuplot-nox", "c++": "g++", "cmake": "cmake"}


def missing_packages():
    needed = {**PEERS, **TOOLS}
    return sorted({package for program, package in needed.items() if shutil.which(program) is None})


def provide_packages(say):
    """Installs what is missing where that is possible; returns what is still missing."""
    packages = missing_packages()
    if not packages:
        return []
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        say(f"installing {' '.join(packages)}")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (["apt-get", "update", "-q"], command):
            subprocess.run(step, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    packages = missing_packages()
    if packages:
        say(f"not compared for want of packages; to have them: sudo {' '.join(command)}")
    return packages


def build_library(build, say):
    """Configures (if that was not done yet) and builds what is measured, in directory `build`."""
    if not (build / "CMakeCache.txt").exists():
        say(f"configuring {build}")
        commands.run(["cmake", "-S", ROOT, "-B", build, "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DLINTEL_TESTS=OFF"],
                     timeout_s=300)
    say(f"building the library and ptl_perf in {build}")
    commands.run(["cmake", "--build", build, "--parallel", os.cpu_count(), "--target", "portals", "ptl_perf"],
                 timeout_s=3600)
    return build / "bin" / "ptl_perf"


def _newer(target, sources):
    return target.exists() and all(target.stat().st_mtime >= source.stat().st_mtime for source in sources)


def _compile(compiler, target, sources, options, say):
    headers = [header for source in sources for header in source.parent.glob("*.h")]
    if _newer(target, [*sources, *headers]):
        return target
    say(f"compiling {target.name}")
    target.parent.mkdir(parents=True, exist_ok=True)
    commands.run([compiler, "-std=c++20", "-O2", "-Wall", "-Wextra", *sources, *options, "-o", target],
                 timeout_s=300)
    return target


def build_helpers(build, say):
    """The programs of perf/ that are not part of the library's own build; name -> path."""
    helpers = build / "perf"
    library = build / "lib"
    perf = ROOT / "perf"
    built = {
        "floor": _compile("c++", helpers / "perf_floor", [perf / "floor" / "floor.cc"], [], say),
        "probe": _compile("c++", helpers / "perf_probe", sorted((perf / "probe").glob("*.cc")),
                          ["-I", ROOT / "include", "-L", library, "-lportals", f"-Wl,-rpath,{library}"], say),
    }
    if shutil.which("mpicxx"):
        built["mpi_pair"] = _compile("mpicxx", helpers / "perf_mpi_pair", [perf / "mpi" / "mpi_pair.cc"],
                                     ["-DOMPI_SKIP_MPICXX"], say)
    return built
