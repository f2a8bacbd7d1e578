"""Rows of encoders and encoder-decoders: which model a name means, and what its rows leave out.

Names of these rows are those of benchmarks, not of models: "bert" is BERT-large on SQuAD in
MLPerf inference, "BERT:512" the second phase of pre-training in DeepLearningExamples.
"""
import re

# Xu et al., "Padding Removal for BERT" (openreview 3nzKUh9a4M): of the tokens of SQuAD v1.1 padded
# to 384, 54 % are padding; of pre-training data padded to 512, 48 %.
SQUAD_MEAN = round(384 * (1 - 0.54))
PRETRAINING_MEAN = round(512 * (1 - 0.48))
# DeepLearningExamples' PyTorch and PaddlePaddle scripts (run_pretraining.sh: phase 1 unbinned, phase 2
# "bin_size_64") batch second-phase samples by length in bins of 64 and pad them to their bin's
# longest, half a bin above the mean.
BINNED_MEAN = PRETRAINING_MEAN + 32
# LibriSpeech: 960 hours in 281,241 utterances (openslr 12), 50 positions a second.
LIBRISPEECH_MEAN = round(960 * 3600 / 281241 * 50)

INFER_MODEL = {
    "bert": "bert-large-squad",
    "BERT-base": "bert-base-squad",
    "BERT-large": "bert-large-squad",
    "whisper": "whisper-large-v3",
    "whisper-tiny-q8_0": "whisper-tiny",
    "whisper-base-q8_0": "whisper-base",
    "whisper-small-q8_0": "whisper-small",
}

# MLPerf's Whisper writes so many tokens for a recording: the quotient of the two rates that each
# of its runs reports, by the code that was submitted (TensorRT-LLM; vLLM's reference; Intel's).
WHISPER_TOKENS = {"vLLM": "75", "PyTorch": "76"}
WHISPER_TOKENS_ELSE = "63"


# Names of columns in FasterTransformer's tables: what ran, and the framework it was called from.
INFER_ENGINE = {
    "FasterTransformer (C++)": "FasterTransformer",
    "FT (PyTorch)": "FasterTransformer",
    "FT (TensorFlow)": "FasterTransformer",
    "FT-FP16 Latency (TensorFlow)": "FasterTransformer",
    "FT-INT8-v1 (PyTorch)": "FasterTransformer",
    "FT-INT8-v1 (TensorFlow)": "FasterTransformer",
    "FT-INT8-v2 (PyTorch)": "FasterTransformer",
    "FT-INT8-v2 (TensorFlow)": "FasterTransformer",
    "FT-INT8-v2 Latency (TensorFlow)": "FasterTransformer",
    "A100 Latency (TensorFlow)": "FasterTransformer",
    "A100 MIG Latency (TensorFlow)": "FasterTransformer",
    "T4 Latency (TensorFlow)": "FasterTransformer",
    "V100 Latency (TensorFlow)": "FasterTransformer",
    "TorchScript (PyTorch)": "PyTorch",
    "TorchScript-FP16 (PyTorch)": "PyTorch",
    "TF (TensorFlow)": "TensorFlow",
    "TF-FP16 (TensorFlow)": "TensorFlow",
    "PyTorch: Retinanet: 1.12.0a0+gitb278502": "PyTorch",
    "QUALCOMM Cloud AI SDK v1.8.3": "Cloud AI SDK",
    "Qualcomm Cloud AI SDK v1.7.1": "Cloud AI SDK",
}

# The card that such a column names; the tables stand under the heading of another.
COLUMN_CARD = {
    "A100 Latency (TensorFlow)": "A100-SXM-80GB",
    "T4 Latency (TensorFlow)": "T4",
    "V100 Latency (TensorFlow)": "V100-SXM-16GB",
}


# FasterTransformer with its padding removed: docs/bert_guide.md sets the mean length to half of the
# stated one in its tables of Effective FasterTransformer (those with a column for each card);
# bert_triton_example.cc, which timed BERT-6B, draws lengths uniformly below it.
def padding_removed(r):
    return r["model"] == "BERT-6B" or r["engine"] in COLUMN_CARD


def infer(r):
    name = r["model"]
    if name not in INFER_MODEL and name != "BERT-6B" and not name.startswith("whisper-"):
        return
    if padding_removed(r):
        r["input_len"] = str(int(r["input_len"]) // 2)
    if r["source"].startswith("github:NVIDIA/DeepLearningExamples") and \
            r["gpu"].startswith("A100") and r["weight_format"] == "fp16":
        # The tables of both formats hold the same numbers within some percent, and half of what
        # FasterTransformer's guide has for TensorFlow in 16 bit: TF32 is what ran.
        r["weight_format"] = "tf32"
    r["model"] = INFER_MODEL.get(name, name)
    r["gpu"] = COLUMN_CARD.get(r["engine"], r["gpu"])
    if r["engine"].startswith("A100 MIG"):
        r["trust"] = "exclude"  # the size of the slice is not stated
    if r["engine"].startswith("FT-INT8-v1"):
        r["weight_format"] = "int8-v1"  # docs/bert_guide.md, int8_mode 1: named by the column alone
    r["engine"] = INFER_ENGINE.get(r["engine"], r["engine"])
    if r["weight_format"] == "int8-v2":
        r["weight_format"] = "int8"
    if r["weight_format"] == "int8,fp16":
        r["weight_format"] = "int8"  # layers that lose too much stay in 16 bit
    text = r["notes"]
    if name == "bert":
        r["input_len"] = str(SQUAD_MEAN)  # submissions drop the padding
        if re.search("singlestream", text, re.I):
            r["batch_or_concurrency"] = "1"
    if name == "whisper":
        r["output_len"] = WHISPER_TOKENS.get(r["engine"].split(":")[0], WHISPER_TOKENS_ELSE)
    if name.startswith("whisper-") and r["metric"] == "e2e_ms":
        r["span"] = "encoder"  # of one window of 30 s
    if "encoder forward latency" in text or name in ("BERT-base", "BERT-large"):
        r["span"] = "static_batch"


def whisper_lengths(rows):
    """Runs that state both rates say how many tokens their transcripts have: implementations differ by
    what they count of timestamps."""
    rates = {}
    for r in rows:
        if r["model"] == "whisper-large-v3" and r["output_len"] == WHISPER_TOKENS:
            rates.setdefault((r["source"], r["gpu"], r["n_gpus"], r["stat"]), {})[r["metric"]] = r
    for run in rates.values():
        if {"req_s", "output_tok_s_total"} <= run.keys():
            tokens = float(run["output_tok_s_total"]["value"]) / float(run["req_s"]["value"])
            for r in run.values():
                r["output_len"] = str(round(tokens))


TRAIN_MODEL = {
    "bert": ("bert-large", "512"),        # FlagPerf, config/_base.py
    "bert_hf": ("bert-large", "512"),     # FlagPerf, config/_base.py
    "BERT:128": ("bert-large", "128"),
    "BERT:512": ("bert-large", "512"),
    "BERT": ("bert-large-squad", "384"),  # DeepLearningExamples fine-tunes at 384
    "BART:128": ("bart-large", "128"),
    "BART:512": ("bart-large", "512"),
    "BART": ("bart-large", ""),
    "t5_small": ("t5-small", "128"),
    "distilbert": ("distilbert-base-classifier", ""),
    "longformer": ("longformer-base", ""),
    "Transformer": ("transformer-big", "32"),
    "transformer": ("transformer-big", "32"),
    "wav2vec2": ("wav2vec2-base", str(LIBRISPEECH_MEAN)),
    "test_run_glue_bert-large-uncased-whole-word-masking_multi_card": ("bert-large-classifier", ""),
    "test_run_glue_bert-large-uncased-whole-word-masking_single_card":
        ("bert-large-classifier", ""),
    "test_run_mlm_roberta-large_multi_card": ("roberta-large", ""),
    "test_run_qa_roberta-large_multi_card": ("roberta-large-squad", "384"),
    "test_run_qa_roberta-large_single_card": ("roberta-large-squad", "384"),
    "test_run_speech_recognition_ctc_wav2vec2-large-lv60_multi_card": ("wav2vec2-large", ""),
    "test_run_speech_recognition_seq2seq_whisper-small_multi_card": ("whisper-small", ""),
    "test_run_summarization_flan-t5-xxl_deepspeed": ("flan-t5-xxl", ""),
    "test_run_audio_classification_wav2vec2-base_multi_card": ("wav2vec2-base", "50"),
    "test_run_audio_classification_ast-finetuned-speech-commands-v2_multi_card":
        ("audio-spectrogram-transformer", "146"),
    "un_sequence_classification_protst-esm1b-for-sequential-classification_multi_card":
        ("esm1b-650m", ""),
    "e-uncased-Habana/bert-base-uncased-question-answering-24-8-run_qa.py-full_shard]":
        ("bert-base-squad", "384"),
}
# Rows whose batch is stated in words of the table's columns.
FIRST, SECOND = 0, 1


def cells(text):
    m = re.search(r"batch_cell=([^;]*)", text)
    return [int(n) for n in re.findall(r"\d+", m[1])] if m else []


def steps(text):
    m = re.search(r"accum=([^;]*)", text)
    return [int(n) for n in re.findall(r"\d+", m[1])] if m else []


def train(r):
    name = r["model"]
    framework, text = r["framework"], r["notes"]
    if name == "bert-large" and framework.startswith("mlperf-"):
        r["seq_len"] = str(PRETRAINING_MEAN)  # submissions drop the padding
        return
    if name in ("bert-base", "bert-large") and "lambda" in framework:
        r["model"], r["seq_len"] = name + "-squad", "384"
        r["global_batch"] = ""
        return
    if name not in TRAIN_MODEL:
        return
    r["model"], length = TRAIN_MODEL[name]
    if name == "BERT:512" and "TensorFlow" not in framework:
        length = str(BINNED_MEAN)
    r["seq_len"] = length
    if name in ("t5_small",):
        # FlagPerf create_train_eval_data.py pads articles to 1,024 and summaries to 128.
        r["source_len"] = "1024"
        r["micro_batch"] = "32"  # config/_base.py
    if "FlagPerf" in framework:
        m = re.search(r"\bbs=(\d+)", text)
        if m:
            r["micro_batch"] = m[1]
        elif name == "bert":
            r["micro_batch"] = "24"  # as its other rows say
        if name == "transformer":
            r["metric"] = "tokens_per_s_per_gpu"
            r["micro_batch"] = "10240"
    if "NVIDIA-DLE" in framework:
        batch, accumulate = cells(text), steps(text)
        # Tables name full precision first and the mixed one second; TensorFlow's the other way.
        mixed = r["precision"] not in ("tf32", "fp32")
        at = int(mixed) if "TensorFlow" not in framework else int(not mixed)
        if len(batch) == 1:
            r["micro_batch"] = str(batch[0])
        elif len(batch) == 2:
            r["micro_batch"] = str(batch[at])
        if len(accumulate) == 2 and name.startswith("BERT:") and batch:
            # One column is the batch of a rank and step, the other what it is split into.
            whole, parts = batch[at], accumulate[at]
            if whole >= 2048:
                r["micro_batch"], r["grad_accum"] = str(whole // parts), str(parts)
            elif parts >= 2048:
                r["grad_accum"] = str(parts // whole)
            else:
                r["grad_accum"] = str(parts)
    if name in ("Transformer", "transformer") and r["micro_batch"]:
        # Batches are counted in tokens.
        r["micro_batch"] = str(int(r["micro_batch"]) // int(length))
    if name == "wav2vec2":
        r["trust"] = r["trust"] or "low"
