"""Root directories of a minimal Debian, in which tests install the project like a new user.

debootstrap makes a base once. A test uses an overlay over it, which is discarded, or kept under a name if it takes
long to make. All mounts are in a mount namespace of the test and end with it.
"""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys


def need_root():
    """Restarts this program in a new mount namespace."""
    if os.geteuid() != 0:
        print("skipped: needs root for chroot and mount")
        sys.exit(77)
    if "LINTEL_TEST_NAMESPACE" not in os.environ:
        os.execvpe("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, "-B", *sys.argv],
                   dict(os.environ, LINTEL_TEST_NAMESPACE="1"))


def call(*command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{result.stdout}")
    return result.stdout


def table_of_packages(source):
    """The packages that docs/install.md lists for Debian 12."""
    table = (source / "docs/install.md").read_text().split("### Packages that the build needs")[1]
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines() if line.startswith("|")]
    if not rows or not rows[0][2].startswith("Debian 12"):
        sys.exit("docs/install.md has no table of packages whose second column is Debian 12")
    return [name for row in rows[2:] for name in re.split(r",\s*", row[2]) if name]


class Root:
    def __init__(self, path, source):
        self.path, self.source = path, source

    def run(self, command):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
                       "CCACHE_DIR": "/var/cache/ccache", "CCACHE_NOHASHDIR": "1"}
        result = subprocess.run(["chroot", self.path, "sh", "-c", command], env=environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
        if result.returncode != 0:
            sys.exit(f"in the root, {command}\nfailed with {result.returncode}:\n{result.stdout[-6000:]}")
        return result.stdout

    def write(self, path, text):
        place = self.path / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def install(self, *packages):
        self.run("apt-get update -qq")
        self.run("DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "
                 + " ".join(packages))

    def install_table(self):
        """Installs the packages that docs/install.md lists for Debian 12, and a compiler cache."""
        self.install(*table_of_packages(self.source), "ccache")

    def files(self):
        return set(self.run("find / -xdev").splitlines())


class Base:
    def __init__(self, directory, source):
        self.directory, self.source = directory, source
        self.system = directory / "system"

    def make(self):
        if (self.directory / "made").exists():
            return
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        release = dict(re.findall(r"^(\w+)=\"?([^\"\n]*)", pathlib.Path("/etc/os-release").read_text(), re.MULTILINE))
        suite = release["VERSION_CODENAME"]
        archives = call("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)",
                        "Created-By: Packages").splitlines()
        archive = next((line.split()[0] for line in archives if line.split()[1] == suite), None)
        if archive is None:
            sys.exit(f"apt is not configured with an archive of {suite}")
        # In memory: on a disk, dpkg waits for the end of every write.
        call("mount", "-t", "tmpfs", "tmpfs", "/mnt")
        call("debootstrap", "--variant=minbase", suite, "/mnt/system", archive)
        pathlib.Path("/mnt/system/etc/dpkg/dpkg.cfg.d/in_a_test").write_text("force-unsafe-io\n")
        call("cp", "-a", "/mnt/system", self.system)
        (self.directory / "made").touch()

    @contextlib.contextmanager
    def open(self, layer=None):
        """A root over the base. Writes go to the layer with this name, which is kept; without a name they are
        discarded."""
        call("mount", "-t", "tmpfs", "tmpfs", "/mnt")
        top = self.directory / layer if layer else pathlib.Path("/mnt/layer")
        for directory in (top / "upper", top / "work", pathlib.Path("/mnt/root")):
            directory.mkdir(parents=True, exist_ok=True)
        root = pathlib.Path("/mnt/root")
        call("mount", "-t", "overlay", "overlay", "-o",
             f"lowerdir={self.system},upperdir={top / 'upper'},workdir={top / 'work'}", root)
        # The next test must not find files of an earlier one.
        shutil.rmtree(root / "stranger", ignore_errors=True)
        (root / "stranger").mkdir()
        mounts = [("/proc", "proc"), ("/dev", "dev"), ("/sys", "sys")]
        for name in ("archives", "ccache"):
            (self.directory / name).mkdir(exist_ok=True)
        mounts += [(self.directory / "archives", "var/cache/apt/archives"),
                   (self.compiler_cache(), "var/cache/ccache")]
        for of, at in mounts:
            (root / at).mkdir(parents=True, exist_ok=True)
            call("mount", "--rbind", of, root / at)
        self.mount_source(root / str(self.source).lstrip("/"))
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        yield Root(root, self.source)

    def mount_source(self, place):
        """Mounts the sources at the same path as outside; writes to them are discarded."""
        upper, work = pathlib.Path("/mnt/source/upper"), pathlib.Path("/mnt/source/work")
        for directory in (upper, work, place):
            directory.mkdir(parents=True, exist_ok=True)
        call("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={self.source},upperdir={upper},workdir={work}", place)

    def compiler_cache(self):
        """The compiler cache of the user if there is one, since it may contain the objects."""
        try:
            directory = subprocess.run(["ccache", "--get-config", "cache_dir"], stdout=subprocess.PIPE,
                                       text=True, check=True).stdout.strip()
            pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
            return directory
        except (OSError, subprocess.CalledProcessError):
            return self.directory / "ccache"
