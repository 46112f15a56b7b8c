"""What is shown: progress while it lasts, a table at the end, and everything as JSON."""

import json
import sys

from .rows import Target


class Console:
    """Messages on standard error; progress overwrites itself on a terminal, and stays away elsewhere."""

    def __init__(self):
        self._terminal = sys.stderr.isatty()
        self._stage = ""
        self._line_open = False

    def stage(self, text):
        self._stage = text
        if not self._terminal:
            self.say(text)

    def progress(self, text):
        if self._terminal:
            sys.stderr.write(f"\r\x1b[K{self._stage}: {text}")
            sys.stderr.flush()
            self._line_open = True

    def say(self, text):
        self.clear()
        print(text, file=sys.stderr, flush=True)

    def clear(self):
        if self._line_open:
            sys.stderr.write("\r\x1b[K")
            self._line_open = False


def _number(value):
    if value >= 1e5:
        return f"{value:.3g}"
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def _columns(lines):
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def _markdown(lines):
    head, *others = lines
    return "".join("| " + " | ".join(line) + " |\n" for line in (head, ["---"] * len(head), *others))


def _row_line(row):
    summary = row["result"]
    spread = f"{_number(summary['lower_quartile'])} .. {_number(summary['upper_quartile'])}"
    bound = ">=" if row["larger_is_better"] else "<="
    return [row["name"], f"{_number(summary['median'])} {row['unit']}", spread, str(summary["count"]),
            f"{bound} {row['at_least']:g}", f"{bound} {row['aim']:g}", row["verdict"]]


TARGETS_HEAD = ["", "median", "quartiles", "rounds", "at least", "aim", "verdict"]


def targets_table(rows):
    return _columns([TARGETS_HEAD] + [_row_line(row) for row in rows])


def targets_markdown(rows):
    """The same as a table for a page of documentation."""
    return _markdown([TARGETS_HEAD, *map(_row_line, rows)])


def _apart_lines(apart):
    def cells(row, summary):
        if summary is None:
            return ["", "", ""]
        target = Target(row["at_least"], row["aim"], row["larger_is_better"])
        verdict = row["verdict"] if "busy" in row else target.verdict(summary.median)
        return [f"{_number(summary.median)} {row['unit']}", str(summary.count), verdict]

    near, far = (f"cache line {_number(readings.median)} ns" for readings in (apart["near_ns"], apart["far_ns"]))
    return [["", f"near: {near}", "rounds", "verdict", f"far: {far}", "rounds", "verdict"]] + [
        [row["name"], *cells(row, near), *cells(row, far)] for row, near, far in apart["rows"]]


def apart_table(apart):
    """The targets from rounds in which the cores were near, and in which they were far (distance.apart())."""
    return "cache lines did not take the same time all along:\n" + _columns(_apart_lines(apart))


def apart_markdown(apart):
    return _markdown(_apart_lines(apart))


def measured_table(rows):
    """The plain numbers behind the ratios, as medians."""
    lines = [["", "behind the ratio", "median", "quartiles"]]
    for row in rows:
        for name, summary in row["measured"].items():
            lines.append([row["name"], name, _number(summary["median"]),
                          f"{_number(summary['lower_quartile'])} .. {_number(summary['upper_quartile'])}"])
    return _columns(lines) if len(lines) > 1 else ""


def floor_table(floor):
    line = floor["cache_line_one_way_ns"]
    lines = [["", "4 KiB", "64 KiB", "1 MiB", "64 MiB"]]
    for name in ("memcpy", "process_vm_readv"):
        for kind in ("hot", "cold"):
            rates = [_number(row[f"{kind}_gib_per_s"]) for row in floor[name]]
            if rates:
                lines.append([f"{name}, {kind}, GiB/s", *rates])
    return f"cache line one way {line['average']:.0f} ns (now)\n" + _columns(lines)


def beside_table(beside):
    """Half round trips of all programs at 8 bytes, for orientation."""
    return _columns([["program", "8-byte half round trip, ns"]] +
                    [[name, _number(value)] for name, value in beside.items()])


def write_json(path, results):
    path.write_text(json.dumps(results, indent=2) + "\n")
