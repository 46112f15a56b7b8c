"""SVG plots, drawn by gnuplot."""

import shutil
import subprocess

_STYLE = """
set terminal svg noenhanced size 720,460 font 'sans-serif,13' background '#ffffff'
set grid lc rgb '#c8c8c8' lw 0.5
set rmargin 6
set key {key} Left reverse
set border 3 lc rgb '#555555'
set tics nomirror
set xtics rotate by -35
"""

_COLOURS = ["#c0392b", "#2471a3", "#229954", "#7d3c98"]


def _size_label(size):
    for unit, factor in (("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size // factor} {unit}"
    return f"{size} B"


def _script(path, title, x_label, y_label, curves, key, x_tics, logarithmic_y):
    lines = [_STYLE.format(key=key), f"set output '{path}'", f"set title '{title}'",
             f"set xlabel '{x_label}'", f"set ylabel '{y_label}'", "set logscale x"]
    lines.append(f"set xrange [{x_tics[0][0] / 1.5}:{x_tics[-1][0] * 1.5}]")
    lines.append("set logscale y" if logarithmic_y else "set yrange [0:*]")
    lines.append("set xtics (" + ", ".join(f"'{label}' {x}" for x, label in x_tics) + ")")
    for index, curve in enumerate(curves.values()):
        points = "\n".join(f"{x} {y}" for x, y in sorted(curve.items()))
        lines.append(f"$curve{index} << end\n{points}\nend")
    lines.append("plot " + ", ".join(
        f"$curve{index} using 1:2 with linespoints lw 2 pt 7 ps 0.5 lc rgb "
        f"'{_COLOURS[index % len(_COLOURS)]}' title '{name}'"
        for index, name in enumerate(curves)))
    return "\n".join(lines) + "\n"


def draw(directory, by_size, by_depth, say):
    """Writes the plots into `directory`; returns their paths."""
    if shutil.which("gnuplot") is None:
        say("no plots: gnuplot is not installed (Debian: gnuplot-nox)")
        return []
    # A logarithmic axis has no zero: nothing posted stands at one half.
    by_depth = {name: {(x or 0.5): y for x, y in curve.items()} for name, curve in by_depth.items()}
    size_tics = sorted({(size, _size_label(size)) for curve in by_size["latency_ns"].values() for size in curve})
    depth_tics = sorted({(x, "none" if x == 0.5 else f"{x:,}") for curve in by_depth.values() for x in curve})
    latency_us = {name: {x: y / 1e3 for x, y in curve.items()} for name, curve in by_size["latency_ns"].items()}
    rate = {name: {x: y / 1e6 for x, y in curve.items()} for name, curve in by_size["rate_per_s"].items()}
    plots = [
        ("latency.svg", "Half round trip", "message size", "microseconds", latency_us, "left top", size_tics, True),
        ("rate.svg", "Message rate", "message size", "million messages a second", rate, "right top", size_tics, True),
        ("bandwidth.svg", "Bandwidth, one buffer reused", "message size", "GiB/s",
         by_size["bandwidth_gib_per_s"], "left top", size_tics, False),
        ("depth.svg", "Cost over the length of the list", "entries posted before, or unexpected headers",
         "nanoseconds", by_depth, "right bottom", depth_tics, False),
    ]
    paths = []
    for file_name, title, x_label, y_label, curves, key, tics, logarithmic_y in plots:
        path = directory / file_name
        script = _script(path, title, x_label, y_label, curves, key, tics, logarithmic_y)
        done = subprocess.run(["gnuplot"], input=script, text=True, capture_output=True, check=False)
        if done.returncode == 0:
            paths.append(path)
        else:
            say(f"gnuplot could not draw {file_name}: {done.stderr.strip()[:200]}")
    return paths
