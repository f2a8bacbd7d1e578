"""Facts that the gathered table lacks, each with the source they were read from.

FILLS: name of a row -> {column: (value, source, date)}.
ADDITIONS: whole rows, in the columns of gpus.csv.
"""
from catalogue_sheets import rows

GA102 = "NVIDIA Ampere GA102 GPU Architecture whitepaper: NVLink 3, 112.5 GB/s both ways together"
TU102 = "NVIDIA Turing TU102: NVLink 2, 100 GB/s both ways together"
APPLE_RATE = "derived: GPU cores * 256 * clk; 256 per core and clock holds for M1 to M4"
M4_PAGE = "hmc-tech.com gpu pages of M4 and M4 Pro"
M3_ULTRA = "Ars Technica, 2025-03-05, table of Apple M3 Ultra: 819.2 GB/s"

FILLS = {
    "M2 Pro (19)": {
        "fp32_tflops": (round(19 * 256 * 1.398e-3, 3), APPLE_RATE + "; 1398 MHz: hmc-tech.com", ""),
    },
    "M2 Max (38)": {
        "mem_bw_gbps": (400, "llmcheck.net table of Apple memory bandwidth; wccftech", "2026"),
    },
    "M3 (10)": {"fp32_tflops": (round(10 * 256 * 1.398e-3, 3), APPLE_RATE + "; M3 at 1398 MHz", "")},
    "M3 Max (40)": {"fp32_tflops": (round(40 * 256 * 1.398e-3, 3), APPLE_RATE, "")},
    "M3 Ultra (60)": {
        "mem_bw_gbps": (819.2, M3_ULTRA, "2025-03-05"),
        "mem_gb": ("96/256", M3_ULTRA, "2025-03-05"),
    },
    "M4 (10)": {"fp32_tflops": (3.76, M4_PAGE, "2025")},
    "M4 Pro (20)": {"fp32_tflops": (7.53, M4_PAGE, "2025")},
    "M4 Max (40)": {
        "fp32_tflops": (round(40 * 256 * 1.678e-3, 3), APPLE_RATE + "; clock of the 32-core M4 Max",
                        ""),
    },
    "Radeon Pro W7900": {
        "mem_bw_gbps": (864, "itcreations.com page of the Radeon Pro W7900", "2026"),
    },
    "Radeon Pro W7900 Dual Slot": {
        "mem_bw_gbps": (864, "itcreations.com page of the Radeon Pro W7900", "2026"),
    },
}
FILLS["Radeon Pro W7700"] = {
    "mem_bw_gbps": (576, "AMD, product page of the Radeon PRO W7700: GDDR6, 256 bit, 18 Gb/s", "2023"),
    "mem_type": ("GDDR6", "AMD, product page of the Radeon PRO W7700", "2023"),
    "fp16_vector_tflops": (63.9, "derived: CUs * 512 * clk, twice the corrected FP32 rate", ""),
}
FILLS["Arc Pro B50"] = {
    "mem_bw_gbps": (224, "Intel, product page of the Arc Pro B50: GDDR6, 128 bit, 14 Gb/s", "2025"),
}
# 16 SMs, 5.3 TFLOPS FP32, 170 sparse INT8 TOPS of the GPU alone (the 275 include the DLAs).
FILLS["Jetson AGX Orin 64GB"] = {
    "mem_bw_gbps": (200, "svethardware.cz 50897: Orin, 200 GB/s", "2019-12"),
    "sm_or_cu": (16, "NVIDIA Jetson AGX Orin technical brief as quoted by mzph.cn 30785", "2022"),
    "fp32_tflops": (5.3, "NVIDIA Jetson AGX Orin technical brief as quoted by mzph.cn 30785",
                    "2022"),
    "int8_tops": (85, "half of the 170 sparse TOPS of the GPU in NVIDIA's technical brief, "
                      "quoted by mzph.cn 30785", "2022"),
    "fp16_tensor_fp32acc_tflops": (42.5, "derived: half of dense INT8, the ratio of every GA10x "
                                         "part that is not a GeForce", "2022"),
    "mem_type": ("LPDDR5 unified", "NVIDIA Jetson AGX Orin technical brief", "2022"),
}
for _name in ("GeForce RTX 3090", "GeForce RTX 3090 Ti", "RTX A4500", "RTX A5000", "RTX A5500",
              "RTX A6000"):
    FILLS.setdefault(_name, {})["link_gbps_bidir_total"] = (112.5, GA102, "2021")
# Cards whose bridges join pairs (all bridges fitted; both ways together).
for _name, _rate, _source in (
    ("A100 PCIe 40GB", 600, "NVIDIA A100 data sheet: NVLink bridge for 2 GPUs, 600 GB/s"),
    ("A100 PCIe 80GB", 600, "NVIDIA A100 data sheet: NVLink bridge for 2 GPUs, 600 GB/s"),
    ("H100 PCIe 80GB", 600, "NVIDIA H100 PCIe product brief PB-11133-001: three bridges, 600 GB/s"),
    ("H100 NVL 94GB", 600, "NVIDIA H100 data sheet: H100 NVL, NVLink 600 GB/s"),
    ("H200 NVL", 900, "NVIDIA H200 data sheet: H200 NVL, 2- or 4-way NVLink bridge, 900 GB/s a GPU"),
    ("A30", 200, "NVIDIA A30 data sheet: third-generation NVLink, 200 GB/s"),
    ("A40", 112.5, "NVIDIA A40 data sheet: NVLink 112.5 GB/s"),
):
    FILLS.setdefault(_name, {})["link_gbps_bidir_total"] = (_rate, _source, "2022")
for _name in ("GeForce RTX 2080 Ti", "Titan RTX"):
    FILLS.setdefault(_name, {})["link_gbps_bidir_total"] = (100, TU102, "2018")
for _name in [n for n in FILLS if n.startswith("M") and "fp32_tflops" in FILLS[n]]:
    FILLS[_name]["fp16_vector_tflops"] = (
        FILLS[_name]["fp32_tflops"][0],
        "gathered data: Apple's FP16 rate is its FP32 rate (no matrix unit before M5)", "")

_COLUMNS = list(rows("hardware/gpus.csv")[0])


def row(**facts):
    out = {c: "" for c in _COLUMNS}
    out.update({k: str(v) for k, v in facts.items()})
    return out


def apple(name, cores, clock_ghz, memory, bandwidth, source):
    peak = round(cores * 256 * clock_ghz * 1e-3, 3)
    return row(vendor="Apple", name=name, architecture="Apple GPU", sm_or_cu=cores,
               boost_mhz=round(clock_ghz * 1000), mem_gb=memory, mem_type="LPDDR unified",
               mem_bw_gbps=bandwidth, fp32_tflops=peak, fp16_vector_tflops=peak,
               form_factor="SoC", source=source,
               derived_fields="fp32_tflops=cores*256*clk;fp16_vector_tflops=cores*256*clk")


# The SRAM on the chip is what stands between the cores and LPDDR: its last-level cache.
QUALCOMM = "quic.github.io cloud-ai-sdk-pages, Architecture: key hardware specs of the SKUs"

ADDITIONS = [
    apple("M1 (7)", 7, 1.27, "8/16", 66.7,
          "gathered rows of the 8-core M1 (2.6 TFLOPS = 8 * 256 * 1.27 GHz), scaled to 7 cores"),
    apple("M1 Ultra (48)", 48, 1.296, "64/128", 800,
          "gathered rows of M1 Max (1296 MHz) and M1 Ultra (800 GB/s), 48 GPU cores"),
    apple("M3 Ultra (80)", 80, 1.398, "256/512", 819.2, M3_ULTRA + "; 1398 MHz as M3 Max"),
    row(vendor="AMD", name="Ryzen AI Max+ 395 (Radeon 8060S)", id="ryzen-ai-max-395",
        architecture="RDNA 3.5", compute_capability="gfx1151", launch_date="2025", sm_or_cu=40,
        boost_mhz=2900, mem_gb="64/96/128", mem_type="LPDDR5x unified", mem_bw_gbps=256, l2_mb="",
        fp32_tflops=14.85, fp16_vector_tflops=29.7,
        fp16_tensor_fp32acc_tflops=59.39, bf16_tensor_tflops=59.39, sparsity_2to4="no", tdp_w=120,
        form_factor="SoC", derived_fields="fp16_tensor_fp32acc_tflops=CU*512*clk;"
                                          "bf16_tensor_tflops=CU*512*clk",
        conflicts="a page on the 395 states 60 TFLOPS FP16; 45 to 120 W configurable",
        source="svethardware.cz 61477 (40 CU, 2900 MHz, 256 GB/s, 120 W); fpsbench.com 8060S "
               "(14.85 TFLOPS FP32); oldpan.me (gfx1151, FP16), 2025"),
    row(vendor="NVIDIA", name="H100 SXM5 96GB HBM2e 500W", id="h100-sxm-96gb-hbm2e",
        architecture="Hopper", compute_capability="9.0", sm_or_cu=132, boost_mhz=1980, mem_gb=96,
        mem_type="HBM2e", mem_bw_gbps=2400, l2_mb=50, fp32_tflops=66.9, tf32_tflops=494.7,
        fp16_vector_tflops=134, fp16_tensor_fp16acc_tflops=989.4, fp16_tensor_fp32acc_tflops=989.4,
        bf16_tensor_tflops=989.4, fp8_tflops=1978.9, int8_tops=1978.9, sparsity_2to4="yes",
        tdp_w=500, link_type="NVLink4", link_gbps_bidir_total=900, pcie="Gen5 x16",
        form_factor="SXM5", conflicts="peaks of the 700 W part; Meta's Grand Teton boards",
        source="A. Yang et al., arXiv:2411.01783, section 4: 96 GB HBM2e, 2.4 TB/s; "
               "pytorch/torchtitan benchmarks/llama3_h100_202412_torchtitan.md: 500 W, 2024-12"),
    row(vendor="NVIDIA", name="Quadro RTX 6000", architecture="Turing", compute_capability="7.5",
        sm_or_cu=72, mem_gb=24, mem_type="GDDR6", mem_bw_gbps=624, fp32_tflops=14.9,
        fp16_vector_tflops=29.9, fp16_tensor_fp16acc_tflops=119.4,
        fp16_tensor_fp32acc_tflops=119.4, int8_tops=238.9, sparsity_2to4="no", tdp_w=250,
        link_type="NVLink bridge (supported)", link_gbps_bidir_total=100, pcie="Gen3 x16",
        form_factor="PCIe card", conflicts="passive card; the active one has 672 GB/s",
        source="maychudoanhnghiep.vn, data sheet of the Quadro RTX 6000 passive"),
    row(vendor="AMD", name="Radeon AI PRO R9700", architecture="RDNA 4", compute_capability="gfx1201",
        launch_date="2025-07", sm_or_cu=64, boost_mhz=2920, mem_gb=32, mem_type="GDDR6",
        mem_bw_gbps=640, l3_mb=64, fp32_tflops=47.84, fp16_vector_tflops=95.68,
        fp16_tensor_fp32acc_tflops=191.4, bf16_tensor_tflops=191.4, fp8_tflops=382.7,
        int8_tops=382.7, int4_tops=765.5, sparsity_2to4="yes", tdp_w=300, pcie="Gen5 x16",
        form_factor="PCIe card",
        derived_fields="fp16_tensor_fp32acc_tflops=CU*1024*clk;bf16_tensor_tflops=CU*1024*clk;"
                       "fp8_tflops=CU*2048*clk;int8_tops=CU*2048*clk;int4_tops=CU*4096*clk",
        source="AMD, product page of the Radeon AI PRO R9700: 64 CUs, 2920 MHz, 32 GB, 640 GB/s, 300 W"),
    row(vendor="AMD", name="Radeon RX 580", architecture="GCN 4", compute_capability="gfx803",
        launch_date="2017-04-18", sm_or_cu=36, boost_mhz=1340, mem_gb=8, mem_type="GDDR5",
        mem_bw_gbps=256, l2_mb=2, fp32_tflops=6.175, fp16_vector_tflops=6.175, sparsity_2to4="no",
        tdp_w=185, pcie="Gen3 x16", form_factor="PCIe card",
        derived_fields="fp32_tflops=CU*128*clk;fp16_vector_tflops=CU*128*clk",
        source="AMD, product page of the Radeon RX 580: 36 CUs, 1340 MHz, 8 GB, 256 GB/s, 185 W"),
    row(vendor="NVIDIA", name="RTX A400", architecture="Ampere GA10x", compute_capability="8.6",
        launch_date="2024-04-16", sm_or_cu=6, boost_mhz=1762, mem_gb=4, mem_type="GDDR6",
        mem_bw_gbps=96, fp32_tflops=2.706, tf32_tflops=5.413, fp16_vector_tflops=2.706,
        fp16_tensor_fp16acc_tflops=10.83, fp16_tensor_fp32acc_tflops=10.83,
        bf16_tensor_tflops=10.83, int8_tops=21.65, int4_tops=43.3, sparsity_2to4="yes", tdp_w=50,
        link_type="none", pcie="Gen4 x8", form_factor="PCIe card",
        derived_fields="fp16_tensor_fp16acc_tflops=SM*1024*clk;fp16_tensor_fp32acc_tflops=SM*1024*clk;"
                       "bf16_tensor_tflops=SM*1024*clk;tf32_tflops=SM*512*clk;int8_tops=SM*2048*clk;"
                       "int4_tops=SM*4096*clk",
        source="NVIDIA, data sheet of the RTX A400: 768 cores, 4 GB, 96 GB/s, 50 W, 2.7 TFLOPS"),
    row(vendor="NVIDIA", name="Jetson Orin NX 16GB", architecture="Ampere", compute_capability="8.7",
        sm_or_cu=8, boost_mhz=918, mem_gb=16, mem_type="LPDDR5 unified", mem_bw_gbps=102.4,
        fp32_tflops=1.88, fp16_tensor_fp32acc_tflops=15.04, int8_tops=30.08, tdp_w=25,
        form_factor="SoM", conflicts="100 TOPS = sparse GPU+DLA total, not dense GPU",
        derived_fields="fp32_tflops=SM*256*clk;fp16_tensor_fp32acc_tflops=SM*2048*clk;"
                       "int8_tops=SM*4096*clk",
        source="NVIDIA, Jetson Orin NX series data sheet: 1024 cores, 918 MHz, 102.4 GB/s; rates a SM "
               "as the gathered Jetson AGX Orin (16 SMs)"),
    row(vendor="Qualcomm", name="Cloud AI 100 Standard", architecture="Cloud AI 100",
        mem_gb=16, mem_type="LPDDR4x", mem_bw_gbps=137, l2_mb=126, fp16_tensor_fp32acc_tflops=110,
        int8_tops=325, tdp_w=75, pcie="Gen4 x8", form_factor="PCIe HHHL",
        conflicts="other pages state 350 TOPS", source=QUALCOMM),
    row(vendor="Qualcomm", name="Cloud AI 100 Pro", architecture="Cloud AI 100",
        mem_gb=32, mem_type="LPDDR4x", mem_bw_gbps=137, l2_mb=144, fp16_tensor_fp32acc_tflops=125,
        int8_tops=375, tdp_w=75, pcie="Gen4 x8", form_factor="PCIe HHHL",
        conflicts="other pages state 400 TOPS", source=QUALCOMM),
]
