#!/usr/bin/env python3
"""Tables of measured error in docs/cost.md and docs/collectives.md, from the report that
`trigon calibrate --operators` writes.

usage: tools/operator_errors.py [--check]

Replaces what stands between `<!-- errors NAME -->` and `<!-- end -->`. --check changes nothing and
fails when a page would change.
"""
import csv
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "data/calibration/reports/operators.csv"
PAGES = ("docs/cost.md", "docs/collectives.md")
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "one_shot", "dispatch", "combine")


def is_collective(row):
    return row["operator"].startswith(COLLECTIVES)


def percent(row):
    return f"{100 * float(row['median_error']):.1f}" if row else ""


def operators(rows):
    rows = [r for r in rows if not is_collective(r)]
    by = {(r["left_out"], r["device"], r["operator"]): r for r in rows}
    out = ["| device | operator | rows | shapes | n x k, heads | framework | device |", "|---|---|---|---|---|---|---|"]
    for r in sorted((r for r in rows if r["left_out"] == "shape"), key=lambda r: (r["device"], r["operator"])):
        cells = [percent(by.get((w, r["device"], r["operator"]))) for w in ("dimensions", "framework", "device")]
        out.append(f"| {r['device']} | {r['operator']} | {r['rows']} | {percent(r)} | " + " | ".join(cells) + " |")
    return out


def collectives(rows):
    rows = [r for r in rows if is_collective(r)]
    by = {(r["left_out"], r["device"], r["operator"]): r for r in rows}
    out = ["| device | collective | rows | sizes | device |", "|---|---|---|---|---|"]
    for r in sorted((r for r in rows if r["left_out"] == "shape"), key=lambda r: (r["device"], r["operator"])):
        other = percent(by.get(("device", r["device"], r["operator"])))
        out.append(f"| {r['device']} | {r['operator']} | {r['rows']} | {percent(r)} | {other} |")
    return out


def main():
    with open(REPORT, newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    tables = {"operators": operators(rows), "collectives": collectives(rows)}
    stale = False
    for page in PAGES:
        path = ROOT / page
        old = path.read_text(encoding="utf-8")
        new = re.sub(
            r"<!-- errors (\w+) -->\n.*?<!-- end -->",
            lambda m: f"<!-- errors {m[1]} -->\n" + "\n".join(tables[m[1]]) + "\n<!-- end -->",
            old,
            flags=re.S,
        )
        if new != old:
            stale = True
            print(f"{page}: {'differs from the report' if '--check' in sys.argv else 'rewritten'}")
            if "--check" not in sys.argv:
                path.write_text(new, encoding="utf-8")
    sys.exit(1 if stale and "--check" in sys.argv else 0)


if __name__ == "__main__":
    main()
