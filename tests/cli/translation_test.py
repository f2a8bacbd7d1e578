"""po/zh_CN.po is well-formed and matches the messages."""

import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PO = ROOT / "po/zh_CN.po"


class Translation(unittest.TestCase):
    def test_msgfmt_accepts_it(self):
        if not shutil.which("msgfmt"):
            self.skipTest("no msgfmt here (gettext)")
        done = subprocess.run(["msgfmt", "-c", "-o", "/dev/null", PO], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_nothing_is_missing(self):
        done = subprocess.run([sys.executable, ROOT / "tools/update_po.py", "--missing"],
                              capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
