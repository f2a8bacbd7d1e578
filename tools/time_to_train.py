#!/usr/bin/env python3
"""The table of MLPerf times to train in docs/training.md: what speeds and convergence facts say together.

    tools/time_to_train.py PROGRAM            print the table
    tools/time_to_train.py PROGRAM --update   put it into docs/training.md, between its markers

Predicted minutes are samples of the nearest reference convergence points (data/workloads/mlperf-training.toml,
between two batches by the logarithm of the batch) over the predicted rate of fits that have not seen the
row's fold. Measured minutes stand in the notes of the gathered rows (`ttt_min`). Evaluation, which a
submission's time includes, is not counted. The last column has the measured rate instead of the
predicted one: what is left is convergence and evaluation.
"""
import csv
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib

from catalogue_sheets import ROOT, rows
from marked_table import write_or_print

PAGE = pathlib.Path(ROOT) / "docs/training.md"
# Name of the model in rows -> of the benchmark.
BENCHMARK = {"bert-large": "bert", "gpt3-175b": "gpt3", "llama3.1-405b": "llama31_405b",
             "llama2-70b": "llama2_70b_lora", "retinanet-resnext50-800px": "retinanet",
             "dlrm-dcnv2": "dlrm_dcnv2", "stable-diffusion-v2-512": "stable_diffusion",
             "resnet50": "resnet", "maskrcnn-r50": "maskrcnn", "unet3d-128": "unet3d"}
# Beyond the points by more than this factor nothing is said.
FURTHEST = 2


def points():
    path = os.path.join(ROOT, "data", "workloads", "mlperf-training.toml")
    with open(path, "rb") as f:
        entries = tomllib.load(f)["entry"]
    out = {}
    for e in entries:
        out.setdefault(e["benchmark"], []).append((e["global_batch"], e["samples"]))
    return {name: sorted(of) for name, of in out.items()}


def samples_to_target(of, batch):
    """Between two reference batches linear in the logarithms; at the nearest one outside of them."""
    if batch < of[0][0] / FURTHEST or batch > of[-1][0] * FURTHEST:
        return None
    if batch <= of[0][0]:
        return of[0][1]
    for (b, s), (c, t) in zip(of, of[1:]):
        if batch <= c:
            x = math.log(batch / b) / math.log(c / b)
            return math.exp((1 - x) * math.log(s) + x * math.log(t))
    return of[-1][1]


def rate(row, value):
    """Samples a second of all cards."""
    if row["metric"] == "samples_per_s_per_gpu":
        return value * int(row["n_gpus"])
    if row["metric"] == "tokens_per_s_per_gpu":
        return value * int(row["n_gpus"]) / int(row["seq_len"])
    return int(row["global_batch"]) / value


def predictions(program):
    with tempfile.NamedTemporaryFile(suffix=".csv") as f:
        subprocess.run([program, "validate", "data/measured/train.csv", "--per-row", f.name], cwd=ROOT,
                       stdout=subprocess.DEVNULL, check=True)
        with open(f.name, newline="", encoding="utf-8") as text:
            return {r["id"]: r for r in csv.DictReader(text)}


def table(program):
    predicted, converge = predictions(program), points()
    with open(os.path.join(ROOT, "data", "measured", "train.csv"), newline="", encoding="utf-8") as f:
        measured = {r["id"]: r for r in csv.DictReader(f)}
    found = {}
    for gathered in rows("measured/train.csv"):
        name = BENCHMARK.get(gathered["model"])
        minutes = re.search(r"(?:^|;)ttt_min=([\d.]+)", gathered["notes"])
        row, p = measured.get(gathered["id"]), predicted.get(gathered["id"])
        if not (name and minutes and row and p and p["predicted"] and row["global_batch"]):
            continue
        samples = samples_to_target(converge[name], int(row["global_batch"]))
        if samples is None or row["trust"] == "exclude":
            continue
        took = 60 * float(minutes[1])
        found.setdefault(name, []).append(
            (samples / rate(row, float(p["predicted"])) / took - 1,
             samples / rate(row, float(p["measured"])) / took - 1))
    lines = ["| benchmark | rows | time to train, median % | bias % | from measured speed, median % |",
             "|---|---:|---:|---:|---:|"]
    found["all"] = [e for of in found.values() for e in of]
    for name, of in sorted(found.items(), key=lambda item: (item[0] == "all", item[0])):
        ours, speed = [e for e, _ in of], [e for _, e in of]
        lines.append(f"| {name} | {len(of)} | {100 * statistics.median(map(abs, ours)):.0f} | "
                     f"{100 * statistics.median(ours):.0f} | "
                     f"{100 * statistics.median(map(abs, speed)):.0f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_or_print(table(sys.argv[1]), PAGE, "errors time to train", "end time to train", sys.argv[2:])
