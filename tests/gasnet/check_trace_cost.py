"""A trace call that is off costs a load, a test and one branch: functions with it and without.

Usage: check_trace_cost.py <C compiler> <include directory>...
"""
import re
import subprocess
import sys

cc, *includes = sys.argv[1:]
SOURCE = """#include <gasnetex.h>
extern int step(int);
int with_trace(void) { step(1); GASNETT_TRACE_PRINTF("%d", step(2)); return step(3) + 1; }
int without_trace(void) { step(1); return step(3) + 1; }
"""
MOST = 4  # instructions while tracing is off; some compilers load the address first

for mode in (["-DGASNET_SEQ"], ["-DGASNET_PAR", "-D_REENTRANT"]):
    text = subprocess.run([cc, "-O2", "-S", "-fno-asynchronous-unwind-tables", "-fcf-protection=none", "-xc", "-", "-o", "-",
                           *mode, *(f"-I{directory}" for directory in includes)],
                          input=SOURCE, stdout=subprocess.PIPE, check=True, text=True).stdout
    paths = {}
    for name in ("with_trace", "without_trace"):
        body = re.search(rf"^{name}:.*?\n(.*?)^\s+ret", text, re.M | re.S)[1]
        paths[name] = [line.split()[0] for line in body.splitlines() if re.match(r"\s+[a-z]", line)]
        if "gasneti_trace_printf" in body:
            sys.exit(f"{name}: the call is on the path that runs while tracing is off\n{body}")
    branches = {name: [word for word in words if re.match(r"j(?!mp)", word)] for name, words in paths.items()}
    more = len(paths["with_trace"]) - len(paths["without_trace"])
    if len(branches["with_trace"]) != len(branches["without_trace"]) + 1 or more > MOST:
        sys.exit(f"{mode}: {more} instructions more, branches {branches}\n{text}")
    print(f"{' '.join(mode)}: {more} instructions, one of them a branch")
