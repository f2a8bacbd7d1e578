"""What each family of measurements means: the rules of import_measured.py.

A rule reads what the source said beside its number and writes columns:
  span         what the number covers: decode, whole (prompt and answer), static_batch (whole, a
               fixed batch from start to end), rank, total (all cards), file, device_total
  depth        tokens already in the cache when the measured phase starts
  flops        how floating-point operations were counted
  measure      allocated, reserved, device (nvidia-smi)
  trust        empty (as good as any), low, exclude
  inter_gbps   network between nodes, Gb/s of one accelerator in one direction
"""
import fnmatch
import re

import bigscience_shapes
import import_measured_encoders as encoders
import import_measured_language as language
import import_measured_diffusion as diffusion
import import_measured_images as images
import model_maxtext

COMMON_TAIL = ["trust", "fold"]
TRAIN_COLUMNS = (
    "id source date gpu gpu_mem_gb n_gpus gpus_per_node intra_link inter_link model params_b "
    "layers hidden heads kv_heads ffn vocab experts top_k precision framework method tp pp vpp dp "
    "cp ep zero_stage seq_len global_batch micro_batch recompute optimizer metric value"
).split() + "inter_gbps flops grad_accum lora_rank quant offload tuned source_len".split() + images.TRAIN_COLUMNS + COMMON_TAIL
INFER_COLUMNS = (
    "id source date gpu gpu_mem_gb n_gpus intra_link model params_b weight_format kv_format engine "
    "engine_version tp pp ep input_len output_len batch_or_concurrency request_rate metric stat "
    "value"
).split() + (
    "dp depth span ubatch fa file_gib speculative offload disaggregated tuned power_cap_w threads "
    "requests max_sequences attention_dp"
).split() + diffusion.COLUMNS + images.INFER_COLUMNS + COMMON_TAIL
MEMORY_COLUMNS = (
    "id source date gpu gpu_mem_gb n_gpus model params_b layers hidden heads kv_heads head_dim ffn "
    "vocab weight_format task engine engine_version tp zero_stage context_len batch "
    "gpu_memory_utilization recompute component value unit"
).split() + (
    "kv_format pp vpp cp ep experts top_k moe_ffn gated tied global_batch sequence_parallel n_ubatch "
    "fa mla lora_rank lora_targets adapter prompt_len span measure offload distributed_optimizer "
    "etp deterministic dropout fused_loss grouped_experts optimizer_groups "
    "interleave_group last_layers recompute_layers recompute_modules positions kv_lora_rank "
    "source_len q_lora_rank shared_ffn dense_layers mtp_layers eight_bit_weights "
    "recipe optimizer trainable keeps ends dora "
    "gpu_layers amb fmoe host_mib host_mapped "
    "reported_gib max_sequences captures offload_activations reshard reference"
).split() + COMMON_TAIL

class Suspects:
    """suspect.csv applied: `fix:` sets columns, `exclude` and `low weight` set trust."""

    def __init__(self, rows):
        self.by_file = {}
        for r in rows:
            name = r["file"].removeprefix("measured/").removesuffix(".csv")
            self.by_file.setdefault(name, []).append(r)
        self.exact, self.globs = {}, {}
        for name, rs in self.by_file.items():
            exact, globs = {}, []
            for r in rs:
                # "MLM* with pp in ..." and "source~/TEST01/" select by prose: their own rules below.
                if " " in r["id"] or "~" in r["id"]:
                    continue
                if any(c in r["id"] for c in "*?["):
                    globs.append(r)
                else:
                    for one in re.split(r"[;,]", r["id"]):
                        exact.setdefault(one.strip(), []).append(r)
            self.exact[name], self.globs[name] = exact, globs

    def apply(self, name, row):
        row.setdefault("trust", "")
        hits = list(self.exact.get(name, {}).get(row["id"], []))
        hits += [g for g in self.globs.get(name, []) if fnmatch.fnmatchcase(row["id"], g["id"])]
        for h in hits:
            self._one(row, h)

    @staticmethod
    def _one(row, h):
        s = h["suggestion"]
        if s.startswith("fix:"):
            fix_columns(row, s)
        elif s.startswith("exclude mean"):
            if row.get("stat") == "mean":
                row["trust"] = "exclude"
        elif s.startswith("exclude if a performance/run_1"):
            row["trust"] = row["trust"] or "low"
        elif s.startswith("exclude") or "; exclude" in s or s.startswith("treat as SPECULATIVE"):
            row["trust"] = "exclude"
        elif "output_len unknown" in s:
            row["output_len"] = ""
        elif "fp16 for both" in s:
            row["weight_format"] = "fp16"
        elif "n_gpus=2" in s:
            row["n_gpus"] = "2"
        elif "low" in s or "uncertain" in s or "host bound" in s or "bf16 reference" in s:
            row["trust"] = row["trust"] or "low"


def fix_columns(row, suggestion):
    m = re.match(r"fix:(\w+)=([^\s(]+)", suggestion)
    if not m:
        return
    column, value = m.groups()
    if column == "sec_per_it":
        row["notes"] = re.sub(r"sec_per_it=[\d.]+", f"sec_per_it={value}", row["notes"])
        return
    if column == "tp" and "/" in value:  # "n_gpus/(pp*dp)"
        try:
            row["tp"] = str(int(row["n_gpus"]) // (int(row["pp"]) * int(row["dp"])))
        except (ValueError, ZeroDivisionError):
            pass
        return
    row[column] = value
    inner = re.search(r"sec_per_it=([\d.]+)", suggestion)
    if inner:
        row["notes"] = re.sub(r"sec_per_it=[\d.]+", f"sec_per_it={inner[1]}", row["notes"])


def drop_superseded(name, rows):
    """MLPerf compliance runs (TEST01, TEST04, TEST05) where the scored run of the same system,
    benchmark, scenario and statistic is there."""
    if name != "infer":
        return rows

    def key(r):
        base = re.sub(r"/TEST\d\d/", "/", r["source"].replace("/compliance/", "/results/"), flags=re.I)
        return (base.lower(), r["metric"], r["stat"])

    scored = {key(r) for r in rows if not re.search(r"/TEST\d\d/", r["source"], re.I)}
    return [
        r for r in rows
        if not (re.search(r"/TEST\d\d/", r["source"], re.I) and key(r) in scored)
    ]


def note(row, key):
    m = re.search(rf"(?:^|[;\s,(]){re.escape(key)}=([^;\s,)]*)", row["notes"])
    return m.group(1) if m else ""


def says(row, *words):
    text = row["notes"].lower()
    return any(w.lower() in text for w in words)


def has(row, *parts):
    return any(p in row["source"] for p in parts)


# ---- training ---------------------------------------------------------------------------------


def train(r):
    for c in TRAIN_COLUMNS:
        r.setdefault(c, "")
    r["inter_gbps"] = network(r)
    r["grad_accum"] = note(r, "grad_accum")
    if has(r, "bigscience-workshop"):
        bigscience_shapes.fill(r)
        seconds = note(r, "sec_per_it")
        if re.fullmatch(r"[\d.]+", seconds):  # three FLOP conventions: the clock is the evidence
            r["metric"], r["value"] = "step_s", seconds
        elif r["metric"] != "step_s":
            r["flops"] = "megatron_hardware"
        if not r["precision"]:
            r["precision"] = "bf16" if r["gpu"].startswith("A100") else "fp16"
        if says(r, "offload") or "Offl" in r["notes"]:
            r["offload"] = "cpu"
    if r["id"].startswith("vtrain"):
        r["framework"] = "Megatron-DeepSpeed"
        if not r["vocab"]:
            r["vocab"] = "51200"  # the note's own reading: GPT-2 vocabulary padded by Megatron
        if r["id"].startswith("vtrain-s"):
            r["trust"] = "low"  # composed from linear pieces, not timed one by one
    if has(r, "AI-Hypercomputer/maxtext"):
        if r["model"] in model_maxtext.NETWORKS and not r["seq_len"]:
            r["seq_len"] = str(model_maxtext.SEQUENCE)
            batch = model_maxtext.BATCH.get((r["gpu"], r["model"]))
            r["micro_batch"] = r["micro_batch"] or str(batch or "")
            r["recompute"] = r["recompute"] or "full"  # remat_policy=full of the scripts
        r["flops"] = "model_full_attention"
    if has(r, "stas00"):
        r["flops"] = "model_causal_attention"
    if r["metric"] == "tflops_per_gpu" and not r["flops"]:
        r["flops"] = "megatron_hardware" if says(r, "HFU", "incl recompute") else ""
    if has(r, "pytorch/torchtune") and says(r, "cpu offload on 70B") and "70b" in r["model"] \
            and r["method"] == "full":
        r["offload"] = "cpu"
    if says(r, "Activation Offloading", "act_cpu_offload=True"):
        r["offload"] = "activations"
    if has(r, "pytorch/torchtune") and says(r, "technique=Baseline"):
        r["trust"] = r["trust"] or "low"  # samples are padded: how many tokens count is not stated
    if has(r, "Lightning-AI/litgpt"):
        r["quant"] = {"bnb.nf4": "nf4", "bnb.nf4-dq": "nf4-dq"}.get(note(r, "quant"), "")
        r["trust"] = r["trust"] or "low"
    if has(r, "hpcaitech/ColossalAI", "huggingface/optimum-habana"):
        r["trust"] = r["trust"] or "low"
    if says(r, "approx"):
        r["trust"] = r["trust"] or "low"
    if has(r, "mlcommons/"):
        r["tuned"] = "1"
        if not r["precision"] and family_is(r, "llama", "gpt"):
            # README of the data: LLM rows are nearly all FP8, the logs rarely say so.
            r["precision"] = "fp8"
    if has(r, "FlagOpen/FlagPerf"):
        m = re.search(r"MPE=(\d+)", r["notes"])
        if m and not r["seq_len"]:
            r["seq_len"] = m[1]
        m = re.search(r"LBS=(\d+)", r["notes"])
        if m and not r["micro_batch"]:
            r["micro_batch"] = m[1]
        m = re.search(r"GAS=(\d+)", r["notes"])
        if m:
            r["grad_accum"] = m[1]
        if r["precision"] == "fp32":
            r["precision"] = "tf32"
        if re.search(r"finetune|llama|aquila|qwen|baichuan|glm", r["model"]) and \
                "recompute=True" in r["notes"]:
            r["recompute"] = "full"
    if has(r, "pytorch/torchtune") and not r["recompute"] and not says(r, "cumulative technique"):
        r["recompute"] = "full"  # enable_activation_checkpointing of its recipes
    if has(r, "pytorch/torchtitan") and int(r["pp"] or 1) > 1:
        # The column holds the local batch of a data-parallel rank, which is split into as many
        # micro-batches as there are stages (torchtitan/parallelisms/pipelining_utils.py,
        # pipeline_parallel_microbatches, "The default value will be the number of pipeline stages").
        local = int(r["micro_batch"] or 0)
        if r["micro_batch"] and not r["global_batch"]:
            r["global_batch"] = str(int(r["micro_batch"]) * int(r["dp"] or 1))
        r["micro_batch"] = str(local // int(r["pp"])) if local and local % int(r["pp"]) == 0 else ""
    if says(r, "POWER LIMITED"):
        r["trust"] = r["trust"] or "low"
    encoders.train(r)
    if has(r, "lambdal/deeplearning-benchmark") and r["model"] in ("tacotron2", "waveglow"):
        # The scripts ask for mixed precision by `--amp-run`, train.py knows `--amp` and ignores the
        # rest: logs of the FP16 tables say "amp : False", and both tables have the same speeds.
        r["precision"] = "fp32-or-tf32"
    if has(r, "NVIDIA/DeepLearningExamples TensorFlow") and r["precision"] == "fp32" and \
            r["gpu"].startswith("A100"):
        # TensorFlow's default there (tf.config.experimental.enable_tensor_float_32_execution).
        r["precision"] = "tf32"
    if r["precision"] == "bf16-amp":
        r["precision"] = "bf16"
    if r["precision"].startswith("fp32-or-tf32"):
        r["precision"] = "fp32" if r["gpu"].startswith(("V100", "Quadro")) else "tf32"


def network(r):
    """Of one accelerator, where the source says enough to know it."""
    text, per_node = r["inter_link"], int(r["gpus_per_node"] or 8)
    if text.startswith("Omni-Path 4x100Gb"):
        return str(400 // per_node)
    if text.startswith(("400Gb/s RDMA per GPU", "NDR400 IB")):
        return "400"
    m = re.match(r"(?:Storage&Compute: )?(\d+)x ConnectX-7 IB NDR 400Gb/s", text, re.I)
    if m:
        return str(int(m[1]) * 400 // per_node)
    if text.startswith("RoCE 1600Gb/s/node"):
        return str(1600 // per_node)
    if text.startswith("Selene HDR IB"):
        return "200"  # eight HDR ports of 200 Gb/s in a DGX A100
    if text.startswith("A3 GPUDirect-TCPX"):
        return "100"  # four 200 Gb/s network cards for eight GPUs
    return ""


def family_is(r, *names):
    return r["model"].lower().startswith(names)


# ---- inference --------------------------------------------------------------------------------


def infer(r):
    for c in INFER_COLUMNS:
        r.setdefault(c, "")
    text = r["notes"]
    if says(r, "SPECULATIVE") or re.search(r"eagle|speculative|mtp", text, re.I):
        r["speculative"] = "1"
    if says(r, "offload"):
        r["offload"] = "cpu"
    if says(r, "PD disaggregation", "1P1D", "2P1D", "3P1D") or " PD" in r["engine"]:
        r["disaggregated"] = "1"
    m = re.search(r"file size ([\d.]+) GiB", text)
    if m:
        r["file_gib"] = m[1]
    m = re.search(r"start depth[= ](\d+)", text)
    if m:
        r["depth"] = m[1]
        if r["metric"] == "decode_tok_s_per_user":
            r["input_len"] = ""  # it repeats the depth
    m = re.search(r"ubatch (\d+)", text)
    if m:
        r["ubatch"] = m[1]
    if "Flash attention off" in text:
        r["fa"] = "0"
    elif "FA on" in text:
        r["fa"] = "1"
    m = re.search(r"\((\d+)x\dg\.\d+gb MIG\)", r["gpu"])
    if m:
        r["n_gpus"] = m[1]  # instances that ran; the logs count the cards of the machine
    m = re.search(r"power-limited to (\d+) ?W", text)
    if m:
        r["power_cap_w"] = m[1]
    elif has(r, "pytorch-labs/gpt-fast") and r["gpu"].startswith("A100"):
        r["power_cap_w"] = "330"
    m = re.search(r"threads=(\d+)", text) or re.search(r"\b(\d+) threads\b", r["engine_version"])
    if m:
        r["threads"] = m[1]
    if "llama-bench tg" in text and not r["depth"]:
        r["depth"] = "0"
    if has(r, "XiongjieDai") and r["metric"] == "prefill_tok_s" and r["weight_format"] == "gguf:F16" \
            and r["gpu"].startswith(("A100-SXM", "L40S")):
        r["trust"] = "exclude"  # far below the roofline of the same card's other rows
    if has(r, "premAI-io"):
        r["span"] = "whole"
        r["input_len"] = r["input_len"] or ""
        if "TensorRT" in r["engine"]:
            r["trust"] = "exclude"
        r["trust"] = r["trust"] or "low"
    if says(r, "decode-phase tokens/s summed over batch"):
        r["span"] = "decode"
    if says(r, "static batch", "whole-batch latency"):
        r["span"] = "static_batch"
    if r["metric"] == "output_tok_s_total" and says(r, "incl. prefill"):
        r["span"] = "whole"
    if has(r, "mlcommons/"):
        r["tuned"] = "1"
        r["tp"] = r["pp"] = r["ep"] = ""  # the split is not in the logs
        if re.search(r"/TEST\d\d/", r["source"], re.I):
            r["trust"] = r["trust"] or "low"  # a compliance run whose scored run is not here
        if "-reference-" in text:
            r["trust"] = r["trust"] or "low"  # the benchmark's own code: whether it ran the best plan is not known
    if r["stat"] == "max" or r["batch_or_concurrency"].startswith("max"):
        r["tuned"] = "1"
    if r["batch_or_concurrency"].startswith("max"):
        r["batch_or_concurrency"] = ""
    m = re.search(r"batch (\d+) x beams=(\d+)", text)
    if m and int(m[2]) > 1:
        r["trust"] = "exclude"  # beams share a cache: not a batch
    if has(r, "mlc-ai/llm-perf-bench"):
        r["depth"] = "8"  # "prompt ~8 tokens"
    if has(r, "turboderp/exllama") and says(r, "WORST"):
        r["depth"], r["input_len"] = r["input_len"], ""
    if has(r, "gpt-fast") and r["metric"] == "decode_tok_s_per_user":
        r["depth"] = r["input_len"]
        r["span"] = "whole"
    if has(r, "QwenLM/Qwen@"):
        r["depth"], r["span"] = r["input_len"], "whole"
    if has(r, "kvcache-ai/ktransformers"):
        r["offload"] = "cpu"
    if has(r, "ikawrakow/ik_llama.cpp") and r["metric"] == "decode_tok_s_per_user":
        r["trust"] = r["trust"] or "low"  # two to four threads do not fill the memory bus
    if has(r, "mit-han-lab/llm-awq"):
        number = int(r["id"][1:])
        if 1346 <= number <= 1362:
            r["trust"] = "exclude"  # not the card of the section heading
    if says(r, "low confidence", "medium confidence", "crowd-sourced", "not per-row stated"):
        r["trust"] = r["trust"] or "low"
    if has(r, "geerlingguy"):
        r["weight_format"] = "mxfp4" if r["model"].startswith("gpt-oss") else "gguf:Q4_K_M"
        r["engine"] = "llama.cpp"
    if r["weight_format"].startswith("4-bit"):
        r["weight_format"] = "gguf:Q4_0"  # what Ollama served by default in 2024
        r["trust"] = r["trust"] or "low"
    m = re.search(r"zai-org/(GLM-4\.\d)(?:-FP8)?\b(?!-)", text)
    if r["model"] == "glm-4.x" and m:
        r["model"] = m[1]
    m = re.search(r"--dp(?:-size)?[ =](\d+)", text)
    if m and has(r, "gpustack/gpustack") and "--enable-dp-attention" not in text:
        r["dp"] = m[1]
    if has(r, "gpustack/gpustack") and r["n_gpus"]:
        # The cards are the node's; a server uses as many as its degrees say (1 unless given).
        r["tp"], r["pp"] = r["tp"] or "1", r["pp"] or "1"
        r["n_gpus"] = str(int(r["tp"]) * int(r["pp"]) * int(r["dp"] or 1))
    language.infer(r)
    diffusion.infer(r)
    encoders.infer(r)
