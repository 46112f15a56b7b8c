#!/usr/bin/env python3
"""Makes the packages of Debian from a cross build and looks at what is in them.

Usage: check_packages.py <cpack> <readelf> <build directory> <sysroot>
"""
import os
import pathlib
import shutil
import subprocess
import sys

# Packages that every such build has, with what they must depend on.
expected = {
    "libportals4": ["libc6 (>= "],
    "libportals-dev": ["libportals4 (= "],
    "lintel-tools": ["libc6 (>= ", "libportals4 (= "],
    "lintel-verbs": ["libc6 (>= ", "libibverbs1 (>= ", "libportals4 (= "],
    "lintel-dpdk": ["libc6 (>= ", "librte-ethdev23 (>= ", "libportals4 (= "],
    "lintel-pmix": ["libc6 (>= ", "libpmix2 (>= ", "libportals4 (= "],
    "liblintel-libfabric": ["libc6 (>= ", "libfabric1 (>= ", "libportals4 (= "],
    "gasnet-portals4": ["libc6 (>= ", "libportals4 (= "],
}


def output_of(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def make_packages(cpack, build):
    packages = build / "packages"
    shutil.rmtree(packages, ignore_errors=True)
    made = subprocess.run([cpack, "-G", "DEB"], cwd=build, capture_output=True, text=True)
    if made.returncode != 0:
        sys.exit(f"check_packages: cpack failed\n{made.stdout}\n{made.stderr}")
    return {output_of("dpkg-deb", "-f", path, "Package").strip(): path
            for path in sorted(packages.glob("*.deb"))}


def machines_of(readelf, root):
    """Machines of the programs and libraries below a folder."""
    machines = set()
    for path in root.rglob("*"):
        if path.is_symlink() or not path.is_file():
            continue
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
        header = output_of(readelf, "-h", path)
        machines |= {line.split(":")[1].strip() for line in header.splitlines() if "Machine:" in line}
    return machines


def main():
    cpack, readelf = sys.argv[1:3]
    build, sysroot = map(pathlib.Path, sys.argv[3:])
    wrong = []
    packages = make_packages(cpack, build)
    root = build / "packages" / "root"
    for name, path in packages.items():
        architecture, depends = (output_of("dpkg-deb", "-f", path, field).strip()
                                 for field in ("Architecture", "Depends"))
        print(f"{name}: {architecture}; {depends or 'depends on nothing'}")
        if architecture != ("all" if name == "lintel-doc" else "arm64"):
            wrong.append(f"{name} is for {architecture}")
        wrong += [f"{name} does not depend on {needed}...: {depends}"
                  for needed in expected.get(name, []) if needed not in depends]
        if not name.endswith("-dbgsym"):
            subprocess.run(["dpkg-deb", "-x", path, root], check=True)
    wrong += [f"there is no package {name}" for name in expected if name not in packages]
    machines = machines_of(readelf, root)
    if machines != {"AArch64"}:
        wrong.append(f"programs and libraries are for {machines}")
    libraries = root / "usr/lib/aarch64-linux-gnu"
    tool = subprocess.run([root / "usr/bin/ptl_info", "--config"], capture_output=True, text=True,
                          env=os.environ | {"QEMU_LD_PREFIX": str(sysroot),
                                            "LD_LIBRARY_PATH": str(libraries)})
    if tool.returncode != 0 or "PTL_" not in tool.stdout:
        wrong.append(f"ptl_info fails: {tool.stdout}{tool.stderr}")
    for text in wrong:
        print(f"check_packages: {text}", file=sys.stderr)
    return 1 if wrong else 0


sys.exit(main())
