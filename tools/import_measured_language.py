"""Rows of language models: which kernels an engine's name stands for, and what their sources leave to
benchmark scripts and data sets. Used by import_measured_rules.py.

  engine  names the kernels where one program has several ("llama.cpp Vulkan", "AutoAWQ GEMV")
"""
import os
import re
import tomllib

from catalogue_sheets import ROOT


def mlperf_inputs():
    """Mean prompts of MLPerf's data sets by model, as data/workloads/mlperf-inference.toml has them."""
    path = os.path.join(ROOT, "data", "workloads", "mlperf-inference.toml")
    with open(path, "rb") as f:
        entries = tomllib.load(f)["entry"]
    return {e["model"]: str(e["input_tokens"]) for e in entries if "input_tokens" in e}


MLPERF_INPUT = mlperf_inputs()

# What the benchmark of each runtime in premAI-io/benchmarks wraps (bench_*/bench.py).
WRAPPED = {"PyTorch Lightning": "litgpt", "Optimum Nvidia": "TensorRT-LLM", "onnx": "ONNX Runtime",
           "ctranslate": "CTranslate2"}

# Runtimes as MLPerf logs write them, before a release.
RUNTIMES = {"qualcomm cloud ai sdk": "Cloud AI SDK", "onnxruntime": "ONNX Runtime",
            "pytorch": "PyTorch", "tf": "TensorFlow"}

# Engines that put whole layers on each card.
BY_LAYERS = ("llama.cpp", "exllama", "exllamav2", "Transformers", "ctransformers", "AutoAWQ")


def infer(r):
    text = r["notes"]
    if r["engine"] == "llama.cpp":
        m = re.match(r"(b\d+)?\s*(.*)", r["engine_version"])
        build, backend = m[1] or "", m[2]
        # Else a date or a commit: the date of the row says more.
        r["engine_version"] = build
        if "vulkan" in backend:
            # Two drivers, two shader compilers.
            r["engine"] = "llama.cpp Vulkan" + (" AMDVLK" if "amdvlk" in backend else "")
    if "kyuz0/amd-strix-halo-toolboxes@" in r["source"] and "__longctx" in r["source"]:
        # benchmark/run_benchmarks.sh: behind a long context -ub 512 on Vulkan, else -ub 2048.
        r["ubatch"] = "512" if "vulkan" in r["source"] else "2048"
    if r["engine"] == "whisper.cpp":
        m = re.match(r"([\d.]+)\b.*?(?:FA=([01]))?$", r["engine_version"])
        if m:
            r["engine_version"], r["fa"] = m[1], m[2] or r.get("fa", "")
    if r["engine"] == "AutoAWQ" and "kernel GEMV" in text:
        r["engine"] = "AutoAWQ GEMV"
    if r["engine"] == "AutoAWQ" and r["engine_version"].startswith("IPEX"):
        r["engine"] = "AutoAWQ IPEX"
    if r["source"].endswith(":README.md") and r["engine"] in ("AutoAWQ", "AutoAWQ GEMV") and r["n_gpus"] == "1":
        # "Tested with AutoAWQ version 0.1.6"; Mixtral on two cards came later, with 0.2.
        r["engine_version"] = "0.1.6"
    if r["engine"].startswith("AutoAWQ") and r["metric"] == "prefill_tok_s":
        r["span"] = "first"  # examples/benchmark.py times the first forward pass of the process
    r["engine"] = WRAPPED.get(r["engine"], r["engine"])
    if r["engine"] in BY_LAYERS and int(r["tp"] or 1) > 1:
        r["tp"], r["pp"] = "1", r["tp"]
    if r["engine"] == "TensorRT-LLM" and "source" in text and "per GPU x TP" in text:
        # docs/source/blogs/H200launch.md: gptSessionBenchmark at a batch, as the tables beside it.
        r["span"] = r["span"] or "static_batch"
    m = re.match(r"(\D+?) v(\d+(?:\.\d+)*)$", r["engine"])
    if m and m[1].lower() in RUNTIMES:
        r["engine"], r["engine_version"] = RUNTIMES[m[1].lower()], m[2]
    if r["engine"].startswith("PyTorch: "):
        r["engine"] = "PyTorch"
    if r["source"].startswith("github:mlcommons/") and not r["input_len"]:
        r["input_len"] = MLPERF_INPUT.get(r["model"], "")
    if r["weight_format"] == "gguf:4bit":
        r["weight_format"] = "gguf:Q4_K_M"  # the quantisation that most GGUF collections name first
        r["trust"] = r["trust"] or "low"
    if r["engine"].startswith("Ollama") and not r["weight_format"]:
        r["weight_format"] = "gguf:Q4_0"  # what Ollama served by default in 2024
        r["trust"] = r["trust"] or "low"
