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

    def test_tightening_is_fine_and_loosening_is_not(self):
        self.write("[infer]\nmedian = 0.3\nleast_inside = 0.5\n", "first")
        self.assertEqual(self.check(), 0)
        self.write("[infer]\nmedian = 0.2\nleast_inside = 0.6\nnew = 1\n", "better")
        self.assertEqual(self.check(), 0)
        self.write("[infer]\nmedian = 0.25\nleast_inside = 0.6\nnew = 1\n")
        self.assertEqual(self.check(), 1)
        self.assertIn("infer.median: loosened from 0.2 to 0.25", self.output)
        self.write("[infer]\nmedian = 0.2\nleast_inside = 0.55\nnew = 1\n")
        self.assertEqual(self.check(), 1)
        self.write("[infer]\nmedian = 0.2\nnew = 1\n")
        self.assertEqual(self.check(), 1)
        self.assertIn("least_inside: was 0.6, is gone", self.output)

    def test_lists_are_keyed_by_their_texts(self):
        self.write('[[limit]]\ngroup = "a"\nmax = 1\n[[limit]]\ngroup = "b"\nmax = 2\n', "first")
        self.write('[[limit]]\ngroup = "b"\nmax = 2\n[[limit]]\ngroup = "a"\nmax = 1\n')
        self.assertEqual(self.check(), 0)
        self.write('[[limit]]\ngroup = "a"\nmax = 2\n[[limit]]\ngroup = "b"\nmax = 2\n')
        self.assertEqual(self.check(), 1)

    def test_a_withdrawal_is_said_in_the_commit(self):
        self.write("median = 0.1\n", "first")
        self.write("median = 0.2\n", "rows were misread\n\nThreshold withdrawn: median")
        self.assertEqual(self.check(), 0)
        self.write("median = 0.3\n")
        self.assertEqual(self.check(), 1)


if __name__ == "__main__":
    unittest.main()
