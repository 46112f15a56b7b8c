"""Lists sources that clang-format would change, comment lines longer than 100 columns, and pipes of
shell scripts whose reader ends early.

Usage: check_format.py <source directory> <clang-format>
"""
import io
import pathlib
import re
import subprocess
import sys
import tokenize

source, clang_format = pathlib.Path(sys.argv[1]), sys.argv[2]
columns = 100
directories = ("examples", "gasnet", "include", "ofi", "perf", "pmix", "src", "tests", "tools")
sources = [path for directory in (*directories, "cmake", "packaging", "scripts")
           for path in sorted((source / directory).rglob("*")) if path.is_file()]
files = [path for path in sources if path.suffix in (".c", ".cc", ".h") and path.parts[-2] != "cmake"]
if not files:
    sys.exit(f"no sources found in {source}")


def comment_lines_of_python(text):
    """Numbers of the lines that contain a comment, except directives for a checker."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {token.start[0] for token in tokens
            if token.type == tokenize.COMMENT and "noqa" not in token.string}


def long_comments(path):
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return
    first, *_ = text.split("\n", 1)
    lines = list(enumerate(text.splitlines(), 1))
    if not any(len(line) > columns for _, line in lines):
        return
    if path.suffix in (".c", ".cc", ".h"):
        # Strings are removed first: "://" is not a comment. Lines within /* */ begin with an
        # asterisk.
        numbers = {number for number, line in lines
                   if re.search(r"//|/\*|^\s*\*\s", re.sub(r'"(?:\\.|[^"\\])*"', '""', line))}
    elif path.suffix == ".py" or "python" in first:
        numbers = comment_lines_of_python(text)
    elif path.suffix in (".cmake", ".sh", ".txt") or first.startswith("#!"):
        numbers = {number for number, line in lines if re.match(r"\s*#", line)}
    else:
        return
    for number, line in lines:
        if number in numbers and len(line) > columns:
            yield f"{path.relative_to(source)}:{number}: a comment of {len(line)} columns"


def pipes_that_end_early(path):
    """Lines that fail now and then under pipefail: the writer may be killed by SIGPIPE."""
    first, *rest = path.read_bytes().split(b"\n", 1)
    if not re.match(rb"#!.*\bsh$|#!.*\bbash$", first) and path.name != "common":
        return
    text = path.read_text()
    if "pipefail" not in text and "/common\"" not in text:
        return
    joined = re.sub(r"\|\s*\n\s*", "| ", text)  # the command after a line that ends with |
    for match in re.finditer(r"\|\s*(head\b|grep\s+-\w*[qm]|sed\s+[^|\n]*\bq\b).*", joined):
        yield f"{path.relative_to(source)}: '{match[0].strip()}' reads less than is written, which pipefail takes for an error"


complaints = subprocess.run([clang_format, "--dry-run", "--Werror", *files], stderr=subprocess.PIPE, text=True)
print(complaints.stderr, end="", file=sys.stderr)
if complaints.returncode:
    sys.exit(f"{clang_format} -i would change these files; see CONTRIBUTING.md, Style")
long = [complaint for path in sources for complaint in long_comments(path)]
if long:
    sys.exit("\n".join(long) + f"\nAt most {columns} columns; see CONTRIBUTING.md, Plain English")
pipes = [complaint for path in (*sources, *(source / ".ci").iterdir()) for complaint in pipes_that_end_early(path)]
if pipes:
    sys.exit("\n".join(pipes))
print(f"{len(files)} files are formatted by .clang-format, and no comment is longer than {columns} columns")
