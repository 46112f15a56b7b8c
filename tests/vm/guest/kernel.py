"""The kernel of the guest: a package of Debian, downloaded once into a cache and unpacked there, never installed.

Two parts of it are used. The kernel itself is uncompressed, so the emulator can start it directly; decompression
in the guest would take most of the time of a start. The modules that the guest loads are in loading order.
SPDX-License-Identifier: BSD-3-Clause
"""

import contextlib
import fcntl
import gzip
import lzma
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

# Loaded with their dependencies: channels to the host (console, files), the root file system, the
# network device with two ends, the software RDMA device and the checksum that it requests by name.
MODULES = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay", "veth", "crc32_generic", "rdma_rxe",
           "rdma_ucm")

# The first bytes of compressed kernel images, and how to unpack them.
COMPRESSIONS = ((b"\xfd7zXZ\x00", lambda data: lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(data)),
                (b"\x5d\x00\x00", lambda data: lzma.LZMADecompressor(lzma.FORMAT_ALONE).decompress(data)),
                (b"\x1f\x8b\x08", lambda data: gzip.zlib.decompressobj(31).decompress(data)))


class GuestError(Exception):
    """Something that the guest needs is missing or does not work. The text says what it is and what to do."""


@dataclass
class Kernel:
    image: Path    # an ELF file
    modules: list  # of paths, in loading order
    version: str


def provide(cache):
    """Returns the kernel in the directory `cache`; the first time it downloads and unpacks it."""
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / "lock"):
        ready = cache / "kernel"
        if not (ready / "order").exists():
            _prepare(cache, ready)
    order = (ready / "order").read_text().splitlines()
    return Kernel(ready / "vmlinux", [ready / name for name in order], (ready / "version").read_text())


@contextlib.contextmanager
def _locked(path):
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _prepare(cache, ready):
    package = _download(cache)
    scratch = cache / "unpacked"
    for leftover in (scratch, ready):
        shutil.rmtree(leftover, ignore_errors=True)
    _run(["dpkg-deb", "--extract", package, scratch])
    images = sorted(scratch.glob("boot/vmlinuz-*"))
    if not images:
        raise GuestError(f"{package} has no boot/vmlinuz-*: remove it, so that another one is downloaded")
    version = images[0].name.removeprefix("vmlinuz-")
    ready.mkdir()
    (ready / "vmlinux").write_bytes(_uncompressed(images[0]))
    (ready / "version").write_text(version)
    names = _copy_modules(scratch, ready)
    shutil.rmtree(scratch)
    # Written last: its existence shows that all other files are complete.
    (ready / "order").write_text("\n".join(names))


def _download(cache):
    """The package in the cache, or the current one of the distribution."""
    present = sorted(cache.glob("linux-image-*.deb"))
    if present:
        return present[-1]
    if shutil.which("apt-get") is None:
        raise GuestError("no apt-get here to download a kernel with: put a package linux-image-*.deb of Debian "
                         f"(amd64) into {cache}")
    depends = _run(["apt-cache", "depends", "linux-image-amd64"])
    names = re.findall(r"Depends: (linux-image-\S+)", depends)
    if not names:
        raise GuestError("apt-cache knows no linux-image-amd64: run apt-get update, or put a package "
                         f"linux-image-*.deb of Debian (amd64) into {cache}")
    try:
        _run(["apt-get", "-q", "download", names[0]], cwd=cache)
    except GuestError as error:
        raise GuestError(f"{error}\nWithout a network: put the package {names[0]} of Debian into {cache}") from None
    return next(cache.glob("linux-image-*.deb"))


def _uncompressed(image):
    """The ELF file contained in a kernel image for booting."""
    data = image.read_bytes()
    for magic, decompress in COMPRESSIONS:
        position = data.find(magic)
        while position >= 0:
            with contextlib.suppress(lzma.LZMAError, gzip.zlib.error):
                unpacked = decompress(data[position:])
                if unpacked.startswith(b"\x7fELF"):
                    return unpacked
            position = data.find(magic, position + 1)
    raise GuestError(f"{image.name}: compressed in a way that is not known here (known: xz, lzma, gzip)")


def _copy_modules(scratch, ready):
    """Copies the wanted modules, uncompressed; returns their file names in loading order."""
    files = {}
    for path in scratch.rglob("*.ko*"):
        files[_plain(path.name.partition(".ko")[0])] = path
    names = []

    def add(module):
        if _plain(module) not in files:
            return  # built into this kernel
        path = files.pop(_plain(module))
        data = path.read_bytes()
        if path.suffix == ".xz":
            data = lzma.decompress(data)
        depends = re.search(rb"\0depends=([^\0]*)\0", data)
        for needed in depends.group(1).decode().split(",") if depends else []:
            add(needed)
        names.append(f"{_plain(module)}.ko")
        (ready / names[-1]).write_bytes(data)

    for module in MODULES:
        add(module)
    if "rdma_rxe.ko" not in names:
        raise GuestError("this kernel has no software RDMA device (module rdma_rxe); linux-image-amd64 of Debian has")
    return names


def _plain(module):
    return module.replace("-", "_")


def _run(command, cwd=None):
    try:
        done = subprocess.run([str(word) for word in command], cwd=cwd, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except FileNotFoundError:
        raise GuestError(f"{command[0]} is not there: it comes with Debian's package apt or dpkg") from None
    if done.returncode != 0:
        raise GuestError(f"status {done.returncode} from {' '.join(map(str, command))}\n{done.stderr.strip()}")
    return done.stdout
