"""The reader of console blocks: what it accepts, runs and refuses."""

import tempfile
import unittest
from pathlib import Path

import console_blocks as blocks


class ConsoleBlocks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)
        self.program = self.root / "program"
        # Prints its arguments one a line; exits with the last of them when that is a number.
        self.program.write_text('#!/bin/sh\nfor a; do echo "$a"; done\n'
                                'case "$a" in [0-9]*) exit "$a" ;; esac\n')
        self.program.chmod(0o755)

    def complaints(self, text):
        return blocks.check(self.root, self.program, "x.md", text)[0]

    def test_runs_and_compares(self):
        self.assertEqual(self.complaints("```console output\n$ trigon a b\na\nb\n```\n"), [])
        self.assertEqual(self.complaints("```console\n$ trigon a b\nsomething like\n```\n"), [])
        self.assertEqual(self.complaints("```console exit=3 output\n$ trigon a 3\na\n3\n```\n"), [])
        self.assertEqual(self.complaints("1. x\n   ```console output\n   $ trigon a \\\n"
                                         "       b\n   a\n   b\n   ```\n"), [])
        self.assertEqual(self.complaints("```console output\n$ trigon a b c | grep b\nb\n```\n"), [])
        self.assertEqual(self.complaints("```console output\n$ trigon a b c d\na\n...\nd\n```\n"), [])

    def test_examples_run_uncompared(self):
        self.assertEqual(self.complaints("```console shown\n$ trigon a b\nold\n```\n"), [])
        self.assertEqual(len(self.complaints("```console shown\n$ trigon 1\n```\n")), 1)

    def test_complains(self):
        for text, part in (
                ("```console output\n$ trigon a b\na\n```\n", "prints something else"),
                ("```console output\n$ trigon a b\na\n...\nc\n```\n", "prints something else"),
                ("```console\n$ trigon 1\n```\n", "exits with 1, not 0"),
                ("```console exit=2\n$ trigon a\n```\n", "exits with 0, not 2"),
                ("```console\n$ rm -rf x\n```\n", "shown but not tested"),
                ("```console\ntrigon a\n```\n", "starts with '$ '"),
                ("```console\n```\n", "without a command"),
                ("```console loud\n$ trigon a\n```\n", "unknown word 'loud'")):
            found = self.complaints("text\n" + text)
            self.assertEqual(len(found), 1, text)
            self.assertIn(part, found[0])
            self.assertRegex(found[0], r"^x\.md:\d+:")

    def test_updates_only_output_blocks(self):
        text = ("a\n```console output\n$ trigon x \\\n    y\nold\n$ trigon z\n```\n"
                "```console\n$ trigon x\nkept\n```\n```console shown\n$ trigon v\nold\n```\nb\n")
        new = blocks.updated(self.root, self.program, text)
        self.assertEqual(new, "a\n```console output\n$ trigon x \\\n    y\nx\ny\n$ trigon z\nz\n"
                              "```\n```console\n$ trigon x\nkept\n```\n"
                              "```console shown\n$ trigon v\nv\n```\nb\n")
        self.assertEqual(self.complaints(new), [])

    def test_build_commands_are_not_run(self):
        self.assertEqual(self.complaints("```console\n$ tools/start\n$ git clone x\n```\n"), [])


if __name__ == "__main__":
    unittest.main()
