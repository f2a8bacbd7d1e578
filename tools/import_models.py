#!/usr/bin/env python3
"""Writes data/models/ from ../shared/data/models: one sheet for each language model by name.

Facts of a config.json win over those of models.csv; rows of several sources for one model are
merged in the order of SOURCES (first comes first) and a contradiction in a dimension is printed.
"""
import glob
import json
import os
import re
import sys

import catalogue_sheets as sheets
import encoder_models
import model_additions as additions
import model_aliases
import model_families as families
import model_hybrids as hybrids
import model_maxtext as maxtext
import model_vision as vision

# Later sources only fill what earlier ones lack.
SOURCES = ["aiconfigurator", "inference-sim", "llm-perf-bench", "LLMRoofline", "litgpt",
           "llm-foundry", "SimuMax", "NeMo", "maxtext", "llm-analysis", "GenZ", "mlx-lm",
           "ik_llama"]
CONFIGS = os.path.join(sheets.SHARED, "data", "models", "configs")

COLUMNS = {
    "layers": "layers", "hidden": "hidden", "heads": "heads", "kv_heads": "kv_heads",
    "head_dim": "head_dim", "ffn": "ffn", "vocab": "vocabulary", "context_len": "context_tokens",
    "sliding_window": "window_tokens", "experts": "experts", "active_experts": "active_experts",
    "shared_experts": "shared_experts", "moe_ffn": "expert_ffn",
    "dense_layers_first": "dense_layers_first", "kv_lora_rank": "latent.kv_rank",
    "q_lora_rank": "latent.q_rank", "qk_nope_head_dim": "latent.nope_dim",
    "qk_rope_head_dim": "latent.rope_dim", "v_head_dim": "latent.value_dim",
}
ORDER = ["layers", "hidden", "heads", "kv_heads", "head_dim", "value_dim", "ffn", "vocabulary",
         "context_tokens", "tied", "dtype", "attention_bias", "mlp_bias", "qk_norm",
         "parallel_residual", "learned_positions", "new_decoder", "multi_query", "window_tokens",
         "full_attention_every", "chunk_tokens", "keys_are_values", "embedding_width",
         "norm_before", "experts", "active_experts", "expert_ffn", "shared_experts", "shared_ffn",
         "dense_layers_first", "expert_layer_step", "dense_ffn"]


def rank(row):
    for i, s in enumerate(SOURCES):
        if s in row["source"]:
            return i
    return len(SOURCES)


def family_of(name):
    for pattern, architecture, facts in families.FAMILIES:
        if re.fullmatch(pattern, name):
            return architecture, facts
    return None, {}


def whole(text):
    text = text.strip()
    if not text:
        return None
    value = sheets.number(text)
    return int(value) if value is not None and value == int(value) else None


# A re-upload or fine-tune that shares the facts of a model is another name for it.
SAME_AS = {sheets.normal(form): id for id, names in model_aliases.ALIASES.items()
           for name in names for form in (name, name.split("/")[-1])}
ALIASES = {**model_aliases.ALIASES, **hybrids.ALIASES, **encoder_models.ALIASES, **vision.ALIASES}


def plain_id(name):
    if name in families.IDS:
        return families.IDS[name]
    same = SAME_AS.get(sheets.normal(name.split(":")[-1]))
    if same:
        return same
    base = name.split(":")[-1].split("/")[-1]
    base = re.sub(r"-hf$", "", base)
    base = re.sub(r"-(Instruct|chat|it|base)$", "", base, flags=re.I)
    return base.lower().replace("_", "-")


def facts_of(row):
    """Facts of one row of models.csv, by the keys of the catalogue."""
    out = {}
    for column, key in COLUMNS.items():
        value = whole(row[column])
        if value is not None:
            out[key] = value
    padded = re.search(r"padded_vocab=(\d+)", row["notes"])
    if padded:  # the tokenizer's size is not that of the embedding
        out["vocabulary"] = int(padded.group(1))
    if row["tied_embeddings"].lower() in ("true", "false"):
        out["tied"] = row["tied_embeddings"].lower() == "true"
    if "NeMo" in row["source"]:
        out.pop("tied", None)  # class defaults, not those of the checkpoint
    return out


def of_config(name):
    path = os.path.join(CONFIGS, name + ".config.json")
    with open(path, encoding="utf-8") as f:
        config = json.load(f)
    return config.get("text_config") or config, config


def config_facts(name):
    """What models.csv leaves out of a config.json."""
    c, outer = of_config(name)
    out = {}
    direct = {"num_hidden_layers": "layers", "hidden_size": "hidden", "head_dim": "head_dim",
              "num_attention_heads": "heads", "num_key_value_heads": "kv_heads",
              "intermediate_size": "ffn", "vocab_size": "vocabulary",
              "max_position_embeddings": "context_tokens", "tie_word_embeddings": "tied",
              "attention_bias": "attention_bias", "mlp_bias": "mlp_bias",
              "use_qk_norm": "qk_norm", "qk_nope_head_dim": "latent.nope_dim",
              "qk_rope_head_dim": "latent.rope_dim", "v_head_dim": "latent.value_dim",
              "attention_chunk_size": "chunk_tokens", "intermediate_size_mlp": "dense_ffn",
              "interleave_moe_layer_step": "expert_layer_step"}
    for theirs, ours in direct.items():
        if c.get(theirs) is not None:
            out[ours] = c[theirs]
    if not out.get("attention_bias"):
        out.pop("attention_bias", None)
    if not out.get("mlp_bias"):
        out.pop("mlp_bias", None)
    dtype = c.get("torch_dtype") or c.get("dtype") or outer.get("torch_dtype")
    out["dtype"] = {"bfloat16": "bf16", "float16": "f16"}.get(dtype)
    if "block_configs" in c:
        heads, kv, ffn = [], [], []
        for block in c["block_configs"]:
            none = block["attention"]["no_op"]
            heads.append(0 if none else c["num_attention_heads"])
            kv.append(0 if none else c["num_attention_heads"] // block["attention"]["n_heads_in_group"])
            width = int(2 * block["ffn"]["ffn_mult"] * c["hidden_size"] / 3)
            ffn.append((width + 255) // 256 * 256)
        out.update({"heads": heads, "kv_heads": kv, "ffn": ffn})
    return {k: v for k, v in out.items() if v is not None}


def dump_facts(name):
    """Per-layer lists of a GGUF header dump."""
    out = {}
    with open(os.path.join(CONFIGS, "gguf_header_dumps", name), encoding="utf-8") as f:
        for line in f:
            part = line.rstrip("\n").split("\t")
            if part[0] != "print_meta":
                continue
            key = {"n_head": "heads", "n_head_kv": "kv_heads", "n_ff": "ffn", "n_layer": "layers",
                   "n_embd": "hidden", "n_vocab": "vocabulary",
                   "n_ctx_train": "context_tokens"}.get(part[1])
            if key:
                out[key] = json.loads(part[2])
    return out


CONFIG_OF = {  # id -> config.json
    "llama-3.1-8b": "meta-llama--Meta-Llama-3.1-8B",
    "llama-3.1-70b": "meta-llama--Meta-Llama-3.1-70B",
    "llama-3.1-405b": "meta-llama--Meta-Llama-3.1-405B",
    "llama-4-scout": "meta-llama--Llama-4-Scout-17B-16E-Instruct",
    "qwen3-0.6b": "Qwen--Qwen3-0.6B", "qwen3-32b": "Qwen--Qwen3-32B",
    "qwen3-vl-8b": "Qwen--Qwen3-VL-8B-Instruct",
    "mixtral-8x7b": "mistralai--Mixtral-8x7B-v0.1",
    "deepseek-v3": "deepseek-ai--DeepSeek-V3", "deepseek-v3.2": "deepseek-ai--DeepSeek-V3.2",
    "kimi-k2": "moonshotai--Kimi-K2-Instruct",
    "minimax-m2.5": "MiniMaxAI--MiniMax-M2.5",
    "llama-3.3-nemotron-super-49b": "nvidia--Llama-3_3-Nemotron-Super-49B-v1",
    "gpt-oss-120b": "openai--gpt-oss-120b", "gemma-4-26b-a4b": "google--gemma-4-26B-A4B",
    "codellama-34b": "codellama-34b-instruct-hf", "deepseek-v2-lite": "deepseek-v2-lite",
    "llama-2-7b": "llama-2-7b-hf", "mistral-nemo-12b": "mistral-nemo-instruct-2407",
    "yi-34b": "yi-34b", "granite-3b-code-128k": "index_granite-3b-code-instruct-128k",
}
DUMP_OF = {"llama-3.1-nemotron-ultra-253b": "Llama_Nemotron_Ultra.deci.txt"}


def quantisation(row, facts):
    q = row["quant"]
    if q.startswith("fp8") and "litgpt" not in row["source"]:
        facts["weights.method"] = "fp8"
        facts["weights.block"] = [128, 128]
        if row["model"].startswith("MiniMax"):
            facts["weights.skipped"] = ["gate", "lm_head"]
    elif q.startswith("mxfp4"):
        facts["weights.method"] = "mxfp4"


def architecture_facts(architecture, facts, name, notes):
    if architecture in ("Llama4ForConditionalGeneration",):
        facts.setdefault("chunk_tokens", 8192)
        facts["dense_ffn"] = 16384
        facts["ffn"] = 8192
        facts["expert_ffn"] = 8192
        facts["expert_layer_step"] = 2 if "Maverick" in name else 1
        facts.pop("shared_experts", None)
    if architecture == "Qwen2ForCausalLM":
        facts.pop("window_tokens", None)  # present in the configs, used by none
    if architecture == "PhiForCausalLM" or architecture == "GPTNeoXForCausalLM":
        facts.pop("head_dim", None)
    if architecture in ("DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM",
                        "GlmMoeDsaForCausalLM", "KimiK25ForConditionalGeneration",
                        "Glm4MoeLiteForCausalLM"):
        facts.pop("head_dim", None)
        if facts.get("latent.q_rank") == 0:
            facts.pop("latent.q_rank")
    if architecture == "MixtralForCausalLM" and "expert_ffn" in facts:
        facts.pop("ffn", None)
    if architecture == "OPTForCausalLM" and facts.get("hidden") == 1024:
        facts["embedding_width"] = 512
        facts["norm_before"] = False
    if architecture.startswith("Gemma2") and "window_tokens" not in facts:
        facts["window_tokens"] = 4096
    if architecture in ("CohereForCausalLM", "Cohere2ForCausalLM"):
        facts.pop("tied", None)
    if architecture == "DbrxForCausalLM":
        facts["expert_ffn"] = facts["ffn"]
    if architecture in ("GPT2LMHeadModel", "GPTNeoForCausalLM", "BloomForCausalLM",
                        "GPTNeoXForCausalLM", "MPTForCausalLM", "OPTForCausalLM",
                        "GPTJForCausalLM", "GPTBigCodeForCausalLM"):
        facts.pop("kv_heads", None)
        facts.pop("tied", None)


def family_folder(id):
    return re.match(r"[a-z]+(?:-[a-z]+)?", id).group(0).rstrip("-").split("-")[0]


def collect():
    gathered = {}  # id -> dict
    rows = sheets.rows("models/models.csv")
    rows.append({k: "" for k in rows[0]})
    rows[-1].update(model="granite-3b-code-instruct-128k", source="github:ashishn-08/"
                    "granite-3b-code-instruct-128k config.json", notes="", quant="")
    for row in sorted(rows, key=rank):
        architecture, fixed = family_of(row["model"])
        if not architecture:
            continue
        id = plain_id(row["model"])
        facts = facts_of(row)
        for dropped in families.DROP.get(row["model"], []):
            facts.pop(dropped, None)
        source = row["source"]
        entry = gathered.setdefault(id, {"architecture": architecture, "source": source,
                                         "facts": {}, "origin": {}, "names": [], "fixed": {}})
        if "/" in row["model"] and ":" not in row["model"]:
            entry["names"].append(row["model"])
        elif row["model"].startswith("GenZ:"):
            entry["names"].append(row["model"][5:])
        if "weights.method" not in entry["facts"]:
            quantisation(row, facts)
        for key, value in facts.items():
            if key in entry["facts"]:
                old = entry["facts"][key]
                dims = ("layers", "hidden", "heads", "head_dim", "experts")
                if key in dims and old != value:
                    print(f"{id}: {key} is {old}, but {value} in {source}", file=sys.stderr)
                continue
            entry["facts"][key] = value
            entry["origin"][key] = source
        for key, value in fixed.items():
            entry["fixed"].setdefault(key, value)
    for id, name in CONFIG_OF.items():
        entry = gathered[id]
        for key, value in config_facts(name).items():
            if entry["facts"].get(key) != value:
                entry["facts"][key] = value
                entry["origin"][key] = f"config.json ({name})"
    for id, name in DUMP_OF.items():
        for key, value in dump_facts(name).items():
            gathered[id]["facts"][key] = value
    for id, entry in gathered.items():
        entry["facts"].update(entry["fixed"])
        for key in entry["fixed"]:
            entry["origin"][key] = f"architecture of the published model ({entry['architecture']})"
        architecture_facts(entry["architecture"], entry["facts"], " ".join(entry["names"]) + id,
                           "")
    return gathered


def put_all(sheet, facts, origin):
    keys = [k for k in ORDER if k in facts] + sorted(k for k in facts if k not in ORDER)
    for key in keys:
        source = origin.get(key)
        sheet.put(key, facts[key], source)


def main():
    gathered = collect()
    for id, (source, date, facts) in {**additions.EXTRA, **hybrids.HYBRIDS, **maxtext.NETWORKS,
                                      **encoder_models.EXTRA, **vision.EXTRA}.items():
        facts = dict(facts)
        gathered[id] = {"architecture": facts.pop("architecture"), "source": source, "date": date,
                        "facts": facts, "origin": {}, "names": []}
    for id, (source, tower) in vision.TOWERS.items():
        for key, value in tower.items():
            gathered[id]["facts"]["vision." + key] = value
            gathered[id]["origin"]["vision." + key] = source
    for id, (base, names, weights, source) in additions.QUANTISED.items():
        b = gathered[base]
        facts = {k: v for k, v in b["facts"].items() if not k.startswith("weights.")}
        origin = dict(b["origin"])
        for key, value in weights.items():
            facts["weights." + key] = value
            origin["weights." + key] = source
        gathered[id] = {"architecture": b["architecture"], "source": b["source"], "facts": facts,
                        "origin": origin, "names": list(names), "date": b.get("date")}

    files, owner = {}, {}
    for id in sorted(gathered):
        owner[sheets.normal(id)] = id
    for id, entry in sorted(gathered.items()):
        sheet = sheets.Sheet("model", id, entry["source"],
                             entry.get("date") or sheets.date_of(entry["source"]))
        aliases = []
        for name in entry["names"] + ALIASES.get(id, []):
            for form in (name,) if name in model_aliases.WHOLE else (name, name.split("/")[-1]):
                key = sheets.normal(form)
                if owner.get(key, id) != id:
                    if form == name:
                        print(f"{id}: the alias {form} is {owner[key]}", file=sys.stderr)
                    continue
                if key != sheets.normal(id) and form not in aliases and \
                        key not in [sheets.normal(a) for a in aliases]:
                    owner[key] = id
                    aliases.append(form)
        sheet.put("architecture", entry["architecture"])
        sheet.put("aliases", aliases)
        put_all(sheet, entry["facts"], entry["origin"])
        files[f"{family_folder(id)}/{id}.toml"] = sheet.text("import_models.py")
    for id in ALIASES:
        if id not in gathered:
            print(f"aliases of an unknown id {id}", file=sys.stderr)
    names = sheets.Sheet("model-names", "ambiguous", "tools/model_aliases.py", sheets.SNAPSHOT)
    for name, candidates in sorted(model_aliases.AMBIGUOUS.items()):
        missing = [c for c in candidates if c not in gathered]
        if missing:
            print(f"{name}: unknown candidates {missing}", file=sys.stderr)
        if sheets.normal(name) in owner:
            print(f"{name} is ambiguous and the name of {owner[sheets.normal(name)]}",
                  file=sys.stderr)
        names.groups.append(("name", {"name": name, "candidates": candidates}))
    files["names.toml"] = names.text("import_models.py")
    sheets.write_tree("models", files)
    uncovered(owner)


def uncovered(owner):
    ambiguous = {sheets.normal(n) for n in model_aliases.AMBIGUOUS}
    for table in ("infer", "serving", "train", "memory"):
        counts = {}
        for row in sheets.rows(f"measured/{table}.csv"):
            key = sheets.normal(row["model"])
            if key not in owner and key not in ambiguous:
                counts[row["model"]] = counts.get(row["model"], 0) + 1
        top = sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))[:60]
        print(f"{table}: {sum(counts.values())} rows without a catalogue model: "
              + "; ".join(f"{k} {v}" for k, v in top), file=sys.stderr)


if __name__ == "__main__":
    main()
