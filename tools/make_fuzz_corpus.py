#!/usr/bin/env python3
"""Writes the seeds under fuzz/corpus/ for the model readers: small files of every dialect."""
import json
import os
import struct

import onnx_seeds

ROOT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fuzz", "corpus")


def put(target, name, data):
    folder = os.path.join(ROOT, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data if isinstance(data, bytes) else json.dumps(data).encode())


BASE = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 96,
        "intermediate_size": 128, "max_position_embeddings": 512, "torch_dtype": "bfloat16"}
MLA = {"kv_lora_rank": 16, "q_lora_rank": 24, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
       "v_head_dim": 8, "n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1,
       "moe_intermediate_size": 32, "first_k_dense_replace": 1, "moe_layer_freq": 1}
CONFIGS = {
    "llama": {"architectures": ["LlamaForCausalLM"], "num_key_value_heads": 2, "head_dim": None,
              "eos_token_id": [1, 2], "tie_word_embeddings": True},
    "qwen2": {"architectures": ["Qwen2ForCausalLM"], "sliding_window": 64,
              "use_sliding_window": True, "max_window_layers": 1},
    "qwen": {"architectures": ["QWenLMHeadModel"], "kv_channels": 16},
    "mixtral": {"architectures": ["MixtralForCausalLM"], "num_local_experts": 4,
                "num_experts_per_tok": 2},
    "deepseek": {"architectures": ["DeepseekV3ForCausalLM"], **MLA, "index_n_heads": 2,
                 "index_head_dim": 8, "index_topk": 4},
    "gemma3": {"architectures": ["Gemma3ForConditionalGeneration"], "vision_config": {},
               "text_config": {**BASE, "head_dim": 16, "sliding_window": 32}},
    "gemma4": {"architectures": ["Gemma4ForConditionalGeneration"], "text_config": {
        **BASE, "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 32,
        "global_head_dim": 32, "num_global_key_value_heads": 1, "attention_k_eq_v": True,
        "enable_moe_block": True, "num_experts": 4, "top_k_experts": 2,
        "moe_intermediate_size": 16}},
    "gpt_oss": {"architectures": ["GptOssForCausalLM"], "num_local_experts": 4,
                "num_experts_per_tok": 2, "sliding_window": 32,
                "quantization_config": {"quant_method": "mxfp4"}},
    "deci": {"architectures": ["DeciLMForCausalLM"], "intermediate_size": None, "block_configs": [
        {"attention": {"no_op": False, "n_heads_in_group": 2}, "ffn": {"ffn_mult": 1.5}},
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 2.0, "no_op": False}}]},
    "falcon": {"architectures": ["FalconForCausalLM"], "multi_query": True,
               "new_decoder_architecture": False},
    "mpt": {"architectures": ["MPTForCausalLM"], "d_model": 64, "expansion_ratio": 4,
            "attn_config": {"alibi": True, "kv_n_heads": 2}},
    "dbrx": {"architectures": ["DbrxForCausalLM"], "attn_config": {"kv_n_heads": 2},
             "ffn_config": {"ffn_hidden_size": 32, "moe_num_experts": 4, "moe_top_k": 2}},
    "opt": {"architectures": ["OPTForCausalLM"], "word_embed_proj_dim": 32,
            "do_layer_norm_before": False},
    "gpt2": {"architectures": ["GPT2LMHeadModel"], "n_layer": 2, "n_inner": None},
    "gpt_neo": {"architectures": ["GPTNeoForCausalLM"],
                "attention_types": [[["global", "local"], 1]], "window_size": 32},
    "llama4": {"architectures": ["Llama4ForConditionalGeneration"], "text_config": {
        **BASE, "num_local_experts": 4, "num_experts_per_tok": 1, "intermediate_size_mlp": 64,
        "interleave_moe_layer_step": 2, "attention_chunk_size": 64}},
    "bitnet": {"architectures": ["BitNetForCausalLM"]},
    "hybrid": {"architectures": ["Qwen3NextForCausalLM"]},
    "unknown": {"architectures": ["NeverHeardOfForCausalLM"]},
}
QUANTS = {
    "gptq": {"quant_method": "gptq", "bits": 4, "group_size": 128},
    "awq": {"quant_method": "awq", "w_bit": 4, "q_group_size": 64,
            "modules_to_not_convert": ["lm_head"]},
    "bnb": {"quant_method": "bitsandbytes", "load_in_4bit": True,
            "bnb_4bit_use_double_quant": True, "llm_int8_skip_modules": ["lm_head"]},
    "fp8": {"quant_method": "fp8", "weight_block_size": [128, 128],
            "modules_to_not_convert": ["lm_head", "model.layers.0.mlp.gate"]},
    "ct": {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": [
        "re:.*lm_head", "re:model\\.layers\\.\\d+\\.self_attn.*"], "config_groups": {"group_0": {
            "targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "group_size": 32,
                                               "strategy": "group"}}},
           "kv_cache_scheme": {"num_bits": 8, "type": "float"}},
    "modelopt": {"producer": {"name": "modelopt"}, "quantization": {
        "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16,
        "exclude_modules": ["lm_head", "model.layers.*.self_attn", "model.layers.3*"]}},
    "mixed": {"quantization": {"quant_algo": "MIXED_PRECISION", "quantized_layers": {
        "model.layers.1.mlp.experts.0.up_proj": {"quant_algo": "NVFP4"},
        "model.layers.1.self_attn.o_proj": {"quant_algo": "FP8"}}}},
    "quark": {"quant_method": "quark", "global_quant_config": {
        "weight": {"dtype": "fp8_e4m3"}}, "exclude": ["lm_head"]},
    "hqq": {"quant_method": "hqq", "quant_config": {
        "weight_quant_params": {"nbits": 4, "group_size": 64}}},
}


def safetensors(entries, data):
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + b"\0" * data


def gguf(version, order):
    def number(v, kind):
        return struct.pack(order + kind, v)

    def size(v):
        return number(v, "I" if version == 1 else "Q")

    def text(s):
        return size(len(s)) + s.encode()

    def u32(key, v):
        return text(key) + number(4, "I") + number(v, "I")

    entries = [text("general.architecture") + number(8, "I") + text("llama"),
               u32("llama.block_count", 1), u32("llama.embedding_length", 64),
               u32("llama.attention.head_count", 4),
               text("t") + number(9, "I") + number(8, "I") + size(2) + text("a") + text("b"),
               text("n") + number(9, "I") + number(5, "I") + size(2) + number(1, "i")
               + number(-2, "i"),
               text("f") + number(6, "I") + number(1.5, "f"),
               text("b") + number(7, "I") + b"\1"]
    shapes = {"token_embd.weight": (64, 96), "output_norm.weight": (64,),
              "blk.0.attn_norm.weight": (64,), "blk.0.attn_q.weight": (64, 64),
              "blk.0.attn_k.weight": (64, 32), "blk.0.attn_v.weight": (64, 32),
              "blk.0.attn_output.weight": (64, 64), "blk.0.ffn_norm.weight": (64,),
              "blk.0.ffn_gate_inp.weight": (64, 4), "blk.0.ffn_gate_exps.weight": (64, 32, 4),
              "blk.0.ffn_up_exps.weight": (64, 32, 4), "blk.0.ffn_down_exps.weight": (32, 64, 4)}
    entries.append(u32("llama.expert_used_count", 2))
    infos = b""
    for i, (name, shape) in enumerate(shapes.items()):
        infos += text(name) + number(len(shape), "I") + b"".join(size(d) for d in shape)
        infos += number([0, 1, 8, 30][i % 4], "I") + number(0, "Q")
    return (b"GGUF" + number(version, "I") + size(len(shapes)) + size(len(entries))
            + b"".join(entries) + infos)


for name, config in CONFIGS.items():
    put("hf_config", name + ".json", {**BASE, **config})
for name, config in QUANTS.items():
    put("hf_quant_config", name + ".json", config)
    put("hf_config", "quantised-" + name + ".json",
        {**BASE, **CONFIGS["llama"], "quantization_config": config.get("quantization", config)})
put("safetensors", "plain", safetensors({
    "__metadata__": {"format": "pt"},
    "a.weight": {"dtype": "BF16", "shape": [2, 4], "data_offsets": [0, 16]},
    "b.qweight": {"dtype": "I32", "shape": [2], "data_offsets": [16, 24]},
    "empty": {"dtype": "F32", "shape": [0], "data_offsets": [24, 24]}}, 24))
put("safetensors", "header-only", safetensors({
    "a.weight": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}, 0))
put("safetensors_index", "plain.json", {
    "metadata": {"total_size": 24},
    "weight_map": {"a.weight": "model-00001-of-00002.safetensors",
                   "b.weight": "model-00002-of-00002.safetensors"}})
for version in (1, 2, 3):
    put("gguf", f"v{version}", gguf(version, "<"))
put("gguf", "v3-big-endian", gguf(3, ">"))
for name, seed in onnx_seeds.SEEDS.items():
    put("onnx", name + ".onnx", seed())
