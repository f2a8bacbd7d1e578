"""Models whose layers are not all attention and MLP: facts in the words of their config.json.

Keys `config.X` are fields that one architecture alone has, under their published name.
"""

_QWEN35 = "config.json of Qwen/{}; class defaults of transformers models/qwen3_5"


def _qwen(architecture, layers, hidden, heads, kv_heads, value_heads, **more):
    return dict(architecture=architecture, layers=layers, hidden=hidden, heads=heads,
                kv_heads=kv_heads, head_dim=256,
                **{"config.linear_num_key_heads": 16, "config.linear_key_head_dim": 128,
                   "config.linear_num_value_heads": value_heads,
                   "config.linear_value_head_dim": 128, "config.linear_conv_kernel_dim": 4,
                   "config.full_attention_interval": 4, **more})


def _dense(layers, hidden, heads, kv_heads, value_heads, ffn, tied=False):
    return _qwen("Qwen3_5ForConditionalGeneration", layers, hidden, heads, kv_heads, value_heads,
                 ffn=ffn, vocabulary=248320, context_tokens=262144, tied=tied,
                 **{"config.mamba_ssm_dtype": "float32"})


def _experts(layers, hidden, heads, value_heads, experts, active, width):
    return _qwen("Qwen3_5MoeForConditionalGeneration", layers, hidden, heads, 2, value_heads,
                 vocabulary=248320, context_tokens=262144, tied=False, experts=experts,
                 active_experts=active, expert_ffn=width, shared_ffn=width,
                 **{"config.mamba_ssm_dtype": "float32"})


_NEXT = _qwen("Qwen3NextForCausalLM", 48, 2048, 16, 2, 32, vocabulary=151936,
              context_tokens=262144, tied=False, experts=512, active_experts=10, expert_ffn=512,
              shared_ffn=512)


def _nemotron(layers, hidden, pattern, mamba_heads, experts, active, width, shared, **more):
    return dict(architecture="NemotronHForCausalLM", layers=layers, hidden=hidden, heads=32,
                kv_heads=2, head_dim=128, ffn=width, vocabulary=131072, tied=False,
                active_experts=active, expert_ffn=width,
                **{"config.hybrid_override_pattern": pattern, "config.mamba_num_heads": mamba_heads,
                   "config.mamba_head_dim": 64, "config.n_groups": 8, "config.ssm_state_size": 128,
                   "config.conv_kernel": 4, "config.chunk_size": 128,
                   "config.n_routed_experts": experts,
                   "config.moe_shared_expert_intermediate_size": shared,
                   "config.mamba_ssm_cache_dtype": "float32", **more})


_NANO = _nemotron(52, 2688, "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", 64, 128, 6,
                  1856, 3712)
_SUPER = _nemotron(88, 4096, "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*"
                   "EMEMEMEMEM*EMEMEMEM*EMEMEMEME", 128, 512, 22, 2688, 5376,
                   **{"config.moe_latent_size": 1024})


def _deepseek_v4(layers, hidden, heads, q_rank, groups, top_k, experts, width, first):
    ratios = first + [4, 128] * layers
    return dict(architecture="DeepseekV4ForCausalLM", layers=layers, hidden=hidden, heads=heads,
                kv_heads=1, head_dim=512, vocabulary=129280, context_tokens=1048576, tied=False,
                experts=experts, active_experts=6, expert_ffn=width, shared_experts=1,
                window_tokens=128,
                **{"latent.q_rank": q_rank, "latent.rope_dim": 64, "index.heads": 64,
                   "index.head_dim": 128, "index.top_k": top_k, "config.o_groups": groups,
                   "config.o_lora_rank": 1024, "config.hc_mult": 4, "config.num_hash_layers": 3,
                   "config.compress_ratios": ratios[:layers], "config.expert_dtype": "fp4",
                   "weights.method": "fp8", "weights.block": [128, 128]})


HYBRIDS = {
    "qwen3-next-80b-a3b": ("config.json of Qwen/Qwen3-Next-80B-A3B-Instruct", "2025-09", _NEXT),
    "qwen3-coder-next": ("config.json of Qwen/Qwen3-Coder-Next", "2026-02", _NEXT),
    "qwen3.5-4b": (_QWEN35.format("Qwen3.5-4B"), "2026-02",
                   _dense(32, 2560, 16, 4, 32, 9216, tied=True)),
    "qwen3.5-9b": (_QWEN35.format("Qwen3.5-9B"), "2026-02", _dense(32, 4096, 16, 4, 32, 12288)),
    "qwen3.5-27b": (_QWEN35.format("Qwen3.5-27B"), "2026-02", _dense(64, 5120, 24, 4, 48, 17408)),
    "qwen3.6-27b": (_QWEN35.format("Qwen3.6-27B"), "2026-04", _dense(64, 5120, 24, 4, 48, 17408)),
    "qwen3.5-35b-a3b": (_QWEN35.format("Qwen3.5-35B-A3B"), "2026-02",
                        _experts(40, 2048, 16, 32, 256, 8, 512)),
    "qwen3.6-35b-a3b": (_QWEN35.format("Qwen3.6-35B-A3B"), "2026-04",
                        _experts(40, 2048, 16, 32, 256, 8, 512)),
    "qwen3.5-122b-a10b": (_QWEN35.format("Qwen3.5-122B-A10B"), "2026-02",
                          _experts(48, 3072, 32, 64, 256, 8, 1024)),
    "qwen3.5-397b-a17b": (_QWEN35.format("Qwen3.5-397B-A17B"), "2026-02",
                          _experts(60, 4096, 32, 64, 512, 10, 1024)),
    "nemotron-3-nano-30b-a3b": ("config.json of nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
                                "2025-12", dict(_NANO, context_tokens=262144)),
    "nemotron-3.5-lightning-30b-a3b": (
        "config.json of nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B", "2026-09",
        dict(_NANO, context_tokens=1048576)),
    "nemotron-3-super-120b-a12b": ("config.json of nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16",
                                   "2026-03", dict(_SUPER, context_tokens=262144)),
    "deepseek-v4-flash": ("config.json of deepseek-ai/DeepSeek-V4-Flash", "2026-04",
                          _deepseek_v4(43, 4096, 64, 1024, 8, 512, 256, 2048, [0, 0])),
    "minimax-m3": ("config.json of MiniMaxAI/MiniMax-M3; transformers models/minimax_m3_vl",
                   "2026-06", dict(
        architecture="MiniMaxM3ForCausalLM", layers=60, hidden=6144, heads=64, kv_heads=4,
        head_dim=128, ffn=3072, vocabulary=200064, context_tokens=1048576, tied=False,
        experts=128, active_experts=4, shared_experts=1, expert_ffn=3072, dense_layers_first=3,
        **{"config.dense_intermediate_size": 12288, "config.index_n_heads": 4,
           "config.index_head_dim": 128, "config.index_block_size": 128,
           "config.index_topk_blocks": 16,
           "config.layer_types": ["full_attention"] * 3 + ["minimax_m3_sparse"] * 57})),
}

ALIASES = {
    "qwen3-next-80b-a3b": ["Qwen/Qwen3-Next-80B-A3B-Instruct", "Qwen/Qwen3-Next-80B-A3B-Thinking",
                           "qwen3-next-80b-a3b"],
    "qwen3-coder-next": ["Qwen/Qwen3-Coder-Next"],
    "qwen3.5-4b": ["Qwen/Qwen3.5-4B"],
    "qwen3.5-9b": ["Qwen/Qwen3.5-9B"],
    "qwen3.5-27b": ["Qwen/Qwen3.5-27B"],
    "qwen3.6-27b": ["Qwen/Qwen3.6-27B", "Qwen3.6-27B-Q8_0", "Qwen3.6-27B-UD-Q8_K_XL"],
    "qwen3.5-35b-a3b": ["Qwen/Qwen3.5-35B-A3B"],
    "qwen3.6-35b-a3b": ["Qwen/Qwen3.6-35B-A3B", "Qwen3.6-35B-A3B-BF16",
                        "Qwen3.6-35B-A3B-UD-Q4_K_XL", "Qwen3.6-35B-A3B-UD-Q8_K_XL"],
    "qwen3.5-122b-a10b": ["Qwen/Qwen3.5-122B-A10B", "Qwen3.5-122B-A10B-UD-Q4_K_XL",
                          "Qwen3.5-122B-A10B-UD-Q5_K_XL"],
    "qwen3.5-397b-a17b": ["Qwen/Qwen3.5-397B-A17B"],
    "nemotron-3-nano-30b-a3b": ["nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
                                "NVIDIA-Nemotron-3-Nano-30B-A3B", "nemotron_3_nano"],
    "nemotron-3.5-lightning-30b-a3b": ["nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B",
                                       "nemotron_3_5_lightning"],
    "nemotron-3-super-120b-a12b": ["nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16",
                                   "NVIDIA-Nemotron-3-Super-120B-A12B", "nemotron_3_super",
                                   "NVIDIA-Nemotron-3-Super-120B-A12B-UD-Q4_K_XL"],
    "deepseek-v4-flash": ["deepseek-ai/DeepSeek-V4-Flash"],
    "minimax-m3": ["MiniMaxAI/MiniMax-M3"],
}
