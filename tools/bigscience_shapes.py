"""Dimensions of the networks in bigscience's tables, which give the size and state the dimensions
in the text around each table (train/tr11-176B-ml/chronicles-prequel.md) or in the scripts that made
them (experiments/gpt2-*: MSIZE)."""
import re

# Line of the table -> size in billions -> (hidden, layers). All have 64 heads unless the table
# lists heads ("all NHEADS=64 (above too)").
_TABLES = {
    580: {187: (13824, 80), 200: (14400, 80)},
    605: {181: (14336, 72)}, 613: {181: (14336, 72)}, 630: {196: (13824, 84)},
    646: {187: (13824, 80)}, 656: {18: (14336, None)}, 667: {181: (14336, 72)},
    684: {177: (12288, 96)}, 693: {182: (13312, 84)}, 702: {182: (13824, 78)},
    709: {181: (14336, 72)}, 722: {181: (14336, 72)}, 736: {182: (13824, 78)},
    748: {182: (13312, 84)}, 757: {177: (12288, 96)}, 773: {181: (14336, 72)},
    786: {181: (14336, 72)}, 798: {181: (14336, 72)}, 816: {177: (12288, 96)},
    828: {182: (13824, 78)}, 843: {181: (14336, 72)}, 854: {182: (13312, 84)},
    865: {182: (13824, 78)}, 879: {182: (13824, 78)}, 889: {195: (12288, 106)},
    904: {195: (12288, 106)}, 915: {184: (12288, 100)}, 926: {178: (13312, 82)},
    937: {203: (13312, 94)}, 944: {176: (14336, 70)},
}
# The 200B network of 02-17 to 02-20: NHIDDEN=14400, NHEADS=96, as many layers as the pipeline
# divides; 20B is eight of its layers with 32 heads.
_FIRST = {387, 425, 474, 506, 515, 524, 533}
_FIRST_LAYERS = {20: 8, 200: 80, 194: 78, 191: 77, 205: 81, 195: 77, 183: 72}

# VOCAB_LENGTH=250k of the chronicles; BLOOM, which came of them, has 250,880 rows.
_VOCABULARY = "250880"
# Under "Best TFLOPs" GBS=2048 and the logs of the runs: line of the table, cards -> seconds.
_LOGGED = {(387, 8): "769.99", (387, 80): "844.81", (387, 160): "430.21",
           (425, 8): "777.09", (425, 80): "853.81", (425, 160): "434.14"}

# MSIZE of experiments/gpt2-*: 32 heads each.
_SIZES = {7.5: (4096, 36), 14: (6144, 32), 18: (6144, 40), 25: (7168, 40), 30: (7168, 48),
          39: (8192, 48), 52: (8192, 64), 65: (9216, 64), 81: (10240, 64), 97: (11264, 64),
          116: (12288, 64)}


def fill(row):
    """Sets layers, hidden, heads and the vocabulary of a row where its source states them."""
    m = re.search(r"/(chronicles-prequel|gpt2)\.md:L(\d+)", row["source"])
    size = float(row["params_b"]) if row["params_b"] else None
    if not m or size is None:
        return
    line, heads = int(m[2]), 64
    if m[1] == "chronicles-prequel":
        row["vocab"] = row["vocab"] or _VOCABULARY
        seconds = _LOGGED.get((line, int(row["n_gpus"])))
        if seconds and not row["global_batch"]:
            row["metric"], row["value"], row["global_batch"] = "step_s", seconds, "2048"
    else:
        # "any results you will find in this summary are +/-40% correct. An identical test scored 40%
        # faster or slower on the same allocation at different times of the day."
        row["trust"] = row["trust"] or "low"
        # Sections of DeepSpeed's ZeRO: scripts of gpt2-meg-ds-zero and gpt2-hf-ds have stage 3.
        if "ZeRO" in row["notes"] and not row["zero_stage"]:
            row["zero_stage"] = "3"
    if m[1] == "gpt2":
        shape, heads = _SIZES.get(size), 32
    elif line in _FIRST:
        layers = _FIRST_LAYERS.get(int(size))
        shape = (14400, layers) if layers else None
        heads = 32 if size == 20 else 96
    else:
        shape = _TABLES.get(line, {}).get(int(size))
    if not shape:
        return
    hidden, layers = shape
    for column, value in (("layers", layers), ("hidden", hidden), ("heads", heads)):
        if value and not row[column]:
            row[column] = str(value)
