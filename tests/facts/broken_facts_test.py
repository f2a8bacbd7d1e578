"""Breaks one fact at a time in a copy of data/ and expects the packing program to refuse it, naming
the sheet, the fact and the number.

usage: broken_facts_test.py PACK_FACTS DATA
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

# file, text, its replacement, what the message must hold
BROKEN = [
    ("hardware/nvidia/rtx-4090.toml", "bf16_matrix_tflops = 165.15", "bf16_matrix_tflops = 330.3",
     ["accelerator/rtx-4090#peak.bf16_matrix_tflops", "330.3", "160.2"]),
    ("hardware/nvidia/h100-sxm-80gb.toml", "one_way_gb_per_s = 450", "one_way_gb_per_s = 900",
     ["accelerator/h100-sxm-80gb#link.one_way_gb_per_s", "900"]),
    ("hardware/nvidia/h100-sxm-80gb.toml", "nominal_gb = 80", "nominal_gb = 40",
     ["accelerator/h100-sxm-80gb#memory.reported_mib", "81559"]),
    ("hardware/amd/mi300x.toml", 'family = "cdna3"\n', "", ["accelerator/mi300x#family"]),
    ("systems/dgx-h100.toml", '"h100-sxm-80gb"', '"h100-sxm-81gb"',
     ["system/dgx-h100#accelerator", "h100-sxm-81gb"]),
    ("aliases.csv", ",accelerator,rtx-4090,", ",accelerator,rtx-4091,",
     ["aliases.csv", "rtx-4091"]),
]


def pack(program, data, out):
    return subprocess.run([program, data, out], capture_output=True, text=True)


def main():
    program, data = sys.argv[1], pathlib.Path(sys.argv[2])
    failures = []
    with tempfile.TemporaryDirectory() as temporary:
        out = pathlib.Path(temporary) / "facts.txt"
        copy = pathlib.Path(temporary) / "data"
        shutil.copytree(data, copy)
        whole = pack(program, copy, out)
        if whole.returncode != 0 or not out.stat().st_size:
            failures.append("the committed facts are refused: " + whole.stderr)
        for name, old, new, expected in BROKEN:
            path = copy / name
            text = path.read_text(encoding="utf-8")
            if old not in text:
                failures.append(f"{name} does not hold '{old}' any more")
                continue
            path.write_text(text.replace(old, new, 1), encoding="utf-8")
            result = pack(program, copy, out)
            path.write_text(text, encoding="utf-8")
            missing = [e for e in expected if e not in result.stderr]
            if result.returncode == 0 or missing:
                failures.append(f"{name} with '{new}': exit {result.returncode}, message lacks "
                                f"{missing}: {result.stderr}")
    for f in failures:
        print(f)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
