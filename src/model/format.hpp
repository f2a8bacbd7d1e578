#pragma once
// Number formats of weights, caches and activations: exact bytes, and what multiplies them.

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/byte_count.hpp"

namespace trigon {

enum class Format : std::uint8_t {
  f64,
  f32,
  tf32,  // stored in 32 bit, multiplied with 10 bits of mantissa
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  i64,
  i32,
  i16,
  i8,
  u8,
  boolean,
  // Weight-only and block formats as checkpoints store them.
  int8,       // 8-bit weights with one scale per output channel
  int8_g128,  // GPTQ of 8 bits: weight-only, groups of 128
  int4_g128,  // AWQ / GPTQ / compressed-tensors: 4 bit, groups of 128
  int4_g64,
  int4_g32,
  int3_g128,
  int2_g128,
  nf4,         // bitsandbytes, blocks of 64, fp32 absmax
  nf4_double,  // bitsandbytes with double quantisation
  fp8_tensor,  // one scale per tensor or channel
  fp8_block,   // blocks of 128 x 128
  mxfp8,
  mxfp4,
  nvfp4,
  // GGUF.
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q8_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  q8_k,
  iq1_s,
  iq1_m,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
  iq4_nl,
  iq4_xs,
  tq1_0,
  tq2_0,
  // GGUF of the ik_llama.cpp branch; its row-interleaved *_R4 and *_R8 twins have the same sizes.
  q6_0,
  iq2_k,
  iq3_k,
  iq4_k,
  iq5_k,
  iq6_k,
  iq2_ks,
  iq3_ks,
  iq4_ks,
  iq5_ks,
  iq4_kss,
  iq2_kl,
  iq1_kt,
  iq2_kt,
  iq3_kt,
  iq4_kt,
  iq1_bn,
  iq2_bn,
  // 2:4 structured sparsity: two of four values along the reduction are kept, each with an index of
  // two bits (NVIDIA Ampere architecture whitepaper, "fine-grained structured sparsity").
  bf16_2to4,
  f16_2to4,
  fp8_2to4,
  int8_2to4,
  unknown,
  count_
};

struct FormatInfo {
  Format format;
  std::string_view name;        // as Trigon writes it
  std::int64_t block_elements;  // elements that share one block
  std::int64_t block_bytes;     // bytes of a block with its scales
  bool floating;
  bool weight_only;            // bytes are saved, the arithmetic is 16 bit
  bool gguf = false;           // every row is padded to whole blocks
  std::int64_t row_bytes = 0;  // stored once a row, beside the blocks
};

const FormatInfo& info(Format f);
// The 2:4 sparse form of a dense format that has one, the dense form of any, and which it is.
std::optional<Format> sparse_of(Format f);
Format dense_of(Format f);
inline bool is_sparse(Format f) { return dense_of(f) != f; }
std::optional<Format> format_by_name(std::string_view name);  // "bf16", "q4_k", "awq" ...
// Bits a weight, scales included (row and tensor scales, which depend on the shape, are not).
double bits_per_element(Format f);
// Exact bytes of `rows` rows (output features) of `row_length` elements (input features). Rows of
// GGUF formats are padded to whole blocks, of others the whole matrix is. Empty on overflow,
// negative sizes and `unknown`.
std::optional<ByteCount> bytes_of(Format f, std::int64_t rows, std::int64_t row_length);

}  // namespace trigon
