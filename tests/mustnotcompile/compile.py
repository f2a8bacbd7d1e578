"""Compiles one case: mistake 0 must compile, mistake n must not, for the reason it names.

usage: compile.py ROOT COMPILER FILE MISTAKE
"""

import re
import subprocess
import sys
from pathlib import Path


def main(root, compiler, file, mistake):
    run = subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", "-Werror", "-Wconversion", f"-I{root}/src",
         f"-I{root}/include", f"-DMISTAKE={mistake}", file],
        capture_output=True, text=True)
    if mistake == "0":
        print(run.stderr[:3000])
        return run.returncode
    mark = re.search(rf"^#if MISTAKE == {mistake}  // error: (.+)$", Path(file).read_text(), re.M)
    if not mark:
        print(f"mistake {mistake} does not name its error")
        return 1
    if run.returncode == 0:
        print(f"mistake {mistake} compiles")
        return 1
    errors = [line for line in run.stderr.splitlines() if "error:" in line]
    if not any(re.search(mark.group(1), line) for line in errors):
        print(f"no error matches '{mark.group(1)}':\n" + "\n".join(errors[:20]))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
