"""Which hardware the names in the world mean. Reviewable: every name is written out in full, and
names are compared in canonical form only (case, blanks, '-' and '_' do not count), never by part.

GROUPS: short names and their candidates; one candidate means the name is clear enough.
WORLD: names as the evidence, prices, operator and system files write them.
UNKNOWN: names of hardware outside the catalogue, with the reason.
DRIVER: what nvidia-smi, rocm-smi and the like print.
"""

A100_40 = ["a100-sxm-40gb", "a100-pcie-40gb"]
A100_80 = ["a100-sxm-80gb", "a100-pcie-80gb"]
H100_80 = ["h100-sxm-80gb", "h100-pcie-80gb"]
V100_16 = ["v100-sxm-16gb", "v100-pcie-16gb"]
V100_32 = ["v100-sxm-32gb", "v100-pcie-32gb"]
PRO_6000 = ["rtx-pro-6000-server", "rtx-pro-6000-workstation", "rtx-pro-6000-max-q"]
STRIX_HALO = ["ryzen-ai-max-395-64gb", "ryzen-ai-max-395-96gb", "ryzen-ai-max-395-128gb"]
M1_8 = ["m1-8core-8gb", "m1-8core-16gb"]
M4_MAX = ["m4-max-32core", "m4-max-40core-48gb", "m4-max-40core-128gb"]
M1_MAX = ["m1-max-32core-32gb", "m1-max-32core-64gb"]
M2_MAX = ["m2-max-38core-32gb", "m2-max-38core-64gb", "m2-max-38core-96gb"]
M1_ULTRA = ["m1-ultra-48core-64gb", "m1-ultra-48core-128gb", "m1-ultra-64core-64gb",
            "m1-ultra-64core-128gb"]
M2_ULTRA = ["m2-ultra-76core-64gb", "m2-ultra-76core-128gb", "m2-ultra-76core-192gb"]

GROUPS = {
    "a100": A100_40 + A100_80, "a100-40gb": A100_40, "a100-80gb": A100_80,
    "a100-pcie": ["a100-pcie-40gb", "a100-pcie-80gb"],
    "a100-sxm": ["a100-sxm-40gb", "a100-sxm-80gb"],
    "a100-sxm4": ["a100-sxm-40gb", "a100-sxm-80gb"],
    "a800": ["a800-sxm-80gb", "a800-pcie-40gb"], "a800-80gb": ["a800-sxm-80gb"],
    "h100": H100_80 + ["h100-nvl-94gb"], "h100-80gb": H100_80, "h100-94gb": ["h100-nvl-94gb"],
    "h100-sxm": ["h100-sxm-80gb"], "h100-sxm5": ["h100-sxm-80gb"],
    "h100-pcie": ["h100-pcie-80gb"], "h100-nvl": ["h100-nvl-94gb"],
    "h100-hgx": ["h100-sxm-80gb"], "hgx-h100": ["h100-sxm-80gb"],
    "h200": ["h200-sxm-141gb"], "h200-sxm": ["h200-sxm-141gb"], "h200-141gb": ["h200-sxm-141gb"],
    "h200-sxm5": ["h200-sxm-141gb"], "h200-nvl-141gb": ["h200-nvl"],
    "h20": ["h20-sxm-96gb", "h20-sxm-141gb"], "h20-96gb": ["h20-sxm-96gb"],
    "h20-141gb": ["h20-sxm-141gb"], "h20-3e": ["h20-sxm-141gb"],
    "h800": ["h800-sxm-80gb"], "h800-80gb": ["h800-sxm-80gb"],
    "gh200": ["gh200-96gb", "gh200-144gb"],
    "b200": ["b200-sxm"], "b300": ["b300-sxm"], "rubin": ["rubin-sxm"],
    "v100": V100_16 + V100_32, "v100-16gb": V100_16, "v100-32gb": V100_32,
    "v100-sxm": ["v100-sxm-16gb", "v100-sxm-32gb"], "v100-sxm2": ["v100-sxm-16gb",
                                                                 "v100-sxm-32gb"],
    "v100-pcie": ["v100-pcie-16gb", "v100-pcie-32gb"], "v100s": ["v100s-pcie-32gb"],
    "p100": ["p100-sxm-16gb", "p100-pcie-16gb", "p100-pcie-12gb"],
    "p100-16gb": ["p100-sxm-16gb", "p100-pcie-16gb"], "p100-sxm": ["p100-sxm-16gb"],
    "p100-sxm2": ["p100-sxm-16gb"], "p100-pcie": ["p100-pcie-16gb", "p100-pcie-12gb"],
    "rtx-pro-6000": PRO_6000, "rtx-pro-6000-blackwell": PRO_6000,
    "rtx-6000": ["quadro-rtx-6000", "rtx-6000-ada"],
    "rtx-8000": ["quadro-rtx-8000"],
    "rtx-5000": ["quadro-rtx-5000", "rtx-5000-ada"],
    "a6000": ["rtx-a6000"], "a5000": ["rtx-a5000"], "a4500": ["rtx-a4500"],
    "a4000": ["rtx-a4000"], "a5500": ["rtx-a5500"], "a2000": ["rtx-a2000-6gb", "rtx-a2000-12gb"],
    "6000-ada": ["rtx-6000-ada"],
    "mi50": ["mi50-16gb", "mi50-32gb"], "gaudi2": ["gaudi-2"], "gaudi3": ["gaudi-3"],
    "gaudi1": ["gaudi-1"], "gaudi": ["gaudi-1"], "hl-205": ["gaudi-1"],
    "strix-halo": STRIX_HALO, "radeon-8060s": STRIX_HALO, "ryzen-ai-max-395": STRIX_HALO,
    "ryzen-ai-max+-395": STRIX_HALO, "project-digits": ["gb10"],
    "tpu-v3": ["tpu-v3"], "trillium": ["tpu-v6e"], "trainium": ["trainium1"],
    "m1": ["m1-7core-8gb", "m1-7core-16gb"] + M1_8, "m4-max": M4_MAX,
    "arc-a770": ["arc-a770-8gb", "arc-a770-16gb"],
    "pvc": ["gpu-max-1100", "gpu-max-1350", "gpu-max-1550"],
    "w7900": ["radeon-pro-w7900", "radeon-pro-w7900-dual-slot"],
}

WORLD = {
    "A100-PCIe-80GB (1x1g.10gb MIG)": ("a100-pcie-80gb:1g.10gb", "one instance of the card"),
    "A100-SXM-80GB (1x1g.10gb MIG)": ("a100-sxm-80gb:1g.10gb", "one instance of the card"),
    "A400": "rtx-a400", "AI Pro R9700": "radeon-ai-pro-r9700", "Pro W7700": "radeon-pro-w7700",
    "Orin NX": "jetson-orin-nx-16gb", "Jetson Orin NX": "jetson-orin-nx-16gb",
    "A10-24GB": "a10", "A100-40GiB-SXM": "a100-sxm-40gb", "A800-80GiB-SXM": "a800-sxm-80gb",
    "A800-SXM-80GB": "a800-sxm-80gb", "A800-SXM4-80GB": "a800-sxm-80gb",
    "A10-24Q": ("a10", "vGPU profile with the whole card"),
    "A100-SXM-80C": ("a100-sxm-80gb", "vGPU profile with the whole card"),
    "H100-SXM-96GB-HBM2e-500W": "h100-sxm-96gb-hbm2e",
    "H100-80C": (H100_80, "vGPU profile with the whole card"),
    "Virtualized NVIDIA H200-SXM-141GB": "h200-sxm-141gb",
    "A100 40GB SXM": "a100-sxm-40gb", "A100 PCIe 80GB": "a100-pcie-80gb",
    "NVIDIA A100 PCIe": ["a100-pcie-40gb", "a100-pcie-80gb"],
    "NVIDIA A100 SXM": ["a100-sxm-40gb", "a100-sxm-80gb"],
    "A100-80GB-SXM": "a100-sxm-80gb", "A100-80GB PCIe": "a100-pcie-80gb",
    "H100 SXM 1x": "h100-sxm-80gb", "H100 SXM 8x (per GPU)": "h100-sxm-80gb",
    "H100 HGX (80GB)": "h100-sxm-80gb", "H100 PCIe (80GB)": "h100-pcie-80gb",
    "H100/H200 SXM5": ["h100-sxm-80gb", "h200-sxm-141gb"],
    "H20-3e-143GB": "h20-sxm-141gb",
    "B200-SXM-180GB": "b200-sxm", "GB200-192GB": "gb200", "GB200 (Blackwell)": "gb200",
    "NVIDIA GB200 SXM": "gb200", "NVIDIA GH200 SXM": ["gh200-96gb", "gh200-144gb"],
    "GH200 (96 GB)": "gh200-96gb",
    "GH200 Grace Hopper Superchip 96GB": "gh200-96gb",
    "GH200 Grace Hopper Superchip 144GB": "gh200-144gb",
    "V100 SXM2": ["v100-sxm-16gb", "v100-sxm-32gb"],
    "V100-SXM-16GB/32GB": ["v100-sxm-16gb", "v100-sxm-32gb"],
    "Tesla P100-PCIE-16GB": "p100-pcie-16gb", "Tesla P40": "p40", "Tesla P4": "p4",
    "Tesla V100-SXM2-16GB": "v100-sxm-16gb", "Tesla V100-PCIE-32GB": "v100-pcie-32gb",
    "A40/A100/H100": ["a40"] + A100_80 + H100_80,
    "RTX 3090/4090": ["rtx-3090", "rtx-4090"], "RTX 4090/5090": ["rtx-4090", "rtx-5090"],
    "RTX4090 (4 GPUs implied by busbw/algbw=1.5)": "rtx-4090",
    "NVIDIA GeForce RTX 4080 16GB": "rtx-4080", "QuadroRTX8000-48GB": "quadro-rtx-8000",
    "RTX5000 (16 GB)": "quadro-rtx-5000", "RTX 4000 Ada-PCIe-20GB": "rtx-4000-ada",
    "RTX PRO 6000 Blackwell Max-Q": "rtx-pro-6000-max-q",
    "RTX PRO 6000 Blackwell Server": "rtx-pro-6000-server", "RTX PRO 6000 Server":
        "rtx-pro-6000-server",
    "7900 XT": "rx-7900-xt", "RX7900XTX": "rx-7900-xtx", "Radeon MI25": "mi25",
    "Arc Pro B60 Dual 48G": ("arc-pro-b60", "board with two B60"),
    "Gaudi HL-205": "gaudi-1", "TPU v6": "tpu-v6e", "TPU v3 device": "tpu-v3",
    "TPU v3 pod": "tpu-v3", "TPU v4 pod": "tpu-v4",
    "Ryzen AI Max+ 395 (Radeon 8060S)": STRIX_HALO,
    "Framework Desktop Mainboard (395+)": STRIX_HALO,
    "Framework Mainboard (128GB)": "ryzen-ai-max-395-128gb",
    "Apple M1 7-Core GPU": ["m1-7core-8gb", "m1-7core-16gb"],
    "Apple M1 Max 32-Core GPU": M1_MAX, "Apple M2 Ultra 76-Core GPU": M2_ULTRA,
    "Apple M4 Max": M4_MAX, "Apple Mac Studio (M1 Ultra)": M1_ULTRA,
    "Apple Mac Studio (M2 Ultra)": M2_ULTRA, "Apple MacBook Pro (M1 Max)": M1_MAX,
    "Apple MacBook Pro (M2 Max)": M2_MAX,
    "Apple iPad Pro (M1)": M1_8,
    "Apple iPad Pro (M2)": ["m2-10core-8gb", "m2-10core-16gb"],
    "M1 Max Mac Studio (10 core - 64GB)": "m1-max-32core-64gb",
    "M1 Ultra (48 GPU Core) 64GB": "m1-ultra-48core-64gb",
    "M4 Mac mini (10 core - 32GB)": "m4-10core-32gb",
    "Mac Studio (M3 Ultra 512GB)": "m3-ultra-80core-512gb",
    "QUALCOMM Cloud AI 100 PCIe/HHHL Pro": "cloud-ai-100-pro",
    "QUALCOMM Cloud AI 100 PCIe/HHHL Standard": "cloud-ai-100-standard",
    "Jetson AGX Orin": "jetson-agx-orin-64gb", "Orin": "jetson-agx-orin-64gb",
    "Intel Arc A310 ECO": "arc-a310", "NVIDIA GeForce RTX 4080": "rtx-4080",
    "GeForce RTX 4080": "rtx-4080", "Intel Arc B60": "arc-pro-b60", "NVIDIA GB10 (DGX Spark)": "gb10",
    "Volta V100": V100_16 + V100_32, "Ampere A100": A100_40 + A100_80,
    "Pascal P100": ["p100-sxm-16gb", "p100-pcie-16gb", "p100-pcie-12gb"],
    "Blackwell DC B200": "b200-sxm", "Blackwell Ultra B300": "b300-sxm",
}
for _n in (8, 32, 64, 128, 256, 512, 1024, 2048):
    WORLD[f"tpu-v3-{_n}"] = ("tpu-v3", "slice of that many cores, two cores a chip")

MIXED = "several kinds of hardware in one row"
NO_BANDWIDTH = "no memory bandwidth in the gathered data"
NO_PEAK = "no dense peak in the gathered data"
PROCESSOR = "a processor whose facts are not in the catalogue"
PHONE = "a phone; its neural engine's bandwidth and rates by format are not published"
ABSENT = "not in the gathered hardware table"

UNKNOWN = {
    "AMD Instinct MI300X 192GB HBM3 (x32), AMD Instinct MI325X 256GB HBM3e (x16)": MIXED,
    "AMD Instinct MI325X 256GB HBM3E (x16), AMD Instinct MI300X 192GB HBM3 (x8)": MIXED,
    "RTX 4090 + RTX 3090 Ti": MIXED, "RTX 4090 + RTX 3090-Ti": MIXED,
    "RTX 4070 Ti + RTX 3090 Ti": MIXED, "NVIDIA GeForce RTX 3090+NVIDIA RTX A4000": MIXED,
    "Framework Mainboard Cluster (512GB)": "a cluster of boards",
    "24 GB card under WSL2": "the card is not named",
    "unspecified (see source: older cluster)": "the card is not named",
    "(none in row)": "a VM price without its accelerator",
    "H100-SXM-96GB": "96 GB variant; " + ABSENT,
    "H800-NVL-80GB": ABSENT, "RTX-2000E-Ada-16GB": ABSENT,
    "Intel Arc B570": NO_BANDWIDTH,
    "BR104-300W PCIe": ABSENT, "RBLN ATOM": ABSENT, "MLSOC DualM.2": ABSENT,
    "SAPEON X220-compact": ABSENT, "SAPEON X220-enterprise": ABSENT,
    "UntetherAI speedAI240 Preview": ABSENT, "UntetherAI speedAI240 Slim": ABSENT,
    "QUALCOMM Cloud AI 100 DM.2": NO_PEAK, "QUALCOMM Cloud AI 100 DM.2e": NO_PEAK,
    "QUALCOMM Cloud AI 100 PCIe/HHHL Lite": NO_PEAK,
    "Ascend 910B": NO_BANDWIDTH, "Ascend 910B (64 GB)": NO_BANDWIDTH,
    "Atlas800T A2": NO_BANDWIDTH, "BI150": NO_BANDWIDTH, "C550 64G": NO_PEAK,
    "曦云®C550 64G": NO_PEAK,
    "NVIDIA Jetson Orin Nano 8GB Super": NO_PEAK,
    "TPU-v7-Ironwood (per device = half chip)": NO_BANDWIDTH, "TPU7x": NO_BANDWIDTH,
    "TPU v2 device": NO_BANDWIDTH, "TPU v2 pod": NO_BANDWIDTH,
    "V100 SXM3 32GB": ABSENT, "K80": ABSENT, "K80 (12 GB)": ABSENT, "M60": ABSENT, "T4g": ABSENT,
    "Radeon Pro V520": ABSENT, "RTX4000 (8 GB)": "Quadro RTX 4000; " + ABSENT,
    "Inferentia": "first generation; " + ABSENT, "Virtex UltraScale (VU9P)": "an FPGA",
    "CPU": "a processor that is not named",
    "Apple iPhone 12 Mini": PHONE, "Apple iPhone 12 Pro": PHONE, "Apple iPhone 12 Pro Max": PHONE,
    "Apple iPhone 13": PHONE, "Apple iPhone 13 Pro Max": PHONE, "Apple iPhone 14": PHONE,
    "Apple iPhone 14 Pro Max": PHONE, "Apple iPhone 15 Pro Max": PHONE,
}
for _n in (8, 32, 128, 256, 512):
    UNKNOWN[f"tpu-v2-{_n}"] = NO_BANDWIDTH

DRIVER = {
    "NVIDIA H100 80GB HBM3": "h100-sxm-80gb", "NVIDIA H100 PCIe": "h100-pcie-80gb",
    "NVIDIA H100 NVL": "h100-nvl-94gb", "NVIDIA H100 SXM": "h100-sxm-80gb",
    "NVIDIA H200": "h200-sxm-141gb", "NVIDIA H200 SXM": "h200-sxm-141gb",
    "NVIDIA H20": "h20-sxm-96gb", "NVIDIA H20-3e": "h20-sxm-141gb", "NVIDIA H800": "h800-sxm-80gb",
    "NVIDIA A100-SXM4-40GB": "a100-sxm-40gb", "NVIDIA A100-SXM4-80GB": "a100-sxm-80gb",
    "NVIDIA A100-PCIE-40GB": "a100-pcie-40gb", "NVIDIA A100 80GB PCIe": "a100-pcie-80gb",
    "A100-SXM4-40GB": "a100-sxm-40gb", "A100-PCIE-40GB": "a100-pcie-40gb",
    "NVIDIA A800-SXM4-80GB": "a800-sxm-80gb", "NVIDIA A800 40GB Active": "a800-pcie-40gb",
    "NVIDIA GH200 480GB": "gh200-96gb", "NVIDIA GH200 144G HBM3e": "gh200-144gb",
    "NVIDIA B200": "b200-sxm", "NVIDIA B200 SXM": "b200-sxm",
    "NVIDIA B300 SXM6 AC": "b300-sxm", "NVIDIA B300 SXM": "b300-sxm",
    "NVIDIA GB200": "gb200", "NVIDIA GB300": "gb300", "NVIDIA GB10": "gb10",
    "Tesla T4": "t4", "Tesla V100-SXM2-32GB": "v100-sxm-32gb", "Tesla V100-PCIE-16GB":
        "v100-pcie-16gb", "Tesla V100S-PCIE-32GB": "v100s-pcie-32gb",
    "Tesla P100-SXM2-16GB": "p100-sxm-16gb", "Tesla P100-PCIE-12GB": "p100-pcie-12gb",
    "NVIDIA TITAN RTX": "titan-rtx", "NVIDIA TITAN V": "titan-v", "NVIDIA TITAN Xp": "titan-xp",
    "AMD Instinct MI300X OAM": "mi300x", "AMD Instinct MI325X OAM": "mi325x",
    "AMD Instinct MI250X / MI250": ["mi250x", "mi250"], "Intel Gaudi 2": "gaudi-2",
    "Intel Gaudi 3": "gaudi-3",
}

# Systems that several node types share a name with.
SYSTEM_GROUPS = {
    "dgx-a100": ["dgx-a100-40gb", "dgx-a100-80gb"],
    "dgx-1": ["dgx-1-p100", "dgx-1-v100-16gb", "dgx-1-v100-32gb"],
    "dgx-1-v100": ["dgx-1-v100-16gb", "dgx-1-v100-32gb"],
    "nvl72": ["gb200-nvl72", "gb300-nvl72"],
}
