"""Ids and families of accelerators: how a row of the gathered table is called in the catalogue."""
import re

from catalogue_sheets import slug

# Rows whose id the rule below would not spell as people do.
IDS = {
    "GeForce RTX 4080 16GB": "rtx-4080",
    "RTX PRO 6000 Blackwell Max-Q Workstation Edition": "rtx-pro-6000-max-q",
    "RTX PRO 6000 Blackwell Workstation Edition": "rtx-pro-6000-workstation",
    "RTX PRO 6000 Blackwell Server Edition": "rtx-pro-6000-server",
    "RTX PRO 5000 Blackwell": "rtx-pro-5000",
    "RTX PRO 4500 Blackwell": "rtx-pro-4500",
    "RTX PRO 4000 Blackwell": "rtx-pro-4000",
    "A16 (per GPU, 4 per board)": "a16",
    "A800 PCIe 40GB Active": "a800-pcie-40gb",
    "GH200 144GB HBM3e": "gh200-144gb",
    "GB200 (per GPU)": "gb200",
    "GB300 (per GPU)": "gb300",
    "GB10 (DGX Spark)": "gb10",
    "Rubin SXM (announced)": "rubin-sxm",
    "Instinct MI455X (announced)": "mi455x",
    "Gaudi (1)": "gaudi-1",
    "Gaudi 3 (HL-325L OAM)": "gaudi-3",
    "TPU v6e (Trillium)": "tpu-v6e",
    "TPU7x (Ironwood)": "tpu-v7",
    "Trainium (1)": "trainium1",
    "Ascend 950DT (announced)": "ascend-950dt",
    "Data Center GPU Max 1100": "gpu-max-1100",
    "Data Center GPU Max 1350": "gpu-max-1350",
    "Data Center GPU Max 1550": "gpu-max-1550",
    "M1 (8-core GPU)": "m1-8core",
    "Jetson AGX Orin 64GB": "jetson-agx-orin-64gb",
    "Jetson Orin NX 16GB": "jetson-orin-nx-16gb",
    "Ascend 910B in Atlas 800T A2": "ascend-910b-64gb",
}


def base_id(vendor, name):
    if name in IDS:
        return IDS[name]
    n = name
    if vendor == "Apple":
        m = re.fullmatch(r"(.*) \((\d+)\)", n)
        if m:
            return f"{slug(m.group(1))}-{m.group(2)}core"
    for drop in ("GeForce ", "Instinct ", " Generation"):
        n = n.replace(drop, "")
    n = n.replace("Radeon RX", "RX")
    n = re.sub(r"\bSXM\d\b", "SXM", n)
    return slug(n)


VENDORS = {"NVIDIA": "nvidia", "AMD": "amd", "Intel": "intel", "Google": "google", "AWS": "aws",
           "Huawei": "huawei", "Cambricon": "cambricon", "Hygon": "hygon", "Apple": "apple",
           "Qualcomm": "qualcomm", "Ampere": "ampere", "Moore Threads": "moore-threads",
           "MetaX": "metax", "Iluvatar": "iluvatar"}

ARCHITECTURES = {
    "Pascal": "pascal", "Pascal GP100": "pascal_gp100", "Volta": "volta", "Turing": "turing",
    "Ampere GA100": "ampere_ga100", "Ampere GA10x": "ampere_ga10x", "Ampere": "ampere_ga10x",
    "Ada": "ada", "Hopper": "hopper", "Blackwell": "blackwell",
    "Blackwell Ultra": "blackwell_ultra", "Blackwell GB20x": "blackwell_gb20x", "Rubin": "rubin",
    "GCN 4": "gcn4", "GCN5": "gcn5", "GCN 5": "gcn5", "GCN5.1": "gcn5_1", "CDNA": "cdna1", "CDNA2": "cdna2",
    "CDNA3": "cdna3", "CDNA4": "cdna4", "CDNA5": "cdna5", "RDNA 2": "rdna2", "RDNA 3": "rdna3",
    "RDNA 3.5": "rdna3_5", "RDNA 4": "rdna4", "Xe-HPG Alchemist": "xe_hpg",
    "Xe-HPC (PVC)": "xe_hpc", "Xe2-HPG Battlemage": "xe2_hpg", "Gaudi": "gaudi1",
    "Gaudi2": "gaudi2", "Gaudi3": "gaudi3", "NeuronCore-v2": "neuroncore_v2",
    "NeuronCore-v3": "neuroncore_v3", "NeuronCore-v4": "neuroncore_v4", "Da Vinci": "da_vinci",
    "MLUv01": "mlu_v01", "MLUv02": "mlu_v02", "Apple GPU": "apple_gpu", "MUSA gen3": "musa_gen3",
    "MUSA gen4": "musa_gen4", "CPU": "cpu", "NPU": "npu",
}


def architecture(row):
    if row["architecture"] == "TPU":
        return slug(re.sub(r" \(.*", "", row["name"])).replace("-", "_")
    return ARCHITECTURES.get(row["architecture"], slug(row["architecture"]).replace("-", "_"))


def family(row, arch):
    """Split by market where operations per SM and clock differ (rate sheets of kind "family")."""
    name = row["name"]
    consumer = name.startswith(("GeForce", "TITAN"))
    if row["name"].startswith("Jetson"):
        return "jetson_" + arch
    if arch == "turing":
        if name.startswith("GeForce GTX 16"):
            return "turing_tu11x"  # no tensor cores
        return "turing_geforce" if consumer else "turing_pro"
    if arch == "ampere_ga10x":
        return "ampere_geforce" if consumer else "ampere_pro"
    if arch == "ada":
        if name == "L40":
            return "ada_half"  # stated at half the matrix rates of the L40S and RTX 6000 Ada
        return "ada_geforce" if consumer else "ada_pro"
    if arch == "hopper":
        return "hopper_h20" if name.startswith("H20 ") else "hopper"
    if arch == "blackwell_gb20x":
        if name.startswith("GB10"):
            return "blackwell_gb10"
        return "blackwell_geforce" if consumer else "blackwell_pro"
    if arch == "cdna3" and name.startswith("Instinct MI308X"):
        return "cdna3_mi308x"  # cut rates
    return arch or "unknown"


# family id -> its rows in arch_rates.csv
RATE_ROWS = {
    "volta": "volta", "turing_pro": "turing_pro", "turing_geforce": "turing_gf",
    "ampere_ga100": "ga100", "ampere_geforce": "ga10x_gf", "ampere_pro": "ga10x_pro",
    "ada_geforce": "ada_gf", "ada_pro": "ada_pro", "ada_half": "ada_pro", "blackwell_geforce": "bw_gf",
    "blackwell_pro": "bw_pro", "hopper": "hopper_sxm/pcie", "blackwell": "blackwell_b200",
    "cdna3": "cdna3 MI300X", "cdna4": "cdna4 MI355X", "rdna2": "rdna2", "rdna3": "rdna3",
    "rdna4": "rdna4",
}
