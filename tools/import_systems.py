#!/usr/bin/env python3
"""data/systems/ (node types) and data/links/ (links by name, per accelerator and one way).

Reads hardware/systems.csv and suspect.csv of the gathered data. The table below says which
accelerators of the catalogue a row's text names; a row of several becomes several sheets.
"""
import os
import re

from catalogue_sheets import ROOT, Sheet, date_of, number, rows, slug, tidy, write_tree

# system -> [(id, accelerator)]
SYSTEMS = {
    "DGX-1 (P100)": [("dgx-1-p100", "p100-sxm-16gb")],
    "DGX-1 (V100)": [("dgx-1-v100-16gb", "v100-sxm-16gb"), ("dgx-1-v100-32gb", "v100-sxm-32gb")],
    "DGX-2": [("dgx-2", "v100-sxm3-32gb")],
    "DGX A100": [("dgx-a100-40gb", "a100-sxm-40gb"), ("dgx-a100-80gb", "a100-sxm-80gb")],
    "DGX H100 / H200": [("dgx-h100", "h100-sxm-80gb"), ("dgx-h200", "h200-sxm-141gb")],
    "HGX H200 node (MLPerf submission)": [("hgx-h200", "h200-sxm-141gb")],
    "DGX B200": [("dgx-b200", "b200-sxm")],
    "HGX B200 (Nebius, MLPerf)": [("hgx-b200", "b200-sxm")],
    "DGX B300": [("dgx-b300", "b300-sxm")],
    "GB200 NVL72 rack": [("gb200-nvl72", "gb200")],
    "GB300 NVL72 rack": [("gb300-nvl72", "gb300")],
    "RTX PRO 6000 Blackwell Server node": [("rtx-pro-6000-server-node", "rtx-pro-6000-server")],
    "L40S PCIe node": [("l40s-node", "l40s")],
    "A100 PCIe node (SimuMax)": [("a100-pcie-node", "a100-pcie-80gb")],
    "p6e-gb200 UltraServer": [("p6e-gb200", "gb200")],
    "TPU v5p host": [("tpu-v5p-host", "tpu-v5p")],
    "TPU v6e": [("tpu-v6e-host", "tpu-v6e")],
    "TPU7x": [("tpu-v7-host", "tpu-v7")],
    "Gaudi2 HLS2": [("hls2", "gaudi-2")],
    "Gaudi3 HLS3": [("hls3", "gaudi-3")],
    "MI300X OAM node": [("mi300x-node", "mi300x")],
    "MI355X OAM node": [("mi355x-node", "mi355x")],
    "A800/A100 FlagPerf server": [("a100-40gb-2nic-node", "a100-sxm-40gb")],
    "DGX Spark": [("dgx-spark", "gb10")],
    "MCCX D800": [("mccx-d800", "mtt-s4000")],
    "Atlas 800T A2": [("atlas-800t-a2", "ascend-910b-64gb")],
    "MetaX C550 OAM server": [("c550-node", "c550-64gb")],
    "Iluvatar R5300 G5": [("r5300-g5", "bi150")],
}
# What the text of `gpu` means for cloud instances, whose own name is the id.
CLOUD = {
    "V100 16GB": "v100-sxm-16gb", "A100 40GB": "a100-sxm-40gb", "A100 80GB": "a100-sxm-80gb",
    "H100 80GB": "h100-sxm-80gb", "H200": "h200-sxm-141gb", "B200": "b200-sxm",
    "B300": "b300-sxm", "GB200": "gb200", "GB300": "gb300", "Trainium2": "trainium2",
    "Trainium": "trainium1", "T4": "t4", "A10G": "a10g", "L4": "l4", "MI300X": "mi300x",
    "A100 PCIe 80GB": "a100-pcie-80gb", "H100 NVL": "h100-nvl-94gb",
}
# Typical workstations and mixed servers are not one node type; the user writes them out.
SKIPPED = {"pairwise NVLink server (a40/a100/h100)", "workstation 1x RTX 3090/4090",
           "workstation 2x RTX 3090 + NVLink bridge", "workstation 2-4x RTX 4090/5090"}
# Corrections of suspect.csv: (column, value).
FIXES = {
    "Standard_ND96isr_MI300X_v5": ("intra_gbps_per_gpu_unidir", "448"),
    "MI300X OAM node": ("intra_gbps_per_gpu_unidir", "448"),
    "MI355X OAM node": ("intra_gbps_per_gpu_unidir", "535.5"),
    "HGX H200 node (MLPerf submission)": ("inter_node_gbit_per_node", "3200"),
}
DOMAIN_72 = {"GB200 NVL72 rack", "GB300 NVL72 rack"}


def topology(text):
    t = text.lower()
    if "nvswitch" in t or "nvl72" in t or "nvlink 5 domain" in t:
        return "fabric_switch"
    if any(w in t for w in ("mesh", "torus", "hypercube", "nvlink 2", "roce", "mtlink")):
        return "mesh"
    if "bridge" in t:
        return "bridge_pair"
    return "none"


def known_accelerators():
    found = set()
    for _, _, names in os.walk(os.path.join(ROOT, "data", "hardware")):
        found |= {n[:-5] for n in names if n.endswith(".toml")}
    return found


def systems():
    files, known = {}, known_accelerators()
    for r in rows("hardware/systems.csv"):
        name = r["system"]
        if name in SKIPPED:
            continue
        fixed = FIXES.get(name)
        if fixed:
            r[fixed[0]] = fixed[1]
        targets = SYSTEMS.get(name) or [(name.lower(), CLOUD[r["gpu"]])]
        for id, accelerator in targets:
            if accelerator not in known:
                print(f"skipped {name}: no catalogue entry {accelerator}")
                continue
            s = Sheet("system", id, r["source"], date_of(r["source"]))
            s.put("name", name if len(targets) == 1 else f"{name}: {accelerator}")
            s.put("vendor", slug(r["provider_or_vendor"]))
            s.put("accelerator", accelerator)
            count = number(r["gpus_per_node"])
            if name in DOMAIN_72:
                s.put("count", 72, "suspect list of the gathered data: 4 is the tray, "
                                   "the NVLink domain is 72")
                s.put("tray_count", 4)
            elif count is None:
                print(f"skipped {name}: count unknown")
                continue
            else:
                s.put("count", count)
            s.put("intra.topology", topology(r["intra_node_topology"]))
            s.put("intra.description", r["intra_node_topology"])
            s.put("intra.one_way_gb_per_s", number(r["intra_gbps_per_gpu_unidir"]),
                  "suspect list of the gathered data"
                  if fixed and fixed[0].startswith("intra") else None)
            per_node = number(r["inter_node_gbit_per_node"])
            each = number(r["gbit_per_gpu"])
            s.put("inter.nic", r["inter_node_nic"])
            s.put("inter.gbit_per_s_per_node", per_node)
            if each is not None:
                s.put("inter.one_way_gb_per_s_per_accelerator", tidy(each / 8),
                      "derived: stated Gbit/s per accelerator / 8")
            elif per_node is not None and count:
                s.put("inter.one_way_gb_per_s_per_accelerator", tidy(per_node / count / 8),
                      "derived: Gbit/s per node / accelerators / 8")
            s.put("host.cpu", r["cpu"])
            s.put("host.cores", number(r["vcpus_or_cores"]))
            ram = re.match(r"[\d.]+", r["ram_gb"])
            if ram and "TB" in r["ram_gb"]:
                s.put("host.ram_gb", tidy(1000 * float(ram.group())))
            elif ram:
                s.put("host.ram_gb", float(ram.group()))
            if (kw := number(r["power_kw"])) is not None:
                s.put("power_w", tidy(1000 * kw))
            s.put("note.scale_out", r["scale_out_notes"])
            s.put("note.conflicts", r["conflicts"])
            files[f"{re.sub(r'[^a-z0-9.-]+', '-', id)}.toml"] = s.text("import_systems.py")
    write_tree("systems", files)


NETWORK_README = "stas00/ml-engineering@744d01e network/README.md"
PCIE_SOURCE = "PCI Express Base Specification: transfer rate * lanes * line code / 8"
IB_SOURCE = "InfiniBand Trade Association roadmap: 4x port rates HDR 200, NDR 400, XDR 800 Gb/s"
ETHERNET_SOURCE = "IEEE 802.3 port rates"


def link(files, id, kind, topo, one_way, source, name):
    s = Sheet("link", id, source, date_of(source))
    s.put("name", name)
    s.put("link_kind", kind)
    s.put("topology", topo)
    s.put("one_way_gb_per_s", tidy(one_way))
    files[f"{id}.toml"] = s.text("import_systems.py")


def links():
    files = {}
    for gen, one_way in {1: 80, 2: 150, 3: 300, 4: 450, 5: 900, 6: 1800}.items():
        link(files, f"nvlink{gen}", "peer", "mesh" if gen < 3 else "fabric_switch", one_way,
             NETWORK_README, f"NVLink {gen}, all links of an SXM board")
    link(files, "xgmi-mi300", "peer", "mesh", 448, NETWORK_README, "xGMI mesh, 7 x 64 GB/s")
    link(files, "xgmi-mi350", "peer", "mesh", 535.5, NETWORK_README, "xGMI mesh, 7 x 76.5 GB/s")
    for gen, gbit in {3: 8 * 128 / 130, 4: 16 * 128 / 130, 5: 32 * 128 / 130,
                      6: 64 * 242 / 256}.items():
        for lanes in (1, 4, 8, 16):
            link(files, f"pcie{gen}x{lanes}", "pcie", "none", round(gbit * lanes / 8, 4),
                 PCIE_SOURCE, f"PCIe {gen}.0 x{lanes}")
    for gbit in (100, 200, 400, 800):
        link(files, f"ib{gbit}", "network", "fabric_switch", gbit / 8, IB_SOURCE,
             f"InfiniBand, one {gbit} Gb/s port per accelerator")
        link(files, f"roce{gbit}", "network", "fabric_switch", gbit / 8, ETHERNET_SOURCE,
             f"RoCE, one {gbit} Gb/s port per accelerator")
    for gbit in (1, 10, 25, 40, 50, 100):
        link(files, f"eth{gbit}", "network", "fabric_switch", gbit / 8, ETHERNET_SOURCE,
             f"Ethernet, {gbit} Gb/s per accelerator")
    link(files, "optical1600", "network", "fabric_switch", 200,
         "brief of the project, row B15: 1.6 Tb/s optical links",
         "optical link, 1.6 Tb/s per accelerator")
    write_tree("links", files)


if __name__ == "__main__":
    systems()
    links()
