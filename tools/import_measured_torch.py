"""What rows of training on torch frameworks mean: part of the rules for memory.csv.

Settings that a source leaves to its scripts' defaults become columns here; each rule names the
script it was read from.
  recipe     what weights, gradients and moments are kept in (names of TrainRecipe)
  optimizer  as in `trigon --optimizer`
  trainable  parameters that train, as the framework counted them
  keeps      what an adapter keeps for the backward pass beside its own matrices
             (input, delta, output, none; AdapterForm in src/job/job.hpp)
  ends       embedding and head train whole beside the adapters
"""
import re

from import_measured_rules import has, note, says


def train(r):
    if not r["task"].startswith("train"):
        return
    r["trainable"] = note(r, "trainable")
    if r["engine"] == "litgpt":
        litgpt(r)
    elif has(r, "QwenLM/Qwen"):
        qwen(r)
    elif has(r, "huggingface/peft") and "method_comparison" in r["source"]:
        peft_comparison(r)
    elif has(r, "huggingface/peft docs/source/accelerate"):
        peft_docs(r)
    elif has(r, "huggingface/peft README"):
        peft_readme(r)
    elif r["engine"].startswith("llama-recipes"):
        llama_recipes(r)
    elif has(r, "huggingface/diffusers examples/amused"):
        amused(r)
    elif r["engine"] == "ms-swift":
        ms_swift(r)
    elif r["engine"] == "torchtune":
        torchtune(r)
    elif r["engine"] == "colossalchat" and says(r, "preference"):
        r["offload"] = "other_method"  # the length of its samples is not stated


# ---- litgpt ------------------------------------------------------------------------------------

# config_hub/finetune/*/{lora,qlora}.yaml: lora_r, and whether every linear carries an adapter
# (lora_key, lora_projection, lora_mlp and lora_head are true) or queries and values only.
LITGPT_ALL = {"gemma-2b": 8, "gemma2-2b": 8, "gemma2b": 8, "gemma-7b": 16, "gemma2-9b": 16,
              "phi-2": 8, "phi-3": 8, "tiny-llama": 32}
# config_hub/finetune/*/full.yaml: devices, global_batch_size.
LITGPT_FULL = {"gemma-2b": (4, 16), "phi-2": (2, 8), "stablelm-base-alpha-3b": (2, 8),
               "tiny-llama": (1, 32), "llama-3.2-1b": (1, 64), "llama-3.2-3b": (1, 64),
               "phi-3": (1, 8), "llama-2-7b": (4, 64), "llama-3-8b": (4, 64),
               "llama-3.1-8b": (4, 64)}


def litgpt(r):
    m = re.search(r"config ([\w.-]+)/(\w+)\.yaml", r["notes"])
    if m:
        name, method = m[1], m[2]
        if method == "qlora":
            r["optimizer"] = "adamw_8bit_paged"  # bnb.optim.PagedAdamW: moments in unified memory
        if name.startswith("gemma2"):  # the table writes gemma-2b beside gemma2-2b's file
            r["model"] = "gemma-2-9b" if name == "gemma2-9b" else "gemma-2-2b"
        if method == "full":
            devices, r["global_batch"] = (str(x) for x in LITGPT_FULL[name])
            # The table's machine and the file's devices disagree, and weights, gradients and two
            # moments of the larger models exceed one card.
            if devices == "1" and name != "tiny-llama":
                r["trust"] = r["trust"] or "low"
            r["n_gpus"] = devices
        else:
            r["n_gpus"] = "1"  # devices: 1; the table repeats one figure for a machine of four
            r["global_batch"] = "6" if name.startswith(("gemma-", "gemma2")) else "8"
            r["lora_rank"] = str(LITGPT_ALL.get(name, 32))
            r["lora_targets"] = "all" if name in LITGPT_ALL else "q_proj+v_proj"
    else:
        # tutorials/resource-tables.md with finetune/lora.py of 2023: r = 8 on queries and values,
        # batches of 128 sequences.
        r["global_batch"] = "128"
        r["engine_version"] = ""  # a commit, not a release
        if r["notes"].startswith("LoRA "):
            r["lora_rank"] = "8"
        elif r["notes"].startswith("AdapterV2"):
            # adapter_v2.py scales each linear's output by a vector.
            r["adapter"], r["keeps"], r["lora_targets"] = "adapter_v2", "output", "all"
        elif r["notes"].startswith("Adapter"):
            r["adapter"], r["keeps"] = "adapter", "none"
    if int(r["n_gpus"] or 1) > 1:
        # FSDPStrategy(auto_wrap_policy={Block}, activation_checkpointing_policy={Block})
        r["zero_stage"], r["recompute"] = "3", "full"
    else:
        r["recompute"] = "none"


# ---- Qwen --------------------------------------------------------------------------------------


def qwen(r):
    r["recompute"] = "full"  # every finetune script there: --gradient_checkpointing True
    r["batch"] = r["batch"] or "1"
    if not r["context_len"]:
        r["context_len"] = "512"  # the notebooks' --model_max_length
    # Two cards of 80 GB would hold 81 GiB each: these tables count in 10^9, as drivers' tools do.
    r["unit"], r["measure"] = "GB", "device"
    cards = int(r["n_gpus"] or 1)
    r["global_batch"] = str(8 * cards)
    r["span"] = "total" if cards > 1 else "rank"
    if r["task"] != "train-full":
        r["lora_rank"], r["lora_targets"] = "64", "all"  # c_attn, c_proj, w1, w2
    if "LoRA (emb)" in r["notes"]:
        r["adapter"], r["keeps"], r["ends"] = "", "", "1"  # modules_to_save = wte, lm_head
    notebook = "notebook" in r["notes"]
    if cards == 1 and (r["task"] == "train-lora" or (r["task"] == "train-full" and notebook)):
        # finetune_lora_single_gpu.sh and the notebooks run without DeepSpeed.
        r["engine"] = "transformers"
        if r["task"] == "train-full":
            r["recipe"] = "pure_bf16"  # modeling_qwen.py loads in bf16, which AdamW then steps
    else:
        # finetune_ds.sh and *_lora_ds.sh: ds_config_zero2.json; the readme's table of settings puts
        # all parameters of 7B on two cards with ZeRO-3 only.
        r["engine"] = "qwen-finetune"
        r["zero_stage"] = r["zero_stage"] or (
            "3" if r["task"] == "train-full" and cards == 2 else "2")


# ---- peft --------------------------------------------------------------------------------------

# peft/src/peft/tuners/*/layer.py: what the added path multiplies. `input`: the layer's input, cast
# to the adapter's 32 bit; `delta`: a change of the weight made as a whole matrix.
PEFT_KEEPS = {
    "adalora": "input", "c3a": "input", "delora": "input", "gralora": "input", "oft": "input",
    "psoft": "input", "pvera": "input", "vera": "input", "randlora": "input", "road": "input",
    "unilora": "input", "vblora": "input", "lily": "input",
    "deft": "input+delta", "boft": "input+delta", "fourierft": "input+delta", "frod": "input+delta",
    "peanut": "input+delta", "hira": "input+delta", "loha": "input+delta", "lokr": "input+delta", "waveft": "input+delta",
    "glora": "delta", "shira": "delta",
    "ia3": "output", "adamss": "none", "beft": "none", "ln_tuning": "none", "miss": "none",
    "tinylora": "none", "trainable_tokens": "none", "prefix_tuning": "none",
    "prompt_tuning": "none", "p_tuning": "none", "adaption_prompt": "input",
}
VIRTUAL_TOKENS = {"p_tuning": 20}  # PromptEncoderConfig of the runs


def peft_comparison(r):
    """method_comparison/MetaMathQA: run.py trains in bf16 with adapters in 32 bit."""
    method = r["adapter"].lower()
    r["keeps"] = PEFT_KEEPS.get(method, "")
    if "-para" in r["source"]:
        r["keeps"] = "input"  # DEFT's parallel form adds its path beside the weight
    if "dora" in r["source"]:
        r["dora"] = "1"
    if "-bat" in r["source"]:
        r["keeps"] = "input+delta"  # MiSS' bat variant multiplies the weight by its blocks
    if method == "full":
        r["adapter"], r["recipe"] = "", "pure_bf16"
    if method in ("prompt_tuning", "p_tuning") and r["context_len"]:
        hidden = {"meta-llama/Llama-3.2-3B": 3072}.get(r["model"])
        if method == "prompt_tuning" and hidden and r["trainable"]:
            tokens = int(r["trainable"]) // hidden
        else:
            tokens = VIRTUAL_TOKENS.get(method, 0)
        r["context_len"] = str(int(r["context_len"]) + tokens)
    if r["lora_targets"] in ("self_attn", "model.embed_tokens") or "layernorm" in r["lora_targets"]:
        r["lora_targets"] = "q_proj+v_proj" if method == "adaption_prompt" else ""


def peft_docs(r):
    """examples/sft/run_peft_{deepspeed,fsdp,qlora_*}.sh: packed samples of 2,048 tokens, adapters of
    rank 8 on every linear, checkpointing; 8 sequences a card, with QLoRA 2."""
    r["context_len"], r["recompute"], r["measure"] = "2048", "full", "device"
    quantised = r["task"] == "train-qlora"
    r["batch"] = "2" if quantised else "8"
    r["global_batch"] = str(int(r["n_gpus"]) * int(r["batch"]) * (2 if quantised else 4))
    r["lora_rank"], r["lora_targets"] = "8", "all"
    if "without CPU offload" in r["notes"]:
        r["offload"] = ""
    elif r["offload"]:
        r["offload"] = "weights+optimizer"  # fsdp_offload_params


def peft_readme(r):
    """examples/{causal_language_modeling,conditional_generation}/peft_lora_*_ds_zero3_offload.py on
    raft/twitter_complaints: batches of 8, adapters of rank 8 on queries and values (query_key_value
    of BLOOM), models loaded in 32 bit as from_pretrained does without a dtype; counters of
    max_memory_allocated. Prompts of the causal one are padded to 64 tokens; tweets are about as long,
    and a label is four tokens with its end."""
    if r["engine"] != "transformers+peft":
        return
    r["batch"], r["context_len"], r["weight_format"] = "8", "64", "fp32"
    r["measure"], r["engine_version"] = "allocated", "4.26"  # of 2023-02
    if "T0" in r["model"] or "mt0" in r["model"]:
        r["source_len"], r["context_len"] = "64", "4"
    if r["task"] == "train-full":
        r["recipe"] = "fp32"
    else:
        r["lora_rank"], r["lora_targets"] = "8", "query_key_value" if "bloom" in r["model"] else "qv"


def llama_recipes(r):
    """configs/training.py and ft_datasets/utils.py of 2023-07: batch_size_training 4, samples packed
    into chunks of 2,048 tokens; configs/fsdp.py: fsdp_activation_checkpointing."""
    r["batch"], r["context_len"] = r["batch"] or "4", r["context_len"] or "2048"
    r["recompute"] = "full"
    # transformers of that summer writes attention out; BetterTransformer's is an option.
    r["fa"] = "1" if says(r, "flash attention") else "0"
    # Releases here are pull requests: 41 stopped holding the model's outputs.
    r["engine_version"] = "41" if says(r, "logits freed") else "0"
    if says(r, "limit_all_gathers=False", "before pull/41"):
        r["reshard"] = "0"  # nothing keeps the host from gathering every layer ahead of its use
    if says(r, "pure_bf16"):
        r["recipe"] = "pure_bf16"
    if r["task"] == "train-lora":
        r["lora_rank"], r["lora_targets"] = "8", "qv"  # configs/peft.py


def amused(r):
    """train_amused.py --mixed_precision fp16: 32-bit weights under autocast; --use_8bit_adam."""
    r["model"] = "amused-512" if says(r, " 512") else "amused-256"
    r["recipe"] = "autocast_fp32"
    if says(r, "8bit adam"):
        r["optimizer"] = "adamw_8bit"
    m = re.search(r"grad accum (\d+)", r["notes"])
    if m and r["batch"]:
        r["global_batch"] = str(int(m[1]) * int(r["batch"]))


# ---- others ------------------------------------------------------------------------------------


# examples/train/tuners/*/train.sh: what each method keeps, as for peft.
SWIFT_TUNERS = {"adalora": "input", "boft": "input+delta", "bone": "none", "dora": "input",
                "lora": "input", "neftune": "input", "olora": "input", "pissa": "input"}


# Scripts of several cards without NPROC_PER_NODE: one process deals layers out to them
# (device_map), as their first lines say or leave to the default.
SWIFT_DEVICE_MAP = ("examples/models/qwen3_vl/transformers.sh",
                    "examples/models/qwen3_next/transformers.sh")
# Scripts outside tuners/ and multi-gpu/ whose --dataset is swift/self-cognition alone.
SWIFT_SELF_COGNITION = ("examples/models/qwen3_next/transformers.sh",
                        "examples/train/streaming/lazy_tokenize.sh")
# --modules_to_save of embedding and head.
SWIFT_ENDS = ("agent/loss_scale", "new_special_tokens")


def swift_objective(r):
    """Losses other than the next token's. DPO and KTO hold a frozen reference model beside one that
    trains whole, DPO runs both answers of a pair (swift/trainers/rlhf_trainer, concatenated_forward;
    packed to the stated length, pairs fill it). Others: teachers, rewards, a head that scores in
    place of the vocabulary's."""
    if re.search(r"/(seq_cls|embedding|reranker|rm|gkd|ppo|grpo)[/.]|/train_reranker", r["source"]):
        return "other"
    if re.search(r"/(rlhf/)?kto[/.]", r["source"]):
        return "kto"
    if re.search(r"/dpo(_vlm)?[/.]", r["source"]):
        return "dpo"
    return "other" if re.search(r"/rlhf/", r["source"]) else ""


def take_objective(r):
    """Whether the row is predicted as it stands."""
    objective = swift_objective(r)
    if objective == "other":
        r["offload"] = "other_method"
    elif objective:
        r["reference"] = "1"
        if objective == "dpo" and not says(r, "packing=true"):
            r["batch"] = str(2 * int(r["batch"] or 1))
            r["global_batch"] = str(2 * int(r["global_batch"])) if r["global_batch"] else ""


def ms_swift(r):
    if r["task"] == "infer":
        return
    r["recompute"] = "full"  # its default; the headers name exceptions only
    m = re.search(r"/qlora/(awq|bnb|gptq|hqq)[/.]", r["source"])
    if m:
        # HQQ: four bits with a 16-bit scale and zero for 64 of them, as many bits as NF4.
        r["weight_format"] = {"awq": "int4-awq", "bnb": "nf4", "gptq": "int4-gptq",
                              "hqq": "nf4"}[m[1]]
        if m[1] == "gptq":
            r["model"] = re.sub(r"-GPTQ-Int4$", "", r["model"])
            r["pp"] = r["n_gpus"]  # one process: device_map deals out the layers
    m = re.search(r"examples/train/tuners/([\w-]+)/", r["source"])
    if m:
        # swift/self-cognition: a question and an answer of one or two sentences.
        r["context_len"], r["batch"] = r["context_len"] or "128", r["batch"] or "1"
        r["global_batch"] = "16"
        if m[1] in SWIFT_TUNERS:
            r["task"], r["lora_rank"], r["lora_targets"] = "train-lora", "8", "all"
            r["keeps"] = SWIFT_TUNERS[m[1]]
            r["dora"] = "1" if m[1] == "dora" else ""
        else:
            r["adapter"] = m[1]  # LISA, GaLore, LLaMA Pro ...: not what trigon knows
            r["offload"] = "other_method" if r["task"] == "train-full" else ""
    elif r["source"].split(" ")[-1].startswith("examples/train/multi-gpu/device_map/"):
        r["pp"] = r["n_gpus"]  # device_map: layers are dealt out to the cards of one process
        r["trust"] = r["trust"] or "low"  # the length is a maximum
    elif "examples/train/multi-gpu/" in r["source"] and "VL" not in r["model"]:
        # nproc_per_node=2, swift/self-cognition; only the FSDP2 script turns checkpointing off.
        r["n_gpus"], r["context_len"], r["global_batch"] = "2", "128", "16"
        if "ddp_device_map" in r["source"]:
            r["n_gpus"], r["pp"] = "4", "2"
        if "fsdp2" in r["source"]:
            r["zero_stage"], r["recompute"] = "3", "none"
    elif swift_objective(r):
        take_objective(r)
        if not says(r, "packing=true"):
            r["trust"] = r["trust"] or "low"
    elif r["source"].endswith(SWIFT_SELF_COGNITION):
        r["context_len"] = "128"
    elif not says(r, "packing=true"):
        r["trust"] = r["trust"] or "low"  # the length is a maximum, samples are shorter
    if r["source"].endswith(SWIFT_DEVICE_MAP):
        r["pp"] = r["n_gpus"]
    if has(r, *SWIFT_ENDS):
        r["ends"] = "1"
    if r["source"].endswith("packing/dpo_vlm.sh"):
        r["n_gpus"] = "4"  # NPROC_PER_NODE; the header speaks of one
    if r["task"] == "train-full":
        r["recipe"] = "pure_bf16"  # the model is loaded in torch_dtype, AdamW steps that
    if r["task"] == "train-lora" and not r["lora_targets"]:
        r["lora_targets"] = "all"


def torchtune(r):
    if says(r, "optimizer-in-backward"):
        r["offload"] = "optimizer_in_backward"  # gradients never exist together
    elif r["offload"] == "paged_optimizer":
        r["offload"], r["optimizer"] = "", "adamw_8bit_paged"
    elif r["task"] == "train-full" and r["offload"] == "cpu":
        r["offload"] = "weights+optimizer"  # fsdp_cpu_offload
    if r["source"].endswith("README.md") and r["batch"]:
        r["global_batch"] = str(16 * int(r["n_gpus"] or 1))  # gradient_accumulation_steps of 8
    if r["task"] != "train-full" and not r["lora_targets"]:
        # configs/llama2/7B_lora_single_device.yaml: rank 8 on queries and values; the later configs
        # and those for QLoRA: every linear.
        m = re.search(r"LoRA (q,v|all layers) rank (\d+)", r["notes"])
        queries = r["task"] == "train-lora" and r["model"] == "Llama-2-7B"
        r["lora_rank"] = r["lora_rank"] or (m[2] if m else "8")
        r["lora_targets"] = "qv" if (m[1] == "q,v" if m else queries) else "all"
    if "tutorials" in r["source"] and r["model"] == "Llama-2-7B" and not r["context_len"]:
        # Alpaca, not packed: its longest sample for this tokenizer, as litgpt's tables state.
        r["context_len"] = "1304"
        r["engine_version"] = "0.1"  # the release these tutorials were written for
        if says(r, "at model init"):
            r["trust"] = "exclude"  # what loading reserved, not what weights take
        elif r["task"] == "train-qlora":
            r["trust"] = "low"  # reserved memory: loading had reserved as much before
    r["recompute"] = r["recompute"] or "full"  # enable_activation_checkpointing of its recipes
    if int(r["n_gpus"] or 1) > 1 and not r["zero_stage"]:
        r["zero_stage"] = "3"  # the distributed recipes use FSDP
