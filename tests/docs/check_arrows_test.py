"""Tests that check_arrows.py finds each kind of mistake in a small tree.

Usage: check_arrows_test.py <source directory>
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

checker = pathlib.Path(__file__).with_name("check_arrows.py")


class CheckArrows(unittest.TestCase):
    def check(self, table, **sources):
        """Exit status and output for given sources. For example, upper_a="lower/b.h" means: src/upper/a.cc
        includes lower/b.h."""
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for name, included in sources.items():
                folder, file = name.split("_")
                (root / "src" / folder).mkdir(parents=True, exist_ok=True)
                (root / "src" / folder / f"{file}.h").write_text(
                    "".join(f'#include "{header}"\n' for header in included.split()))
            arrows = root / "arrows.txt"
            arrows.write_text(table)
            result = subprocess.run([sys.executable, "-B", checker, root, arrows], text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            return result.returncode, result.stdout

    def accepts(self, table, **sources):
        status, text = self.check(table, **sources)
        self.assertEqual(status, 0, text)

    def refuses(self, complaint, table, **sources):
        status, text = self.check(table, **sources)
        self.assertNotEqual(status, 0)
        self.assertIn(complaint, text)

    def test_an_allowed_arrow(self):
        self.accepts("upper -> lower  # a comment", upper_a="lower/b.h", lower_b="")

    def test_a_header_of_the_own_folder(self):
        self.accepts("upper -> lower", upper_a="upper/c.h c.h lower/b.h", upper_c="", lower_b="")

    def test_an_arrow_that_is_not_in_the_table(self):
        self.refuses("lower/b.h:1 includes upper/c.h", "upper -> lower",
                     upper_a="lower/b.h", upper_c="", lower_b="upper/c.h")

    def test_another_file_than_the_one_that_is_allowed(self):
        self.refuses("upper/a.h:2 includes lower/c.h", "upper -> lower/b.h",
                     upper_a="lower/b.h lower/c.h", lower_b="", lower_c="")

    def test_an_arrow_that_nothing_needs(self):
        self.refuses("no include needs lower -> upper", "upper -> lower\nlower -> upper",
                     upper_a="lower/b.h", lower_b="")

    def test_a_cycle_whose_arrows_are_all_allowed(self):
        self.refuses("a cycle: lower middle upper", "upper -> middle\nmiddle -> lower\nlower -> upper",
                     upper_a="middle/m.h", middle_m="lower/b.h", lower_b="upper/c.h", upper_c="")

    def test_a_cycle_in_the_table(self):
        self.accepts("upper -> lower\nlower -> upper\ncycle lower upper",
                     upper_a="lower/b.h", lower_b="upper/c.h", upper_c="")

    def test_a_cycle_that_is_gone(self):
        self.refuses("no such cycle: lower upper", "upper -> lower\ncycle lower upper",
                     upper_a="lower/b.h", lower_b="")

    def test_a_line_that_means_nothing(self):
        self.refuses("arrows.txt:1", "upper lower", upper_a="lower/b.h", lower_b="")

    def test_a_tree_without_sources(self):
        self.refuses("no includes found", "")


unittest.main(argv=sys.argv[:1])
