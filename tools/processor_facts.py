"""Processors as devices: what a core of each kind does in a cycle, and which processors have which cores.

CORES: arithmetic of one core and cycle, two operations for a multiply-add. Vector widths and ports:
stackoverflow.com 15655835 (SSE to AVX-512, Intel and AMD) and en.wikichip.org "flops"; whether both
AVX-512 ports multiply: Intel's product pages ("Number of AVX-512 FMAs"). 8-bit dot products (VNNI,
SDOT) do four times the multiply-adds of a 32-bit lane, bfloat16 ones twice. Matrix units: Intel's AMX
page, 2,048 operations in 8 bit and 1,024 in 16 bit a core and cycle.
PROCESSORS: cores, clocks, caches, memory channels and rates, as the maker's product page of the part
has them. Peaks are at the base clock, which a maker promises to all cores at the rated power; parts
rated at 15 W and less are at their highest clock, since small computers give them a multiple of that
(a mini PC with a 6 W N150 draws 26 to 30 W: geerlingguy/ai-benchmarks@bdf9441).
"""
from catalogue_sheets import Sheet, date_of

VECTORS = "stackoverflow.com 15655835 and en.wikichip.org flops: multiply-add ports and their width"
AMX = ("Intel, AMX overview, as quoted by realgenius.tistory.com 207: 2048 INT8 or 1024 BF16 "
       "operations a core and cycle")
ARM = "Arm software optimisation guides: ASIMD pipes of 128 bit, SDOT and FMLA each cycle"

# family -> (rates by mode, source)
CORES = {
    "core2": ({"fp32_vector": 8}, VECTORS),
    "goldmont": ({"fp32_vector": 8}, VECTORS + "; no AVX"),
    "haswell": ({"fp32_vector": 32}, VECTORS),
    "skylake": ({"fp32_vector": 32}, VECTORS),
    "skylake_sp": ({"fp32_vector": 64}, VECTORS),
    "cascade_lake": ({"fp32_vector": 64, "int8_vector": 256}, VECTORS),
    "ice_lake_sp": ({"fp32_vector": 64, "int8_vector": 256}, VECTORS),
    "sapphire_rapids": ({"fp32_vector": 64, "fp16_vector": 128, "bf16_matrix": 1024,
                         "int8_matrix": 2048}, AMX + "; " + VECTORS),
    "emerald_rapids": ({"fp32_vector": 64, "fp16_vector": 128, "bf16_matrix": 1024,
                        "int8_matrix": 2048}, AMX + "; " + VECTORS),
    "granite_rapids": ({"fp32_vector": 64, "fp16_vector": 128, "bf16_matrix": 1024,
                        "fp16_matrix_fp32_accumulate": 1024, "int8_matrix": 2048},
                       AMX + "; techpowerup.com 326957: Granite Rapids adds AMX-FP16; " + VECTORS),
    "golden_cove": ({"fp32_vector": 32, "int8_vector": 128}, VECTORS + "; AVX-VNNI"),
    "gracemont": ({"fp32_vector": 16, "int8_vector": 64}, VECTORS + "; two ports of 128 bit"),
    "lion_cove": ({"fp32_vector": 32, "int8_vector": 128}, VECTORS + "; AVX-VNNI"),
    "skymont": ({"fp32_vector": 32, "int8_vector": 128}, VECTORS + "; four ports of 128 bit"),
    "zen1": ({"fp32_vector": 16}, VECTORS),
    "zen2": ({"fp32_vector": 32}, VECTORS),
    "zen3": ({"fp32_vector": 32}, VECTORS),
    "zen4": ({"fp32_vector": 32, "bf16_vector": 64, "int8_vector": 128},
             VECTORS + "; 512-bit instructions take two passes of 256 bit"),
    "zen5": ({"fp32_vector": 64, "bf16_vector": 128, "int8_vector": 256}, VECTORS),
    "zen5_mobile": ({"fp32_vector": 32, "bf16_vector": 64, "int8_vector": 128},
                    VECTORS + "; 512-bit instructions take two passes of 256 bit"),
    "cortex_a72": ({"fp32_vector": 8}, ARM),
    "cortex_a76": ({"fp32_vector": 16, "fp16_vector": 32, "int8_vector": 64}, ARM),
    "cortex_a720": ({"fp32_vector": 16, "fp16_vector": 32, "bf16_vector": 64, "int8_vector": 128},
                    ARM + "; SMMLA and BFMMLA"),
    "cortex_a520": ({"fp32_vector": 8, "fp16_vector": 16, "bf16_vector": 32, "int8_vector": 64},
                    ARM + "; SMMLA and BFMMLA"),
    "neoverse_n1": ({"fp32_vector": 16, "fp16_vector": 32, "int8_vector": 64}, ARM),
    "neoverse_v1": ({"fp32_vector": 32, "fp16_vector": 64, "bf16_vector": 128,
                     "int8_vector": 256}, ARM + "; four pipes, SMMLA and BFMMLA"),
    "neoverse_v2": ({"fp32_vector": 32, "fp16_vector": 64, "bf16_vector": 128,
                     "int8_vector": 256}, ARM + "; four pipes, SMMLA and BFMMLA"),
    "ampereone": ({"fp32_vector": 16, "fp16_vector": 32, "bf16_vector": 64, "int8_vector": 128},
                  "tomshardware.com ampere-unveils-192-core-cpu: two 128-bit vector units for FP16, "
                  "BF16, INT16 and INT8, Armv8.6 with SMMLA and BFMMLA"),
}

INTEL, AMD = "Intel, product page", "AMD, product page"
EMBEDDED = "maker's product page"


def part(id, name, vendor, cores, memory, l3, watts, launch, l2=None, source=None, link=None,
         maximum=None, note=None):
    """cores: [(family, count, base GHz, boost GHz)], fastest first; memory: (channels, bits of one,
    MT/s, type); maximum: GB of memory; link: (lanes' GT/s, links) between sockets, 2 bytes a transfer."""
    return {"id": id, "name": name, "vendor": vendor, "cores": cores, "memory": memory, "l3": l3,
            "l2": l2, "watts": watts, "launch": launch, "source": source, "link": link,
            "maximum": maximum, "note": note}


def xeon(id, name, family, n, base, boost, memory, l3, watts, launch, link, maximum=4096, **more):
    return part(id, name, "intel", [(family, n, base, boost)], memory, l3, watts, launch,
                l2=n * (1 if family in ("skylake_sp", "cascade_lake") else 1.25
                        if family == "ice_lake_sp" else 2), link=link, maximum=maximum, **more)


def epyc(id, name, family, n, base, boost, memory, l3, watts, launch, link, maximum):
    return part(id, name, "amd", [(family, n, base, boost)], memory, l3, watts, launch,
                l2=n * (0.5 if family in ("zen1", "zen2", "zen3") else 1), link=link,
                maximum=maximum)


def ryzen(id, name, family, n, base, boost, rate, l3, watts, launch, maximum=128, l2=None,
          source=None, kind="ddr5"):
    return part(id, name, "amd", [(family, n, base, boost)], (2, 64, rate, kind), l3, watts, launch,
                l2=l2 or n * (0.5 if family in ("zen1", "zen2", "zen3") else 1), maximum=maximum,
                source=source)


def core(id, name, cores, rate, l3, watts, launch, maximum, l2=None, kind="ddr5", channels=2,
         source=None, note=None):
    return part(id, name, "intel", cores, (channels, 64, rate, kind), l3, watts, launch, l2=l2,
                maximum=maximum, source=source, note=note)


SPR, EMR, GNR = "sapphire_rapids", "emerald_rapids", "granite_rapids"
D4_2933, D4_3200 = (6, 64, 2933, "ddr4"), (8, 64, 3200, "ddr4")
D5_4800, D5_5600 = (8, 64, 4800, "ddr5"), (8, 64, 5600, "ddr5")
G12_4800, T12_6000 = (12, 64, 4800, "ddr5"), (12, 64, 6000, "ddr5")
GP, GE = "golden_cove", "gracemont"
PI = "raspberrypi.com product briefs and processor documentation"

PROCESSORS = [
    # Intel servers. Links: UPI.
    xeon("xeon-gold-6154", "Xeon Gold 6154", "skylake_sp", 18, 3.0, 3.7, (6, 64, 2666, "ddr4"),
         24.75, 200, "2017-07", (10.4, 3), 768),
    xeon("xeon-platinum-8180", "Xeon Platinum 8180", "skylake_sp", 28, 2.5, 3.8,
         (6, 64, 2666, "ddr4"), 38.5, 205, "2017-07", (10.4, 3), 768),
    xeon("xeon-platinum-8280", "Xeon Platinum 8280", "cascade_lake", 28, 2.7, 4.0, D4_2933, 38.5,
         205, "2019-04", (10.4, 3), 1024),
    xeon("xeon-gold-6248", "Xeon Gold 6248", "cascade_lake", 20, 2.5, 3.9, D4_2933, 27.5, 150,
         "2019-04", (10.4, 3), 1024),
    xeon("xeon-gold-6338", "Xeon Gold 6338", "ice_lake_sp", 32, 2.0, 3.2, D4_3200, 48, 205,
         "2021-04", (11.2, 3)),
    xeon("xeon-platinum-8358", "Xeon Platinum 8358", "ice_lake_sp", 32, 2.6, 3.4, D4_3200, 48, 250,
         "2021-04", (11.2, 3)),
    xeon("xeon-platinum-8380", "Xeon Platinum 8380", "ice_lake_sp", 40, 2.3, 3.4, D4_3200, 60, 270,
         "2021-04", (11.2, 3)),
    xeon("xeon-gold-6430", "Xeon Gold 6430", SPR, 32, 2.1, 3.4, (8, 64, 4400, "ddr5"), 60, 270,
         "2023-01", (16, 3)),
    xeon("xeon-platinum-8462y", "Xeon Platinum 8462Y+", SPR, 32, 2.8, 4.1, D5_4800, 60, 300,
         "2023-01", (16, 3)),
    xeon("xeon-platinum-8468", "Xeon Platinum 8468", SPR, 48, 2.1, 3.8, D5_4800, 105, 350,
         "2023-01", (16, 4)),
    xeon("xeon-platinum-8470", "Xeon Platinum 8470", SPR, 52, 2.0, 3.8, D5_4800, 105, 350,
         "2023-01", (16, 4)),
    xeon("xeon-platinum-8480", "Xeon Platinum 8480+", SPR, 56, 2.0, 3.8, D5_4800, 105, 350,
         "2023-01", (16, 4)),
    xeon("xeon-platinum-8490h", "Xeon Platinum 8490H", SPR, 60, 1.9, 3.5, D5_4800, 112.5, 350,
         "2023-01", (16, 4)),
    xeon("xeon-platinum-8562y", "Xeon Platinum 8562Y+", EMR, 32, 2.8, 4.1, D5_5600, 60, 300,
         "2023-12", (20, 3)),
    xeon("xeon-platinum-8568y", "Xeon Platinum 8568Y+", EMR, 48, 2.3, 4.0, D5_5600, 300, 350,
         "2023-12", (20, 4)),
    xeon("xeon-platinum-8570", "Xeon Platinum 8570", EMR, 56, 2.1, 4.0, D5_5600, 300, 350,
         "2023-12", (20, 4)),
    xeon("xeon-platinum-8580", "Xeon Platinum 8580", EMR, 60, 2.0, 4.0, D5_5600, 300, 350,
         "2023-12", (20, 4)),
    xeon("xeon-platinum-8592", "Xeon Platinum 8592+", EMR, 64, 1.9, 3.9, D5_5600, 320, 350,
         "2023-12", (20, 4)),
    xeon("xeon-6787p", "Xeon 6787P", GNR, 86, 2.0, 3.8, (8, 64, 6400, "ddr5"), 336, 350,
         "2025-02", (24, 4), note="with one MRDIMM a channel 8000 MT/s"),
    xeon("xeon-6767p", "Xeon 6767P", GNR, 64, 2.4, 3.9, (8, 64, 6400, "ddr5"), 336, 350,
         "2025-02", (24, 4), note="with one MRDIMM a channel 8000 MT/s"),
    xeon("xeon-6972p", "Xeon 6972P", GNR, 96, 2.4, 3.9, (12, 64, 6400, "ddr5"), 480, 500,
         "2024-09", (24, 6), 3072, note="with MRDIMMs 8800 MT/s",
         source="hardwareluxx.de 64561, table of the Xeon 6900P series, 2024-09"),
    xeon("xeon-6979p", "Xeon 6979P", GNR, 120, 2.1, 3.9, (12, 64, 6400, "ddr5"), 504, 500,
         "2024-09", (24, 6), 3072, note="with MRDIMMs 8800 MT/s",
         source="hardwareluxx.de 64561, table of the Xeon 6900P series, 2024-09"),
    xeon("xeon-6980p", "Xeon 6980P", GNR, 128, 2.0, 3.9, (12, 64, 6400, "ddr5"), 504, 500,
         "2024-09", (24, 6), 3072, note="with MRDIMMs 8800 MT/s",
         source="hardwareluxx.de 64561, table of the Xeon 6900P series, 2024-09"),
    # AMD servers. Links: xGMI, 16 lanes each.
    epyc("epyc-7742", "EPYC 7742", "zen2", 64, 2.25, 3.4, D4_3200, 256, 225, "2019-08", (16, 4),
         4096),
    epyc("epyc-7763", "EPYC 7763", "zen3", 64, 2.45, 3.5, D4_3200, 256, 280, "2021-03", (18, 4),
         4096),
    epyc("epyc-9354", "EPYC 9354", "zen4", 32, 3.25, 3.8, G12_4800, 256, 280, "2022-11", (32, 4),
         6144),
    epyc("epyc-9554", "EPYC 9554", "zen4", 64, 3.1, 3.75, G12_4800, 256, 360, "2022-11", (32, 4),
         6144),
    epyc("epyc-9654", "EPYC 9654", "zen4", 96, 2.4, 3.7, G12_4800, 384, 360, "2022-11", (32, 4),
         6144),
    epyc("epyc-9555", "EPYC 9555", "zen5", 64, 3.2, 4.4, T12_6000, 256, 360, "2024-10", (32, 4),
         6144),
    epyc("epyc-9755", "EPYC 9755", "zen5", 128, 2.7, 4.1, T12_6000, 512, 500, "2024-10", (32, 4),
         6144),
    epyc("epyc-9965", "EPYC 9965", "zen5", 192, 2.25, 3.7, T12_6000, 384, 500, "2024-10", (32, 4),
         6144),
    part("threadripper-pro-5995wx", "Ryzen Threadripper PRO 5995WX", "amd",
         [("zen3", 64, 2.7, 4.5)], (8, 64, 3200, "ddr4"), 256, 280, "2022-03", l2=32,
         maximum=2048),
    part("threadripper-pro-7995wx", "Ryzen Threadripper PRO 7995WX", "amd",
         [("zen4", 96, 2.5, 5.1)], (8, 64, 5200, "ddr5"), 384, 350, "2023-11", l2=96,
         maximum=2048),
    part("threadripper-7980x", "Ryzen Threadripper 7980X", "amd", [("zen4", 64, 3.2, 5.1)],
         (4, 64, 5200, "ddr5"), 256, 350, "2023-11", l2=64, maximum=1024),
    # Arm servers.
    part("altra-q80-30", "Ampere Altra Q80-30", "ampere", [("neoverse_n1", 80, 3.0, 3.0)],
         (8, 64, 3200, "ddr4"), 32, 161, "2020", l2=80, maximum=4096,
         source="Ampere Altra family product brief, as in felixsteinke/cpu-spec-dataset"),
    part("altra-max-m128-30", "Ampere Altra Max M128-30", "ampere",
         [("neoverse_n1", 128, 3.0, 3.0)], (8, 64, 3200, "ddr4"), 16, 183, "2021", l2=128,
         maximum=4096,
         source="Ampere Altra family product brief, as in felixsteinke/cpu-spec-dataset"),
    part("ampereone-a192-32x", "AmpereOne A192-32X", "ampere", [("ampereone", 192, 3.2, 3.2)],
         (8, 64, 5200, "ddr5"), 64, 400, "2024", l2=384, maximum=4096,
         source="servethehome.com, AmpereOne A192-32X and Hot Chips 2024: 192 cores, 8 channels of "
                "DDR5-5200, 2 MB of L2 a core, 64 MB of L3"),
    part("grace-72", "Grace (72 cores)", "nvidia", [("neoverse_v2", 72, 3.1, 3.42)],
         (32, 16, 8533, "lpddr5x"), 114, 250, "2023", l2=72, maximum=480,
         source="NVIDIA Grace CPU Superchip data sheet (half of it): 72 cores, 3.1 GHz, up to "
                "500 GB/s, 114 MB of L3"),
    part("graviton3", "AWS Graviton3", "aws", [("neoverse_v1", 64, 2.6, 2.6)],
         (8, 64, 4800, "ddr5"), 32, None, "2022", l2=64, maximum=512,
         source="AWS, Graviton getting started guide: 64 cores, 2.6 GHz, DDR5-4800 in 8 channels"),
    part("graviton4", "AWS Graviton4", "aws", [("neoverse_v2", 96, 2.8, 2.8)],
         (12, 64, 5600, "ddr5"), 36, None, "2024", l2=192, maximum=768,
         source="AWS, Graviton getting started guide: 96 cores, 2.8 GHz, DDR5-5600 in 12 channels"),
    # Desktops and laptops.
    core("core-i9-10940x", "Core i9-10940X", [("cascade_lake", 14, 3.3, 4.8)], 2933, 19.25, 165,
         "2019-10", 256, 14, "ddr4", channels=4,
         source="technical.city, Core i5-13500 vs Core i9-10940X; Intel, product page: 4 channels of "
                "DDR4-2933, two AVX-512 multiply-add units"),
    core("core-i9-10980xe", "Core i9-10980XE", [("cascade_lake", 18, 3.0, 4.8)], 2933, 24.75, 165,
         "2019-11", 256, 18, "ddr4", channels=4),
    core("core-i7-7700hq", "Core i7-7700HQ", [("skylake", 4, 2.8, 3.8)], 2400, 6, 45, "2017-01", 64,
         1, "ddr4"),
    core("core-i7-8700k", "Core i7-8700K", [("skylake", 6, 3.7, 4.7)], 2666, 12, 95, "2017-10", 128,
         1.5, "ddr4"),
    core("core-i9-9900k", "Core i9-9900K", [("skylake", 8, 3.6, 5.0)], 2666, 16, 95, "2018-10", 128,
         2, "ddr4"),
    core("core-i5-10600k", "Core i5-10600K", [("skylake", 6, 4.1, 4.8)], 2666, 12, 125, "2020-05",
         128, 1.5, "ddr4"),
    core("core-i7-12700h", "Core i7-12700H", [(GP, 6, 2.3, 4.7), (GE, 8, 1.7, 3.5)], 4800, 24, 45,
         "2022-01", 64, 11.5, note="DDR4-3200 and LPDDR5-5200 as well"),
    core("core-i7-12700k", "Core i7-12700K", [(GP, 8, 3.6, 5.0), (GE, 4, 2.7, 3.8)], 4800, 25, 125,
         "2021-11", 128, 12),
    core("core-i9-12900k", "Core i9-12900K", [(GP, 8, 3.2, 5.2), (GE, 8, 2.4, 3.9)], 4800, 30, 125,
         "2021-11", 128, 14),
    core("core-i5-13500", "Core i5-13500", [(GP, 6, 2.5, 4.8), (GE, 8, 1.8, 3.5)], 4800, 24, 65,
         "2023-01", 192, 11.5),
    core("core-i7-13700k", "Core i7-13700K", [(GP, 8, 3.4, 5.4), (GE, 8, 2.5, 4.2)], 5600, 30, 125,
         "2022-10", 192, 24),
    core("core-i9-13900k", "Core i9-13900K", [(GP, 8, 3.0, 5.8), (GE, 16, 2.2, 4.3)], 5600, 36, 125,
         "2022-10", 192, 32),
    core("core-i9-14900k", "Core i9-14900K", [(GP, 8, 3.2, 6.0), (GE, 16, 2.4, 4.4)], 5600, 36, 125,
         "2023-10", 192, 32),
    core("core-ultra-9-285k", "Core Ultra 9 285K",
         [("lion_cove", 8, 3.7, 5.7), ("skymont", 16, 3.2, 4.6)], 6400, 36, 125, "2024-10", 192, 40),
    core("n100", "Processor N100", [(GE, 4, 0.8, 3.4)], 4800, 6, 6, "2023-01", 16, 2, channels=1),
    core("n150", "Processor N150", [(GE, 4, 0.8, 3.6)], 4800, 6, 6, "2025-01", 16, 2, channels=1),
    core("celeron-n4120", "Celeron N4120", [("goldmont", 4, 1.1, 2.6)], 2400, None, 6, "2019-11", 8,
         4, "ddr4"),
    core("core-2-quad-q8400", "Core 2 Quad Q8400", [("core2", 4, 2.66, 2.66)], 1333, None, 95,
         "2009-04", 8, 4, "fsb", channels=1,
         note="memory lies behind the front-side bus, 8 bytes at 1333 MT/s"),
    ryzen("ryzen-9-3950x", "Ryzen 9 3950X", "zen2", 16, 3.5, 4.7, 3200, 64, 105, "2019-11",
          kind="ddr4"),
    ryzen("ryzen-9-5950x", "Ryzen 9 5950X", "zen3", 16, 3.4, 4.9, 3200, 64, 105, "2020-11",
          kind="ddr4"),
    ryzen("ryzen-9-5900x", "Ryzen 9 5900X", "zen3", 12, 3.7, 4.8, 3200, 64, 105, "2020-11",
          kind="ddr4"),
    ryzen("ryzen-7-5800x", "Ryzen 7 5800X", "zen3", 8, 3.8, 4.7, 3200, 32, 105, "2020-11",
          kind="ddr4"),
    ryzen("ryzen-5-5600x", "Ryzen 5 5600X", "zen3", 6, 3.7, 4.6, 3200, 32, 65, "2020-11",
          kind="ddr4"),
    ryzen("ryzen-7-7700x", "Ryzen 7 7700X", "zen4", 8, 4.5, 5.4, 5200, 32, 105, "2022-09"),
    ryzen("ryzen-9-7900x", "Ryzen 9 7900X", "zen4", 12, 4.7, 5.6, 5200, 64, 170, "2022-09"),
    ryzen("ryzen-9-7950x", "Ryzen 9 7950X", "zen4", 16, 4.5, 5.7, 5200, 64, 170, "2022-09",
          source="AMD, product page; forums.macrumors.com 2367204: two channels of DDR5-5200"),
    ryzen("ryzen-7-9700x", "Ryzen 7 9700X", "zen5", 8, 3.8, 5.5, 5600, 32, 65, "2024-08", 192),
    ryzen("ryzen-9-9950x", "Ryzen 9 9950X", "zen5", 16, 4.3, 5.7, 5600, 64, 170, "2024-08", 192),
    ryzen("ryzen-ai-5-340", "Ryzen AI 5 340", "zen5_mobile", 6, 2.0, 4.8, 5600, 16, 28, "2025-01",
          256, 6),
    # Single-board computers.
    part("cix-p1", "CIX P1 (CD8180)", "cix",
         [("cortex_a720", 8, 2.6, 2.6), ("cortex_a520", 4, 1.8, 1.8)], (1, 128, 5500, "lpddr5"), 12,
         None, "2024-12", maximum=64, source="radxa.com, Orion O6 product page: eight A720 and four "
         "A520, 12 MB of L3, LPDDR5 of 128 bit at 5500 MT/s"),
    part("bcm2712", "BCM2712 (Raspberry Pi 5)", "broadcom", [("cortex_a76", 4, 2.4, 2.4)],
         (1, 32, 4267, "lpddr4x"), 2, None, "2023-10", l2=2, maximum=16, source=PI),
    part("bcm2711", "BCM2711 (Raspberry Pi 4)", "broadcom", [("cortex_a72", 4, 1.8, 1.8)],
         (1, 32, 3200, "lpddr4"), None, None, "2019-06", l2=1, maximum=8, source=PI),
]

# Names of machines and spellings that stand for a processor. Sources write "CPU " before the name.
NAMES = {
    "xeon-platinum-8468": ["Intel Xeon SPR 48c"],
    "xeon-platinum-8480": ["Intel(R) Xeon(R) Platinum 8480+", "Xeon Platinum 8480C"],
    "xeon-platinum-8592": ["Intel(R) Xeon(R) Platinum 8592+"],
    "xeon-6980p": ["Intel(R) Xeon(R) 6980P"],
    "xeon-6787p": ["Intel(R) Xeon(R) 6787P"],
    "xeon-gold-6338": ["Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz"],
    "xeon-platinum-8380": ["Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz",
                           "Intel(R) Xeon(R) Platinum 8380"],
    "xeon-platinum-8490h": ["Intel(R) Xeon(R) Platinum 8490H"],
    "core-i9-10940x": ["Intel i9-10940x", "i9-10940X"],
    "core-i7-12700h": ["Intel i7-12700h", "i7-12700H"],
    "core-i9-13900k": ["13th Gen Intel(R) Core(TM) i9-13900K", "i9-13900K"],
    "core-i5-10600k": ["i5-10600K"],
    "core-i7-7700hq": ["i7-7700HQ"],
    "ryzen-9-7950x": ["AMD Ryzen 9 7950X 16-Core Processor"],
    "ampereone-a192-32x": ["AmpereOne A192-32X (512GB)", "AmpereOne A192-32X - 512GB"],
    "ryzen-ai-5-340": ["Framework 13 (Ryzen AI 5 340)", "Framework 13 (Ryzen AI 5 340 16GB)"],
    "cix-p1": ["Minisforum MS-R1", "Radxa Orion O6 - 16GB", "Radxa Orion O6"],
    "n150": ["GMKtec G3 Plus (Intel N150) - 16GB", "GMKtek G3 Plus (Intel N150) - 16GB",
             "Intel N150"],
    "n100": ["Intel N100"],
    "bcm2712": ["Pi 5 - 16GB", "Pi 5 - 8GB", "Pi 500+ - 16GB", "Raspberry Pi5", "Raspberry Pi 5"],
    "bcm2711": ["Pi 400 - 4GB", "Raspberry Pi 4"],
    "celeron-n4120": ["Intel Celeron N4120"],
    "core-2-quad-q8400": ["Dell Optiplex 780 (C2Q Q8400)"],
}


def sustained(p, base, boost):
    return boost if p["watts"] and p["watts"] <= 15 else base


def peaks(p):
    """TFLOP/s by mode of all cores at the clocks they keep; of modes that all kinds of cores have."""
    modes = [m for m in CORES[p["cores"][0][0]][0]
             if all(m in CORES[f][0] for f, *_ in p["cores"])]
    return {m: round(sum(CORES[f][0][m] * n * sustained(p, low, high) / 1000
                         for f, n, low, high in p["cores"]), 4)
            for m in modes}


def sheet(p):
    makers = {"intel": INTEL, "amd": AMD}
    source = p["source"] or makers.get(p["vendor"], EMBEDDED) + " of the " + p["name"]
    s = Sheet("accelerator", p["id"], source, date_of(source if p["source"] else p["launch"]))
    family = p["cores"][0][0]
    if len(p["cores"]) > 1:
        family += "_hybrid"
    s.put("name", p["name"])
    s.put("vendor", p["vendor"])
    s.put("architecture", family)
    s.put("family", family)
    s.put("device_kind", "cpu")
    s.put("form_factor", "socket")
    s.put("launch_date", p["launch"])
    s.put("units", sum(n for _, n, *_ in p["cores"]))
    s.put("base_mhz", round(p["cores"][0][2] * 1000))
    s.put("sustained_mhz", round(sustained(p, *p["cores"][0][2:]) * 1000),
          "the base clock; of parts rated at 15 W and less the highest one")
    s.put("boost_mhz", round(p["cores"][0][3] * 1000))
    s.put("board_power_w", p["watts"])
    s.put("sparsity_2to4", False)
    channels, bits, rate, kind = p["memory"]
    s.put("memory.nominal_gb", p["maximum"], "the most that the product page allows")
    s.put("memory.bandwidth_gb_per_s", round(channels * bits / 8 * rate / 1000, 3),
          f"derived: {channels} channels * {bits} bit * {rate} MT/s")
    s.put("memory.type", kind)
    s.put("memory.unified", True)
    # What lies in the private caches of all cores and in the shared one.
    s.put("memory.l2_mb", (p["l2"] or 0) + (p["l3"] or 0) or None,
          "caches of all cores and the shared one together")
    kinds = " and ".join(f for f, *_ in p["cores"])
    for mode, value in peaks(p).items():
        unit = "_tops" if mode.startswith("int") else "_tflops"
        s.put(f"peak.{mode}{unit}", value,
              f"derived: cores * operations a cycle of {kinds} * sustained clock")
    if p["link"]:
        speed, links = p["link"]
        s.put("link.topology", "mesh")
        s.put("link.type", "upi" if p["vendor"] == "intel" else "xgmi-socket")
        s.put("link.one_way_gb_per_s", speed * 2 * links,
              f"derived: {links} links * {speed} GT/s * 2 bytes")
    else:
        s.put("link.topology", "none")
    s.put("note.conflicts", p["note"])
    return s


def family_sheets():
    files = {}
    for family, (rates, source) in CORES.items():
        if not any(p["cores"][0][0] == family and len(p["cores"]) == 1 for p in PROCESSORS):
            continue
        s = Sheet("family", family, source, date_of(source))
        s.put("unit", "core")
        for mode, rate in rates.items():
            s.put("rate." + mode, rate)
        files[f"families/{family}.toml"] = s.text("import_hardware.py")
    return files


def sheets():
    """{path under data/hardware: text}"""
    files = {f"processors/{p['id']}.toml": sheet(p).text("import_hardware.py") for p in PROCESSORS}
    files.update(family_sheets())
    return files
