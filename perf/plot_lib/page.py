"""One HTML page that stands for itself: where the numbers are from, the plots, the rows."""

import html

from .charts import Rows, size_label

_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Measurements of Portals</title>
<style>
body { font-family: sans-serif; max-width: 60em; margin: 2em auto; color: #222; }
table { border-collapse: collapse; margin: 1em 0; } td, th { border: 1px solid #ccc; padding: .3em .6em; text-align: left; }
.busy { background: #fdebd0; padding: .6em; } tr.busy td { color: #777; }
figure { margin: 2em 0; } svg { max-width: 100%; height: auto; }
</style></head><body>
"""


def _table(head, rows, classes=None):
    cells = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    text = f"<table><tr>{cells}</tr>\n"
    for i, row in enumerate(rows):
        attribute = f' class="{classes[i]}"' if classes and classes[i] else ""
        text += f"<tr{attribute}>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>\n"
    return text + "</table>\n"


def _inline(path):
    """The drawing without what stands in front of it in a file of its own."""
    text = path.read_text()
    return text[text.index("<svg"):]


def _figure(chart, directory):
    text = f"<figure>{_inline(directory / f'{chart.name}.svg')}"
    text += f'<figcaption><a href="{chart.name}.svg">SVG</a> <a href="{chart.name}.png">PNG</a></figcaption>\n'
    if isinstance(chart, Rows):
        rows = [(name, f"{median:.3g}", f"{low:.3g} to {high:.3g}", mark if mark != "busy" else "busy machine: not judged",
                 "larger" if larger else "smaller") for name, low, median, high, mark, larger in chart.rows]
        text += _table(["row", "median", "quartiles", "verdict", "better"], rows,
                       ["busy" if row[4] == "busy" else "" for row in chart.rows])
    else:
        sizes = chart.x_label == "message size"
        rows = [(name, size_label(x) if sizes else f"{x:,.0f}", f"{median:.4g}", f"{low:.4g} to {high:.4g}")
                for name, curve in chart.curves.items() for x, (low, median, high) in sorted(curve.items())]
        text += "<details><summary>numbers</summary>" + _table(
            ["curve", chart.x_label, f"median, {chart.y_label}", "quartiles"], rows) + "</details>\n"
    return text + "</figure>\n"


def write(path, sources, charts):
    busy = [source for source in sources if source.busy]
    text = _HEAD + "<h1>Measurements of Portals</h1>\n"
    for source in busy:
        text += (f'<p class="busy"><b>{html.escape(source.label)}: {html.escape(source.busy)}.</b> '
                 "Its numbers are shown and not judged: repeat the run on a quiet machine.</p>\n")
    for source in sources:
        if source.missing:
            text += f"<p>{html.escape(source.label)}: {html.escape(source.missing)}.</p>\n"
    names = list(dict.fromkeys(name for source in sources for name in source.facts))
    text += _table(["", *names], [[source.label, *(source.facts.get(name, "") for name in names)] for source in sources],
                   ["busy" if source.busy else "" for source in sources])
    text += "<p>Bands and bars are quartiles; a band as narrow as its curve has none in its file.</p>\n"
    text += "".join(_figure(chart, path.parent) for chart in charts)
    path.write_text(text + "</body></html>\n")
