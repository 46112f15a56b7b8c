"""Compiles values.c and each public header alone, in every mode and language standard.

Usage: check_headers.py <C compiler> <C++ compiler> <include directory>...
"""
import concurrent.futures
import pathlib
import shutil
import subprocess
import sys

cc, cxx, *includes = sys.argv[1:]
values = pathlib.Path(__file__).with_name("values.c")
headers = sorted(path.name for path in pathlib.Path(includes[0]).glob("gasnet*.h")
                 if not path.name.startswith("gasneti_") and path.name != "gasnet_config.h")
modes = {"seq": ["-DGASNET_SEQ"], "par": ["-DGASNET_PAR", "-D_REENTRANT"],
         "parsync": ["-DGASNET_PARSYNC", "-D_REENTRANT"]}
standards = [(cc, "c", s) for s in ("c99", "c11")] + [(cxx, "c++", f"c++{s}") for s in (11, 14, 17, 20)]
warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wstrict-prototypes", "-Werror", "-fsyntax-only"]


def compile_text(compiler, language, standard, defines, text):
    flags = [flag for flag in warnings if language == "c" or flag != "-Wstrict-prototypes"]
    command = [compiler, "-x", language, f"-std={standard}", "-D_GNU_SOURCE=1", *flags, *defines,
               *(f"-I{directory}" for directory in includes), "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    return result.returncode == 0, f"{' '.join(command)}\n{result.stderr}"


def must_compile(*arguments):
    good, output = compile_text(*arguments)
    return None if good else output


def must_fail(message, *arguments):
    good, output = compile_text(*arguments)
    return f"compiled, but must not:\n{output}" if good or message not in output else None


jobs = []
for mode in modes.values():
    for standard in standards:
        jobs.append((must_compile, *standard, mode, values.read_text()))
for header in headers:
    tools = header in ("gasnet_tools.h", "gasnet_portable_platform.h", "gasnet_fwd.h")
    mode = ["-DGASNETT_THREAD_SAFE"] if tools else modes["par"]
    for standard in (standards[0], standards[2], standards[5]):
        jobs.append((must_compile, *standard, mode, f"#include <{header}>\n#include <{header}>\nint here;\n"))
# Names that programs use without another include.
texts = {
    "gasnet.h": """#include <gasnet.h>
#if !defined(INT_MAX) || !defined(PRIu64) || !defined(UINT64_MAX) || !GEX_FLAG_PEER_NEVER_SELF || \\
    GEX_FLAG_PEER_NEVER_NBRHD == GEX_FLAG_PEER_NEVER_SELF
#error
#endif
const char* program = "compiler " PLATFORM_COMPILER_IDSTR;
gasnet_memvec_t piece;
void use(void) {
  fprintf(stderr, "%d %s\\n", INT_MAX, gasneti_gethostname());
  free(malloc(1));
}
""",
    "gasnetex.h": """#include <gasnetex.h>
char* of_job(void) { return gasnet_getenv("HOME"); }
int here(gex_TM_t team) { return gasnett_run_diagnostics(1, 1, (const char*)0, team, (void*)0, 0u, (void*)0); }
""",
    "gasnetex.h with a seed": """#include <gasnetex.h>
int here(gex_TM_t team) { return gasnett_run_diagnostics(1, 1, (const char*)0, team, (void*)0, 0u, (void*)0, 7u); }
""",
}
for text in texts.values():
    for standard in (standards[0], standards[2], standards[5]):
        jobs.append((must_compile, *standard, modes["par"], text))
# Open MPI brings a header of the same origin, with the same names.
mpi = next((name for name in ("mpicc", "mpicc.openmpi") if shutil.which(name)), None)
if mpi:
    shown = subprocess.run([mpi, "--showme:incdirs"], capture_output=True, text=True)
    mpi_includes = [f"-I{directory}" for directory in shown.stdout.split()] if shown.returncode == 0 else []
    if mpi_includes:
        for standard in (standards[0], standards[5]):
            for header in ("gasnetex.h", "gasnet.h", "gasnet_tools.h"):
                defines = modes["par"] if header != "gasnet_tools.h" else ["-DGASNETT_THREAD_SAFE"]
                jobs.append((must_compile, *standard, [*defines, *mpi_includes, "-DOMPI_SKIP_MPICXX=1"],
                             f"#include <mpi.h>\n#include <{header}>\n"
                             "#if !defined(PLATFORM_COMPILER_VERSION_GE) || PLATFORM_COMPILER_VERSION_GE(200, 0, 0)\n"
                             "#error\n#endif\nint here;\n"))
for define in ("GASNETT_THREAD_SINGLE", "GASNETT_LITE_MODE"):
    jobs.append((must_compile, *standards[0], [f"-D{define}"], "#include <gasnet_tools.h>\n"
                 f"#if {define} != 1 || defined(_GASNETEX_H)\n#error mode\n#endif\n"))
c99 = standards[0]
jobs += [
    (must_fail, "exactly one of", *c99, [], "#include <gasnetex.h>\n"),
    (must_fail, "exactly one of", *c99, ["-DGASNET_SEQ", "-DGASNET_PAR"], "#include <gasnetex.h>\n"),
    (must_fail, "before gasnet_tools.h", *c99, ["-DGASNET_SEQ"], "#include <gasnet_tools.h>\n"),
    (must_fail, "before gasnet_tools.h", *c99, [], "#include <gasnet_tools.h>\n#define GASNET_SEQ 1\n"
     "#include <gasnetex.h>\n"),
    (must_fail, "at most one", *c99, ["-DGASNETT_THREAD_SAFE", "-DGASNETT_LITE_MODE"],
     "#include <gasnet_tools.h>\n"),
    (must_fail, "contradicts", *c99, ["-DGASNET_PAR", "-DGASNETT_THREAD_SINGLE"], "#include <gasnetex.h>\n"),
    (must_fail, "not meant to be included", *c99, [], "#include <gasnet_config.h>\n"),
]
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    problems = [output for output in pool.map(lambda job: job[0](*job[1:]), jobs) if output]
if problems:
    sys.exit("\n".join(problems))
print(f"{len(jobs)} compilations")
