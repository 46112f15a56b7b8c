"""Finds calls that make file descriptors elsewhere than in src/util/new_descriptor.cc, which keeps them off 0 to 2.

Usage: check_descriptors.py <source directory>
"""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
only = source / "src/util/new_descriptor.cc"
calls = ("open64 openat creat socket socketpair pipe pipe2 memfd_create eventfd epoll_create epoll_create1 accept4 dup dup2 "
         "dup3 fopen freopen opendir fdopendir inotify_init inotify_init1 timerfd_create signalfd shm_open mkstemp mkostemp "
         "tmpfile popen pidfd_open mkdir mkdirat").split()
# open() and accept() are also names of functions of the library, which have no flags of the system.
direct = re.compile(r"(?<![\w.>:])(?:(?:::|std::)?(" + "|".join(calls) + r")\(|::(open|accept)\(|(open)\([^;]*?\bO_[A-Z]"
                    r"|std::(i?o?fstream)\b|(SYS_(?:userfaultfd|pidfd_open|open\w*|memfd_create))\b)")
# Moves what a system call without a function in the C library has returned.
moved = re.compile(r"above_standard\(")


def without_comments(text):
    """The code; strings and comments are blank."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.DOTALL)


files = [path for top in ("src", "pmix") for path in sorted((source / top).rglob("*")) if path.suffix in (".cc", ".h")]
if only not in files:
    sys.exit(f"{only} is missing")
found = []
for path in files:
    text = without_comments(path.read_text())
    for match in direct.finditer(text) if path != only else ():
        name = next(filter(None, match.groups()))
        if not name.startswith("SYS_") or not moved.search(text):
            number = text.count("\n", 0, match.start()) + 1
            found.append(f"{path.relative_to(source)}:{number}: {name}")
if found:
    sys.exit("\n".join(found) + "\nUse src/util/new_descriptor.h: whoever prints writes into a descriptor below 3")
print(f"{len(files)} files; descriptors are made in {only.name} only")
