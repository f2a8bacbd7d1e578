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


# docs/source/performance/perf-overview.md of TensorRT-LLM: how many requests of each pair of lengths
# are queued at once, "Preparing a Dataset".
QUEUED = {("128", "128"): 30000, ("128", "2048"): 3000, ("128", "4096"): 1500, ("500", "2000"): 3000,
          ("1000", "1000"): 3000, ("1000", "2000"): 1500, ("2048", "128"): 3000,
          ("2048", "2048"): 1500, ("5000", "500"): 1500, ("20000", "2000"): 1000,
          ("1024", "1024"): 3000, ("8192", "1024"): 1500, ("1024", "8192"): 1500,
          ("32768", "1024"): 1000, ("1024", "32768"): 1000}
# tensorrt_llm/bench/build/tuning.py: what trtllm-bench lets run together, if the cache holds it.
BENCH_SEQUENCES = "4096"
# Its "MoE models", which it runs with enable_attention_dp and --ep.
EXPERTS = re.compile(r"-A\d+B|Llama-4-|DeepSeek-[RV]|gpt-oss", re.I)


def queued(r):
    """Runs of trtllm-bench throughput."""
    r["requests"] = str(QUEUED.get((r["input_len"], r["output_len"]), ""))
    r["max_sequences"] = BENCH_SEQUENCES
    if EXPERTS.search(r["model"]) and r["engine_version"].startswith("1.") and int(r["tp"] or 1) > 1:
        r["attention_dp"], r["ep"] = "1", r["tp"]


# Boards that hold several cards.
BOARDS = {"Arc Pro B60 Dual 48G": 2}


# Watts that NVIDIA's submissions in MaxQ set (mlcommons/inference_results_v4.1, closed/NVIDIA/configs/
# llama2-70b/Offline: power_limit).
MAX_Q = {"H100-SXM-80GB": "450", "H200-SXM-141GB": "500", "H100-NVL-94GB": "350"}


def mlperf(r):
    """What MLPerf's logs of language models leave to the code that was submitted with them."""
    if r["engine"] == "TensorRT" and r["model"] in ("llama2-70b", "mixtral-8x7b") \
            and not r["weight_format"] and "STARTING weight type" in r["notes"]:
        # closed/NVIDIA/configs/{llama2-70b,mixtral-8x7b} of v4.1: use_fp8 on every system; the first
        # B200 ran FP4 (NVIDIA, "Blackwell platform sets new LLM inference records", 2024-08).
        r["weight_format"] = "fp4" if r["gpu"].startswith(("B200", "GB200")) else "fp8"
        if "MaxQ" in r["source"]:
            r["power_cap_w"] = MAX_Q.get(r["gpu"], "")
    if "reference-gpu-vllm" in r["source"] and r["model"] == "whisper":
        # mlcommons/inference speech2text/reference_SUT.py: one worker generates for one query at a time,
        # in bfloat16 on one card.
        r["weight_format"], r["batch_or_concurrency"], r["n_gpus"] = "bf16", "1", "1"
        r["trust"] = r["trust"] or "low"  # the host makes the spectrogram inside of the timed call
    if r["engine"] == "TensorRT" and r["model"] == "deepseek-r1" and r["n_gpus"] == "8":
        # TensorRT-LLM, docs/source/blogs/Best_perf_practice_on_DeepSeek-R1: most throughput of eight
        # cards by --tp 8 --ep 8 with enable_attention_dp.
        r["tp"], r["ep"], r["attention_dp"] = "8", "8", "1"


def infer(r):
    text = r["notes"]
    if "perf-overview.md" in r["source"] and r["engine"] == "TensorRT-LLM" \
            and not r["batch_or_concurrency"].isdigit():
        queued(r)
    if r["source"].startswith("github:mlcommons/"):
        mlperf(r)
    if r["gpu"] in BOARDS:
        r["n_gpus"] = str(BOARDS[r["gpu"]] * int(r["n_gpus"]))
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
