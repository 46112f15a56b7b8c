#!/usr/bin/env python3
"""Writes manual pages from what the project already says: the comments of the headers, the help of a
tool, the configuration table.

Usage: make_pages.py functions <directory> <version> <header>...
       make_pages.py types <directory> <version> <portals4_types.h> <directory of examples>
       make_pages.py runtime <directory> <version> <portals4_runtime.h> <directory of examples>
       make_pages.py tool <directory> <version> <program>
       make_pages.py configuration <directory> <version> <program that prints the table>

A function, a member or a constant without a comment, or a comment with an unknown @ command, is an error.
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
    return sentence if sentence.startswith("Ptl") else sentence[:1].lower() + sentence[1:]


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
    body += "\n.SH \"SEE ALSO\"\n.BR ptl_md_t (3),\n.BR ptl_le_t (3),\n.BR ptl_me_t (3),\n.BR ptl_event_t (3),\n" \
            ".BR portals4_runtime (7),\n.BR ptl_info (1),\n.BR ptl_perf (1),\n.BR lintel.conf (5)\n"
    write(directory, "portals4", 7, version, body)


def make_runtime(directory, version, header, examples):
    body = ".SH NAME\nportals4_runtime \\- how the processes of a job find each other\n" \
           ".SH SYNOPSIS\n.nf\n#include <portals4_runtime.h>\n.fi\n.PP\n" \
           "cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs portals4_runtime)\n" \
           ".SH DESCRIPTION\n" + lists(head_of(header))
    heading_shown = ""
    for heading, comment, declaration in declarations(header):
        if heading != heading_shown:
            body += f".SH \"{escape(heading.upper())}\"\n"
            heading_shown = heading
        name = re.search(r"(Ptl\w+)\s*\(", declaration)[1]
        text, _, _ = split_comment(comment_text(comment), name)
        body += f".TP\n.BR {name} (3)\n{escape(first_sentence(text))}\n"
    body += example(examples, "jobs/hello.c")
    body += ".SH \"SEE ALSO\"\n.BR portals4 (7),\n.BR ptl_info (1),\n.BR lintel.conf (5)\n"
    write(directory, "portals4_runtime", 7, version, body)


class Types:
    """What portals4_types.h says about structures, options and enumerations."""

    def __init__(self, header):
        self.text = pathlib.Path(header).read_text()

    def structure(self, name):
        """(comment, declaration, [(member, comment)])."""
        found = re.search(r"((?:/\*(?:(?!\*/).)*\*/\s*)?)(typedef struct \{\n((?:(?!\n\}).)*\n)\} " + name + ";)",
                          self.text, re.DOTALL)
        if not found:
            sys.exit(f"there is no structure {name}")
        members = re.findall(r"^\s+[^/]*?\b(\w+);[ \t]*(?:/\*(.*?)\*/)?", found[3], re.MULTILINE)
        declaration = re.sub(r"\s*/\*.*?\*/", "", found[2])
        return comment_text(found[1]), declaration, [(member, comment.strip()) for member, comment in members]

    def options(self, prefix):
        """[(option, comment)] of the options that begin with a prefix, and of PTL_IOVEC. An alias has the comment of
        the option that it stands for."""
        comments, found = {}, []
        pattern = re.compile(r"(?:/\*((?:(?!\*/).)*)\*/\n)?^#define (PTL_\w+) (\(1u << \d+\)|PTL_\w+|0u)"
                             r"[ \t]*(?:/\*(.*?)\*/)?$", re.DOTALL | re.MULTILINE)
        for before, option, value, behind in pattern.findall(self.text):
            comments[option] = comments.get(value) or (behind or comment_text(before)).strip()
            if value != "0u" and (option.startswith(prefix) or option == "PTL_IOVEC"):
                found.append((option, comments[option]))
        return found

    def constants(self, name):
        """[(constant, comment)] of an enumeration."""
        found = re.search(r"typedef PTL_ENUM\s*\{([^}]*)\} " + name + ";", self.text)
        if not found:
            sys.exit(f"there is no enumeration {name}")
        return [(constant, comment.strip())
                for constant, comment in re.findall(r"(PTL_\w+) = \d+,?[ \t]*(?:/\*(.*?)\*/)?", found[1])]


def items(heading, pairs):
    missing = [name for name, comment in pairs if not comment]
    if missing or not pairs:
        sys.exit(f"{heading}: without a comment: {missing}")
    return f".SH \"{heading}\"\n" + "".join(f".TP\n.B {name}\n{escape(comment)}\n" for name, comment in pairs)


def example(directory, path):
    """A program, as the build compiles it and the tests run it."""
    program = (pathlib.Path(directory) / path).read_text().rstrip()
    code = program.replace("\\", "\\e").replace("-", "\\-")
    code = re.sub(r"^([.'])", r"\\&\1", code, flags=re.MULTILINE)
    more = " It needs common.h of the same directory." if '"common.h"' in program else ""
    return f".SH EXAMPLE\nThe documentation contains it as examples/{escape(path)}.{more}\n.PP\n.nf\n{code}\n.fi\n"


def make_types(directory, version, header, examples):
    types = Types(header)
    entry_members = dict(types.structure("ptl_le_t")[2])
    # NI_OK has no comment: the name says it.
    failures = [(name, comment or "success") for name, comment in types.constants("ptl_ni_fail_t")]
    pages = {
        "ptl_md_t": ("memory of an initiator: the description of a memory descriptor", "PtlMDBind",
                     [("OPTIONS", types.options("PTL_MD_"))], "concepts/iovec.c"),
        "ptl_le_t": ("memory of a target: the description of a list entry", "PtlLEAppend",
                     [("OPTIONS", types.options("PTL_LE_"))], "hello.c"),
        "ptl_me_t": ("memory of a target: the description of a match list entry", "PtlMEAppend",
                     [("OPTIONS", types.options("PTL_ME_"))], "concepts/unexpected.c"),
        "ptl_event_t": ("a full event", "PtlEQGet",
                        [("KINDS OF EVENTS (type)", types.constants("ptl_event_kind_t")),
                         ("RESULTS (ni_fail_type)", failures)], "concepts/flow_control.c"),
    }
    for name, (what, function, parts, program) in pages.items():
        comment, declaration, members = types.structure(name)
        members = [(member, text or entry_members.get(member, "") or MEMBERS.get(member, ""))
                   for member, text in members]
        body = f".SH NAME\n{name} \\- {what}\n.SH SYNOPSIS\n.nf\n#include <portals4.h>\n.PP\n"
        body += f"{escape(declaration)}\n.fi\n.SH DESCRIPTION\n{escape(join(comment))}\n"
        body += items("MEMBERS", members)
        body += "".join(items(heading, pairs) for heading, pairs in parts)
        body += example(examples, program)
        body += f".SH \"SEE ALSO\"\n.BR {function} (3),\n.BR portals4 (7)\n"
        write(directory, name, 3, version, body)


# Members whose declaration in the header says enough for readers of the header only.
MEMBERS = {
    "ignore_bits": "bits of match_bits that are not compared",
    "initiator": "process that sent the message: rank, or nid and pid, as the interface is addressed",
    "type": "kind of the event, see below",
    "ni_fail_type": "what became of the operation, see below",
}


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
        {"types": make_types, "runtime": make_runtime, "tool": make_tool,
         "configuration": make_configuration}[kind](directory, version, *inputs)


main()
