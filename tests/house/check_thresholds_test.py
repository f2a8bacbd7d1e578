"""Limits on prediction error may tighten, never loosen or vanish."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "tools/check_thresholds.py"


class Thresholds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "tools").mkdir()
        (self.root / "data/calibration").mkdir(parents=True)
        shutil.copy(SCRIPT, self.root / "tools")
        self.git("init", "-q")
        self.git("commit", "-q", "--allow-empty", "-m", "start")

    def git(self, *arguments):
        subprocess.run(["git", "-C", str(self.root), "-c", "user.name=t", "-c",
                        "user.email=t@example.org", *arguments], check=True)

    def write(self, text, message=None):
        (self.root / "data/calibration/thresholds.toml").write_text(text)
        if message:
            self.git("add", "data")
            self.git("commit", "-q", "-m", message)

    def check(self):
        run = subprocess.run(["python3", str(self.root / "tools/check_thresholds.py")],
                             capture_output=True, text=True)
        self.output = run.stdout + run.stderr
        return run.returncode

    def test_none_yet(self):
        self.assertEqual(self.check(), 0)

    def limits(self, most, least, extra=""):
        return ("[[limit]]\nschema = 'infer'\nstatistic = 'median_error'\n"
                f"at_most = {most}\n[[limit]]\nschema = 'infer'\n"
                f"statistic = 'inside_interval'\nat_least = {least}\n{extra}")

    def test_tightening_is_fine_and_loosening_is_not(self):
        self.write(self.limits(0.3, 0.5), "first")
        self.assertEqual(self.check(), 0)
        more = "[[limit]]\nschema = 'train'\nstatistic = 'bias'\nat_most = 1\n"
        self.write(self.limits(0.2, 0.6, more), "better")
        self.assertEqual(self.check(), 0)
        self.write(self.limits(0.25, 0.6, more))
        self.assertEqual(self.check(), 1)
        self.assertIn("limit[infer, median_error].at_most: loosened from 0.2 to 0.25", self.output)
        self.write(self.limits(0.2, 0.55, more))
        self.assertEqual(self.check(), 1)
        self.write(self.limits(0.2, 0.6))
        self.assertEqual(self.check(), 1)
        self.assertIn("limit[train, bias].at_most: was 1, is gone", self.output)

    def test_the_order_of_limits_and_keys_is_free(self):
        self.write('[[limit]]\nschema = "a"\ngroup = "b"\nat_most = 1\n'
                   '[[limit]]\nschema = "b"\nat_most = 2\n', "first")
        self.write('[[limit]]\nschema = "b"\nat_most = 2\n'
                   '[[limit]]\ngroup = "b"\nschema = "a"\nat_most = 1\n')
        self.assertEqual(self.check(), 0)

    def test_a_withdrawal_is_said_in_the_commit(self):
        self.write("at_most = 0.1\n", "first")
        self.write("at_most = 0.2\n", "rows were misread\n\nThreshold withdrawn: at_most")
        self.assertEqual(self.check(), 0)
        self.write("at_most = 0.3\n")
        self.assertEqual(self.check(), 1)


if __name__ == "__main__":
    unittest.main()
