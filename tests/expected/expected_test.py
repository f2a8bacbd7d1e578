"""What the reader of docs/expected.md accepts and refuses."""

import tempfile
import unittest
from pathlib import Path

import expected
import llama_gguf

TEXT = """intro
## One
```console
$ trigon fit a \\
    --on b
```
| what | where | from | to | source |
|---|---|---|---|---|
| speed | `rows[0].report.metrics.speed` | 1 | 3 | somebody |
## No table
"""


class Expected(unittest.TestCase):
    def test_reads_sections(self):
        (command, rows), = expected.sections(TEXT)
        self.assertEqual(command, "fit a --on b")
        self.assertEqual(rows, [expected.Row("speed", "rows[0].report.metrics.speed", "1", "3",
                                             "somebody")])

    def test_judges(self):
        results = {"rows": [{"answer": "fits", "report": {
            "hardware": {"accelerator": "l4", "nodes": 2, "per_node": 8},
            "metrics": {"speed": {"value": 5, "low": 1, "high": 9}}}}]}

        def judged(where, low, high="", source="s"):
            return expected.judge(expected.Row("x", where, low, high, source), results)

        speed = "rows[l4].report.metrics.speed"
        self.assertIsNone(judged(speed, "4", "6"))
        self.assertIsNone(judged("rows[0].answer", "= fits"))
        self.assertIsNone(judged("rows[l4].cards", "16", "16"))
        self.assertIsNone(judged(speed, "6", "7", "outside: late"))
        self.assertIn("not within", judged(speed, "6", "7"))
        self.assertIn("not within", judged("rows[0].answer", "= no"))
        self.assertIn("drop `outside:`", judged(speed, "4", "6", "outside: late"))
        self.assertIn("nothing at", judged("rows[h100].answer", "= fits"))
        self.assertIn("nothing at", judged("rows[0].report.none", "1", "2"))

    def test_gguf_is_as_long_as_the_published_one(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.gguf"
            llama_gguf.write(path)
            # 4.92 GB, says the page that publishes it.
            self.assertEqual(round(path.stat().st_size / 1e9, 2), 4.92)


if __name__ == "__main__":
    unittest.main()
