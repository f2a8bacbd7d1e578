#!/usr/bin/env python3
"""Lists the multiply-accumulates and parameters that timm's benchmarks print for its networks.

usage: tools/list_timm_networks.py [SHARED_DATA_DIR] [OUTPUT]
       (defaults: ../shared/data beside this checkout, tests/facts/timm_networks.csv)

One row for each network, image side and count of parameters in measured/{train,infer}.csv. Newer
releases leave the products inside fused attention out of GMACs: where counts differ the larger
one, which holds them, is kept. An empty count was not printed.
"""
import csv
import io
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = "github:huggingface/pytorch-image-models"


def stated(notes, *keys):
    for key in keys:
        m = re.search(rf"(?:^|[;\s]){re.escape(key)}=([\d.]+)", notes)
        if m:
            return m.group(1)
    return ""


def main():
    shared = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT.parent / "shared" / "data"
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "tests/facts/timm_networks.csv"
    found = {}
    for name in ("train", "infer"):
        with open(shared / "measured" / f"{name}.csv", newline="", encoding="utf-8") as f:
            for row in csv.DictReader(f):
                if not row["source"].startswith(REPOSITORY) or not row["params_b"]:
                    continue
                notes = row["notes"]
                side = stated(notes, "img_size") or row.get("input_len", "")
                millions = f"{float(row['params_b']) * 1e3:.2f}"
                key = (row["model"].removeprefix("timm:"), int(side), millions)
                counts = (stated(notes, "GMACs/img", "fwd_gmacs"), stated(notes, "Mactivations", "macts"))
                found[key] = max(found.get(key, ("", "")), counts, key=lambda c: float(c[0] or 0))
    text = io.StringIO()
    w = csv.writer(text, lineterminator="\n")
    w.writerow(["name", "image", "gmacs", "mega_activations", "parameters_m"])
    for (name, side, millions), counts in sorted(found.items()):
        w.writerow([name, side, *counts, millions])
    out.write_text(text.getvalue(), encoding="utf-8")
    print(f"{out.name}: {len(found)} networks and sides")


if __name__ == "__main__":
    main()
