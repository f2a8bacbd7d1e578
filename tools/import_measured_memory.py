"""What measurements of memory mean: the rules of import_measured.py for memory.csv."""
import re

import import_measured_torch as torch
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
    if r["engine"] == "ms-swift-megatron":
        megatron_swift(r, text)
    if has(r, "ikawrakow/ik_llama.cpp", "XiongjieDai") or r["engine"] in ("llama.cpp", "ollama"):
        llama_cpp(r, text)
    if r["model"] == "whisper-large":
        r["model"] = "whisper-large-v2"  # the first and the second are of one size
    if r["engine"] == "whisper.cpp":
        r["span"] = "file"
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
    if has(r, "QwenLM/Qwen") and (r["model"].startswith("Qwen-72B") or
                                  r["gpu"].startswith("V100") and float(r["value"]) > 32):
        r["span"] = "total"
        if not r["n_gpus"] and r["gpu"].startswith("V100"):
            cards = 1
            while cards * 32 < float(r["value"]):
                cards *= 2  # a tensor-parallel group that divides 64 heads
            r["n_gpus"] = str(cards)
    if r["engine"] == "torchtune" and r["task"].startswith("train"):
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
    if says(r, "PPO", "GRPO") or says(r, "muon") and r["engine"] != "ms-swift-megatron":
        r["offload"] = "other_method"
    if says(r, "offload") and not says(r, "offloaded="):
        states = "optimizer_cpu_offload=true" in text and r["task"].startswith("train")
        r["offload"] = "optimizer" if states else "cpu"
    m = re.search(r"KV cache (int8|bf16)", text)
    if m:
        r["kv_format"] = m[1]
    if "sl=1024 generated" in text:
        r["prompt_len"] = "1"
    if not r["task"].startswith("train"):
        serving(r, text)
    m = re.search(r"total ([\d.]+) GiB", text)
    if m and not r["gpu_mem_gb"]:
        r["gpu_mem_gb"] = m[1]
    if r["engine"] == "ms-swift" and r["task"] == "infer":
        r["engine"] = "transformers"  # what its own backend runs
    torch.train(r)


# Vocabularies of the tokenizers that Megatron's tests name: GPT-2's byte pairs (its default) and
# the 256k sentence pieces of Nemotron.
MEGATRON_VOCABULARIES = {"": 50257, "GPT2BPETokenizer": 50257, "GPTSentencePieceTokenizer": 256000}


# Scripts of ms-swift that train, though the files' folders do not say so: they state a batch to
# accumulate over, an adapter or packing, and are not called infer.sh.
def ms_swift_trains(r):
    return r["engine"].startswith("ms-swift") and not r["source"].endswith("infer.sh") and \
        not has(r, "examples/infer/") and \
        says(r, "global_batch_size", "gradient_accumulation_steps", "lora_rank", "packing=true")


def serving(r, text):
    if ms_swift_trains(r):
        r["task"] = "train-lora" if note(r, "lora_rank") else "train-full"
        r["recompute"] = "full"
        r["trust"] = r["trust"] or "low"  # as the other examples: samples are shorter
        if r["engine"] == "ms-swift-megatron":
            r["measure"] = "device"
        return
    # What the driver told the process of the card, where the log says it.
    m = re.search(r"(?:torch )?total ([\d.]+) (GiB|MiB)", text)
    if m:
        r["reported_gib"] = m[1] if m[2] == "GiB" else f"{float(m[1]) / 1024:.4f}"
    if "fp8 KV" in text:
        r["kv_format"] = "fp8"
    m = re.search(r"consistent with TP(\d+)", text)
    if m and not r["tp"]:
        r["tp"] = m[1]
        r["n_gpus"] = r["n_gpus"] or m[1]
    if has(r, "mlcommons/inference issues/2267"):
        r["tp"] = r["n_gpus"]  # eight workers that each loaded an eighth
    if has(r, "QwenLM/Qwen") and "eager mode" in text:
        r["measure"] = "eager"  # no captured graphs
    if r["weight_format"] == "nvfp4":  # the format has a column of its own
        r["model"] = re.sub(r"-nvfp4(-resharded)?$", "", r["model"])
    m = re.search(r"max_num_seqs (\d+)", text)
    if m:
        r["max_sequences"] = m[1]
    m = re.search(r"(\d+) (?:mixed capture|piecewise) sizes|pool (\d+) shapes", text)
    if m:
        r["captures"] = m[1] or m[2]
    if "INCLUDING CUDA context" in text:
        r["measure"] = "device"
    if "rank0" in text and r["component"] == "weights" and note(r, "pp") not in ("", "1"):
        r["span"] = "first_stage"  # the log of the ranks beside the first
    if r["engine"] == "vllm" and r["component"] == "non_torch":
        # Until 0.6.4 everything that torch did not allocate, later what grew since start.
        r["measure"] = "device" if r["date"] < "2024-12-14" and "pull/10511" in r["source"] \
            or "before profiling" in text else "growth"
    if r["engine"] == "vllm" and "pull/10511" in r["source"]:
        r["engine_version"] = "0.6.4"  # the branch that the request was made against
    if r["engine"] == "diffusers" and r["offload"] == "cpu" and \
            ("model_cpu_offload" in text) and "tiling" not in text:
        r["offload"] = "model"  # whole components take turns on the card
    if r["engine"] == "vllm" and r["model"].startswith("whisper") and r["date"] < "2025-08":
        r["engine_version"] = "V0"  # V1 ran no encoder-decoders before 0.10
    if r["engine"] == "litgpt" and not r["context_len"]:
        # generate/base.py: the prompt "What food do llamas eat?" and 50 new tokens.
        r["prompt_len"], r["context_len"] = "8", "58"
    if has(r, "turboderp/exllama"):
        r["engine_version"] = "1"
        r["measure"] = "allocated"  # its README: as torch reports, without torch's own overhead
        if " + " in r["gpu"]:
            r["gpu"] = r["gpu"].split(" + ")[0]  # the sum does not depend on which card
            r["pp"] = r["n_gpus"]
    if has(r, "QwenLM/Qwen") and r["engine"] == "transformers":
        r["engine_version"] = "4.32"  # its requirements.txt: below 4.38, images with 4.32
        if "sl generated" in text:
            r["prompt_len"] = "1"


def megatron(r, text):
    """Flags of Megatron-LM's functional tests. The golden numbers are those of the last rank."""
    test = r["model"].split(":")[-1]
    words = test.split("_")
    r["measure"], r["span"] = "allocated", "last_stage"
    r["gated"] = "1" if note(r, "swiglu") == "true" else "0"
    r["tied"] = "0" if note(r, "untie-embeddings-and-output-weights") == "true" else "1"
    if r["zero_stage"] == "1":
        r["distributed_optimizer"] = "1"
    r["etp"] = note(r, "expert-tensor-parallel-size")
    r["fused_loss"] = "1" if note(r, "cross-entropy-loss-fusion") == "true" else ""
    r["shared_ffn"] = note(r, "moe-shared-expert-intermediate-size")
    r["mtp_layers"] = note(r, "mtp-num-layers")
    r["eight_bit_weights"] = "1" if note(r, "fp8-param-gather") == "true" else ""
    layers = int(r["layers"] or 0)
    m = re.search(r"moe-layer-freq=\(\[0\]\*(\d+)\+\[1\]\*\d+\)", text)
    r["dense_layers"] = m[1] if m else ""
    chunk = note(r, "num-layers-per-virtual-pipeline-stage")
    if chunk and not r["vpp"]:
        r["vpp"] = str(layers // int(r["pp"] or 1) // int(chunk))
    if note(r, "multi-latent-attention") == "true":
        r["kv_lora_rank"], r["q_lora_rank"] = note(r, "kv-lora-rank"), note(r, "q-lora-rank")
        r["positions"] = "0"  # rotary, and no dropout, as in DeepSeek's recipes
    if r["gated"] == "1" and not r["ffn"]:
        r["ffn"] = str(int(4 * int(r["hidden"]) * 2 / 3 / 64) * 64)  # arguments.py
    tokenizer = note(r, "tokenizer-type")
    if not r["vocab"] and tokenizer in MEGATRON_VOCABULARIES:
        r["vocab"] = str(MEGATRON_VOCABULARIES[tokenizer])
    multiple = int(note(r, "make-vocab-size-divisible-by") or 0) * int(r["tp"] or 1)
    if r["vocab"] and multiple:
        r["vocab"] = str(-(-int(r["vocab"]) // multiple) * multiple)
    if r["recompute"] == "full":
        # --recompute-num-layers: uniform, the length of a chunk; block, the layers covered.
        if note(r, "recompute-method") == "block":
            r["recompute_layers"] = note(r, "recompute-num-layers")
    m = re.search(r"recompute-modules=\[([^\]]*)\]", text)
    r["recompute_modules"] = m[1] if m else ""

    if r["model"].startswith("t5:"):
        # The stated length is the encoder's; pretrain_t5.py's examples give the decoder 128.
        r["source_len"] = r["positions"] = r["context_len"]
        r["context_len"] = note(r, "decoder-seq-length") or "128"

    # What the names of its tests say; the arguments are in each test's model_config.yaml.
    local = "te" not in words and re.match(r"gpt3_mcore_tp\d", test) or "uninstall" in words
    unfused = note(r, "attention-backend") == "unfused" or local
    r["fa"] = "0" if unfused else "1"
    if "rope" in words or test.startswith("gpt3_15b"):
        r["positions"] = "0"
    plain = {"cp2", "nondeterministic"} & set(words) or test.startswith("gpt3_15b") or \
        "cross_entropy_loss_fusion" in test or "1x4xNone" in words or "8x1xNone" in words
    r["deterministic"] = "0" if plain or r["kv_lora_rank"] else "1"
    no_masks = "cp2" in words or r["kv_lora_rank"] or test.startswith("gpt3_15b") or \
        "cudagraph" in words
    r["dropout"] = "0" if no_masks else "1"
    if r["experts"]:
        r["grouped_experts"] = "1" if note(r, "moe-ffn-hidden-size") or "groupedGEMM" in words else "0"
    if "multi_dist_optimizer_instances" in test:
        r["optimizer_groups"] = "2"  # --num-distributed-optimizer-instances
    if "muon" in words:
        r["optimizer"] = "muon"
    if "tunable" in words and r["vpp"]:
        r["interleave_group"] = "5"  # --microbatch-group-size-per-virtual-pipeline-stage
    if note(r, "decoder-first-pipeline-num-layers"):
        r["last_layers"] = note(r, "decoder-first-pipeline-num-layers")  # and as many at the end
    if {"fine", "experimental", "scoped"} & set(words) and r["pp"] == "2":
        # --pipeline-model-parallel-layout of eight blocks: Et*3|(tt|)*6mL, six layers on the last
        # rank, and Et*3|(tt|)*6tmL, seven.
        r["vpp"] = "4"
        r["last_layers"] = "7" if "experimental" in words else "6"
    if test == "gpt3_mcore_reruns_resume_check_grads":
        r["n_gpus"] = r["pp"] = "1"  # the first of its runs is logged: MODEL_ARGS, one card
    if "fine" in words:
        r["offload_activations"] = "1"  # --fine-grained-activation-offloading of nearly all modules
    if "distill" in words:
        r["offload"] = "other_method"  # a teacher runs beside the student
    if not r["n_gpus"] and not test.startswith("gpt3_15b"):
        # One node: eight cards, four where the test is one of those for a GB200 tray.
        r["n_gpus"] = "4" if "1node" in words else "8"


def megatron_swift(r, text):
    """Megatron's trainer in ms-swift: its defaults, and what all its example scripts pass."""
    if r["task"] == "infer" and "infer.sh" not in r["source"]:
        r["task"] = "train-lora" if r["lora_rank"] else "train-full"  # `megatron sft` all of them
    r["measure"] = "reserved"  # its log prints torch.cuda.max_memory_reserved
    r["zero_stage"] = r["zero_stage"] or "1"  # use_distributed_optimizer
    r["distributed_optimizer"] = "1"
    r["sequence_parallel"] = r["fa"] = r["fused_loss"] = "1"
    r["dropout"] = "0"
    r["etp"] = "1"
    if r["task"] == "train-lora":
        r["lora_targets"] = "all+experts"  # --target_modules all-linear
    if "packing=true" not in text:
        r["trust"] = r["trust"] or "low"  # the length is a maximum, samples are shorter
    if re.search(r"\bfull\b", text) and r["lora_rank"] and r["task"] == "train-full":
        r["lora_rank"] = ""  # the script's other variant
    if "muon" in text:
        r["optimizer"] = "muon"
    if int(r["ep"] or 1) > int(r["n_gpus"] or 1):
        r["n_gpus"] = r["ep"]  # the scripts' nproc_per_node; a header may speak of one card
    torch.take_objective(r)
    if has(r, *torch.SWIFT_ENDS):
        r["ends"] = "1"
    m = re.match(r"megatron_output/([^/]+)/", r["model"])
    if m:
        r["model"] = "Qwen/" + m[1]  # trained on from a checkpoint of its own


def llama_cpp(r, text):
    if r["component"] == "weights":
        devices = "GPU" in text or "CUDA" in text or r["engine"] == "ik_llama.cpp"
        r["span"] = "file" if "whole model" in text or not devices else "device_total"
        # Buffers of weights in host memory: the embedding, layers and experts that no card holds.
        host = re.search(r"host ([^;]*);", text)
        found = re.findall(r"(CPU|CPU_Mapped|CUDA_Host)=([\d.]+)", host[1]) if host else []
        r["host_mib"] = "+".join(size for _, size in found)
        if any(name == "CPU_Mapped" for name, _ in found):
            r["host_mapped"] = "1"  # whole files are mapped, whatever lies on the cards
        m = re.search(r"host buffers \(token embd\) ([\d.]+)|; CPU ([\d.]+) MiB", text)
        if m and not found and r["span"] != "file":
            r["host_mib"] = m[1] or m[2]
    elif r["component"] == "kv_cache":
        r["span"] = "total"
        kinds = re.findall(r"\((f16|f32|bf16|q\d_\d|iq4_nl)\)", text)
        if kinds:  # keys and values may differ
            r["kv_format"] = "+".join(dict.fromkeys(kinds))
    elif r["component"] == "compute_buffer" and "host/CPU only" in text and "Vulkan0=" not in text:
        r["offload"] = "cpu"
    if r["component"] == "compute_buffer" and note(r, "all"):
        used = note(r, "all").count("/") + 1  # more than there are: several runs in one log
        r["n_gpus"] = str(min(used, int(r["n_gpus"] or used)))
    m = re.search(r"offloaded=(\d+)/(\d+)", text)
    if m and m[1] != m[2]:
        r["gpu_layers"] = m[1]
    for key in ("amb", "fmoe"):
        r[key] = r[key] or note(r, key)
    if r["model"] == "TriLM" and "297.00 MiB" in text:
        # SpectraSuite/TriLM_3.9B_Unpacked, config.json: an embedding of 297 MiB in 16 bit.
        r.update(layers="30", hidden="3072", heads="24", kv_heads="24", ffn="9216", vocab="50688",
                 gated="1", tied="0")
    if r["weight_format"].startswith("gguf:unknown"):  # a header's word and what followed it
        bits = re.search(r"@([\d.]+)bpw$", r["weight_format"])
        r["weight_format"] = f"gguf:mix@{bits[1]}bpw" if bits else "gguf:mix"
    if r["model"].startswith("bitnet2b"):
        # microsoft/bitnet-b1.58-2B-4T, config.json; 2.741 B where the head was written out.
        r["model"] = "bitnet2b"
        r.update(layers="30", hidden="2560", heads="20", kv_heads="5", head_dim="128", ffn="6912",
                 vocab="128256", gated="1", tied="0" if r["params_b"] == "2.741" else "1")
    if r["model"] == "mistral3" and "CPU 680.0 MiB" in text:
        # mistralai/Mistral-Small-24B-Base-2501, config.json: 131072 x 5120 in Q8_0 are 680 MiB.
        r.update(layers="40", hidden="5120", heads="32", kv_heads="8", head_dim="128", ffn="32768",
                 vocab="131072", gated="1", tied="0")
    if "40 layers, KV width 8192" in text:
        r["model"] = "c4ai-command-r-v01"  # 256000 x 8192 in Q6_K: 1640.62 MiB
        r["weight_format"] = r["weight_format"] if r["weight_format"] != "gguf" else ""
    if r["model"] == "Models" and note(r, "experts") == "128" and note(r, "n_ff_exp") == "1536":
        r["model"] = "Qwen3-235B-A22B"  # a folder's name; the only model of 94 layers so made
    elif r["model"] == "Models" and "arch=qwen3moe" in text:
        r["model"] = "Qwen3-235B-A22B"


# Elements of the keys of one token: layers x key-value heads x head width, and of DeepSeek's latent
# vectors layers x rank (each model's config.json).
KEY_ELEMENTS = {"Qwen3-235B-A22B": 94 * 4 * 128, "Qwen3-30B-A3B": 48 * 4 * 128,
                "GLM Z1 32B": 61 * 2 * 128, "DeepSeek V3": 61 * 512}


def cache_tokens(r):
    """The context that the size of a run's cache implies, for the run's other rows."""
    m = re.search(r"(?:\bK|c\^KV) \((f16|q8_0)\): ([\d.]+) MiB", r.get("notes", ""))
    name = r["model"].replace("Qwen3 235B A22B", "Qwen3-235B-A22B")
    elements = next((n for start, n in KEY_ELEMENTS.items() if name.startswith(start)), 0)
    if not m or not elements:
        return ""
    bits = {"f16": 16, "q8_0": 8.5}[m[1]]
    tokens = round(float(m[2]) * 2 ** 20 * 8 / bits / elements)
    return str(tokens - tokens % 32 if tokens % 32 < 3 else tokens)


def join_runs(rows):
    """The log of a run lists weights, cache and buffers: what it left on the host and the cache's
    format hold for its other rows."""
    last, formats, lengths = {}, {}, {}
    for r in rows:
        if r["engine"] not in ("llama.cpp", "ik_llama.cpp"):
            continue
        key = (r["source"], r["model"], r["weight_format"], r["context_len"], r["n_ubatch"])
        if r["component"] == "weights" and r["span"] == "device_total":
            last[key] = r["host_mib"], r["host_mapped"]
        elif r["component"] == "kv_cache":
            formats[key] = r["kv_format"]
            lengths[key] = cache_tokens(r)
        if r["component"] == "compute_buffer":
            r["kv_format"] = r["kv_format"] or formats.get(key, "")
            # Quantised values need flash attention; a log that states neither leaves it open.
            if not r["context_len"] and not r["fa"] and r["kv_format"] == "q8_0":
                r["context_len"], r["fa"] = lengths.get(key, ""), "1"
        if r["component"] == "compute_buffer" and r["offload"] != "cpu" and key in last:
            r["host_mib"], r["host_mapped"] = last[key]
