#!/usr/bin/env python3
"""data/hardware/: one sheet per accelerator and one per family of equal rates.

Reads hardware/gpus.csv, arch_rates.csv and suspect.csv of the gathered data; processors are in
processor_facts.py. A row becomes a sheet
when it has memory, bandwidth and at least one peak; a part sold with several memory sizes becomes
one sheet per size. The corrections below name the row of suspect.csv or the note they come from.
"""
import re

from accelerator_additions import ADDITIONS, FILLS
import processor_facts
from accelerator_names import RATE_ROWS, VENDORS, architecture, base_id, family
from catalogue_sheets import Sheet, date_of, number, rows, slug, suspects, tidy, write_tree

# Column -> key under [peak]. Matrix and vector units are never mixed.
PEAKS = {
    "fp64_tflops": "fp64_vector_tflops",
    "fp64_matrix_tflops": "fp64_matrix_tflops",
    "fp32_tflops": "fp32_vector_tflops",
    "fp32_matrix_tflops": "fp32_matrix_tflops",
    "tf32_tflops": "tf32_matrix_tflops",
    "fp16_vector_tflops": "fp16_vector_tflops",
    "fp16_tensor_fp16acc_tflops": "fp16_matrix_fp16_accumulate_tflops",
    "fp16_tensor_fp32acc_tflops": "fp16_matrix_fp32_accumulate_tflops",
    "bf16_tensor_tflops": "bf16_matrix_tflops",
    "fp8_tflops": "fp8_matrix_tflops",
    "fp8_fp16acc_tflops": "fp8_matrix_fp16_accumulate_tflops",
    "int8_tops": "int8_matrix_tops",
    "int4_tops": "int4_matrix_tops",
    "int8_vector_tops": "int8_vector_tops",
    "int4_vector_tops": "int4_vector_tops",
    "fp4_tflops": "fp4_matrix_tflops",
}
RATES = {  # arch_rates column -> key under [rate]
    "fp16_fp16acc": "fp16_matrix_fp16_accumulate", "fp16_fp32acc": "fp16_matrix_fp32_accumulate",
    "bf16": "bf16_matrix", "tf32": "tf32_matrix", "fp8_fp32acc": "fp8_matrix",
    "fp8_fp16acc": "fp8_matrix_fp16_accumulate", "int8": "int8_matrix", "int4": "int4_matrix",
    "fp4": "fp4_matrix", "fp16_vector": "fp16_vector",
}
NO_MATRIX_UNITS = {"rdna2", "gcn4", "gcn5", "gcn5_1"}  # integer dot products run on the vector units
PCIE_GBIT = {"3": 8 * 128 / 130, "4": 16 * 128 / 130, "5": 32 * 128 / 130, "6": 64 * 242 / 256}
SUSPECT = "suspect list of the gathered data: "


class Row(dict):
    """A row with remembered sources of changed columns and notes."""

    def __init__(self, row):
        super().__init__(row)
        self.sources, self.dates, self.notes = {}, {}, []

    def set(self, column, value, why, date=""):
        self[column] = "" if value is None else str(value)
        self.sources[column] = why
        self.dates[column] = date


def correct(row, why):
    """Applies what suspect.csv says about this row, one treatment per known case."""
    name, drop = row["name"], lambda c, w: row.set(c, None, w)
    for s in why:
        names, field, text = s["id"], s["field"], SUSPECT + s["reason"]
        hit = name == names or name in names.split("|") or (
            "|" in names and any(name.endswith(" " + n) or name.split(" (")[0].endswith(n)
                                 for n in names.split("|")))
        if not hit:
            continue
        row.notes.append(f"{field}: {s['reason']}; {s['suggestion']}")
        if field == "link_type" and "NVLink bridge" in s["suggestion"]:
            row.set("link_type", "NVLink bridge (supported)", text)
        elif field == "fp16_vector_tflops" and s["suggestion"] == "treat as 2x value":
            row.set(field, tidy(2 * float(row[field])), text)
        elif name == "H800 SXM5 80GB" and field == "boost_mhz":
            row.set(field, 1980, text)
        elif (name, field) in {("H800 SXM5 80GB", "fp64_tflops"),
                               ("B200 SXM", "fp64_matrix_tflops"), ("L40S", "int4_tops")}:
            drop(field, text)
        elif name == "GeForce RTX 5050":
            pass  # doubtful but the only facts; the note says so
        elif name.startswith("A16"):
            row.set("fp16_tensor_fp32acc_tflops", 17.36, text)
        elif name == "A10G":
            row.set("fp16_tensor_fp32acc_tflops", 70, text)
            row.set("bf16_tensor_tflops", 70, text)
        elif name.startswith("Instinct MI3") and field == "fp32_tflops":
            matrix = float(row[field])
            row.set("fp32_matrix_tflops", matrix, text)
            row.set("fp32_tflops", tidy(matrix / 2), text + " (vector = half of it)")
        elif name == "Radeon Pro W7700":
            row.set(field, 31.9, text)
        elif name in ("Arc A50", "Arc A40", "Arc A30M"):
            clock = float(row["boost_mhz"]) / 1e6
            row.set(field, tidy(float(row["sm_or_cu"]) * 256 * clock),
                    "derived: Xe cores * 256 * clk, the rate of its family; " + text)
        elif field == "link_gbps_bidir_total" and "per link" in row[field]:
            links = {"TPU v4": 6, "TPU v5e": 4}.get(name, 4)
            row.set(field, links * float(row[field].split()[0]), text)
        elif name == "H100 NVL 94GB":
            row.set("sm_or_cu", 132, text)


TURING_LIMIT = ("tomshardware.com, Titan RTX review: GeForce Turing does FP16 with FP32 accumulation "
                "at half rate")


def half_rate(row):
    """GeForce cards of the Turing generation, where the gathered table is silent."""
    full = number(row["fp16_tensor_fp16acc_tflops"])
    if (row["architecture"] == "Turing" and row["name"].startswith("GeForce RTX") and full
            and not row["fp16_tensor_fp32acc_tflops"]):
        row.set("fp16_tensor_fp32acc_tflops", tidy(full / 2), TURING_LIMIT)


def memory_sizes(text):
    """8/16/24 are sizes sold; 48..128 gives the two ends that are known."""
    return [float(x) for x in re.split(r"/|\.\.", text)] if text else []


def topology(row):
    t = row["link_type"]
    if not t or t == "none":
        return "none"
    if "bridge" in t:
        return "bridge_pair"
    if t in ("NVLink1", "NVLink2"):
        return "mesh"  # hybrid cube mesh of SXM2 boards, not all pairs
    if t.startswith("NVLink"):
        return "fabric_switch"
    return "mesh"


def link_type(row):
    t = row["link_type"]
    if "bridge" in t:
        return "nvlink-bridge"
    t = t.split(" mesh")[0].split(" (")[0].split(" +")[0]
    t = {"XGMI": "xgmi", "ICI torus": "ici"}.get(t, t)
    return slug(t.split(" ")[0] if t.startswith("RoCE") else t)


def one_way(row):
    both = number(row["link_gbps_bidir_total"])
    return both / 2 if both is not None else None


def sheet_of(row, memory, sizes):
    vendor = VENDORS[row["vendor"]]
    arch = architecture(row)
    fam = family(row, arch)
    id = row.get("id") or base_id(row["vendor"], row["name"])
    name = row["name"]
    if len(sizes) > 1:
        id += f"-{memory:g}gb"
        name += f", {memory:g} GB"
    source = row["source"] or "gathered data"
    s = Sheet("accelerator", id, source, date_of(source))
    derived = dict(d.split("=", 1) for d in row["derived_fields"].split(";") if "=" in d)

    def put(key, column, value):
        why = row.sources.get(column)
        if why is None and column in derived:
            why = f"derived: {derived[column]}"
        s.put(key, value, why, row.dates.get(column))

    s.put("name", name)
    s.put("vendor", vendor)
    s.put("architecture", arch)
    s.put("family", fam)
    unified = "unified" in row["mem_type"] or vendor == "apple" or row["form_factor"] == "APU socket"
    kind = {"CPU": "cpu", "NPU": "npu"}.get(row["architecture"])
    if kind is None and vendor in ("google", "aws", "huawei", "cambricon", "qualcomm"):
        kind = "npu"
    if kind is None and unified:
        kind = "apu"
    if kind is None and arch.startswith("gaudi"):
        kind = "npu"
    s.put("device_kind", kind or "gpu")
    s.put("form_factor", slug(row["form_factor"]))
    cc = row["compute_capability"]
    if number(cc) is not None:
        put("compute_capability", "compute_capability", float(cc))
    elif cc.startswith("gfx"):
        s.put("gfx", cc)
    s.put("launch_date", row["launch_date"])
    if "(announced)" in row["name"]:
        s.put("announced", True)
    put("units", "sm_or_cu", number(row["sm_or_cu"]))
    put("boost_mhz", "boost_mhz", number(row["boost_mhz"]))
    put("board_power_w", "tdp_w", number(row["tdp_w"]))
    if row["tdp_w"].endswith(" board"):
        s.put("board_power_w", float(row["tdp_w"].split()[0]) / 4, "derived: board power / 4 GPUs")
    s.put("sparsity_2to4", {"yes": True, "no": False}.get(row["sparsity_2to4"]))
    s.put("mig_max_instances", number(row["mig_max_instances"]))
    s.put("launch_price_usd", number(row["launch_price_usd"]))
    if vendor == "amd" and "two GCDs" in row["conflicts"]:
        s.put("devices_per_board", 2, "note of the gathered data: " + row["conflicts"])
    put("memory.nominal_gb", "mem_gb", memory)
    put("memory.reported_mib", "driver_mem_mib", number(row["driver_mem_mib"]))
    put("memory.bandwidth_gb_per_s", "mem_bw_gbps", number(row["mem_bw_gbps"]))
    s.put("memory.type", slug(row["mem_type"]))
    s.put("memory.unified", True if unified else None)
    put("memory.l2_mb", "l2_mb", number(row["l2_mb"]))
    put("memory.l3_mb", "l3_mb", number(row["l3_mb"]))
    for column, key in PEAKS.items():
        if arch in NO_MATRIX_UNITS and column in ("int8_tops", "int4_tops"):
            key = key.replace("matrix", "vector")
        put("peak." + key, column, number(row.get(column)))
    topo = topology(row)
    s.put("link.topology", topo)
    if topo != "none":
        s.put("link.type", link_type(row))
        put("link.both_ways_gb_per_s", "link_gbps_bidir_total",
            number(row["link_gbps_bidir_total"]))
        if one_way(row) is not None:
            s.put("link.one_way_gb_per_s", one_way(row), "derived: half of both ways")
    m = re.fullmatch(r"Gen(\d) x(\d+)", row["pcie"])
    if m:
        put("pcie.generation", "pcie", int(m.group(1)))
        s.put("pcie.lanes", int(m.group(2)))
        s.put("pcie.one_way_gb_per_s", round(PCIE_GBIT[m.group(1)] * int(m.group(2)) / 8, 4),
              "derived: transfers/s * lanes * line code / 8")
    s.put("note.conflicts", row["conflicts"])
    s.put("note.doubts", row.notes)
    return id, vendor, s


def families(seen):
    files = {}
    rates = {r["family"]: r for r in rows("hardware/arch_rates.csv")}
    for fam in sorted(seen):
        r = rates.get(RATE_ROWS.get(fam, ""))
        if r is None:
            continue
        s = Sheet("family", fam, r["source"], date_of(r["source"]))
        s.put("unit", "sm" if "SM" in r["unit"] else "cu")
        for column, key in RATES.items():
            if fam == "rdna2" and column in ("int8", "int4"):
                key = column + "_vector"
            rate = number(r[column])
            if fam == "turing_geforce" and column == "fp16_fp32acc" and rate is None:
                s.put("rate." + key, number(r["fp16_fp16acc"]) / 2, TURING_LIMIT)
                continue
            if fam == "ada_half" and column == "fp8_fp16acc":
                continue  # not stated
            if fam == "ada_half" and rate is not None and column not in ("fp16_vector",
                                                                         "fp16_fp16acc"):
                s.put("rate." + key, rate / 2,
                      SUSPECT + "L40 is exactly half of the rate of ada_pro")
            else:
                s.put("rate." + key, rate)
        # Peaks of data-centre parts are stated at a tensor clock below boost (README of the
        # gathered data: 0.87 to 0.94; H200 NVL 0.865); everything else at boost.
        if fam in ("hopper", "blackwell", "blackwell_ultra"):
            s.put("matrix_clock.low", 0.86, "gathered data: tensor clock over boost")
            s.put("matrix_clock.high", 0.96, "gathered data: tensor clock over boost")
        s.put("note.check", r["check"])
        files[f"families/{fam}.toml"] = s.text("import_hardware.py")
    return files


def main():
    doubts = suspects("hardware/gpus.csv")
    files, seen = {}, set()
    peak_columns = list(PEAKS)
    for raw in rows("hardware/gpus.csv") + ADDITIONS:
        row = Row(raw)
        correct(row, doubts)
        for column, (value, source, date) in FILLS.get(row["name"], {}).items():
            row.set(column, value, source, date)
        half_rate(row)
        sizes = memory_sizes(row["mem_gb"])
        if not (sizes and number(row["mem_bw_gbps"]) and any(number(row.get(c)) for c in
                                                              peak_columns)):
            continue
        for memory in sizes:
            id, vendor, s = sheet_of(row, memory, sizes)
            path = f"{vendor}/{id}.toml"
            if path in files:
                raise SystemExit(f"two rows for {path}")
            files[path] = s.text("import_hardware.py")
            seen.add(s.facts["family"])
    files.update(families(seen))
    files.update(processor_facts.sheets())
    write_tree("hardware", files)


if __name__ == "__main__":
    main()
