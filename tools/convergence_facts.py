#!/usr/bin/env python3
"""data/workloads/mlperf-training.toml: samples that a model needs to reach MLPerf's target quality.

Facts of mlcommons/logging, mlperf_logging/rcp_checker: reference convergence points, runs of the
reference implementations by global batch. Where the source counts epochs or tokens they are samples
here. Each entry has the batch, the mean over the runs and how many there were.

    tools/convergence_facts.py    write the sheet
"""
import os

from catalogue_sheets import ROOT

SOURCE = "github.com/mlcommons/logging mlperf_logging/rcp_checker: "
# benchmark: (file, what a sample is, (batch, mean samples to the target, runs)...)
POINTS = {
    "bert": ("training_5.0.0/rcps_bert.json", "a sequence of up to 512 tokens", [
        (256, 2552704, 20), (448, 2410630, 23), (1536, 2777588, 20), (3072, 2768215, 20),
        (4608, 2794752, 20), (6144, 3321446, 20), (6912, 3596122, 20), (8192, 4191437, 20),
        (12288, 4470336, 20), (16384, 5504307, 20)]),
    "gpt3": ("training_4.1.0/rcps_gpt3.json", "a sequence of 2,048 tokens; the file counts tokens", [
        (1536, 585728, 6), (2048, 577536, 6), (3072, 593920, 6), (4096, 618496, 6),
        (8192, 794624, 6)]),
    "llama31_405b": ("training_5.0.0/rcps_llama31_405b.json",
                     "a sequence of 8,192 tokens; the file counts tokens", [
        (1152, 322560, 6), (2304, 384000, 6)]),
    "llama2_70b_lora": ("training_5.0.0/rcps_llama2_70b_lora.json",
                        "a packed sequence of 8,192 tokens", [
        (8, 3187, 20), (16, 4051, 20), (32, 6029, 20), (128, 11290, 20)]),
    "retinanet": ("training_5.0.0/rcps_retinanet.json", "an image; 1,170,301 of OpenImages an epoch", [
        (256, 4681204, 20), (320, 4856749, 20), (512, 5851505, 20), (768, 5851505, 10),
        (1024, 7021806, 10), (1280, 7782502, 20), (2048, 9245378, 20), (2560, 10082593, 13),
        (4096, 17710555, 15)]),
    "dlrm_dcnv2": ("training_5.0.0/rcps_dlrm_dcnv2.json", "a click; 4,195,197,692 of Criteo an epoch", [
        (32768, 2971598365, 30), (55296, 3200935839, 50), (65536, 3328190169, 30),
        (102400, 3737921144, 50), (135168, 3892476040, 88)]),
    "stable_diffusion": ("training_5.0.0/rcps_stable_diffusion.json", "an image", [
        (256, 2048000, 20), (384, 2561280, 15), (512, 2596571, 14), (1024, 2835692, 13),
        (2048, 4017231, 13)]),
    "resnet": ("training_4.0.0/rcps_resnet.json", "an image; 1,281,167 of ImageNet an epoch", [
        (1632, 44840845, 17), (3264, 45097078, 15), (4096, 51246680, 10), (8192, 53809014, 10),
        (13056, 58164982, 10), (32768, 71745352, 10), (49152, 87119356, 10), (58880, 102365243, 10),
        (67840, 109997338, 28)]),
    "maskrcnn": ("training_2.1.0/rcps_maskrcnn.json", "an image; 117,266 of COCO an epoch", [
        (48, 1641724, 10), (64, 1712084, 10), (96, 1647587, 20), (128, 1641724, 10),
        (256, 2005249, 10), (272, 2005249, 10)]),
    # Of the batch of 56 the first 100 runs of the file.
    "unet3d": ("training_4.0.0/rcps_unet3d.json", "a volume", [
        (28, 348533, 100), (56, 358344, 100), (84, 420104, 97)]),
}


def main():
    lines = ["# Written by tools/convergence_facts.py; change the script, not this file.",
             'kind = "workloads"', 'id = "mlperf-training"', f'source = "{SOURCE}reference convergence points"',
             'date = "2026-11"']
    for name, (path, sample, points) in POINTS.items():
        for batch, samples, runs in points:
            lines += ["", "[[entry]]", f'benchmark = "{name}"', f"global_batch = {batch}",
                      f"samples = {samples}", f"runs = {runs}", f'sample = "{sample}"',
                      f'source = "{path}"']
    with open(os.path.join(ROOT, "data", "workloads", "mlperf-training.toml"), "w",
              encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
