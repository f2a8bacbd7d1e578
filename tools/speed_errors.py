#!/usr/bin/env python3
"""The tables of measured error in docs/cost.md: of inference by kind of work and by card and engine, from `trigon
validate`, and of what a fit of engines has not seen, from its report.

    tools/speed_errors.py PROGRAM            print the tables
    tools/speed_errors.py PROGRAM --update   put them into docs/cost.md, between their markers

Every row is predicted by the fit that has not seen its fold. Pairs with ten rows or more but fewer than ten
predicted ones are named as not validated; pairs with fewer rows are together in `other`.
"""
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import tomllib

from marked_table import write_or_print

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/cost.md"
REPORT = ROOT / "data/calibration/reports/engines.toml"
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


FEWEST_OF_GROUP = 5
AIMS = {"decode": "8", "prefill": "12", "output speed of batches": "-", "vision, encoders and others": "12",
        "diffusion": "15"}


def kind_of(row):
    if row["metric"].startswith(("decode", "tpot")):
        return "decode"
    if row["metric"].startswith(("prefill", "ttft")):
        return "prefill"
    if row["steps"] or "diffus" in row["engine"].lower():
        return "diffusion"
    return "output speed of batches" if row["metric"] == "output_tok_s_total" else "vision, encoders and others"


def repository(row):
    return "/".join(row["source"].removeprefix("github:").split("@")[0].split()[0].split("/")[:2])


def read(path):
    with open(path, encoding="utf-8-sig", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def kinds(program):
    measured = read(ROOT / "data/measured/infer.csv")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rows.csv"
        subprocess.run([program, "validate", "data/measured/infer.csv", "--per-row", str(path)], cwd=ROOT,
                       capture_output=True, text=True, check=True)
        rows = read(path)
    errors, groups, held = {}, {}, {}
    for name, row in rows.items():
        if not row["predicted"]:
            continue
        kind, value = kind_of(measured[name]), float(row["measured"])
        error = abs(float(row["predicted"]) / value - 1)
        errors.setdefault(kind, []).append(error)
        groups.setdefault(kind, {}).setdefault((repository(measured[name]), measured[name]["metric"]), []).append(error)
        held.setdefault(kind, []).append(float(row["low"]) <= value <= float(row["high"]))
    text = ("| what | rows | groups % | rows % | nine of ten below % | range holds % | aim % |\n|---|"
            + "---:|" * 6 + "\n")
    for kind, aim in AIMS.items():
        of = sorted(errors[kind])
        shares = [statistics.median(statistics.median(g) for g in groups[kind].values() if len(g) >= FEWEST_OF_GROUP),
                  statistics.median(of), of[int(0.9 * len(of))], statistics.mean(held[kind])]
        text += f"| {kind} | {len(of):,} | " + " | ".join(f"{100 * s:.0f}" for s in shares) + f" | {aim} |\n"
    return text


LEFT_OUT = [("fold", "fold"), ("model_family", "family of models"), ("device", "device"), ("source", "source")]


def left_out():
    figures = {(f["kind"], f["what"]): f for f in tomllib.loads(REPORT.read_text())["left_out"]}
    lines = ["| kind of work | rows | " + " | ".join(name for _, name in LEFT_OUT) + " |",
             "|---|---:|" + "---:|" * len(LEFT_OUT)]
    for kind in dict.fromkeys(kind for kind, _ in figures):
        cells = [f"{100 * f['median_of_group_medians']:.0f} ({100 * f['median_error']:.0f})"
                 for f in (figures[kind, what] for what, _ in LEFT_OUT)]
        lines.append(f"| {kind} | {figures[kind, 'fold']['rows']:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_or_print(table(sys.argv[1]), PAGE, "errors inference", "end inference", sys.argv[2:])
    write_or_print(kinds(sys.argv[1]), PAGE, "errors kinds", "end kinds", sys.argv[2:])
    write_or_print(left_out(), PAGE, "errors left out", "end left out", sys.argv[2:])
