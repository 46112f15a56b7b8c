"""A function that a public header declares is in the libraries, or a call of it does not compile.

Usage: check_symbols.py <C compiler> <directory of libraries> <include directory>...
"""
import pathlib
import re
import subprocess
import sys

cc, libraries, *includes = sys.argv[1:]
ours = [str(pathlib.Path(directory)) for directory in includes]
with_conduit = ("gasnet", "gasnet_coll", "gasnet_vis", "gasnet_ratomic", "gasnet_mk")
# Library, definitions, headers.
kinds = [(f"gasnet-portals4-{mode}", [f"-DGASNET_{mode.upper()}"] + (["-D_REENTRANT"] if mode != "seq" else []),
          with_conduit) for mode in ("seq", "par", "parsync")]
kinds += [("gasnet_tools-seq", ["-DGASNETT_THREAD_SINGLE"], ("gasnet_tools",)),
          ("gasnet_tools-par", ["-DGASNETT_THREAD_SAFE", "-D_REENTRANT"], ("gasnet_tools",))]
missing_mark = "does not have this call"


def preprocessed(defines, headers):
    """The text of the public headers, without the other headers that they include."""
    source = "".join(f"#include <{header}.h>\n" for header in headers)
    text = subprocess.run([cc, "-E", "-D_GNU_SOURCE=1", *defines, *(f"-I{directory}" for directory in includes), "-xc", "-"],
                          input=source, capture_output=True, text=True, check=True).stdout
    lines, is_ours = [], False
    for line in text.splitlines():
        if marker := re.match(r'# \d+ "([^"]*)"', line):
            is_ours = any(marker[1].startswith(directory) for directory in ours)
        elif is_ours:
            lines.append(line)
    return "\n".join(lines)


def declarations(text):
    """Functions that are declared and not defined, and for each whether a call is an error."""
    # Each body is replaced by a mark, so that only declarations are left.
    while (without := re.sub(r"\{[^{}]*\}", " \x00 ", text)) != text:
        text = without
    found = {}
    for statement in re.split(r"[;\x00]", text):
        is_missing = missing_mark in statement
        statement = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", statement)
        # Variables that are pointers to functions do not match.
        name = re.search(r"\bextern\b[^()=]*?\b(\w+)\s*\((?!\s*\*)", statement)
        if name and "typedef" not in statement:
            found[name[1]] = is_missing
    return found


problems, count = [], 0
for library, defines, headers in kinds:
    names = declarations(preprocessed(defines, headers))
    if len(names) < 30:
        sys.exit(f"{library}: {len(names)} declarations: this script no longer understands the headers")
    present = [name for name, is_missing in names.items() if not is_missing]
    count += len(present)
    for kind, nm in (("so", ["nm", "-D", "--defined-only"]), ("a", ["nm", "--defined-only"])):
        output = subprocess.run([*nm, f"{libraries}/lib{library}.{kind}"], capture_output=True, text=True, check=True).stdout
        defined = {line.split()[-1].split("@")[0] for line in output.splitlines() if len(line.split()) >= 3}
        problems += [f"lib{library}.{kind} has no {name}" for name in present if name not in defined]
        problems += [f"lib{library}.{kind} has {name}, which the header says is missing"
                     for name, is_missing in names.items() if is_missing and name in defined]
# A call of a missing function does not compile.
for header, call in (("gasnet_vis", "gex_VIS_SetPeerCompletionHandler(0, 0, 0, 0)"), ("gasnet_ratomic", "gex_AD_Destroy(0)")):
    result = subprocess.run([cc, "-c", "-o", "/dev/null", "-DGASNET_SEQ", *(f"-I{directory}" for directory in includes),
                             "-xc", "-"], input=f"#include <{header}.h>\nvoid f(void) {{ {call}; }}\n", capture_output=True,
                            text=True)
    is_missing = missing_mark in preprocessed(["-DGASNET_SEQ"], (header,))
    if is_missing and (result.returncode == 0 or missing_mark not in result.stderr):
        problems.append(f"{call} compiles: {result.stderr}")
if problems:
    sys.exit("\n".join(problems))
print(f"{count} functions")
