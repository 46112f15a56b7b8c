"""Checks what the documentation mentions: paths, files, links, functions, types, constants, messages. Names that
do not exist are reported, and also errors and warnings of the library that docs/troubleshooting.md lacks.

Usage: check_references.py <source directory>
"""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
pages = [source / "README.md", source / "CONTRIBUTING.md", source / "gasnet/README.md", *sorted((source / "docs").glob("*.md"))]
# These pages describe the code. In other pages, identifiers in code spans may belong to other
# projects.
about_the_code = {"README.md", "reference.md", "architecture.md", "troubleshooting.md", "configuration.md", "glossary.md",
                  "programs.md"}

top = "src|include|pmix|gasnet|tests|tools|perf|scripts|docs|cmake|examples|packaging"
path_pattern = re.compile(rf"(?<![\w./-])((?:{top})/[\w.*/-]*[\w*/])")
code_files = [path for directory in ("src", "include", "pmix", "gasnet", "tools", "tests", "perf", "examples")
              for path in (source / directory).rglob("*") if path.suffix in (".h", ".cc", ".c")]
code = "\n".join(path.read_text() for path in code_files)
build_files = [*(source / "cmake").rglob("*.*"), source / "CMakeLists.txt"]
words = set(re.findall(r"\w+", code + "\n".join(path.read_text() for path in build_files)))
called = set(re.findall(r"(\w+)\s*(?:<[^<>;{}]*>)?\(", code))
file_names = {path.name for directory in top.split("|")
              for path in (source / directory).rglob("*") if path.is_file()}
# Adjacent string literals are joined. Pages have dots in place of printf directives.
messages = re.sub(r'"\s*"', "", code).replace('\\"', '"')
problems = []


def anchors(linked):
    """The anchors of the headings of a page, as Markdown viewers generate them."""
    headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_messages(page, text):
    """Lines `> ...` quote the log: the text between the dots must be part of a message."""
    for quoted in re.findall(r"^> (.*)$", text, re.MULTILINE):
        for part in quoted.split("..."):
            if part.strip() and part.strip() not in messages:
                problems.append(f"{page}: no message says {part.strip()!r}")


def check_troubleshooting():
    """Each message must be on the page, at least a part of its text between directives. Texts composed elsewhere
    are not checked."""
    page = (source / "docs/troubleshooting.md").read_text()
    found = 0
    for path in [*(source / "src").rglob("*.cc"), *(source / "pmix").glob("*.cc")]:
        text = re.sub(r'"\s*"', "", path.read_text())
        for said in re.findall(r'log_(?:message|once)\([^;"]*LogLevel::(?:error|warn)[^;"]*"((?:[^"\\]|\\.)*)"', text):
            parts = [part.strip(" :;,.()") for part in re.split(r"%[a-z]*[sdu]", said)]
            parts = [part for part in parts if len(part) >= 12]
            found += 1
            if parts and not any(shown in page for part in parts for shown in (part, *re.split(r"[:;,] ", part))
                                 if len(shown) >= 12):
                problems.append(f"docs/troubleshooting.md does not have {said!r} of {path.relative_to(source)}")
    if found < 20:
        problems.append(f"only {found} errors and warnings were found in the sources: has log_message() another form?")


def check_paths(page, text):
    for path in set(path_pattern.findall(text)):
        if not any(source.glob(path.rstrip("/"))):
            problems.append(f"{page}: there is no {path}")
    for target in re.findall(r"\]\(([^)#\s]+)\)", text):
        if "://" not in target and not (source / page).parent.joinpath(target).exists():
            problems.append(f"{page}: the link to {target} leads nowhere")
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", text):
        linked = (source / page).parent / target if target else source / page
        if "://" not in target and linked.is_file() and anchor not in anchors(linked):
            problems.append(f"{page}: {target} has no section #{anchor}")


def check_span(page, span):
    if re.fullmatch(r"[\w-]+\.(?:cc|h|c|py|cmake)", span):
        if span not in file_names:
            problems.append(f"{page}: there is no file {span}")
    elif match := re.fullmatch(r"(?:\w+::)*~?(\w+)\(\)", span):
        for qualifier in span.split("::")[:-1]:
            if qualifier not in words:
                problems.append(f"{page}: there is no {qualifier}")
        if match[1] not in called:
            problems.append(f"{page}: there is no function {span}")
    elif re.fullmatch(r"(?:\w+::)*(?:[A-Z][a-z]+\w*|\w+_)|PTL_\w+|\w*[a-z]\w*_\w+", span):
        for word in span.split("::"):
            if word not in words:
                problems.append(f"{page}: nothing is called {span}")


for path in pages:
    page = str(path.relative_to(source))
    text = path.read_text()
    check_paths(page, text)
    check_messages(page, text)
    if path.name in about_the_code:
        prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        for span in set(re.findall(r"`([^`\n]+)`", prose)):
            check_span(page, span)

check_troubleshooting()
if problems:
    print(*sorted(problems), sep="\n")
    sys.exit(1)
print(f"{len(pages)} pages: everything they name exists")
