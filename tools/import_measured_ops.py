"""Operator, collective and matrix-product rows. Used by import_measured.py.

Rows of ops/summary.csv keep its columns (a row's `kernel_or_framework` says whether a collective
was captured in a graph or launched by the host). Added: id, source, trust and fold.

  fold  one of 4. Operators: by operator, shape and number of devices, so that one shape is in one
        fold whatever device, format or run it was timed on; coefficients of a fold are fitted on
        tables without those shapes. Collectives of comm.csv and products of matmul.csv: by source
        and device.
"""
import re

FOLDS = 4
OPS_COLUMNS = (
    "id source gpu op dtype shape num_gpus latency_ms achieved_tflops achieved_GBps flag "
    "kernel_or_framework trust fold"
).split()
COMM_COLUMNS = (
    "id source date gpu collective n_gpus nodes intra_link inter_link payload_bytes busbw_gbps "
    "algbw_gbps algo tool trust fold"
).split()
MATMUL_COLUMNS = (
    "id source date gpu precision achieved_tflops theory_tflops efficiency_pct shape_mnk software "
    "kind trust fold"
).split()


def fields(shape):
    return dict(p.split("=", 1) for p in shape.split(";") if "=" in p)


def suspect_key(row):
    """How suspect.csv names a row of a table: "int8_wo|n=16384|k=256|m=8"."""
    f = fields(row["shape"])
    if row["op"] == "gemm":
        return "{}|n={n}|k={k}|m={m}".format(row["dtype"], **f)
    if row["op"].startswith("nccl_"):
        return "['{}', '{}', {}, '']|at {}".format(
            row["op"].removeprefix("nccl_"), row["dtype"], row["num_gpus"], int(f["bytes"]) // 2
        )
    return ""


def ops(rows, suspects, manifest, fnv1a):
    excluded = {
        (s["file"].removeprefix("ops/"), s["id"])
        for s in suspects
        if s["file"].startswith("ops/") and s["suggestion"].startswith("exclude")
    }
    origin = {m["file"]: f"github:{m['source_repo']} {m['file']}@{m['commit'][:7]}" for m in manifest}
    for i, r in enumerate(rows, 1):
        r["id"] = f"o{i:05d}"
        r["source"] = origin.get(r["file"], "github:FlagOpen/FlagPerf" if "flagperf" in r["op"] else r["file"])
        # "vllm_graph", "TRTLLM 1.0.0": the kernel's own name is not needed.
        r["kernel_or_framework"] = " ".join(r["kernel_or_framework"].split()[-3:])[-60:]
        r["trust"] = "exclude" if (r["file"], suspect_key(r)) in excluded else ""
        r["fold"] = fnv1a("|".join((r["op"], r["shape"], r["num_gpus"]))) % FOLDS
    return rows


# Kernels for experts, kept of their tables: multiprocessors of the normal ones, of which 20 are the
# library's default.
KEPT_SMS = ("8", "20")


def exchanges(table, low_latency, file, manifest, fnv1a):
    """Both directions of a row, in milliseconds; tables are of 8 GPUs, FP8 on the way out."""
    said = next(m for m in manifest if m["file"] == file)
    name = re.search(r"device=([^;]+)", said["constant_columns"])[1]
    for r in table:
        for way, dtype in (("dispatch", "fp8"), ("combine", "bfloat16")):
            if not low_latency and r[f"{way}_sms"] not in KEPT_SMS:
                continue
            shape = "tokens={num_token};hidden={hidden_size};topk={num_topk};experts={num_experts}".format(**r)
            if not low_latency:
                shape += f";sms={r[f'{way}_sms']}"
            op = f"deepep_{way}" + ("_low_latency" if low_latency else "")
            us = float(r[f"{way}_avg_t_us" if low_latency else f"{way}_transmit_us"])
            yield {
                "id": "",
                "source": f"github:{said['source_repo']} {file}@{said['commit'][:7]}",
                "gpu": name,
                "op": op,
                "dtype": dtype,
                "shape": shape,
                "num_gpus": "8",
                "latency_ms": f"{us / 1000:.6g}",
                "kernel_or_framework": "deepep",
                "fold": fnv1a("|".join((op, shape, "8"))) % FOLDS,
            }


def lines(name, rows, suspects, fnv1a, repository):
    """Rows that suspect.csv names by their line: "line 109|H100-SXM-80GB|536870912"."""
    said = {}
    for s in suspects:
        m = re.match(r"line (\d+)\|", s["id"])
        if s["file"] == f"measured/{name}.csv" and m:
            said.setdefault(int(m[1]), []).append(s["suggestion"])
    for line, r in enumerate(rows, 2):
        r["id"] = f"{name[0]}{line:05d}"
        r["trust"] = ""
        for suggestion in said.get(line, []):
            apply(r, suggestion)
        # "RTX4090 (4 GPUs implied ...)", "TPU-v7-Ironwood (per device = half chip)"
        if " (4 GPUs implied" in r["gpu"]:
            r["gpu"] = r["gpu"].split(" (")[0]
        r["fold"] = fnv1a("|".join((repository(r["source"]), r["gpu"].lower()))) % FOLDS
    return rows


def apply(row, suggestion):
    if suggestion.startswith("exclude"):
        row["trust"] = "exclude"
    if suggestion == "fix:busbw_gbps=value/2":
        row["busbw_gbps"] = f"{float(row['busbw_gbps']) / 2:g}"
    elif suggestion.startswith("fix:"):
        for pair in suggestion.removeprefix("fix:").split(";"):
            column, value = pair.split("=", 1)
            row[column] = value
