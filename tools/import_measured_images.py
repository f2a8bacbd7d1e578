"""Rows of image networks: which network a row ran and at which side, where its source says so only
beside the number. Used by import_measured.py after the rules of the row's own file.

  image      (training) side in pixels of one item; empty: the network's own
  input_len  (inference) the same
  layout     channels_first or channels_last, of PyTorch tensors
"""
import re

TRAIN_COLUMNS = ["image", "layout"]
INFER_COLUMNS = ["layout"]

# NVIDIA DeepLearningExamples, EfficientNet for PyTorch: every table of inference lists these four
# one after the other, each from batch 1 upwards.
EFFICIENTNETS = ("efficientnet-b0", "efficientnet-b4", "efficientnet-widese-b0",
                 "efficientnet-widese-b4")
# EfficientNet for TensorFlow 2: the line of README.md at which a table of training starts.
EFFICIENTNET_V1_TABLES = {"435": "b0", "443": "b0", "451": "b4", "459": "b4"}

# Training batches of a card in DeepLearningExamples where the tables do not print them: mixed
# precision, full precision. PyTorch/Classification/ConvNets/configs.yml, which `launch.py --platform`
# reads; MxNet/Classification/RN50v1.5/README.md, "Training performance results".
EXAMPLES_BATCHES = {
    ("PyTorch", "ConvNets/resnet50v1.5"): {"A100": (256, 256), "V100": (256, 112)},
    ("PyTorch", "ConvNets/resnext101-32x4d"): {"A100": (128, 128), "V100": (128, 64)},
    ("PyTorch", "ConvNets/se-resnext101-32x4d"): {"A100": (128, 128), "V100": (112, 64)},
    ("MxNet", "RN50v1.5"): {"A100": (256, 256), "V100": (192, 96)},
}
# Scripts whose mixed precision runs channels last: `memory_format: nhwc` in that file;
# PyTorch/Detection/SSD/main.py (`--data-layout`, "recommended to use channels_first with --no-amp");
# PyTorch/Segmentation/MaskRCNN, maskrcnn_benchmark/config/defaults.py (NHWC).
CHANNELS_LAST = ("ConvNets/resnet50v1.5", "ConvNets/resnext101-32x4d",
                 "ConvNets/se-resnext101-32x4d", "SSD", "MaskRCNN")


# PyTorch/Classification/ConvNets/configs.yml: `memory_format: nhwc` of every network under AMP, none otherwise.
CONVNETS = "PyTorch/Classification/ConvNets"


def engine_of_examples(row):
    """What the DeepLearningExamples' tables say above their numbers, or the scripts that made them."""
    if row["model"] == "resnet50v1.5" and row["engine"] == "TensorFlow":
        # resnet50v1.5/inference_benchmark.sh: "noxla" unless the heading adds "+ XLA".
        row["engine"] = "TensorFlow XLA" if "+ XLA" in row["notes"] else "TensorFlow without XLA"
        # runtime/runner.py: compute_format NCHW, which Grappler and XLA keep in 32 bit alone.
        row["layout"] = "channels_last" if row["weight_format"] == "fp16-amp" else "channels_first"
    elif row["engine"] == "MxNet" and row["weight_format"] == "fp16-amp":
        row["weight_format"] = "fp16"  # RN50v1.5/train.py: --dtype float16; --amp is off
    elif row["engine"] == "TensorFlow" and row["weight_format"] == "fp16":
        row["weight_format"] = "fp16-amp"  # BERT/scripts/finetune_inference_benchmark.sh: --amp


class Images:
    def __init__(self):
        self.table, self.batch, self.place = None, 0, 0

    def apply(self, name, row):
        for column in TRAIN_COLUMNS if name == "train" else INFER_COLUMNS:
            row.setdefault(column, "")
        if row["source"].startswith("github:huggingface/pytorch-image-models"):
            timm(row)
        elif row["source"].startswith("github:NVIDIA/DeepLearningExamples"):
            self.examples(name, row)
        elif row["source"].startswith("github:FlagOpen/FlagPerf") and row["model"] == "efficientnet":
            # training/benchmarks/efficientnet: torchvision's efficientnet_v2_s, crops of 224.
            row["model"], row["image"] = "efficientnetv2_s", "224"

    def examples(self, name, row):
        if name == "train":
            self.batch_and_layout(row)
        if CONVNETS in row["source"]:
            mixed = "amp" in row["weight_format" if name == "infer" else "precision"]
            row["layout"] = "channels_last" if mixed else "channels_first"
        elif name == "infer":
            engine_of_examples(row)
        if row["model"] == "efficientnet":
            table = (row["source"], row["gpu"], row["notes"])
            batch = int(row["batch_or_concurrency"])
            if table != self.table:
                self.place = 0
            elif batch < self.batch:
                self.place += 1
            self.table, self.batch = table, batch
            if self.place < len(EFFICIENTNETS):
                row["model"] = "ConvNets/efficientnet:" + EFFICIENTNETS[self.place]
                # Doubtful only because the setting that tells equal rows apart was lost.
                row["trust"] = "" if row["trust"] == "exclude" else row["trust"]
        elif row["model"] == "ConvNets/efficientnet_v1":
            line = re.search(r":L(\d+)@", row["source"])
            variant = EFFICIENTNET_V1_TABLES.get(line.group(1)) if line else None
            if variant:
                row["model"] = f"ConvNets/efficientnet:efficientnet-{variant}"
        elif row["model"] == "ConvNets/efficientnet_v2":
            # Only the small one is timed; its side grows while it trains, so the row is weak.
            row["model"], row["trust"] = "tf_efficientnetv2_s", row["trust"] or "low"

    def batch_and_layout(self, row):
        framework = row["source"].split(" ")[1].split("/")[0]
        full = row["precision"] in ("tf32", "fp32")
        batches = EXAMPLES_BATCHES.get((framework, row["model"]), {}).get(row["gpu"][:4])
        if batches and not row["micro_batch"]:
            row["micro_batch"] = str(batches[full])
        if framework == "PyTorch" and row["model"] in CHANNELS_LAST and not full:
            row["layout"] = "channels_last"


def timm(row):
    m = re.search(r"(?:^|[;\s])img_size=(\d+)", row["notes"])
    if m:
        row["image"] = m.group(1)
    # "pt113" is 1.13, "pt240" is 2.4.0; the tables' own column says 2.40.
    m = re.search(r"-pt(1)(\d\d)-|-pt(\d)(\d)(\d)-", row["source"])
    if m and "engine_version" in row:
        row["engine_version"] = ".".join(g for g in m.groups() if g)
    m = re.search(r"n(chw|hwc)", row["source"] + row["notes"])
    row["layout"] = {"chw": "channels_first", "hwc": "channels_last"}[m.group(1)] if m else ""
