"""Settings and facts in places that are no files, never end, or are no TOML: a message, no hang.

usage: strange_files_test.py PROGRAM
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = None


class StrangeFiles(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.here = Path(self.folder.name)

    def run_here(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], cwd=self.here, capture_output=True, text=True,
                              timeout=20, stdin=subprocess.DEVNULL,
                              env={"PATH": os.environ["PATH"], "HOME": self.folder.name})

    def refused(self, *arguments):
        done = self.run_here(*arguments)
        self.assertEqual(done.returncode, 2, done)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("trigon: "), done.stderr)

    def test_settings_that_are_no_file(self):
        path = self.here / "trigon.toml"
        path.mkdir()
        self.refused("config", "--show")
        path.rmdir()
        os.mkfifo(path)
        self.refused("config", "--show")
        path.unlink()
        os.symlink("trigon.toml", path)
        self.refused("config", "--show")
        path.unlink()
        self.assertEqual(self.run_here("config", "--show").returncode, 0)

    def test_settings_that_are_no_toml(self):
        path = self.here / "trigon.toml"
        for text in (b"[[[", b"]", b"=", b"a", b"\"", b"'''", b"[a", b"[[a]", b"a=[[[", b"\xff\xfe",
                     b"a.=1", b".a=1", b"[.]", b"[a.]", b"a={b=", b"\x00", b"a=" + b"[" * 10000):
            path.write_bytes(text)
            self.refused("config", "--show")

    def test_facts_that_are_no_files(self):
        data = self.here / "data"
        data.mkdir()
        sheet = data / "x.toml"
        os.mkfifo(sheet)
        self.refused("catalog", "gpus", "--data", "data")
        sheet.unlink()
        with open(sheet, "wb") as f:
            f.truncate(10 << 30)
        self.refused("catalog", "gpus", "--data", "data")
        sheet.write_bytes(b"[[[")
        self.refused("catalog", "gpus", "--data", "data")
        self.refused("catalog", "gpus", "--data", "data/x.toml")
        self.refused("catalog", "gpus", "--data", "missing")

    def test_a_device_is_written_to_and_stays(self):
        table = Path(__file__).resolve().parents[2] / "data/measured/infer.csv"
        rows = self.here / "rows.csv"
        rows.write_text("\n".join(table.read_text().split("\n")[:2]) + "\n")
        # A link, so that a mistake here harms no device.
        device = self.here / "device"
        os.symlink("/dev/full", device)
        self.refused("validate", "rows.csv", "--per-row", "device")
        self.assertTrue(device.is_symlink())
        device.unlink()
        os.symlink("/dev/null", device)
        self.assertEqual(self.run_here("validate", "rows.csv", "--per-row", "device").returncode, 0)
        self.assertTrue(device.is_symlink())
        self.assertEqual(self.run_here("validate", "rows.csv", "--per-row", "new").returncode, 0)
        self.assertTrue((self.here / "new").read_text().startswith("id,"))
        self.refused("validate", "rows.csv", "--per-row", ".")

    def test_facts_that_contradict_themselves(self):
        data = self.here / "data"
        data.mkdir()
        (data / "x.toml").write_text("""kind = "accelerator"
id = "h100-sxm-80gb"
source = "a test"
date = "2026-01-01"
name = "H100"
vendor = "nvidia"
architecture = "hopper"
family = "hopper"
[memory]
nominal_gb = 80
reported_mib = 81559
bandwidth_gb_per_s = 3350000000
[peak]
bf16_matrix_tflops = 989
""")
        self.refused("catalog", "gpus", "h100-sxm", "--data", "data")


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
