"""Rows of diffusion models: what one image of theirs is. Used by import_measured_rules.py.

  input_len  side of the image in pixels
  steps      denoising steps of one image
  guidance   1: each step is evaluated with and without the text; empty: as the model does
"""
import re

COLUMNS = ["steps", "guidance"]


def infer(row):
    for column in COLUMNS:
        row.setdefault(column, "")
    source, notes = row["source"], row["notes"]
    if source.startswith("github:siliconflow/onediff"):
        m = re.search(r"iterating (\d+) steps", notes)
        if m:
            row["steps"] = m[1]
        elif "/sd3/README.md" in source:
            # The same script at its defaults as the table above it: 28 steps of 1024 pixels.
            row["steps"], row["input_len"] = "28", row["input_len"] or "1024"
        elif "/pixart/README.md" in source:
            row["steps"] = "20"  # --steps 20 of each command line
        if row["model"] == "FLUX.1-dev" and row["id"] in ("i15172", "i15173", "i15174", "i15175"):
            row["weight_format"] = "fp8"  # text_to_image_flux.py --quantize
    elif source.startswith("github:LambdaLabsML/lambda-diffusers"):
        row["steps"] = "30"  # scripts/Makefile: --steps 30
        row["fa"] = {"TRUE": "1", "FALSE": "0"}.get(field(notes, "xformers"), "")
        if row["weight_format"] == "fp32" and not row["gpu"].startswith("Tesla V100"):
            # scripts/Dockerfile starts from NVIDIA's PyTorch 22.11 container, which multiplies
            # 32-bit matrices in TF32 (release notes: TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1).
            row["weight_format"] = "tf32"
    elif source.startswith("github:apple/ml-stable-diffusion"):
        m = re.search(r"(\d+) steps", notes)
        row["steps"] = m[1] if m else ""
        if row["model"].startswith("SD-2.1-base"):
            row["input_len"] = "512"
        else:
            # README, "Stable Diffusion XL": 768 pixels on phones and tablets, 1024 on Macs.
            row["input_len"] = "1024" if "Mac" in row["gpu"] else "768"
    elif source.startswith("github:mlcommons/inference") and row["model"] == "stable-diffusion-xl":
        # text_to_image/backend_pytorch.py: 20 steps, guidance 8, images of 1024 pixels.
        row["steps"], row["guidance"], row["input_len"] = "20", "1", "1024"


def field(notes, key):
    m = re.search(rf"(?:^|[;\s]){re.escape(key)}=([^;\s]*)", notes)
    return m[1] if m else ""
