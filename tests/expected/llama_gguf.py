"""Writes the header of Llama-3.1-8B as llama.cpp's Q4_K_M stores it, and a hole in place of the
tensors: a file that is as long as the real one and takes a few MiB of disk.

usage: llama_gguf.py FILE
"""

import struct
import sys

LAYERS, WIDTH, FFN, KV_WIDTH, VOCABULARY = 32, 4096, 14336, 1024, 128256
F32, Q4_K, Q6_K = 0, 12, 14  # ggml's numbers of its tensor types
BLOCK = {F32: (1, 4), Q4_K: (256, 144), Q6_K: (256, 210)}  # values, bytes
ALIGNMENT = 32


def more_bits(layer):
    """The layers whose value and down projections Q4_K_M stores in Q6_K: the first and last
    eighth and every third between (llama.cpp, src/llama-quant.cpp)."""
    eighth = LAYERS // 8
    return layer < eighth or layer >= 7 * eighth or (layer - eighth) % 3 == 2


def tensors():
    yield "rope_freqs.weight", [64], F32
    yield "token_embd.weight", [WIDTH, VOCABULARY], Q4_K
    for i in range(LAYERS):
        high = Q6_K if more_bits(i) else Q4_K
        yield f"blk.{i}.attn_norm.weight", [WIDTH], F32
        yield f"blk.{i}.attn_q.weight", [WIDTH, WIDTH], Q4_K
        yield f"blk.{i}.attn_k.weight", [WIDTH, KV_WIDTH], Q4_K
        yield f"blk.{i}.attn_v.weight", [WIDTH, KV_WIDTH], high
        yield f"blk.{i}.attn_output.weight", [WIDTH, WIDTH], Q4_K
        yield f"blk.{i}.ffn_norm.weight", [WIDTH], F32
        yield f"blk.{i}.ffn_gate.weight", [WIDTH, FFN], Q4_K
        yield f"blk.{i}.ffn_up.weight", [WIDTH, FFN], Q4_K
        yield f"blk.{i}.ffn_down.weight", [FFN, WIDTH], high
    yield "output_norm.weight", [WIDTH], F32
    yield "output.weight", [WIDTH, VOCABULARY], Q6_K


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def metadata():
    def u32(v):
        return struct.pack("<II", 4, v)

    def f32(v):
        return struct.pack("<If", 6, v)

    def string(v):
        return struct.pack("<I", 8) + text(v)

    tokens = b"".join(text(f"token{i}") for i in range(VOCABULARY))
    kinds = struct.pack("<i", 1) * VOCABULARY
    return {
        "general.architecture": string("llama"), "general.name": string("Llama 3.1 8B"),
        "general.file_type": u32(15), "general.quantization_version": u32(2),
        "llama.block_count": u32(LAYERS), "llama.context_length": u32(131072),
        "llama.embedding_length": u32(WIDTH), "llama.feed_forward_length": u32(FFN),
        "llama.attention.head_count": u32(32), "llama.attention.head_count_kv": u32(8),
        "llama.rope.freq_base": f32(500000), "llama.rope.dimension_count": u32(128),
        "llama.attention.layer_norm_rms_epsilon": f32(1e-5), "llama.vocab_size": u32(VOCABULARY),
        "tokenizer.ggml.model": string("gpt2"), "tokenizer.ggml.pre": string("llama-bpe"),
        "tokenizer.ggml.tokens": struct.pack("<IIQ", 9, 8, VOCABULARY) + tokens,
        "tokenizer.ggml.token_type": struct.pack("<IIQ", 9, 5, VOCABULARY) + kinds,
    }


def write(path):
    entries, infos, offset = metadata(), b"", 0
    listed = list(tensors())
    for name, shape, kind in listed:
        values = 1
        for d in shape:
            values *= d
        per, size = BLOCK[kind]
        infos += text(name) + struct.pack("<I", len(shape))
        infos += b"".join(struct.pack("<Q", d) for d in shape) + struct.pack("<IQ", kind, offset)
        offset += -(-(values // per * size) // ALIGNMENT) * ALIGNMENT
    head = b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(entries))
    head += b"".join(text(k) + v for k, v in entries.items()) + infos
    head += bytes(-len(head) % ALIGNMENT)
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(len(head) + offset)


if __name__ == "__main__":
    write(sys.argv[1])
