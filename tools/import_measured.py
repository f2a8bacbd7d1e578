#!/usr/bin/env python3
"""Turns published measurements into the evidence under data/measured/.

usage: tools/import_measured.py [SHARED_DATA_DIR] [OUTPUT_DIR]
       (defaults: ../shared/data and data/measured beside this checkout)

Reads measured/{train,infer,memory,comm,matmul}.csv, ops/summary.csv and suspect.csv. Configuration that the
sources gave only in prose becomes columns here, once; the prose itself is not kept. Rows called
doubtful are fixed, marked in the column `trust` (low, exclude) or dropped where a better row of
the same measurement exists. The rules are in import_measured_rules.py,
import_measured_images.py, import_measured_memory.py and import_measured_ops.py; running this twice gives the same bytes.
"""
import csv
import io
import re
import sys
from pathlib import Path

import import_measured_encoders as encoders
import import_measured_images as images
import import_measured_memory
import import_measured_ops as ops
import import_measured_rules as rules

ROOT = Path(__file__).resolve().parent.parent
FOLDS = 10


def fnv1a(text):
    h = 0xCBF29CE484222325
    for b in text.encode():
        h = ((h ^ b) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def repository(source):
    """owner/name of a source, the first word of anything else."""
    text = source.removeprefix("github:")
    m = re.match(r"[^\s@:]+", text)
    word = m.group(0) if m else ""
    return "/".join(word.split("/")[:2])


def family(model):
    """Leading letters of the model's own name: llama, qwen, deepseek, gpt ..."""
    name = model.rsplit("/", 1)[-1].lower()
    m = re.search(r"[a-z]+", name)
    return m.group(0) if m else name


def fold(row):
    """Rounds of one benchmark share a fold group, so resubmitted machines never straddle folds."""
    repo = repository(row["source"])
    if repo.startswith("mlcommons/"):
        repo = "mlcommons"
    return fnv1a("|".join((repo, row["gpu"].lower(), family(row["model"])))) % FOLDS


def read(path):
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def write(path, columns, rows, what):
    out = io.StringIO()
    w = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n")
    w.writeheader()
    for r in rows:
        w.writerow({c: r.get(c, "") for c in columns})
    path.write_text(out.getvalue(), encoding="utf-8")
    print(f"{path.name}: {len(rows)} {what}, {path.stat().st_size} bytes")


def main():
    shared = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT.parent / "shared" / "data"
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "data" / "measured"
    out.mkdir(parents=True, exist_ok=True)
    suspects = rules.Suspects(read(shared / "suspect.csv"))
    for name, columns, fix in (
        ("train", rules.TRAIN_COLUMNS, rules.train),
        ("infer", rules.INFER_COLUMNS, rules.infer),
        ("memory", rules.MEMORY_COLUMNS, import_measured_memory.memory),
    ):
        rows, pictures = [], images.Images()
        for r in rules.drop_superseded(name, read(shared / "measured" / f"{name}.csv")):
            suspects.apply(name, r)
            fix(r)
            if name != "memory":
                pictures.apply(name, r)
            r["fold"] = fold(r)
            rows.append(r)
        if name == "memory":
            import_measured_memory.join_runs(rows)
        elif name == "infer":
            encoders.whisper_lengths(rows)
        write(out / f"{name}.csv", columns, rows, "rows")
    doubts = read(shared / "suspect.csv")
    for name, columns in (("comm", ops.COMM_COLUMNS), ("matmul", ops.MATMUL_COLUMNS)):
        rows = ops.lines(name, read(shared / "measured" / f"{name}.csv"), doubts, fnv1a, repository)
        write(out / f"{name}.csv", columns, rows, "rows")
    manifest = read(shared / "ops" / "MANIFEST.csv")
    rows = ops.ops(read(shared / "ops" / "summary.csv"), doubts, manifest, fnv1a)
    for low_latency in (True, False):
        mode = "ll" if low_latency else "normal"
        for path in sorted((shared / "ops").glob(f"*/wideep_deepep_{mode}_perf*.csv")):
            file = path.relative_to(shared / "ops").as_posix()
            rows += ops.exchanges(read(path), low_latency, file, manifest, fnv1a)
    for i, r in enumerate(rows, 1):
        r["id"] = f"o{i:05d}"
    write(out / "ops.csv", ops.OPS_COLUMNS, rows, "rows")


if __name__ == "__main__":
    main()
