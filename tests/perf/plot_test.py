"""perf/plot: from results to charts, drawings and the page."""

import importlib.machinery
import importlib.util
import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "perf"))

from compare_lib import curves, verbs  # noqa: E402
from compare_lib.rounds import Schedule  # noqa: E402
from compare_lib.rows import Row, Target  # noqa: E402
from plot_lib import charts, gnuplot  # noqa: E402


def perf_document(transport="shm", load=0.1):
    def row(size, ns):
        return {"test": "put", "metric": "latency", "configuration": "matching", "size_bytes": size, "median_ns": ns,
                "lower_quartile_ns": ns * 0.9, "upper_quartile_ns": ns * 1.2, "rate_per_s": 1e9 / ns}

    return {"tool": "ptl_perf", "version": 2, "library": "Lintel 0.1.0, Portals 4.3", "date": "2026-01-02T03:04:05Z",
            "host": "node7", "transport": transport, "device": "dev", "load_before": load,
            "machine": {"cpu": "A <fast> processor", "virtual": True, "cores_online": 4, "cores_allowed": 2,
                        "kernel": "Linux 6.1"},
            "processes": "2 processes", "pinning": "pinned", "results": [row(8, 400), row(4096, 900)]}


def compare_document(load=0.5):
    summary = {"median": 0.6, "lower_quartile": 0.5, "upper_quartile": 0.9}
    return {"machine": {"processor": "P", "virtual": False, "cores": 2, "cores_used": [0, 1], "kernel": "6.1",
                        "load_before": load, "load_after": load},
            "versions": {"lintel": "0.1.0"}, "rounds": 3, "quick": True,
            "rows": [{"name": "a row with 1 % loss", "unit": "x peer", "verdict": "reached", "result": summary},
                     {"name": "no ratio", "unit": "ns", "verdict": "reached", "result": summary}],
            "over_size": {"udp": {"latency_ns": {"Lintel": {"8": [1000, 2000, 4000], "64": [2000, 2500, 3000]}},
                                  "rate_per_s": {}, "bandwidth_gib_per_s": {}}},
            "over_depth": {"put": {"0": 50, "10": 60}}}


class ChartsTest(unittest.TestCase):
    def test_times_have_their_quartiles(self):
        _, (chart,) = charts.read(perf_document(), "a.json")
        low, median, high = chart.curves["Lintel 0.1.0 shm"][8]
        self.assertAlmostEqual(0.36, low)
        self.assertAlmostEqual(0.4, median)
        self.assertAlmostEqual(0.48, high)

    def test_files_side_by_side_share_a_chart(self):
        paths = ("a.json", "b.json", "c.json")
        documents = (perf_document(), perf_document("udp"), perf_document("udp"))
        sources, merged = charts.merge([(path, *charts.read(document, path)) for path, document in zip(paths, documents)])
        self.assertEqual(["Lintel 0.1.0 shm", "Lintel 0.1.0 udp (b)", "Lintel 0.1.0 udp (c)"],
                         [source.label for source in sources])
        self.assertEqual([source.label for source in sources], list(merged[0].curves))

    def test_what_a_busy_machine_measured_is_marked(self):
        for document in (perf_document(load=9), compare_document(load=9)):
            source, drawn = charts.read(document, "a.json")
            self.assertIn("load 9.00", source.busy)
            for chart in charts.merge([("a.json", source, drawn)])[1]:
                if isinstance(chart, charts.Rows):
                    self.assertEqual(["busy"], [row[4] for row in chart.rows])
                else:
                    self.assertTrue(all("busy machine" in name for name in chart.curves))

    def test_ratios_are_drawn_and_plain_numbers_are_not(self):
        _, drawn = charts.read(compare_document(), "a.json")
        ratios, = [chart for chart in drawn if isinstance(chart, charts.Rows)]
        self.assertEqual([("a row with 1 % loss", 0.5, 0.6, 0.9, "reached", False)], ratios.rows)
        self.assertEqual({"udp-latency", "depth", "ratios"}, {chart.name for chart in drawn})

    def test_a_dot_is_no_chart(self):
        document = perf_document()
        document["results"] = document["results"][:1]
        self.assertEqual([], charts.merge([("a.json", *charts.read(document, "a.json"))])[1])

    def test_only_curves_of_neighbouring_runs_are_drawn_side_by_side(self):
        for version, names in ((2, ["Lintel"]), (3, ["Lintel", "UCX, udp"])):
            document = compare_document() | {"version": version}
            latency = document["over_size"]["udp"]["latency_ns"]
            latency["UCX, udp"] = latency["Lintel"]
            source, drawn = charts.read(document, "a.json")
            self.assertEqual(names, list(next(chart for chart in drawn if chart.name == "udp-latency").curves))
            self.assertEqual(version == 2, "not of neighbouring runs" in source.missing)

    def test_sizes_are_written_with_their_unit(self):
        self.assertEqual(["8 B", "4 KiB", "1 MiB", "1500 B", "3000000 B"],
                         [charts.size_label(float(size)) for size in (8, 4096, 2**20, 1500, 3_000_000)])

    def test_other_files_are_refused(self):
        with self.assertRaises(charts.FormatError):
            charts.read({"tool": "other"}, "a.json")


class FakeProgram:
    """A simulated program whose times depend on the environment: the more variables, the longer."""

    def __init__(self, slowness=1):
        self.slowness = slowness

    def with_environment(self, environment):
        return FakeProgram(self.slowness + len(environment))

    def put_latencies_ns(self, sizes):
        return {size: self.slowness * (1000.0 + size) for size in sizes}

    def put_streams(self, sizes):
        return {size: (1e9 / (self.slowness * (100.0 + size)), 1.0) for size in sizes}

    def latency_ns(self, size):
        return 900.0 + size

    def stream(self, size):
        return 1e9 / (90.0 + size), 1.0

    def depth_latencies_ns(self, depths, shapes="exact"):
        return {depth: 100.0 + len(shapes) for depth in depths}

    def appends_ns(self, depths):
        return {depth: 50.0 for depth in depths}


class CompareTest(unittest.TestCase):
    """The drawings of `perf/compare --quick`: curves over each transport, and rows next to peers."""

    def setUp(self):
        loader = importlib.machinery.SourceFileLoader("compare", str(ROOT / "perf/compare"))
        self.compare = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", loader))
        loader.exec_module(self.compare)

    def results(self, port, rows):
        programs = {"lintel": FakeProgram(), "ucx": FakeProgram(), "ucx_tcp": FakeProgram(), "dpdk_floor": object(),
                    "libfabric": None, "mpi": None}
        repetitions, sizes = curves.plan(quick=True)

        def quiet(text):
            del text

        with mock.patch.object(verbs, "active_port", lambda: port):
            over = self.compare.over_transports(programs, SimpleNamespace())
        schedule = Schedule(repetitions, quiet, lambda: 50)
        document = compare_document()
        document["rows"] = rows
        document["version"] = 3
        document["over_size"] = {name: curves.over_size(peers, sizes, schedule, quiet)
                                 for name, peers in curves.peers_by_transport(programs, over).items()}
        document["over_depth"] = curves.over_depth(programs["lintel"], 1, quiet, quiet)
        return document

    def rows(self):
        """Rows of all stages. Those of verbs have the form in which a guest returns them; those of UDP were
        measured on a busy machine."""
        made = {name: [Row(name, "x", Target(1.5, 1.1), [1.0, 1.2, 1.3])] for name in ("UDP", "Ethernet ports", "verbs")}
        guest = made["verbs"][0].as_dict() | {"name": "verbs (guest)"}
        return (self.compare.marked_if_busy(made["UDP"], 7.5) + self.compare.marked_if_busy(made["Ethernet ports"], 0.5)
                + self.compare.marked_if_busy([guest], 0.5))

    def test_udp_ports_and_devices_have_plots(self):
        said = []
        with tempfile.TemporaryDirectory() as directory:
            files = self.compare.draw(Path(directory), self.results(("rxe0", "1", "10.0.0.1"), self.rows()), said.append)
            self.assertEqual([], said)
            self.assertEqual({"index.html", "depth.svg", "ratios.svg"}
                             | {f"{transport}-{kind}.svg" for transport in ("shm", "udp", "dpdk-net_memif", "verbs")
                                for kind in ("latency", "rate", "bandwidth")}, set(files))
            for name in files:
                self.assertGreater((Path(directory) / name).stat().st_size, 1000)
            udp = (Path(directory) / "udp-latency.svg").read_text()
            self.assertIn("Half round trip, udp", udp)
            self.assertIn("UCX, udp", udp)
            page = (Path(directory) / "index.html").read_text()
            self.assertIn("<td>UDP</td><td>1.2</td><td>1.1 to 1.25</td><td>busy machine: not judged</td><td>smaller</td>", page)
            for row in ("Ethernet ports", "verbs (guest)"):
                self.assertIn(f"<td>{row}</td><td>1.2</td><td>1.1 to 1.25</td><td>reached</td>", page)

    def test_without_a_device_the_rows_of_the_guest_are_drawn(self):
        _, drawn = charts.read(self.results(None, self.rows()), "a.json")
        self.assertFalse([chart.name for chart in drawn if chart.name.startswith("verbs-")])
        ratios, = [chart for chart in drawn if isinstance(chart, charts.Rows)]
        self.assertEqual(["busy", "reached", "reached"], [row[4] for row in ratios.rows])


class ProgramTest(unittest.TestCase):
    def plot(self, directory, **documents):
        files = []
        for name, document in documents.items():
            path = Path(directory) / f"{name}.json"
            path.write_text(document if isinstance(document, str) else json.dumps(document))
            files.append(path)
        return subprocess.run([ROOT / "perf/plot", *files, "--output", Path(directory) / "out"], capture_output=True,
                              text=True, check=False)

    def test_drawings_and_page(self):
        with tempfile.TemporaryDirectory() as directory:
            done = self.plot(directory, shm=perf_document(), udp=perf_document("udp", load=9), compare=compare_document())
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertIn("load 9.00", done.stderr)
            out = Path(directory) / "out"
            for name in ("put-latency-time", "udp-latency", "depth", "ratios-compare"):
                drawing = (out / f"{name}.svg").read_text()
                xml.etree.ElementTree.fromstring(drawing)
                self.assertEqual(b"\x89PNG", (out / f"{name}.png").read_bytes()[:4])
            ratios = (out / "ratios-compare.svg").read_text()
            self.assertIn("1 % loss &lt;", ratios)
            self.assertIn("stroke-dasharray", ratios)  # the line at 1
            page = (out / "index.html").read_text()
            for needed in ("2026-01-02T03:04:05Z", "A &lt;fast&gt; processor", "2 of 4 cores", "udp dev", "Lintel 0.1.0",
                           "0.36 to 0.48", "busy", "put-latency-time.png"):
                self.assertIn(needed, page)
            self.assertLess(page.index("the machine was busy"), page.index("<svg"))
            self.assertEqual(4, page.count("<svg"))

    def test_what_is_no_result_is_named(self):
        with tempfile.TemporaryDirectory() as directory:
            done = self.plot(directory, broken="{")
            self.assertNotEqual(0, done.returncode)
            self.assertIn("broken.json: ", done.stderr)
            done = self.plot(directory, lacking={"tool": "ptl_perf"})
            self.assertIn("lacking.json: it has no 'machine'", done.stderr)
            dot = perf_document()
            del dot["results"][1]
            self.assertIn("nothing to draw", self.plot(directory, dot=dot).stderr)
            done = self.plot(directory, other={"tool": "other"})
            self.assertIn("neither ptl_perf --json nor perf/compare", done.stderr)


if __name__ == "__main__":
    if not gnuplot.available():
        print("skipped: gnuplot (gnuplot-nox) is not installed")
        sys.exit(77)
    unittest.main()
