#pragma once
// Number formats of weights, caches and activations: exact bytes, and what multiplies them.

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/byte_count.hpp"

namespace trigon {

enum class Format : std::uint8_t {
  f64, f32, f16, bf16, f8_e4m3, f8_e5m2, i64, i32, i16, i8, u8, boolean,
  // Weight-only and block formats as checkpoints store them.
  int8,         // 8-bit weights with one scale per output channel
  int4_g128,    // AWQ / GPTQ / compressed-tensors: 4 bit, groups of 128
  int4_g64, int4_g32, int3_g128, int2_g128,
  nf4,          // bitsandbytes, blocks of 64, fp32 absmax
  nf4_double,   // bitsandbytes with double quantisation
  fp8_tensor,   // one scale per tensor or channel
  fp8_block,    // blocks of 128 x 128
  mxfp8, mxfp4, nvfp4,
  // GGUF.
  q4_0, q4_1, q5_0, q5_1, q8_0, q8_1, q2_k, q3_k, q4_k, q5_k, q6_k, q8_k,
  iq1_s, iq1_m, iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s, iq4_nl, iq4_xs, tq1_0, tq2_0,
  unknown,
  count_
};

struct FormatInfo {
  Format format;
  std::string_view name;        // as Trigon writes it
  std::int64_t block_elements;  // elements that share one block
  std::int64_t block_bytes;     // bytes of a block with its scales
  bool floating;
  bool weight_only;  // bytes are saved, the arithmetic is 16 bit
};

const FormatInfo& info(Format f);
std::optional<Format> format_by_name(std::string_view name);  // "bf16", "q4_k", "awq" ...
// Bits a weight, scales included.
double bits_per_element(Format f);
// Exact bytes of `rows` rows of `row_length` elements: each row is padded to whole blocks.
std::optional<ByteCount> bytes_of(Format f, std::int64_t rows, std::int64_t row_length);

}  // namespace trigon
