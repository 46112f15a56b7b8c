"""From the JSON of ptl_perf or perf/compare to charts: what is drawn, without how."""

from dataclasses import dataclass, field
from pathlib import Path

# Above it other programs took part of the processors: measuring alone brings an idle machine to
# about 2.
BUSY_LOAD = 3.0


@dataclass
class Chart:
    """Curves over one axis. A point is (lower quartile, median, upper quartile)."""
    name: str  # of its files
    title: str
    x_label: str
    y_label: str
    logarithmic_y: bool
    curves: dict = field(default_factory=dict)  # label -> {x: point}

    def add(self, label, x, point):
        self.curves.setdefault(label, {})[x] = point


@dataclass
class Rows:
    """Ratios beside peers: (name, lower quartile, median, upper quartile, mark, larger is better)."""
    name: str
    title: str
    x_label: str
    rows: list


@dataclass
class Source:
    """One file of results: what it was measured on."""
    label: str
    facts: dict  # for the page, in order
    busy: str  # why the numbers are not to be judged; empty: they may be
    missing: str = ""  # what is not drawn, and why


class FormatError(Exception):
    pass


def size_label(size):
    for unit, factor in (("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor and size % factor == 0:
            return f"{size / factor:g} {unit}"
    return f"{size:.0f} B"


_TIMES = ("half round trip or operation", "microseconds", 1e3)


def _scaled(point, divisor):
    return tuple(value / divisor for value in point)


def _machine_text(machine, cores):
    kind = " (virtual)" if machine.get("virtual") else ""
    return f"{machine.get('processor') or machine.get('cpu')}{kind}, {cores}, {machine.get('kernel')}"


def _perf_label(document):
    version = document.get("library", "ptl_perf").split(",")[0]
    return f"{version} {document.get('transport', '')}".strip()


def _from_perf(document, label):
    machine = document["machine"]
    facts = {
        "version": document.get("library", ""), "date": document.get("date", "not known"),
        "machine": _machine_text(machine, f"{machine['cores_allowed']} of {machine['cores_online']} cores"),
        "transport": " ".join(filter(None, (document.get("transport", "not known"), document.get("device")))),
        "processes": f"{document.get('processes', '')}; {document.get('pinning', '')}",
        "load": f"{document['load_before']:.2f}" if "load_before" in document else "not known",
    }
    load = document.get("load_before", 0)
    busy = f"the machine was busy (load {load:.2f})" if load > BUSY_LOAD else ""
    charts = {}

    def chart(row, kind, y_label, logarithmic):
        over = row.get("parameter") or "message size"
        name = f"{row['test']}-{row['metric']}-{kind}".replace(" ", "-")
        title = f"{row['test']} {row['metric']}" + ("" if kind == "time" else f": {kind}")
        return charts.setdefault(name, Chart(name, title, over, y_label, logarithmic))

    configurations = {}
    for row in document["results"]:
        configurations.setdefault((row["test"], row["metric"]), set()).add(row["configuration"])
    for row in document["results"]:
        x = row.get("parameter_value", row.get("size_bytes"))
        if x is None:
            continue
        several = len(configurations[row["test"], row["metric"]]) > 1
        curve = label + (f", {row['configuration']}" if several else "")
        if "median_ns" in row:
            point = (row.get("lower_quartile_ns", row["median_ns"]), row["median_ns"],
                     row.get("upper_quartile_ns", row["median_ns"]))
            chart(row, "time", "microseconds", True).add(curve, x, _scaled(point, 1e3))
        if row["metric"] == "rate" and "rate_per_s" in row:
            chart(row, "rate", "million operations a second", True).add(curve, x, (row["rate_per_s"] / 1e6,) * 3)
        if "bandwidth_bytes_per_s" in row:
            chart(row, "bandwidth", "GiB/s", False).add(curve, x, (row["bandwidth_bytes_per_s"] / 2**30,) * 3)
    return Source(label, facts, busy), list(charts.values())


def _point(value):
    """Three numbers, or one where an older file has no quartiles."""
    return tuple(value) if isinstance(value, list) else (value,) * 3


def _from_compare(document, label):
    machine = document["machine"]
    loads = [machine[name] for name in ("load_before", "load_after") if name in machine]
    facts = {
        "version": ", ".join(f"{name} {version}" for name, version in document["versions"].items()),
        "date": document.get("date", "not known"),
        "machine": _machine_text(machine, f"{len(machine['cores_used'])} of {machine['cores']} cores used"),
        "transport": "those that each row names",
        "rounds": f"{document['rounds']}" + (", --quick" if document.get("quick") else ""),
        "load": ", ".join(f"{load:.2f}" for load in loads),
    }
    busy = f"the machine was busy (load {max(loads):.2f})" if loads and max(loads) > BUSY_LOAD else ""
    charts = []
    # Earlier versions measured one program after the other: the curves do not compare.
    are_neighbours = document.get("version", 0) >= 3
    missing = ""
    for key, title, y_label, divisor, logarithmic in (
            ("latency_ns", "Half round trip", "microseconds", 1e3, True),
            ("rate_per_s", "Message rate", "million messages a second", 1e6, True),
            ("bandwidth_gib_per_s", "Bandwidth, one buffer reused", "GiB/s", 1, False)):
        for transport, curves in _by_transport(document.get("over_size", {})).items():
            drawn = Chart(f"{transport}-{key.split('_')[0]}".replace(" ", "-"), f"{title}, {transport}", "message size", y_label,
                          logarithmic)
            for name, curve in curves.get(key, {}).items():
                for size, value in curve.items():
                    drawn.add(name, float(size), _scaled(_point(value), divisor))
            if len(drawn.curves) > 1 and not are_neighbours:
                missing = "its curves are not of neighbouring runs, and are not drawn side by side"
                drawn.curves = {name: curve for name, curve in drawn.curves.items() if name == "Lintel"}
            charts.append(drawn)
    depth = Chart("depth", "Cost over the length of the list", "entries posted before, or unexpected headers",
                  "nanoseconds", False)
    for name, curve in document.get("over_depth", {}).items():
        for length, value in curve.items():
            depth.add(name, float(length), _point(value))
    charts.append(depth)
    ratios = [row for row in document["rows"] if row["unit"].startswith("x")]
    charts.append(Rows(
        "ratios", "Beside peers and floors: median and quartiles of the ratios",
        "ratio (the table says to what); better are values further left where a name ends with <, right with >",
        [(row["name"], row["result"]["lower_quartile"], row["result"]["median"], row["result"]["upper_quartile"],
          "busy" if busy or row.get("busy") else row["verdict"], row.get("larger_is_better", False)) for row in ratios]))
    return Source(label, facts, busy, missing), [chart for chart in charts if getattr(chart, "curves", None) or getattr(chart, "rows", None)]


def _by_transport(over_size):
    """Older files have the curves of shared memory alone."""
    return {"shm": over_size} if "latency_ns" in over_size else over_size


def read(document, path):
    """The source and the charts of one file."""
    if document.get("tool") == "ptl_perf":
        return _from_perf(document, _perf_label(document))
    if "rows" in document and "machine" in document:
        return _from_compare(document, Path(path).stem)
    raise FormatError("neither ptl_perf --json nor perf/compare wrote this")


def merge(read_files):
    """The charts of several files side by side: curves of charts with one name come together."""
    sources, merged = [], {}
    labels = [source.label for _, source, _ in read_files]
    for path, source, charts in read_files:
        before = source.label
        if labels.count(before) > 1:
            source.label = f"{before} ({Path(path).stem})"
        sources.append(source)
        for chart in charts:
            if isinstance(chart, Rows):
                chart.name = f"{chart.name}-{Path(path).stem}" if len(read_files) > 1 else chart.name
                merged[chart.name] = chart
                continue
            target = merged.setdefault(chart.name, Chart(chart.name, chart.title, chart.x_label, chart.y_label,
                                                         chart.logarithmic_y))
            for curve, points in chart.curves.items():
                name = curve.replace(before, source.label, 1)
                if name in target.curves:
                    name = f"{source.label}: {name}"
                mark = " [busy machine]" if source.busy else ""
                target.curves[name + mark] = points
    return sources, [chart for chart in merged.values() if isinstance(chart, Rows) or not _is_dot(chart)]


def _is_dot(chart):
    """A chart without a course: all of its points are above one another."""
    return len({x for curve in chart.curves.values() for x in curve}) < 2
