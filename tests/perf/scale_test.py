"""The output of perf/scale. Usage: scale_test.py <directory of simulation_tests and simulation_swift>."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "perf"))

from plot_lib import gnuplot  # noqa: E402

PROGRAMS = sys.argv.pop()


class ScaleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as name:
            done = subprocess.run([sys.executable, "-B", ROOT / "perf/scale", "--programs", PROGRAMS, "--processes",
                                   "65,130", "--messages", "32", "--lasting", "64", "--output", name],
                                  capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            written = json.loads(Path(name, "scale.json").read_text())
            cls.results = written["curves"]
            cls.compared = written["compared"]
            cls.text = Path(name, "scale.md").read_text()
            cls.charts = {path.name: path.read_text() for path in Path(name).glob("*.svg")}

    def test_both_windows_have_all_patterns(self):
        for window in ("ours", "Swift"):
            found = {(result["pattern"], result["processes"]) for result in self.results[window]}
            self.assertEqual(found, {(pattern, processes) for pattern in ("neighbours", "random", "incast", "all-to-all")
                                     for processes in (65, 130)})
        self.assertEqual(self.text.count("| ours |"), 8 + 24)

    def test_both_windows_are_compared_with_losses(self):
        for window in ("ours", "Swift"):
            self.assertEqual({result["loss"] for result in self.compared[window]}, {0, 0.01, 0.1})
            self.assertEqual(len(self.compared[window]), 24)

    def test_the_windows_differ(self):
        values = [[result["p99_us"] for result in self.results[window] if result["pattern"] == "incast"]
                  for window in ("ours", "Swift")]
        self.assertNotEqual(*values)

    def test_memory_for_a_million_is_calculated_from_a_connection(self):
        for result in self.results["ours"]:
            if (result["pattern"], result["processes"]) == ("all-to-all", 130):
                each = result["connection_bytes"] / 129
        self.assertIn(f"999,999 x {each:.0f} B = {999_999 * each / 2**20:,.3f} MiB", self.text)

    def test_every_chart_has_every_curve(self):
        self.assertEqual(len(self.charts), 4)
        for name, chart in self.charts.items():
            for curve in ("neighbours, ours", "incast, Swift"):
                self.assertIn(curve, chart, name)


if __name__ == "__main__":
    if not gnuplot.available():
        print("skipped: gnuplot (gnuplot-nox) is not installed")
        sys.exit(77)
    unittest.main()
