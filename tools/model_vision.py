"""Vision towers of catalogue models, and models that have one. Facts are those of config.json, under
the names that the released files give them."""


def _vl(depth, hidden, ffn, text, **more):
    return dict(model_type="qwen2_5_vl", depth=depth, hidden_size=hidden, intermediate_size=ffn,
                num_heads=16, in_chans=3, patch_size=14, spatial_merge_size=2,
                temporal_patch_size=2, out_hidden_size=text, **more)


def _vl2(text):
    return dict(model_type="qwen2_vl", depth=32, embed_dim=1280, num_heads=16, mlp_ratio=4,
                in_channels=3, patch_size=14, spatial_merge_size=2, temporal_patch_size=2,
                hidden_size=text)


def _vl3(depth, hidden, ffn, text, deep):
    return dict(model_type="qwen3_vl", depth=depth, hidden_size=hidden, intermediate_size=ffn,
                num_heads=16, in_channels=3, patch_size=16, spatial_merge_size=2,
                temporal_patch_size=2, out_hidden_size=text, num_position_embeddings=2304,
                deepstack_visual_indexes=deep)


_INTERN = dict(model_type="intern_vit_6b", num_hidden_layers=24, hidden_size=1024,
               num_attention_heads=16, intermediate_size=4096, image_size=448, patch_size=14,
               num_channels=3)

# id -> (source, tower).
TOWERS = {
    "qwen3-vl-2b": ("config.json of Qwen/Qwen3-VL-2B-Instruct",
                    _vl3(24, 1024, 4096, 2048, [5, 11, 17])),
    "qwen3-vl-4b": ("config.json of Qwen/Qwen3-VL-4B-Instruct",
                    _vl3(24, 1024, 4096, 2560, [5, 11, 17])),
    "qwen3-vl-8b": ("config.json of Qwen/Qwen3-VL-8B-Instruct",
                    _vl3(27, 1152, 4304, 4096, [8, 16, 24])),
    "qwen3-vl-32b": ("config.json of Qwen/Qwen3-VL-32B-Instruct",
                     _vl3(27, 1152, 4304, 5120, [8, 16, 24])),
    "qwen3-vl-30b-a3b": ("config.json of Qwen/Qwen3-VL-30B-A3B-Instruct",
                         _vl3(27, 1152, 4304, 2048, [8, 16, 24])),
    "qwen3-vl-235b-a22b": ("config.json of Qwen/Qwen3-VL-235B-A22B-Instruct",
                           _vl3(27, 1152, 4304, 4096, [8, 16, 24])),
}

_QWEN25 = {"architecture": "Qwen2_5_VLForConditionalGeneration", "context_tokens": 128000}
_QWEN2 = {"architecture": "Qwen2VLForConditionalGeneration", "context_tokens": 32768}


def _with(tower, **facts):
    return dict(facts, **{"vision." + key: value for key, value in tower.items()})


# id -> (source, date, facts).
EXTRA = {
    "qwen2-vl-2b": ("config.json of Qwen/Qwen2-VL-2B-Instruct", "2024-08", _with(
        _vl2(1536), **_QWEN2, layers=28, hidden=1536, heads=12, kv_heads=2, ffn=8960,
        vocabulary=151936, tied=True)),
    "qwen2-vl-7b": ("config.json of Qwen/Qwen2-VL-7B-Instruct", "2024-08", _with(
        _vl2(3584), **_QWEN2, layers=28, hidden=3584, heads=28, kv_heads=4, ffn=18944,
        vocabulary=152064)),
    "qwen2.5-vl-3b": ("config.json of Qwen/Qwen2.5-VL-3B-Instruct", "2025-01", _with(
        _vl(32, 1280, 3420, 2048), **_QWEN25, layers=36, hidden=2048, heads=16, kv_heads=2,
        ffn=11008, vocabulary=151936, tied=True)),
    "qwen2.5-vl-7b": ("config.json of Qwen/Qwen2.5-VL-7B-Instruct", "2025-01", _with(
        _vl(32, 1280, 3420, 3584), **_QWEN25, layers=28, hidden=3584, heads=28, kv_heads=4,
        ffn=18944, vocabulary=152064)),
    "qwen2.5-vl-32b": ("config.json of Qwen/Qwen2.5-VL-32B-Instruct", "2025-03", _with(
        _vl(32, 1280, 3456, 5120), **_QWEN25, layers=64, hidden=5120, heads=40, kv_heads=8,
        ffn=27648, vocabulary=152064)),
    "qwen2.5-vl-72b": ("config.json of Qwen/Qwen2.5-VL-72B-Instruct", "2025-01", _with(
        _vl(32, 1280, 3456, 8192), **_QWEN25, layers=80, hidden=8192, heads=64, kv_heads=8,
        ffn=29568, vocabulary=152064)),
    "internvl3-2b": ("config.json of OpenGVLab/InternVL3-2B", "2025-04", _with(
        _INTERN, architecture="Qwen2ForCausalLM", context_tokens=32768, layers=28, hidden=1536,
        heads=12, kv_heads=2, ffn=8960, vocabulary=151674)),
    "internvl3.5-30b-a3b": ("config.json of OpenGVLab/InternVL3_5-30B-A3B", "2025-08", _with(
        _INTERN, architecture="Qwen3MoeForCausalLM", context_tokens=40960, layers=48, hidden=2048,
        heads=32, kv_heads=4, head_dim=128, ffn=6144, vocabulary=151936, experts=128,
        active_experts=8, expert_ffn=768)),
}

ALIASES = {
    "qwen2-vl-2b": ["Qwen/Qwen2-VL-2B-Instruct"],
    "qwen2-vl-7b": ["Qwen/Qwen2-VL-7B-Instruct"],
    "qwen2.5-vl-3b": ["Qwen/Qwen2.5-VL-3B-Instruct"],
    "qwen2.5-vl-7b": ["Qwen/Qwen2.5-VL-7B-Instruct"],
    "qwen2.5-vl-32b": ["Qwen/Qwen2.5-VL-32B-Instruct"],
    "qwen2.5-vl-72b": ["Qwen/Qwen2.5-VL-72B-Instruct"],
    "internvl3-2b": ["OpenGVLab/InternVL3-2B", "OpenGVLab/InternVL3-2B-Instruct",
                     "OpenGVLab/InternVL3-2B-Pretrained"],
    "internvl3.5-30b-a3b": ["OpenGVLab/InternVL3_5-30B-A3B"],
}
