#!/usr/bin/env python3
"""The table of measured error of inference by card and engine in docs/cost.md, from `trigon validate`.

    tools/speed_errors.py PROGRAM            print the table
    tools/speed_errors.py PROGRAM --update   put it into docs/cost.md, between its markers

Every row is predicted by the fit that has not seen its fold. Pairs with ten rows or more but fewer than ten
predicted ones are named as not validated; pairs with fewer rows are together in `other`.
"""
import json
import pathlib
import subprocess
import sys

from marked_table import write_or_print

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/cost.md"
FEWEST = 10
HEAD = """| card | engine | rows | median % | nine of ten below % | bias % | range holds % |
|---|---|---:|---:|---:|---:|---:|
"""


def table(program):
    run = subprocess.run([program, "validate", "data/measured/infer.csv", "--group-by", "gpu,engine",
                          "--json"], cwd=ROOT, capture_output=True, text=True, check=True)
    lines, few = [], []
    for group in json.loads(run.stdout)["results"]["groups"]:
        card, _, engine = group["group"].partition(" / ")
        if group["predicted"] >= FEWEST:
            shares = [100 * group[key]
                      for key in ("median_error", "p90_error", "bias", "inside_interval")]
            lines.append(f"| {card} | {engine} | {group['predicted']} | "
                         + " | ".join(f"{share:.0f}" for share in shares) + " |")
        elif group["predicted"]:
            few.append(f"{card} with {engine}")
    text = HEAD + "\n".join(lines) + "\n"
    if few:
        text += "\nNot validated, fewer than ten predicted rows each: " + "; ".join(few) + ".\n"
    return text


if __name__ == "__main__":
    write_or_print(table(sys.argv[1]), PAGE, "errors inference", "end inference", sys.argv[2:])
