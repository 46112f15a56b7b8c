"""The evaluation of measurements by perf/compare: turns, medians, verdicts, and separate results by distance."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "perf"))

from compare_lib import curves, distance, report  # noqa: E402
from compare_lib.commands import CommandError  # noqa: E402
from compare_lib.places import Prefix, Unpacked  # noqa: E402
from compare_lib.rounds import Schedule  # noqa: E402
from compare_lib.rows import Row, Target  # noqa: E402


def schedule_of(rounds, readings):
    remaining = iter(readings)
    return Schedule(rounds, lambda text: None, lambda: next(remaining))


def row_of(values, cache_lines_ns, at_least=1.0, aim=0.5):
    row = Row("latency", "x", Target(at_least, aim), values)
    row.cache_lines_ns = cache_lines_ns
    return row.as_dict()


NEAR = [(50, 55), (55, 52), (52, 51)]
FAR = [(260, 250), (250, 255), (255, 270)]


class TurnsTest(unittest.TestCase):
    def test_every_second_round_goes_backwards(self):
        order = []
        schedule_of(3, [50] * 4).alternate({name: lambda name=name: order.append(name) for name in "ab"})
        self.assertEqual("".join(order), "abbaab")

    def test_rows_know_the_distance_before_and_after_each_round(self):
        values = schedule_of(2, [50, 60, 70]).alternate({"a": lambda: 1.0})
        rows = values.tell([Row("a", "ns", Target(1, 1), values["a"])])
        self.assertEqual(rows[0].as_dict()["cache_lines_ns"], [(50, 60), (60, 70)])


class PlacesTest(unittest.TestCase):
    def test_unpacked_programs_start_with_the_loader_and_the_libraries_beside_them(self):
        with tempfile.TemporaryDirectory() as directory:
            usr = Path(directory).resolve() / "root" / "usr"
            for path in ("lib64/ld-linux-x.so.2", "lib/x-linux-gnu/libucp.so.0", "bin/ucx_info"):
                (usr / path).parent.mkdir(parents=True)
                (usr / path).touch()
            self.assertEqual(Unpacked(directory).command("ucx_info"),
                             [usr / "lib64/ld-linux-x.so.2", "--library-path", f"{usr}/lib/x-linux-gnu", usr / "bin/ucx_info"])

    def test_a_folder_without_programs_is_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            with self.assertRaises(CommandError):
                Unpacked(directory)
            with self.assertRaises(CommandError):
                Prefix(Path(directory)).command("ucx_perftest")


class CurvesTest(unittest.TestCase):
    def test_points_have_quartiles_in_a_quick_run_too(self):
        sweeps, sizes = curves.plan(quick=True)
        times = iter(range(100, 100_000, 100))
        made = curves.over_size({"Lintel": (lambda size: next(times), None)}, sizes,
                                schedule_of(sweeps, [50] * 100), lambda text: None)
        for lower, median, upper in made["latency_ns"]["Lintel"].values():
            self.assertLess(lower, median)
            self.assertLess(median, upper)


    def test_at_each_size_the_programs_take_turns(self):
        order = []

        def of(name):
            return (lambda size: order.append(f"{name}{size}") or 1.0, None)

        curves.over_size({"a": of("a"), "b": of("b")}, [1, 2], schedule_of(2, [50] * 100), lambda text: None)
        self.assertEqual(order, ["a1", "b1", "b1", "a1", "a2", "b2", "b2", "a2"])

    def test_a_point_is_of_rounds_with_the_cores_at_one_distance(self):
        # In the second round the cores move away, in the third one back.
        readings = [50, 50, 250, 50, 50, 50, 50, 50, 50, 50]
        times = {"a": iter([100, 500, 100, 100, 100, 100]), "b": iter([200, 900, 200, 200, 200, 200])}
        made = curves.over_size({name: (lambda size, name=name: next(times[name]), None) for name in "ab"}, [8, 64],
                                schedule_of(3, readings), lambda text: None)["latency_ns"]
        self.assertEqual([made["a"][8], made["b"][8]], [[100, 100, 100], [200, 200, 200]])

    def test_a_program_that_fails_is_left_out(self):
        def fails(size):
            raise CommandError(f"no {size}")

        said = []
        made = curves.over_size({"a": (lambda size: 1.0, None), "b": (fails, None)}, [8], schedule_of(2, [50] * 100), said.append)
        self.assertEqual(list(made["latency_ns"]), ["a"])
        self.assertEqual(said, ["no curve of b: no 8"])


class VerdictTest(unittest.TestCase):
    def test_bounds_are_met_to_two_decimals(self):
        self.assertEqual(Target(1.5, 1.1).verdict(1.504), "reached")
        self.assertEqual(Target(1.5, 1.1).verdict(1.506), "MISSED")
        self.assertEqual(Target(0.8, 1.0, upwards=True).verdict(0.996), "aim reached")
        self.assertEqual(Target(0.8, 1.0, upwards=True).verdict(0.79), "MISSED")


class DistanceTest(unittest.TestCase):
    def test_cores_that_stay_have_one_distance(self):
        self.assertIsNone(distance.step([50, 55, 60, 52, 58, 51, 70, 66]))
        self.assertIsNone(distance.step([50]))
        self.assertIsNone(distance.step([]))

    def test_one_reading_in_many_is_no_other_distance(self):
        self.assertIsNone(distance.step([50, 52, 54, 55, 51, 53, 50, 52, 54, 55, 51, 900]))

    def test_the_step_lies_between_near_and_far(self):
        limit = distance.step([50, 260, 55, 250, 52, 270, 58, 49])
        self.assertTrue(58 < limit < 250)

    def test_rounds_in_which_the_cores_moved_belong_to_neither(self):
        row = row_of([3.0, 3.2, 3.1, 9.0, 0.8, 0.9, 0.7], NEAR + [(52, 260)] + FAR)
        (_, near, far), = distance.apart([row])["rows"]
        self.assertEqual((near.count, far.count), (3, 3))
        self.assertAlmostEqual(near.median, 3.1)
        self.assertAlmostEqual(far.median, 0.8)

    def test_the_table_has_a_verdict_for_each_distance(self):
        row = row_of([3.0, 3.2, 3.1, 0.8, 0.9, 0.7], NEAR + FAR)
        self.assertEqual(report.apart_markdown(distance.apart([row])).splitlines()[2],
                         "| latency | 3.10 x | 3 | MISSED | 0.80 x | 3 | reached |")

    def test_a_few_rounds_at_a_distance_have_no_result(self):
        row = row_of([3.0, 3.2, 3.1, 0.8, 0.9], NEAR + FAR[:2])
        self.assertEqual(report.apart_markdown(distance.apart([row])).splitlines()[2],
                         "| latency | 3.10 x | 3 | MISSED |  |  |  |")

    def test_rows_without_readings_stay_out(self):
        rows = [row_of([1.0], []), row_of([3.0, 3.0, 3.0, 0.8], NEAR + FAR[:1])]
        self.assertEqual([row["name"] for row, _, _ in distance.apart(rows)["rows"]], ["latency"])
        self.assertIsNone(distance.apart([row_of([1.0], [])]))


if __name__ == "__main__":
    unittest.main()
