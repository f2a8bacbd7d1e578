"""Compiles headers of src/ and include/ alone.

Only those without a .cpp of the same name: the others are the first include of that file (rule
`own_header_first`), so the build itself compiles them alone.

usage: self_contained.py ROOT COMPILER
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import rules

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow",
         "-Wconversion", "-Wno-sign-conversion", "-Werror", "-x", "c++", "-"]


def main(root, compiler):
    headers = [p for p in rules.files(root, "src", "include")
               if p.suffix == ".hpp" and not p.with_suffix(".cpp").exists()
               and not p.name.endswith("_test.hpp")]

    def compiles(path):
        base = root / ("src" if path.is_relative_to(root / "src") else "include")
        name = path.relative_to(base).as_posix()
        # Twice: `#pragma once` must work too.
        source = f'#include "{name}"\n#include "{name}"\n'
        run = subprocess.run([compiler, f"-I{root}/src", f"-I{root}/include", *FLAGS],
                             input=source, capture_output=True, text=True)
        return name, run.returncode, run.stderr

    failed = 0
    with ThreadPoolExecutor(2) as pool:
        for name, code, errors in pool.map(compiles, headers):
            if code:
                failed += 1
                print(f"{name} does not compile alone:\n{errors[:2000]}")
    print(f"{len(headers)} headers, {failed} do not compile alone")
    return 1 if failed or not headers else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2]))
