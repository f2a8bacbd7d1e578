#pragma once
// Pieces of transformers over token sequences [tokens, width] that vision, text and diffusion
// networks share.

#include <optional>
#include <string_view>

#include "network/builder.hpp"

namespace trigon {

struct SelfAttention {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 0;   // 0: as many as heads
  std::int64_t inner = 0;      // width of q; 0: that of the tokens
  std::int64_t sequences = 1;  // windows that attend within themselves
  bool bias = true;            // of the q, k, v projection
  bool key_bias = true;        // BEiT's and Swin V2's keys have none
  bool out_bias = true;
  bool one_projection = true;  // q, k, v in one product
  bool rotary = false;
  bool cosine = false;  // q and k are normalised to length one, scaled by a learned value a head
  bool causal = false;
  bool fused = true;
  bool norm_inside = false;  // of the joined heads before the output projection (EVA-02 large)
  // Rows of a learned table of position biases [rows, heads]; 0: none.
  std::int64_t bias_rows = 0;
  std::optional<ValueId> position_bias = std::nullopt;  // [rows, heads], computed
};
// Attention of a sequence to itself, projections included: [tokens, width] -> the same.
ValueId self_attention(NetworkBuilder& b, ValueId x, const SelfAttention& a);

enum class FeedForwardKind : std::uint8_t { plain, gated };
struct FeedForward {
  std::int64_t width = 0;
  FeedForwardKind kind = FeedForwardKind::plain;
  Activation activation = Activation::gelu;
  bool bias = true;
  bool norm_inside = false;     // over `width`, before the last projection
  bool one_projection = false;  // gate and value in one product
};
ValueId feed_forward(NetworkBuilder& b, ValueId x, const FeedForward& f);

// q and k times cosines and sines of their position: three operations an element.
ValueId rotate(NetworkBuilder& b, std::string_view name, ValueId x);

// Learned rows before the sequence: a class token, registers.
ValueId prepend_tokens(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t count);
// `read` (0: all) rows of a learned table [rows, width].
ValueId learned(NetworkBuilder& b, std::string_view name, std::int64_t rows, std::int64_t width,
                std::int64_t read = 0);

// Images in patches of a side: [c, h, w] -> [h / patch * (w / patch), width].
ValueId patch_tokens(NetworkBuilder& b, std::string_view name, ValueId image, std::int64_t patch,
                     std::int64_t width, bool bias = true, std::int64_t stride = 0);

}  // namespace trigon
