#pragma once
// The shapes of published recurrent mixers from a config's numbers. `h` is the model's width;
// matrices are in 16 bit until a reader says otherwise.

#include <cstdint>

#include "model/model.hpp"

namespace trigon {

// Mamba-1 (arXiv:2312.00752): one head a channel. Without norms, or with one each on the step, B
// and C (Jamba).
struct MambaShape {
  std::int64_t inner = 0, state = 0, step_rank = 0, kernel = 0;
  bool conv_bias = true, bias = false, norms = false;
};
RecurrentMixer mamba(std::int64_t h, const MambaShape& s);

// Mamba-2 (arXiv:2405.21060): B and C are shared by the heads of a group.
struct Mamba2Shape {
  std::int64_t heads = 0, head_dim = 0, groups = 1, state = 0, kernel = 0, chunk = 256;
  bool conv_bias = true, bias = false, norm = true;
};
RecurrentMixer mamba2(std::int64_t h, const Mamba2Shape& s);
// PLaMo-2's: step, B and C come from a projection of the convolved input, and have norms.
RecurrentMixer plamo_mamba(std::int64_t h, const Mamba2Shape& s);

// The gated delta rule (arXiv:2412.06464) of Qwen3-Next: one matrix for queries, keys, values and
// the output gate, one for decay and step of each head.
struct DeltaShape {
  std::int64_t key_heads = 0, key_dim = 0, value_heads = 0, value_dim = 0, kernel = 4;
};
RecurrentMixer gated_delta(std::int64_t h, const DeltaShape& s);
// Kimi Linear's delta attention (arXiv:2510.26692): a decay for each channel and a low-rank gate.
RecurrentMixer kimi_delta(std::int64_t h, std::int64_t heads, std::int64_t head_dim,
                          std::int64_t kernel);

// Lightning attention (arXiv:2501.08313): decays are constants; the output is normed and gated.
RecurrentMixer lightning(std::int64_t h, std::int64_t heads, std::int64_t head_dim,
                         std::int64_t chunk);

// RG-LRU (arXiv:2402.19427): gates are block-diagonal, one block a head.
RecurrentMixer rg_lru(std::int64_t h, std::int64_t width, std::int64_t heads, std::int64_t kernel);

// The gated short convolution of LFM2.
RecurrentMixer short_convolution(std::int64_t h, std::int64_t kernel, bool bias);

}  // namespace trigon
