#!/usr/bin/env python3
"""data/software/: what runs on what, one sheet per software with a list of statements.

Reads hardware/software_support.csv. Its free texts about hardware become selectors: vendors,
device kinds, gfx targets, ids, and ranges of compute capability (times ten: 89 is 8.9).
"""
import re

from catalogue_sheets import Sheet, date_of, rows, slug, write_tree

# Hardware texts of rows without a compute capability, or where the text says more than it.
SELECTORS = {
    "AMD GPU": {"vendors": ["amd"]},
    "AMD GPU (dp4a from gfx906/RDNA2, MFMA from gfx908, WMMA from RDNA3)": {"vendors": ["amd"]},
    "AMD ROCm": {"vendors": ["amd"]},
    "CDNA, RDNA": {"vendors": ["amd"]},
    "Intel GPU": {"vendors": ["intel"], "kinds": ["gpu"]},
    "Intel XPU": {"vendors": ["intel"], "kinds": ["gpu"]},
    "Intel (and NVIDIA) GPU": {"vendors": ["intel", "nvidia"], "kinds": ["gpu"]},
    "Intel XPU, Gaudi, Apple, CPU": {"vendors": ["intel", "apple"]},
    "Intel Arc B60": {"ids": ["arc-pro-b60"]},
    "Gaudi": {"architectures": ["gaudi1", "gaudi2", "gaudi3"]},
    "x86 CPU": {"kinds": ["cpu"]},
    "Apple Silicon": {"vendors": ["apple"]},
    "Moore Threads": {"vendors": ["moore-threads"]},
    "Ascend NPU": {"vendors": ["huawei"]},
    "Huawei Ascend": {"vendors": ["huawei"]},
    "any GPU": {"kinds": ["gpu", "apu"]},
    "all": {},
    "MI100/MI200": {"gfx": ["gfx908", "gfx90a"]},
    "A100/H100/H200/H20/GH200/B200/GB200": {
        "vendors": ["nvidia"], "architectures": ["ampere_ga100", "hopper", "blackwell"],
        "not_ids": ["a30"]},
    "A30": {"ids": ["a30"]},
    "RTX PRO 6000 Blackwell": {"ids": ["rtx-pro-6000-server", "rtx-pro-6000-workstation",
                                       "rtx-pro-6000-max-q"]},
    "RTX PRO 5000/4500, Thor": {"ids": ["rtx-pro-5000", "rtx-pro-4500"]},
    "V100/T4/L4/L40S/GeForce": {
        "vendors": ["nvidia"],
        "families": ["volta", "turing_geforce", "turing_tu11x", "turing_pro", "ampere_geforce",
                     "ada_geforce", "ada_pro", "ada_half", "blackwell_geforce"]},
    "Adreno": None,  # no such hardware in the catalogue
    "B200 8-GPU (p6-b200)": {"architectures": ["blackwell"]},
    "H200 8-GPU node": {"ids": ["h200-sxm-141gb"]},
}
FEATURES = {"Marlin (GPTQ/AWQ/FP8)": "marlin", "BitBLAS (GPTQ)": "bitblas_gptq",
            "FP8 W8A16 (weight only, Marlin)": "fp8_w8a16"}


def capability(text):
    """Selectors of a compute-capability or gfx text; None when it has none."""
    t = text.replace(" ", "")
    if not t:
        return None
    if "gfx" in t:
        if t.endswith("+"):
            return {"gfx": ["gfx942", "gfx950"]}
        return {"gfx": re.findall(r"gfx\w+", t)}
    to_int = lambda s: round(float(s) * 10)
    out = {"vendors": ["nvidia"]}
    if m := re.fullmatch(r"([\d.]+)\+", t):
        out["capability_min"] = to_int(m.group(1))
    elif m := re.fullmatch(r"<=([\d.]+)", t):
        out["capability_max"] = to_int(m.group(1))
    elif m := re.fullmatch(r"!=([\d.]+)", t):
        out["capability_not"] = to_int(m.group(1))
    elif m := re.fullmatch(r"([\d.]+)\.\.([\d.]+)", t):
        out["capability_min"], out["capability_max"] = map(to_int, m.groups())
    elif m := re.fullmatch(r"(\d)\.x", t):
        out["capability_min"], out["capability_max"] = int(m.group(1)) * 10, int(m.group(1)) * 10 + 9
    else:
        parts = [p.replace("+PTX", "") for p in re.split(r"[/;]", t)]
        out["capabilities"] = [to_int(p) for p in parts]
        if "+PTX" in t:
            out["capability_min_also"] = to_int(parts[-1])
    return out


def main():
    sheets = {}
    for r in rows("hardware/software_support.csv"):
        text = r["hardware"]
        if text in SELECTORS:
            select = SELECTORS[text]
            if select is None:
                continue
            gfx = capability(r["compute_capability_or_gfx"])
            if gfx and "gfx" in gfx:
                select = gfx
        else:
            select = capability(r["compute_capability_or_gfx"])
            if select is None:
                raise SystemExit(f"no selector for hardware {text!r}")
        supported = {"see detail": "partial"}.get(r["supported"], r["supported"])
        feature = FEATURES.get(r["feature"]) or slug(r["feature"]).replace("-", "_")
        s = sheets.setdefault(r["software"], [])
        s.append({"feature": feature, "supported": supported, "version": r["version_or_commit"],
                  **select, "detail": r["detail"], "hardware": text, "source": r["source"]})
    files = {}
    for software, entries in sorted(sheets.items()):
        source = entries[0]["source"]
        sheet = Sheet("support", slug(software), source, date_of(source))
        sheet.put("name", software)
        sheet.groups = [("entry", e) for e in entries]
        files[slug(software) + ".toml"] = sheet.text("import_software.py")
    write_tree("software", files)


if __name__ == "__main__":
    main()
