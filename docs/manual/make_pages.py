#!/usr/bin/env python3
"""Writes manual pages from what the project already says: the comments of the headers, the help of a
tool, the configuration table.

Usage: make_pages.py functions <directory> <version> <header>...
       make_pages.py tool <directory> <version> <program>
       make_pages.py configuration <directory> <version> <program that prints the table>

A function without a comment, or a comment with an unknown @ command, is an error.
"""
import os
import pathlib
import re
import subprocess
import sys

SECTION = re.compile(r"\s*\((\d+(?:\.\d+)*(?:, \d+(?:\.\d+)*)*)\)")
# Everything that a reader needs to know once and not on each page.
COMMON = """Threads, lifetimes of buffers, units, and the return codes that all functions share are
described in \\fBportals4\\fR(7)."""


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def title(name, section, version):
    return f'.TH "{escape(name)}" {section} "" "Lintel {version}" "Portals 4.3"\n.nh\n.ad l\n'


def write(directory, name, section, version, body):
    folder = pathlib.Path(directory) / f"man{section}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.{section}").write_text(title(name, section, version) + body)


def comment_text(comment):
    """The text of a C comment without its frame."""
    lines = comment.strip().removeprefix("/**").removeprefix("/*").removesuffix("*/").splitlines()
    return "\n".join(re.sub(r"^\s*\*? ?", "", line, count=1) if number else line.strip()
                     for number, line in enumerate(lines)).strip()


def split_comment(text, name):
    """Description, [(parameter, text)], text of @return."""
    parts = re.split(r"^\s*@(\w+)\s+", text, flags=re.MULTILINE)
    description, parameters, returned = parts[0].strip(), [], ""
    for command, content in zip(parts[1::2], parts[2::2]):
        content = content.strip()
        if command == "param":
            parameter, _, meaning = content.partition(" ")
            parameters.append((parameter, meaning.strip()))
        elif command == "return":
            returned = content
        else:
            sys.exit(f"{name}: unknown command @{command} in its comment")
    return description, parameters, returned


def join(text):
    return re.sub(r"\s*\n\s*", "\n", text.strip())


def first_sentence(text):
    sentence = re.split(r"(?<=[.;])\s", re.sub(r"\s+", " ", text), maxsplit=1)[0].rstrip(".;")
    sentence = SECTION.sub("", sentence)
    return sentence[:1].lower() + sentence[1:]


def declarations(header):
    """(heading, comment, declaration) of each function of a header, in its order."""
    text = pathlib.Path(header).read_text()
    heading = ""
    # A comment that begins a paragraph, what stands between, and a declaration.
    pattern = re.compile(r"(?P<comment>/\*.*?\*/)|(?P<declaration>^PTL_API[^;]*;)",
                         re.DOTALL | re.MULTILINE)
    comment = ""
    for match in pattern.finditer(text):
        if match["declaration"]:
            yield heading, comment, match["declaration"]
            comment = ""
        elif match["comment"].startswith("/**"):
            comment = match["comment"]
        elif text[match.start() - 1] == "\n":
            words = comment_text(match["comment"]).lstrip("- ")
            if "\n" not in words and not words.endswith("."):
                heading = words
            comment = ""


def prototype(declaration):
    text = re.sub(r"PTL_API |\s*PTL_NOEXCEPT|\s*__attribute__\(\(.*?\)\)", "", declaration)
    return re.sub(r"\s+", " ", text)


def head_of(header):
    text = pathlib.Path(header).read_text()
    return comment_text(text[:text.index("*/") + 2])


def lists(text):
    """Paragraphs and items that begin with a hyphen."""
    out = []
    for block in re.split(r"\n\s*\n|\n(?=\s*- )", text):
        block = block.strip()
        if block.startswith("SPDX"):
            continue
        if block.startswith("- "):
            out.append(".IP \\(bu 3\n" + escape(join(block[2:])))
        else:
            out.append(".PP\n" + escape(join(block)))
    return "\n".join(out).removeprefix(".PP\n") + "\n"


def make_functions(directory, version, headers):
    overview, undocumented = [], []
    for header in headers:
        library = "portals_runtime" if "runtime" in header else "portals"
        overview.append(f".SH \"{pathlib.Path(header).name}\"\n" + lists(head_of(header)))
        heading_shown = ""
        for heading, comment, declaration in declarations(header):
            name = re.search(r"(Ptl\w+)\s*\(", declaration)[1]
            if not comment:
                undocumented.append(name)
                continue
            text, parameters, returned = split_comment(comment_text(comment), name)
            if not text:
                sys.exit(f"{name}: its comment does not say what it does")
            sections = sorted(set(re.findall(r"\d+\.\d+(?:\.\d+)*", " ".join(
                SECTION.findall(text)))), key=lambda s: [int(n) for n in s.split(".")])
            body = f".SH NAME\n{name} \\- {escape(first_sentence(text))}\n"
            body += f".SH SYNOPSIS\n.nf\n#include <{pathlib.Path(header).name}>\n.fi\n.PP\n"
            body += f".B \"{escape(prototype(declaration))}\"\n"
            body += f".PP\nLink with \\-l{library} (pkg\\-config " \
                    f"{'portals4_runtime' if library != 'portals' else 'portals4'}).\n"
            body += f".SH DESCRIPTION\n{escape(join(text))}\n"
            if parameters:
                body += ".SH PARAMETERS\n"
                body += "".join(f".TP\n.I {parameter}\n{escape(join(meaning))}\n"
                                for parameter, meaning in parameters)
            if returned:
                body += f".SH \"RETURN VALUE\"\n{escape(join(returned))}\n"
            body += f".SH NOTES\n{COMMON}\n"
            if sections:
                body += f".PP\nPortals 4.3 specification: {', '.join(sections)}.\n"
            body += ".SH \"SEE ALSO\"\n.BR portals4 (7),\n.BR lintel.conf (5)\n"
            write(directory, name, 3, version, body)
            if heading != heading_shown:
                overview.append(f".SS \"{escape(heading)}\"\n")
                heading_shown = heading
            overview.append(f".TP\n.BR {name} (3)\n{escape(first_sentence(text))}\n")
    if undocumented:
        sys.exit(f"functions without a comment: {', '.join(undocumented)}")
    body = ".SH NAME\nportals4 \\- the Portals 4.3 network programming interface\n" \
           ".SH SYNOPSIS\n.nf\n#include <portals4.h>\n.fi\n.PP\n" \
           "cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs portals4)\n" \
           ".SH DESCRIPTION\nLintel connects processes through shared memory within a node, and through " \
           "RDMA verbs,\nUDP or DPDK between nodes.\n.BR ptl_info (1)\nlists the interfaces of a machine.\n"
    body += "\n".join(overview)
    body += "\n.SH \"SEE ALSO\"\n.BR ptl_info (1),\n.BR ptl_perf (1),\n.BR lintel.conf (5)\n"
    write(directory, "portals4", 7, version, body)


def make_tool(directory, version, program):
    name = pathlib.Path(program).name
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PTL_")}
    text = subprocess.run([program, "--help"], check=True, stdout=subprocess.PIPE, text=True,
                          env=dict(environment, COLUMNS="100")).stdout
    about, _, options = text.partition("Usage:")
    usage, _, options = options.partition("\n")
    body = f".SH NAME\n{name} \\- {escape(first_sentence(about))}\n"
    body += f".SH SYNOPSIS\n.B {name}\n{escape(usage.replace(name, '', 1).strip())}\n"
    body += f".SH DESCRIPTION\n{escape(join(about))}\n.SH OPTIONS\n"
    after_item = False
    for line in options.splitlines():
        text = line.strip()
        group = re.match(r"\[Option Group: (.*)\]", text)
        is_item = text.startswith("-") or re.match(r"  \S", line)
        if group:
            body += f".SS \"{escape(group[1])}\"\n"
        elif text == "Exit codes:":
            body += ".SH \"EXIT STATUS\"\n"
        elif not text or re.fullmatch(r"[A-Z][\w ]*:", text):
            continue
        elif is_item:
            item, _, meaning = text.partition("  ")
            body += f".TP\n.B \"{escape(item)}\"\n"
            body += f"{escape(meaning.strip())}\n" if meaning else ""
            after_item = not meaning
        else:
            body += f"{'' if after_item else '.br' + chr(10)}{escape(text)}\n"
            after_item = False
    body += ".SH \"SEE ALSO\"\n.BR portals4 (7),\n.BR lintel.conf (5)\n"
    write(directory, name, 1, version, body)


def make_configuration(directory, version, program):
    rows = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    body = ".SH NAME\nlintel.conf \\- configuration of Lintel\n"
    body += (pathlib.Path(__file__).parent / "lintel.conf.head").read_text()
    for audience, heading in (("users", "VARIABLES"),
                              ("tests", "VARIABLES FOR TESTS AND MEASUREMENTS")):
        body += f".SH \"{heading}\"\n"
        for row in rows.splitlines():
            name, unit, default, allowed, whom, meaning = row.split("\t")
            if whom != audience:
                continue
            body += f".TP\n.B {name}\n{escape(meaning)}\n.br\n"
            body += f"Default: {escape(default) or 'empty'}{' ' + unit if unit and default else ''}."
            body += f" Allowed: {escape(allowed)}.\n"
    body += ".SH \"SEE ALSO\"\n.BR ptl_info (1),\n.BR portals4 (7)\n"
    write(directory, "lintel.conf", 5, version, body)


def main():
    kind, directory, version, *inputs = sys.argv[1:]
    if kind == "functions":
        make_functions(directory, version, inputs)
    else:
        {"tool": make_tool, "configuration": make_configuration}[kind](directory, version, *inputs)


main()
