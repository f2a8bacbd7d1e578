"""Runs the commands of a golden file and compares what they print.

usage: golden.py PROGRAM FILE.test      with TRIGON_UPDATE_GOLDEN=1 in the environment FILE is rewritten

A file is a list of cases. `# ...` lines and empty lines before a command are kept as they are:

    # what this shows
    $ trigon fit llama-3.1-8b --on rtx-4090
    expected standard output
    ! expected standard error, marked by "! "
    [1]                       exit code, left out when 0

`%numbers` on a line of its own before a command compares with every number replaced by `#` and
blanks squeezed: for answers whose digits follow calibration data, not code.
"""

import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

NUMBER = re.compile(r"\d[\d,]*(\.\d+)?(e[+-]?\d+)?")


def masked(line):
    line = NUMBER.sub("#", line)
    # Units and counts follow the digits: #ms may become #s, and columns move with their widths.
    line = re.sub(r"# ?(us|ms|s|min|h|d|years)\b", "# time", line)
    return re.sub(r" +", " ", line).rstrip()


def parse(text):
    """Cases as dicts: before (kept lines), masked, command, expected lines."""
    cases, before = [], []
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    i = 0
    while i < len(lines):
        if not lines[i].startswith("$ "):
            before.append(lines[i])
            i += 1
            continue
        case = {"before": before, "masked": "%numbers" in before, "command": lines[i][2:]}
        before, expected = [], []
        i += 1
        # An answer ends where a comment, a directive or the next command begins.
        while i < len(lines) and not re.match(r"(\$ |# |%numbers$)", lines[i]):
            expected.append(lines[i])
            i += 1
        while expected and expected[-1] == "":
            expected.pop()
        case["expected"] = expected
        cases.append(case)
    return cases


def run(program, command, folder):
    words = shlex.split(command)
    if words[0] != "trigon":
        raise SystemExit(f"not a trigon command: {command}")
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(("TRIGON_", "LC_")) and k not in ("LANG", "NO_COLOR")}
    environment.update(LC_ALL="C", COLUMNS="80", HOME=folder, XDG_CONFIG_HOME=folder)
    root = Path(__file__).resolve().parent.parent.parent
    done = subprocess.run([program, *(w.replace("ROOT", str(root)) for w in words[1:])],
                          cwd=folder, env=environment, capture_output=True, timeout=120)
    clean = lambda b: b.decode("utf-8", "replace").replace(str(root), "ROOT").split("\n")
    out, err = clean(done.stdout), clean(done.stderr)
    lines = out[:-1] if out[-1] == "" else out
    lines += ["! " + line for line in (err[:-1] if err[-1] == "" else err)]
    if done.returncode:
        lines.append(f"[{done.returncode}]")
    return lines


def main(program, path):
    path = Path(path)
    cases = parse(path.read_text())
    update = os.environ.get("TRIGON_UPDATE_GOLDEN") == "1"
    failed, text = 0, []
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            actual = run(program, case["command"], folder)
        expected = case["expected"]
        view = (lambda ls: [masked(l) for l in ls]) if case["masked"] else (lambda ls: ls)
        same = view(actual) == view(expected)
        if not same and not update:
            failed += 1
            print(f"$ {case['command']}")
            print("\n".join(difflib.unified_diff(view(expected), view(actual), "expected", "actual",
                                                 lineterm="")))
        kept = expected if same else actual
        text += case["before"] + ["$ " + case["command"]] + kept + [""]
    if not cases:
        raise SystemExit(f"{path}: no cases")
    if update:
        path.write_text("\n".join(text).rstrip("\n") + "\n")
    if failed:
        print(f"{failed} of {len(cases)} cases differ; TRIGON_UPDATE_GOLDEN=1 accepts what is printed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
