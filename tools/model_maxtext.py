"""Networks that MaxText's own scripts train, by their nominal size.

Of scripts with global_parameter_scale = 2^n: base.yml has 16 layers of width 2048, 16 heads of 128
and an MLP of 7168; with (q, r) = divmod(n, 3) heads and MLP grow by 2^(q + (r > 0)), the width by
2^(q + (r > 1)), layers by 2^q (MaxText's get_individual_scales). The scripts for TPU v4 give the
dimensions themselves, from before the MLP was gated.
"""

_BASE = "AI-Hypercomputer/maxtext MaxText/configs/base.yml, get_individual_scales in pyconfig.py"


def _scaled(size):
    q, r = divmod(size.bit_length() - 1, 3)
    heads = 16 << (q + (r > 0))
    return dict(architecture="LlamaForCausalLM", layers=16 << q, hidden=2048 << (q + (r > 1)),
                heads=heads, kv_heads=heads, head_dim=128, ffn=7168 << (q + (r > 0)),
                vocabulary=32000, context_tokens=2048, tied=False)


def _v4(layers, hidden, heads, ffn):
    return dict(architecture="ArceeForCausalLM", layers=layers, hidden=hidden, heads=heads,
                kv_heads=heads, head_dim=256, ffn=ffn, vocabulary=32000, context_tokens=2048,
                tied=False)


NETWORKS = {f"maxtext-{size}b": (_BASE, "2024", _scaled(size))
            for size in (16, 32, 64, 128, 256, 512, 1024)}
NETWORKS["maxtext-22b"] = ("AI-Hypercomputer/maxtext MaxText/configs/v4/22b.sh", "2023",
                           _v4(48, 6144, 24, 24576))
NETWORKS["maxtext-52b"] = ("AI-Hypercomputer/maxtext MaxText/configs/v4/52b.sh", "2023",
                           _v4(32, 12288, 32, 49152))

# Sequences a chip and tokens a sequence in the scripts the tables were made with.
BATCH = {("TPU-v5e", "maxtext-16b"): 6, ("TPU-v5e", "maxtext-32b"): 4,
         ("TPU-v5e", "maxtext-64b"): 2, ("TPU-v5e", "maxtext-128b"): 1,
         ("TPU-v4", "maxtext-22b"): 13, ("TPU-v4", "maxtext-52b"): 7}
SEQUENCE = 2048
