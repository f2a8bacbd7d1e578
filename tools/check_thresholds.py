#!/usr/bin/env python3
"""Thresholds on prediction error may only tighten: no committed version was stricter than this one.

Reads data/calibration/thresholds.toml and all its committed versions. `at_most` may not rise,
`at_least` may not fall, and a limit that once existed may not vanish.

A limit that was wrong, not loose (the evidence behind it was misread), is let go by naming it in
the commit message of the change: a line `Threshold withdrawn: KEY`.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

FILE = "data/calibration/thresholds.toml"


def numbers(value, key=""):
    """All numbers of a parsed file by dotted key; elements of lists are keyed by their texts."""
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        yield key, float(value)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from numbers(inner, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            texts = [v for _, v in sorted(inner.items()) if isinstance(v, str)] \
                if isinstance(inner, dict) else []
            yield from numbers(inner, f"{key}[{', '.join(texts) or index}]")


def is_lower_limit(key):
    return key.rsplit(".", 1)[-1] == "at_least"


def complaints(now, before):
    """What `now` allows that `before` did not; both map keys to numbers."""
    for key, limit in sorted(before.items()):
        if key not in now:
            yield f"{key}: was {limit:g}, is gone"
        elif (now[key] < limit) if is_lower_limit(key) else (now[key] > limit):
            yield f"{key}: loosened from {limit:g} to {now[key]:g}"


def git(root, *arguments):
    return subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True,
                          text=True).stdout


def main(root):
    path = root / FILE
    commits = git(root, "log", "--format=%H", "--", FILE).split()
    if not path.exists():
        print(f"{FILE} was committed and is gone" if commits else "no thresholds yet")
        return 1 if commits else 0
    now = dict(numbers(tomllib.loads(path.read_text())))
    withdrawn = set()
    found = []
    for commit in commits:  # newest first: a withdrawal lets go of older limits
        present = git(root, "ls-tree", "--name-only", commit, "--", FILE).strip()
        if present:
            before = dict(numbers(tomllib.loads(git(root, "show", f"{commit}:{FILE}"))))
            found += [f"{line} (commit {commit[:10]})" for line in complaints(now, before)
                      if line.split(":")[0] not in withdrawn]
        for line in git(root, "log", "-1", "--format=%B", commit).splitlines():
            if line.startswith("Threshold withdrawn: "):
                withdrawn.add(line.split(": ", 1)[1].strip())
    print("\n".join(found) or f"{len(now)} limits, none looser than in {len(commits)} commits")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parents[1]))
