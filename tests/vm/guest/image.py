"""The initial file system of the guest, made in memory: init, its shell, the modules, and the command.

The format is "newc" of cpio: a header of hexadecimal numbers, the name, the content, each padded to four bytes.
SPDX-License-Identifier: BSD-3-Clause
"""

import os
import shutil
from pathlib import Path

from .kernel import GuestError

HERE = Path(__file__).resolve().parent


def build(kernel, settings):
    """Returns a file descriptor of the image; `settings` is the text that the guest's scripts read first."""
    busybox = shutil.which("busybox", path=os.environ.get("PATH", os.defpath) + ":/bin:/usr/bin")
    if busybox is None:
        raise GuestError("busybox is not there: apt-get install busybox-static")
    shell = Path(busybox).read_bytes()
    if b"/lib64/ld-linux" in shell:
        raise GuestError(f"{busybox} needs libraries, which the guest does not have yet when it starts: apt-get install "
                         "busybox-static")
    image = _Archive()
    for directory in ("bin", "modules"):
        image.add(directory, b"", 0o040755)
    image.add("bin/busybox", shell, 0o100755)
    image.add("init", (HERE / "init").read_bytes(), 0o100755)
    image.add("session", (HERE / "session").read_bytes(), 0o100755)
    image.add("settings", settings.encode(), 0o100600)
    image.add("modules/order", "\n".join(path.name for path in kernel.modules).encode(), 0o100644)
    for path in kernel.modules:
        image.add(f"modules/{path.name}", path.read_bytes(), 0o100644)
    return image.finish()


class _Archive:
    """An archive in memory without a name in any directory: it is released when its last user has closed it."""

    def __init__(self):
        self._file = os.fdopen(os.memfd_create("lintel-guest", 0), "wb")
        self._number = 0

    def add(self, name, content, mode):
        self._number += 1
        encoded = name.encode() + b"\0"
        links, mtime, owner, group, device, check = 1, 0, 0, 0, 0, 0
        fields = (self._number, mode, owner, group, links, mtime, len(content), device, device, device, device,
                  len(encoded), check)
        self._write(b"070701" + b"".join(b"%08X" % field for field in fields) + encoded)
        self._write(content)

    def _write(self, data):
        self._file.write(data)
        self._file.write(b"\0" * (-self._file.tell() % 4))

    def finish(self):
        self.add("TRAILER!!!", b"", 0)
        self._file.flush()
        descriptor = os.dup(self._file.fileno())
        self._file.close()
        return descriptor
