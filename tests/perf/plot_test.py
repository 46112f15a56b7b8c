"""perf/plot: from results to charts, drawings and the page."""

import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "perf"))

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
        self.assertEqual([("a row with 1 % loss", 0.5, 0.6, 0.9, "reached")], ratios.rows)
        self.assertEqual({"udp-latency", "depth", "ratios"}, {chart.name for chart in drawn})

    def test_other_files_are_refused(self):
        with self.assertRaises(charts.FormatError):
            charts.read({"tool": "other"}, "a.json")


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
            self.assertIn("1 % loss", (out / "ratios-compare.svg").read_text())
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
            done = self.plot(directory, other={"tool": "other"})
            self.assertIn("neither ptl_perf --json nor perf/compare", done.stderr)


if __name__ == "__main__":
    if not gnuplot.available():
        print("skipped: gnuplot (gnuplot-nox) is not installed")
        sys.exit(77)
    unittest.main()
