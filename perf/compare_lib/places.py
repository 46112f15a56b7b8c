"""Where the programs of a peer are: installed here, in a prefix, or unpacked with a libc of their own (perf/peers)."""

from pathlib import Path

from . import commands


class Installed:
    """The distribution's."""

    def command(self, program):
        return [program]


class Prefix:
    """Built elsewhere, and installed in a directory. Its programs find their libraries themselves."""

    def __init__(self, directory):
        self._directory = directory

    def command(self, program):
        path = self._directory / "bin" / program
        if not path.exists():
            raise commands.CommandError(f"there is no {path}")
        return [path]


class Unpacked:
    """Of another release of the distribution, with all libraries that it needs."""

    def __init__(self, directory):
        root = Path(directory).resolve() / "root"
        loaders = [path for pattern in ("usr/lib64/ld-linux-*", "usr/lib/ld-linux-*") for path in root.glob(pattern)]
        if not loaders:
            raise commands.CommandError(f"{directory}: nothing unpacked there; perf/peers does it")
        # The loader is to find no library of this system.
        libraries = sorted(path for path in (root / "usr" / "lib").glob("*-linux-gnu") if path.is_dir())
        self._start = [loaders[0], "--library-path", ":".join(map(str, libraries))]
        self._programs = root / "usr" / "bin"

    def command(self, program):
        return [*self._start, self._programs / program]
