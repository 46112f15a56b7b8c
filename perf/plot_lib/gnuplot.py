"""Draws charts with gnuplot, as SVG and PNG."""

import shutil
import subprocess

from .charts import Rows, size_label

_COLOURS = ["#c0392b", "#2471a3", "#229954", "#7d3c98", "#b9770e", "#117a65", "#515a5a", "#922b6b"]
_TERMINALS = {"svg": "svg noenhanced size 760,{height} font 'sans-serif,13' background '#ffffff'",
              "png": "pngcairo noenhanced size 1140,{large} font 'sans-serif,14' background '#ffffff'"}
# The legend stands above the plot, where no curve is.
_STYLE = """
set grid lc rgb '#c8c8c8' lw 0.5
set rmargin 6
set key outside top center horizontal maxcols 2 Left reverse
set border 3 lc rgb '#555555'
set tics nomirror
"""


def available():
    return shutil.which("gnuplot") is not None


def _quoted(text):
    return "'" + text.replace("'", "''") + "'"


def _short(text, most=50):
    """A tic label: a percent sign there is a format."""
    return (text if len(text) <= most else text[:most - 3] + "...").replace("%", "%%")


def _curves(chart):
    sizes = chart.x_label == "message size"
    # A logarithmic axis has no zero: it stands at one half.
    xs = sorted({x for curve in chart.curves.values() for x in curve})
    tics = ", ".join(f"{_quoted(size_label(x) if sizes else f'{x:,.0f}')} {x or 0.5}" for x in xs)
    lines = ["set logscale x", f"set xrange [{(xs[0] or 0.5) / 1.5}:{(xs[-1] or 0.5) * 1.5}]", f"set xtics ({tics})",
             "set xtics rotate by -35", f"set ylabel {_quoted(chart.y_label)}",
             "set logscale y" if chart.logarithmic_y else "set yrange [0:*]"]
    plots = []
    for index, (name, curve) in enumerate(chart.curves.items()):
        points = "\n".join(f"{x or 0.5} {y} {low} {high}" for x, (low, y, high) in sorted(curve.items()))
        lines.append(f"$curve{index} << end\n{points}\nend")
        colour = _COLOURS[index % len(_COLOURS)]
        plots += [f"$curve{index} using 1:3:4 with filledcurves fc rgb '{colour}' fs transparent solid 0.15 notitle",
                  f"$curve{index} using 1:2 with linespoints lw 2 pt 7 ps 0.5 lc rgb '{colour}' title {_quoted(name)}"]
    return lines, plots


def _ratios(chart):
    def label(row):
        return _short(row[0]) + (" >" if row[5] else " <")

    lines = [f"set yrange [{len(chart.rows) - 0.5}:-0.5]", "set xrange [0:*]", "set lmargin 54",
             "set arrow from 1, graph 0 to 1, graph 1 nohead lw 1.5 dt 2 lc rgb '#555555' back",
             "set ytics (" + ", ".join(f"{_quoted(label(row))} {i}" for i, row in enumerate(chart.rows)) + ")"]
    plots = []
    marks = sorted({row[4] for row in chart.rows})
    for index, mark in enumerate(marks):
        points = "\n".join(f"{median} {i} {low} {high}"
                           for i, (_, low, median, high, own, _) in enumerate(chart.rows) if own == mark)
        lines.append(f"$rows{index} << end\n{points}\nend")
        colour = "#999999" if mark == "busy" else _COLOURS[index % len(_COLOURS)]
        plots.append(f"$rows{index} using 1:2:3:4 with xerrorbars pt 7 ps 0.7 lw 2 lc rgb '{colour}' title {_quoted(mark)}")
    return lines, plots


def _script(chart, path, kind):
    is_rows = isinstance(chart, Rows)
    height = 140 + 22 * len(chart.rows) if is_rows else 480 + 11 * len(chart.curves)
    lines, plots = (_ratios if is_rows else _curves)(chart)
    head = [_STYLE, "set terminal " + _TERMINALS[kind].format(height=height, large=height * 3 // 2),
            f"set output {_quoted(str(path))}", f"set title {_quoted(chart.title)}",
            f"set xlabel {_quoted(chart.x_label)}"]
    return "\n".join(head + lines) + "\nplot " + ", ".join(plots) + "\n"


def draw(charts, directory, say):
    """Writes an SVG and a PNG for each chart; returns those that were drawn."""
    drawn = []
    for chart in charts:
        problem = ""
        for kind in _TERMINALS:
            done = subprocess.run(["gnuplot"], input=_script(chart, directory / f"{chart.name}.{kind}", kind), text=True,
                                  capture_output=True, check=False)
            problem = problem or (done.stderr.strip() if done.returncode != 0 else "")
        if problem:
            say(f"gnuplot could not draw {chart.name}: {problem[:300]}")
        else:
            drawn.append(chart)
    return drawn
