"""Pipes, signals, exit codes, colours, widths, languages, settings."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unicodedata
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop(1)
FIT = ["fit", "llama-3.1-8b", "--on", "rtx-4090"]


class Cli(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.cwd = self.folder.name

    def tearDown(self):
        self.folder.cleanup()

    def environment(self, **extra):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("TRIGON_", "LC_"))}
        for name in ("LANG", "NO_COLOR", "COLUMNS"):
            env.pop(name, None)
        env.update(HOME=self.cwd, XDG_CONFIG_HOME=self.cwd + "/config", LC_ALL="C", **extra)
        return env

    def run_it(self, *words, env=None, **kwargs):
        done = subprocess.run([PROGRAM, *words], cwd=self.cwd, env=self.environment(**(env or {})),
                              capture_output=True, timeout=120, **kwargs)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_exit_codes(self):
        self.assertEqual(self.run_it(*FIT)[0], 0)
        self.assertEqual(self.run_it("fit", "llama-3.1-405b", "--on", "rtx-4090")[0], 1)
        code, out, err = self.run_it("fit", "llama-3.1-8b", "--on", "nothing-like-it")
        self.assertEqual((code, out), (2, ""))
        self.assertRegex(err, r"^trigon: unknown hardware")

    def test_explain_takes_its_term_behind_a_space_too(self):
        fit = ["fit", "llama-3.1-8b", "--on", "rtx-4090"]
        joined = self.run_it(*fit, "--explain=kv_cache")
        self.assertIn("memory.kv_cache", joined[1])
        self.assertEqual(self.run_it(*fit, "--explain", "kv_cache"), joined)
        # The first argument is the model wherever it stands.
        self.assertEqual(self.run_it("fit", "--explain", "llama-3.1-8b", "--on", "rtx-4090"),
                         self.run_it(*fit, "--explain"))

    def test_a_closed_pipe_ends_quietly(self):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([PROGRAM, "catalog", "gpus", "--top", "0"], stdout=write,
                              stderr=subprocess.PIPE, env=self.environment(), cwd=self.cwd)
        os.close(write)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_a_full_disk_is_reported(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "help"], stdout=full, stderr=subprocess.PIPE,
                                  env=self.environment(), cwd=self.cwd)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"No space left", done.stderr)

    def test_an_interrupt_exits_with_130(self):
        # Thousands of rows take longer than the signal.
        rows = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "data",
                            "measured", "infer.csv")
        process = subprocess.Popen([PROGRAM, "validate", rows], env=self.environment(),
                                   cwd=self.cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        self.assertEqual((process.returncode, out), (130, b""))

    def interrupted(self, wait, *arguments):
        """Exit code and output of a call that gets Ctrl-C after `wait` seconds: 0 if it was faster."""
        process = subprocess.Popen([PROGRAM, *arguments], env=self.environment(), cwd=self.cwd,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        if process.returncode:
            self.assertEqual(process.returncode, 130, err)
            self.assertTrue(not out or out.startswith(b"Interrupted"), out)
        return process.returncode, out

    def test_an_interrupted_search_says_what_it_has(self):
        # A hundred counts of cards for one thread. Before the search begins the signal ends the
        # program; some wait is between its first answer and its last.
        said = []
        for wait in (0.2, 0.4, 0.8, 1.6, 3, 6):
            code, out = self.interrupted(
                wait, "plan", "deepseek-v3", "--on", "4096x8xh100-sxm", "--task", "train",
                "--tokens", "1T", "--global-batch", "15360", "--threads", "1",
                "--schedule", "any")
            if out and code:
                said.append(out)
                if b"tp" in out or b"pp" in out or b"dp" in out:
                    return  # with the best so far
        self.assertTrue(said or code == 0, "no wait met the search")

    def test_an_interrupted_recommendation_says_what_it_has(self):
        # Cards are looked at one after the other for seconds; each wait is inside or before that.
        for wait in (0.3, 0.6, 1.2, 2.4):
            code, out = self.interrupted(
                wait, "recommend", "deepseek-v3", "--task", "train", "--tokens", "1T",
                "--threads", "1")
            if out and code:
                return
        self.assertEqual(code, 0, "no wait met the search")

    def test_an_objective_of_another_task_is_refused(self):
        code, out, err = self.run_it("estimate", "llama-3.1-8b", "--on", "h100-sxm", "--deadline",
                                     "3d")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("--deadline is for --task", err)

    def test_colours(self):
        plain = self.run_it(*FIT)[1]
        self.assertNotIn("\x1b", plain)
        coloured = self.run_it(*FIT, "--color", "always")[1]
        self.assertIn("\x1b[32m", coloured)
        # Nothing is said by colour alone: without it the text is the same.
        self.assertEqual(re.sub(r"\x1b\[\d*m", "", coloured), plain)

    def test_no_color_on_a_terminal(self):
        import pty

        def on_terminal(**env):
            main, other = pty.openpty()
            process = subprocess.Popen([PROGRAM, "catalog", "gpus", "--where", "vendor=intel"],
                                       stdout=other, stderr=other, cwd=self.cwd,
                                       env=self.environment(TERM="xterm", **env))
            os.close(other)
            text = b""
            try:
                while part := os.read(main, 65536):
                    text += part
            except OSError:
                pass  # the terminal closes with its program
            process.wait()
            os.close(main)
            return text

        self.assertIn(b"\x1b[", on_terminal())
        self.assertNotIn(b"\x1b[", on_terminal(NO_COLOR="1"))

    def test_every_table_fits_the_terminal(self):
        for columns in (44, 80, 120):
            for words in (FIT, ["fit", "llama-3.1-8b"], ["fit", "--on", "rtx-4090"],
                          ["estimate", "llama-3.1-8b", "--on", "h100-sxm"],
                          ["catalog", "gpus"], ["catalog", "prices"], ["help", "recommend"],
                          ["plan", "llama-3.1-8b", "--on", "2x8xh100-sxm", "--task", "train",
                           "--tokens", "1B"],
                          ["compare", "a100-sxm-80gb", "h100-sxm", "l40s", "llama-3.1-8b"]):
                for language in ("en", "zh"):
                    out = self.run_it(*words, "--lang", language, env={"COLUMNS": str(columns)})[1]
                    for line in out.splitlines():
                        width = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1
                                    for c in line)
                        # A single long word, such as a flag's choices, cannot be broken.
                        if " " in line.strip() and not line.lstrip().startswith("--"):
                            with self.subTest(columns=columns, words=words, language=language):
                                self.assertLessEqual(width, columns, line)

    def test_chinese(self):
        for how in ({"LC_ALL": "zh_CN.UTF-8"}, {"TRIGON_LANG": "zh"}):
            done = subprocess.run([PROGRAM, *FIT, "--one-line"], cwd=self.cwd,
                                  env={**self.environment(), **how}, capture_output=True)
            self.assertIn("可以", done.stdout.decode())
        self.assertIn("Yes", self.run_it(*FIT, "--lang", "en", env={"TRIGON_LANG": "zh"})[1])
        code, out, err = self.run_it("fit", "--lang", "zh")
        self.assertIn("需要一个模型", err)
        # Keys of JSON stay English.
        self.assertEqual(self.run_it(*FIT, "--json", "--lang", "zh")[1],
                         self.run_it(*FIT, "--json")[1])

    def test_flags_over_environment_over_files_over_defaults(self):
        def context(*words, **env):
            out = self.run_it("config", "--show", *words, env=env)[1]
            return [line.split()[1:] for line in out.splitlines() if line.startswith("top ")][0]

        self.assertEqual(context(), ["20", "default"])
        users = Path(self.cwd, "config/trigon")
        users.mkdir(parents=True)
        (users / "trigon.toml").write_text("top = 1\n")
        self.assertEqual(context()[0], "1")
        Path(self.cwd, "trigon.toml").write_text("# mine\ntop = 2\n")
        self.assertEqual(context(), ["2", "./trigon.toml:2"])
        self.assertEqual(context(TRIGON_TOP="3"), ["3", "TRIGON_TOP"])
        self.assertEqual(context("--top", "4", TRIGON_TOP="3"), ["4", "--top"])

    def test_configuration_mistakes(self):
        config = Path(self.cwd, "trigon.toml")
        for text, words in (("contex = 3\n", "unknown key 'contex' (./trigon.toml:1)"),
                            ("[recommend]\nvendr = 'amd'\n", "did you mean 'vendor'?"),
                            ("context = '80G'\n", "(./trigon.toml:1)"),
                            ("context = {}\n", "should be a text"),
                            ("context = \n", "not well-formed TOML")):
            config.write_text(text)
            code, out, err = self.run_it(*FIT)
            self.assertEqual((code, out), (2, ""), text)
            self.assertIn(words, err)
        config.write_text("[fit]\ncontext = '8k'\n[recommend]\nvendor = ['amd', 'nvidia']\n")
        code, out, _ = self.run_it(*FIT, "--json")
        self.assertEqual(code, 0)
        self.assertIn('"context": {\n        "value": "8k",\n        "from": "./trigon.toml:2"', out)

    def test_unknown_environment_settings_warn(self):
        code, out, err = self.run_it("version", env={"TRIGON_CONTXT": "3"})
        self.assertEqual(code, 0)
        self.assertIn("TRIGON_CONTXT", err)

    def test_control_bytes_are_not_printed(self):
        name = "\x1b]0;title\x07\x1b[31m"
        code, out, err = self.run_it("fit", name, "--on", "rtx-4090")
        self.assertEqual(code, 2)
        self.assertNotIn("\x1b", out + err)
        self.assertNotIn("\x07", out + err)

    def test_completions_and_manual(self):
        script = self.run_it("help", "--completion", "bash")[1]
        check = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
        self.assertEqual((check.returncode, check.stderr), (0, ""))
        offered = subprocess.run(
            ["bash", "-c", script + '\nCOMP_WORDS=(trigon fit --cont); COMP_CWORD=2; _trigon; '
             'echo "${COMPREPLY[@]}"'], capture_output=True, text=True)
        self.assertEqual(offered.stdout.strip(), "--context")
        manual = self.run_it("help", "--man")[1]
        if shutil.which("groff"):
            check = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=manual.encode(),
                                   capture_output=True)
            self.assertEqual(check.stderr, b"")
        for verb in ("fit", "estimate", "recommend", "plan", "compare", "inspect", "catalog",
                     "validate", "config", "version"):
            code, out, _ = self.run_it("help", verb)
            self.assertEqual(code, 0)
            for flag in re.findall(r"^  (--[a-z-]+)", out, re.M):
                self.assertIn(flag.replace("-", r"\-"), manual)
                self.assertIn(flag, script)


if __name__ == "__main__":
    unittest.main()
