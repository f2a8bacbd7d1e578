"""What measurements of memory mean: the rules of import_measured.py for memory.csv."""
import re

from import_measured_rules import MEMORY_COLUMNS, has, note, says


def memory(r):
    for c in MEMORY_COLUMNS:
        r.setdefault(c, "")
    text = r["notes"]
    r["span"] = "rank"
    for column, key in (
        ("pp", "pipeline-model-parallel-size"), ("pp", "pp"), ("cp", "context-parallel-size"),
        ("ep", "expert-model-parallel-size"), ("ep", "expert_model_parallel_size"),
        ("pp", "pipeline_model_parallel_size"), ("experts", "num-experts"),
        ("top_k", "moe-router-topk"), ("moe_ffn", "moe-ffn-hidden-size"),
        ("vpp", "num-virtual-stages-per-pipeline-rank"), ("global_batch", "global-batch-size"),
        ("global_batch", "global_batch_size"), ("n_ubatch", "n_ubatch"), ("fa", "fa"),
        ("fa", "flash_attn"), ("mla", "mla"), ("lora_rank", "rank"), ("lora_rank", "lora_rank"),
        ("lora_targets", "targets"), ("adapter", "peft"),
    ):
        if not r[column]:
            r[column] = note(r, key)
    if r["experts"] == "" and note(r, "experts"):
        r["experts"], r["top_k"], r["moe_ffn"] = note(r, "experts"), note(r, "used"), \
            note(r, "n_ff_exp")
    m = re.search(r"n_ubatch (\d+)", text)
    if m:
        r["n_ubatch"] = m[1]
    if note(r, "sequence-parallel") == "true":
        r["sequence_parallel"] = "1"
    if has(r, "NVIDIA/Megatron-LM"):
        megatron(r, text)
    if has(r, "ikawrakow/ik_llama.cpp", "XiongjieDai") or r["engine"] == "llama.cpp":
        llama_cpp(r, text)
    if says(r, "max_memory_reserved", "peak reserved", "reserved memory"):
        r["measure"] = "reserved"
    elif says(r, "allocated", "max_memory_allocated", "peak_active", "peak ACTIVE"):
        r["measure"] = "allocated"
    elif says(r, "nvidia-smi", "VRAM"):
        r["measure"] = "device"
    if r["engine"] in ("transformers", "transformers+deepspeed") and has(r, "QwenLM/Qwen"):
        # Sums over cards of Qwen-72B equal weights and cache only in GiB.
        r["unit"] = "GiB" if r["unit"] == "GB" else r["unit"]
        r["measure"] = "allocated"
    if has(r, "QwenLM/Qwen") and r["model"].startswith("Qwen-72B"):
        r["span"] = "total"
        if not r["n_gpus"] and r["gpu"].startswith("V100"):
            cards = 1
            while cards * 32 < float(r["value"]):
                cards *= 2  # a tensor-parallel group that divides 64 heads
            r["n_gpus"] = str(cards)
    if has(r, "QwenLM/Qwen") and r["task"].startswith("train"):
        r["recompute"] = "full"  # every finetune script there: --gradient_checkpointing True
        if int(r["n_gpus"] or 1) > 1:
            r["span"] = "total"
    if r["engine"] == "ms-swift" and r["task"].startswith("train"):
        r["recompute"] = "full"  # its default; the headers name exceptions only
        r["trust"] = r["trust"] or "low"  # the length is a maximum, samples are shorter
    if r["engine"] == "torchtune" and r["task"].startswith("train"):
        r["recompute"] = r["recompute"] or "full"  # enable_activation_checkpointing of its recipes
        if r["task"] == "train-full":
            r["offload"] = "paged_optimizer"
    if says(r, "TOTAL over", "total over", "sum over cards"):
        r["span"] = "total"
    if r["unit"] == "GB" and r["engine"] in ("vllm", "sglang", "autoawq", "deepspeed"):
        r["unit"] = "GiB"  # their logs divide by 2^30 and print GB
    if r["unit"] == "GB" and has(r, "huggingface/peft", "modelscope/ms-swift", "pytorch/torchtune",
                                 "huggingface/accelerate", "meta-llama/llama-cookbook"):
        r["unit"] = "GiB"  # torch's counters over 2^30; torchtune prints both names for one figure
    m = re.search(r"generate (\d+) tokens", text)
    if m and m[1] == r["context_len"]:
        r["prompt_len"] = "1"
    if has(r, "huggingface/accelerate") and "+2048 generated" in text and r["context_len"]:
        r["prompt_len"] = r["context_len"]
        r["context_len"] = str(int(r["context_len"]) + 2048)
    if has(r, "LIT") or r["engine"] == "litgpt":
        r["measure"] = "allocated"
    if r["engine"] == "safetensors":
        r["span"] = "file"
    if r["adapter"] and r["adapter"] != "LORA":
        r["adapter"] = r["adapter"].lower()
    elif r["adapter"] == "LORA":
        r["adapter"] = ""
    if says(r, "PPO", "muon", "GRPO"):
        r["offload"] = "other_method"
    if says(r, "offload") and not says(r, "offloaded="):
        r["offload"] = "cpu"
    if "LoRA (emb)" in text:
        r["adapter"] = "lora+embeddings"
    m = re.search(r"KV cache (int8|bf16)", text)
    if m:
        r["kv_format"] = m[1]
    if "sl=1024 generated" in text:
        r["prompt_len"] = "1"
    m = re.search(r"total ([\d.]+) GiB", text)
    if m and not r["gpu_mem_gb"]:
        r["gpu_mem_gb"] = m[1]


def megatron(r, text):
    r["measure"] = "allocated"
    r["gated"] = "1" if note(r, "swiglu") == "true" else "0"
    r["tied"] = "0" if note(r, "untie-embeddings-and-output-weights") == "true" else "1"
    if r["zero_stage"] == "1":
        r["distributed_optimizer"] = "1"
    if r["model"].split(":")[0] in ("t5", "bert", "multimodal-llava"):
        return
    m = re.search(r"pp(\d+)", r["model"])
    if m and r["pp"] == "1" and m[1] != "1":
        r["pp"] = "1"  # the arguments are what ran
    if note(r, "multi-latent-attention") == "true":
        r["mla"] = "1"
    if note(r, "tokenizer-type") == "NullTokenizer" and not r["vocab"]:
        r["vocab"] = ""


def llama_cpp(r, text):
    if r["component"] == "weights":
        r["span"] = "file" if "whole model" in text else "device_total"
        m = re.search(r"host ([^;]*);", text)
        if m:  # weights left on the host beside the embedding: experts are run by the CPU
            host = sum(float(x) for x in re.findall(r"CPU=([\d.]+)", m[1]))
            if host > 4096:
                r["offload"] = "experts"
    elif r["component"] == "kv_cache":
        r["span"] = "total"
        kinds = re.findall(r"\((f16|f32|bf16|q\d_\d|iq4_nl)\)", text)
        if kinds:  # keys and values may differ
            r["kv_format"] = "+".join(dict.fromkeys(kinds))
    elif r["component"] == "compute_buffer" and "host/CPU only" in text:
        r["offload"] = "cpu"
    m = re.search(r"offloaded=(\d+)/(\d+)", text)
    if m and m[1] != m[2]:
        r["offload"] = r["offload"] or "layers"
