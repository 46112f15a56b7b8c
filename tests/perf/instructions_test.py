"""What perf/instructions reads from callgrind's files, and to which stage it assigns each cost."""

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "perf"))

from instructions_lib import callgrind, stages  # noqa: E402

# PtlPut calls copy() of a library, once directly and once in code of lane.h that is inlined into
# it.
DUMP = """
version: 1
positions: line
events: Ir
ob=(1) libportals.so
fl=(1) /elsewhere/build/../src/api/data_movement.cc
fn=(1) PtlPut
10 100
fi=(2) /elsewhere/build/../src/lane/lane.h
+5 20
cob=(2) libc.so
cfi=(3) ???
cfn=(2) copy
calls=2 0
* 30
fe=(1)
cfn=(3) LocalTransport::poll
cfi=(4) /elsewhere/build/../src/local/local_transport.cc
calls=1 7
11 50
12 1

ob=(2)
fl=(3)
fn=(2)
0 60

ob=(1)
fl=(4)
fn=(3)
7 20
cob=(2)
cfi=(3)
cfn=(2)
calls=2 0
8 30
"""


def profile():
    return callgrind.read(DUMP.splitlines())


class ReadTest(unittest.TestCase):
    def test_instructions_of_calls_are_not_those_of_the_caller(self):
        self.assertEqual(profile().total, 100 + 20 + 1 + 60 + 20)

    def test_inlined_code_keeps_its_file(self):
        own = {(function.name, Path(file).name): count for (function, file), count in profile().own.items()}
        self.assertEqual(own["PtlPut", "lane.h"], 20)
        self.assertEqual(own["PtlPut", "data_movement.cc"], 101)

    def test_two_processes_are_counted_together(self):
        both = profile() + callgrind.read(DUMP.replace("10 100", "10 300").splitlines())
        self.assertEqual(both.total, 2 * profile().total + 200)
        self.assertEqual(sum(both.calls.values()), 2 * sum(profile().calls.values()))

    def test_one_message_is_the_difference_divided(self):
        longer = callgrind.read(DUMP.replace("10 100", "10 300").splitlines())
        message = longer.per_message(profile(), 20)
        self.assertEqual(message.total, 10)
        self.assertEqual(len(message.own), 1)


class StagesTest(unittest.TestCase):
    def test_what_serves_several_stages_counts_where_its_callers_do(self):
        cost = stages.Stages(profile()).cost
        self.assertEqual(cost["check"], 100 + 20 + 1 + 30)
        self.assertEqual(cost["poll"], 20 + 30)
        self.assertEqual(cost["other"], 0)

    def test_what_nobody_calls_is_the_program_if_it_is_not_ours(self):
        dump = DUMP.replace("/elsewhere/build/../src/api/data_movement.cc", "main.c")
        cost = stages.Stages(callgrind.read(dump.splitlines())).cost
        self.assertEqual(cost["program"], 100 + 20 + 1 + 30)

    def test_a_file_in_no_row_is_named(self):
        dump = DUMP.replace("src/local/local_transport.cc", "src/verbs/device.cc")
        counted = stages.Stages(callgrind.read(dump.splitlines()))
        self.assertEqual(counted.cost["other"], 20 + 30)
        self.assertEqual(dict(counted.others), {"src/verbs/device.cc": 20, "copy": 30})

    def test_every_row_of_the_table_fits_a_file(self):
        files = [str(path.relative_to(stages.ROOT)) for room in ("src", "include", "perf")
                 for path in stages.ROOT.joinpath(room).rglob("*")]
        for pattern, _, _ in stages.TABLE:
            self.assertTrue(any(stages.fits(pattern, file) for file in files), pattern)


if __name__ == "__main__":
    unittest.main()
