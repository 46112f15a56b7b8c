"""The runs of perf/ablation and the evaluation of their results, with a simulated measurement."""

import subprocess
import sys
import unittest
from pathlib import Path

ABLATION = Path(__file__).resolve().parents[2] / "perf/ablation"
# Takes twice as long without crowding, and the same time without any other heuristic.
STAND_IN = ("import os; off = os.environ.get('PTL_WAIT_WITHOUT', '');"
            "print('median_ns'); print(200 if off == 'crowding' else 100); print('took', 7 if off else 14)")


def ablation(*arguments):
    return subprocess.run([sys.executable, "-B", ABLATION, *arguments, "--", sys.executable, "-c", STAND_IN],
                          capture_output=True, text=True, check=False)


def rows_of(output):
    return {words[0]: words for words in map(str.split, output.splitlines()) if words}


class AblationTest(unittest.TestCase):
    def test_each_heuristic_has_a_row(self):
        result = ablation("--rounds", "1", "--pattern", "took ([0-9]+)")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = rows_of(result.stdout)
        for name in ("crowding", "rests", "tick_backoff"):
            self.assertEqual(rows[name][1], "0.500")

    def test_only_what_moves_is_said_to_move(self):
        result = ablation("--rounds", "3", "--heuristics", "crowding,rests", "--pattern", "\\n([0-9]+)\\n")
        rows = rows_of(result.stdout)
        self.assertEqual(rows["crowding"][1], "2.000")
        self.assertEqual(rows["crowding"][-1], "yes")
        self.assertEqual(rows["rests"][-1], "no")

    def test_an_unknown_heuristic_is_refused(self):
        result = ablation("--heuristics", "hope")
        self.assertEqual(result.returncode, 2)
        self.assertIn("there are crowding", result.stderr)

    def test_an_output_without_the_value_is_an_error(self):
        self.assertIn("no column mean_ns", ablation("--column", "mean_ns").stderr)


if __name__ == "__main__":
    unittest.main()
