"""Models that models.csv lacks, and quantised checkpoints of others. Facts are (source, date, keys)."""

GLM = "config of the released model, as launch scripts of THUDM/slime state it"
LLAMA1 = "arXiv:2302.13971 table 2; feed-forward width 2/3 of 4 x hidden, rounded up to 256"
_GPT = {"architecture": "GPT2LMHeadModel", "vocabulary": 51200, "context_tokens": 2048}
_FT = "NVIDIA/FasterTransformer docs/gpt_guide.md: heads, size per head, layers, vocabulary 51200"
_GPT3 = "arXiv:2005.14165 table 2.1; vocabulary padded to 51200 as Megatron does"

# Models of which the table has no row of their own: id -> (source, date, facts).
EXTRA = {
    "llama-7b": (LLAMA1, "2023-02", dict(architecture="LlamaForCausalLM", layers=32, hidden=4096,
                 heads=32, kv_heads=32, ffn=11008, vocabulary=32000, context_tokens=2048)),
    "llama-13b": (LLAMA1, "2023-02", dict(architecture="LlamaForCausalLM", layers=40, hidden=5120,
                  heads=40, kv_heads=40, ffn=13824, vocabulary=32000, context_tokens=2048)),
    "llama-65b": (LLAMA1, "2023-02", dict(architecture="LlamaForCausalLM", layers=80, hidden=8192,
                  heads=64, kv_heads=64, ffn=22016, vocabulary=32000, context_tokens=2048)),
    "gpt-89b": (_FT, "2022", dict(_GPT, layers=48, hidden=12288, heads=96)),
    "gpt-6.7b": (_GPT3, "2020-05", dict(_GPT, layers=32, hidden=4096, heads=32)),
    "gpt-1.3b": (_GPT3, "2020-05", dict(_GPT, layers=24, hidden=2048, heads=32)),
    "gpt-350m": (_GPT3, "2020-05", dict(_GPT, layers=24, hidden=1024, heads=16)),
    "gpt-neox-20b": ("arXiv:2204.06745; EleutherAI/gpt-neox configs/20B.yml", "2022-04",
                     dict(architecture="GPTNeoXForCausalLM", layers=44, hidden=6144, heads=64,
                          ffn=24576, vocabulary=50432, context_tokens=2048)),
    "glm-4.5": (GLM, "2025-07", dict(
        architecture="Glm4MoeForCausalLM", layers=92, hidden=5120, heads=96, kv_heads=8,
        head_dim=128, ffn=12288, vocabulary=151552, context_tokens=131072, experts=160,
        active_experts=8, expert_ffn=1536, shared_experts=1, dense_layers_first=3, qk_norm=True,
        attention_bias=True)),
    "glm-4.5-air": (GLM, "2025-07", dict(
        architecture="Glm4MoeForCausalLM", layers=46, hidden=4096, heads=96, kv_heads=8,
        head_dim=128, ffn=10944, vocabulary=151552, context_tokens=131072, experts=128,
        active_experts=8, expert_ffn=1408, shared_experts=1, dense_layers_first=1, qk_norm=False,
        attention_bias=True)),
    "glm-4.6": ("config.json of zai-org/GLM-4.6", "2025-09", dict(
        architecture="Glm4MoeForCausalLM", layers=92, hidden=5120, heads=96, kv_heads=8,
        head_dim=128, ffn=12288, vocabulary=151552, context_tokens=202752, experts=160,
        active_experts=8, expert_ffn=1536, shared_experts=1, dense_layers_first=3, qk_norm=True,
        attention_bias=True)),
    "glm-4.5v": ("config.json of zai-org/GLM-4.5V", "2025-08", dict(
        architecture="Glm4vMoeForConditionalGeneration", layers=46, hidden=4096, heads=96,
        kv_heads=8, head_dim=128, ffn=10944, vocabulary=151552, context_tokens=65536, experts=128,
        active_experts=8, expert_ffn=1408, shared_experts=1, dense_layers_first=1, qk_norm=False,
        attention_bias=True)),
    "deepseek-coder-33b": ("config.json of deepseek-ai/deepseek-coder-33b-base", "2023-10", dict(
        architecture="LlamaForCausalLM", layers=62, hidden=7168, heads=56, kv_heads=8, ffn=19200,
        vocabulary=32256, context_tokens=16384)),
    "baichuan2-13b": ("config.json of baichuan-inc/Baichuan2-13B-Base", "2023-09", dict(
        architecture="BaichuanForCausalLM", layers=40, hidden=5120, heads=40, ffn=13696,
        vocabulary=125696, context_tokens=4096)),
    "moss-moon-16b": ("config.json of fnlp/moss-moon-003-base", "2023-04", dict(
        architecture="CodeGenForCausalLM", layers=34, hidden=6144, heads=24, vocabulary=107008,
        context_tokens=2048)),
    "ministral-3-14b": ("config.json of mistralai/Ministral-3-14B-Base-2512", "2025-12", dict(
        architecture="Mistral3ForConditionalGeneration", layers=40, hidden=5120, heads=32,
        kv_heads=8, head_dim=128, ffn=16384, vocabulary=131072, context_tokens=262144)),
    "grok-1": ("xai-org/grok-1 run.py", "2024-03", dict(
        architecture="MixtralForCausalLM", layers=64, hidden=6144, heads=48, kv_heads=8,
        head_dim=128, vocabulary=131072, context_tokens=8192, experts=8, active_experts=2,
        expert_ffn=32768, tied=True)),
    "moonlight-16b-a3b": ("config.json of moonshotai/Moonlight-16B-A3B", "2025-02", dict(
        architecture="DeepseekV3ForCausalLM", layers=27, hidden=2048, heads=16, ffn=11264,
        vocabulary=163840, context_tokens=8192, experts=64, active_experts=6, expert_ffn=1408,
        shared_experts=2, dense_layers_first=1,
        **{"latent.kv_rank": 512, "latent.nope_dim": 128, "latent.rope_dim": 64,
           "latent.value_dim": 128})),
    "llama-4-scout-2-layers": ("pytorch/ao torchao/prototype/moe_training: Llama 4 Scout cut to "
                               "two layers", "2025-08", dict(
        architecture="Llama4ForConditionalGeneration", layers=2, hidden=5120, heads=40, kv_heads=8,
        head_dim=128, ffn=8192, vocabulary=202048, context_tokens=10485760, chunk_tokens=8192,
        experts=16, active_experts=1, expert_ffn=8192, expert_layer_step=1, dense_ffn=16384)),
    "yi-6b": ("config.json of 01-ai/Yi-6B", "2023-11", dict(
        architecture="LlamaForCausalLM", layers=32, hidden=4096, heads=32, kv_heads=4, ffn=11008,
        vocabulary=64000, context_tokens=4096)),
    "bloom-176b": ("arXiv:2211.05100 table 3; config.json of bigscience/bloom", "2022-11", dict(
        architecture="BloomForCausalLM", layers=70, hidden=14336, heads=112, ffn=57344,
        vocabulary=250880, context_tokens=2048)),
}

# Quantised releases: id -> (base id, repository names, weights.* facts, source).
MODEL_OPT = "NVIDIA ModelOpt: every linear but the head"
QUANTISED = {
    "llama-3.1-8b-fp8": ("llama-3.1-8b", ["nvidia/Llama-3.1-8B-Instruct-FP8"],
                         {"algorithm": "FP8", "kv_algorithm": "FP8", "skipped": ["lm_head"]},
                         MODEL_OPT),
    "llama-3.1-70b-fp8": ("llama-3.1-70b", ["nvidia/Llama-3.1-70B-Instruct-FP8"],
                          {"algorithm": "FP8", "kv_algorithm": "FP8", "skipped": ["lm_head"]},
                          MODEL_OPT),
    "qwen3-32b-nvfp4": ("qwen3-32b", ["nvidia/Qwen3-32B-NVFP4"],
                        {"algorithm": "NVFP4", "skipped": ["lm_head"]}, MODEL_OPT),
    "qwen3-32b-fp8": ("qwen3-32b", ["Qwen/Qwen3-32B-FP8"],
                      {"method": "fp8", "block": [128, 128]}, "config.json of Qwen/Qwen3-32B-FP8"),
    "qwen3-30b-a3b-fp8": ("qwen3-30b-a3b", ["Qwen/Qwen3-30B-A3B-FP8"],
                          {"method": "fp8", "block": [128, 128]},
                          "config.json of Qwen/Qwen3-30B-A3B-FP8"),
    "qwen3-235b-a22b-fp8": ("qwen3-235b-a22b", ["Qwen/Qwen3-235B-A22B-FP8"],
                            {"method": "fp8", "block": [128, 128]},
                            "config.json of Qwen/Qwen3-235B-A22B-FP8"),
    "qwen3-14b-fp8": ("qwen3-14b", ["Qwen/Qwen3-14B-FP8"], {"method": "fp8", "block": [128, 128]},
                      "config.json of Qwen/Qwen3-14B-FP8"),
    "deepseek-v3.1-nvfp4": ("deepseek-v3", ["nvidia/DeepSeek-V3.1-NVFP4"],
                            {"algorithm": "NVFP4", "kv_algorithm": "FP8",
                             "skipped": ["lm_head", "self_attn.q_a_proj", "self_attn.q_b_proj",
                                         "self_attn.kv_a_proj_with_mqa", "self_attn.kv_b_proj"]},
                            "hf_quant_config.json of nvidia/DeepSeek-V3.1-NVFP4"),
    "qwen2.5-7b-awq": ("qwen2.5-7b", ["Qwen/Qwen2.5-7B-Instruct-AWQ"],
                       {"method": "awq", "bits": 4, "group": 128},
                       "Qwen2.5 AWQ releases: 4 bit, groups of 128"),
    "qwen-7b-int4": ("qwen-7b", ["Qwen-7B-Int4", "Qwen/Qwen-7B-Chat-Int4"],
                     {"method": "gptq", "bits": 4, "group": 128},
                     "Qwen GPTQ releases: 4 bit, groups of 128"),
    "qwen-14b-int4": ("qwen-14b", ["Qwen-14B-Int4", "Qwen/Qwen-14B-Chat-Int4"],
                      {"method": "gptq", "bits": 4, "group": 128},
                      "Qwen GPTQ releases: 4 bit, groups of 128"),
    "qwen-72b-int4": ("qwen-72b", ["Qwen-72B-int4", "Qwen/Qwen-72B-Chat-Int4"],
                      {"method": "gptq", "bits": 4, "group": 128},
                      "Qwen GPTQ releases: 4 bit, groups of 128"),
}
