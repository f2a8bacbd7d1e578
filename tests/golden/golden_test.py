"""The runner itself: what it calls equal and what not."""

import os
import stat
import tempfile
import unittest
from pathlib import Path

import golden

PROGRAM = """#!/bin/sh
case "$1" in
  time) echo "takes 12.5 ms" ;;
  fail) echo no; echo why >&2; exit 3 ;;
esac
"""


class Golden(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.program = Path(self.folder.name, "trigon")
        self.program.write_text(PROGRAM)
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)
        os.environ.pop("TRIGON_UPDATE_GOLDEN", None)

    def tearDown(self):
        os.environ.pop("TRIGON_UPDATE_GOLDEN", None)
        self.folder.cleanup()

    def result(self, text):
        self.case = Path(self.folder.name, "x.test")
        self.case.write_text(text)
        return golden.main(str(self.program), str(self.case))

    def test_output_error_and_code(self):
        self.assertEqual(self.result("# a\n$ trigon fail\nno\n! why\n[3]\n"), 0)
        self.assertEqual(self.result("$ trigon fail\nno\n! why\n"), 1)
        self.assertEqual(self.result("$ trigon fail\nyes\n! why\n[3]\n"), 1)

    def test_masked_numbers(self):
        self.assertEqual(self.result("%numbers\n$ trigon time\ntakes 3 s\n"), 0)
        self.assertEqual(self.result("$ trigon time\ntakes 3 s\n"), 1)
        self.assertEqual(self.result("%numbers\n$ trigon time\ntook 3 s\n"), 1)

    def test_update_rewrites_only_what_differs(self):
        os.environ["TRIGON_UPDATE_GOLDEN"] = "1"
        self.assertEqual(
            self.result("# a\n%numbers\n$ trigon time\ntakes 3 s\n\n$ trigon fail\n"), 0)
        self.assertEqual(self.case.read_text(),
                         "# a\n%numbers\n$ trigon time\ntakes 3 s\n\n$ trigon fail\nno\n! why\n[3]\n")


if __name__ == "__main__":
    unittest.main()
