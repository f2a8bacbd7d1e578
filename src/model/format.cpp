#include "model/format.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace trigon {
namespace {

constexpr std::size_t kFormats = static_cast<std::size_t>(Format::count_);

// Block sizes: ggml-common.h of llama.cpp and of ik_llama.cpp for GGUF; OCP MX 1.0 (32 elements,
// one E8M0 scale); NVFP4: 16 elements, one E4M3 scale; GPTQ/AWQ: a group has one fp16 scale and
// one packed zero point of the weight's width; bitsandbytes: fp32 absmax per 64, with double
// quantisation 8 bits per 64 and one fp32 per 256 of those.
constexpr std::array<FormatInfo, kFormats> kTable = {{
    {Format::f64, "f64", 1, 8, true, false},
    {Format::f32, "f32", 1, 4, true, false},
    {Format::tf32, "tf32", 1, 4, true, false},
    {Format::f16, "f16", 1, 2, true, false},
    {Format::bf16, "bf16", 1, 2, true, false},
    {Format::f8_e4m3, "f8_e4m3", 1, 1, true, false},
    {Format::f8_e5m2, "f8_e5m2", 1, 1, true, false},
    {Format::i64, "i64", 1, 8, false, false},
    {Format::i32, "i32", 1, 4, false, false},
    {Format::i16, "i16", 1, 2, false, false},
    {Format::i8, "i8", 1, 1, false, false},
    {Format::u8, "u8", 1, 1, false, false},
    {Format::boolean, "bool", 1, 1, false, false},
    {Format::int8, "int8", 1, 1, false, false, false, 4},
    {Format::int8_g128, "int8_g128", 128, 128 + 2 + 1, false, true},
    {Format::int4_g128, "int4_g128", 256, 128 + 4 + 1, false, true},
    {Format::int4_g64, "int4_g64", 128, 64 + 4 + 1, false, true},
    {Format::int4_g32, "int4_g32", 64, 32 + 4 + 1, false, true},
    {Format::int3_g128, "int3_g128", 1024, 384 + 16 + 3, false, true},
    {Format::int2_g128, "int2_g128", 512, 128 + 8 + 1, false, true},
    {Format::nf4, "nf4", 64, 32 + 4, true, true},
    {Format::nf4_double, "nf4_double", 64 * 256, 32 * 256 + 256 + 4, true, true},
    {Format::fp8_tensor, "fp8_tensor", 1, 1, true, false},
    {Format::fp8_block, "fp8_block", 128 * 128, 128 * 128 + 4, true, false},
    {Format::mxfp8, "mxfp8", 32, 33, true, false},
    {Format::mxfp4, "mxfp4", 32, 17, true, false},
    {Format::nvfp4, "nvfp4", 16, 9, true, false},
    {Format::q4_0, "q4_0", 32, 18, false, true, true},
    {Format::q4_1, "q4_1", 32, 20, false, true, true},
    {Format::q5_0, "q5_0", 32, 22, false, true, true},
    {Format::q5_1, "q5_1", 32, 24, false, true, true},
    {Format::q8_0, "q8_0", 32, 34, false, true, true},
    {Format::q8_1, "q8_1", 32, 36, false, true, true},
    {Format::q2_k, "q2_k", 256, 84, false, true, true},
    {Format::q3_k, "q3_k", 256, 110, false, true, true},
    {Format::q4_k, "q4_k", 256, 144, false, true, true},
    {Format::q5_k, "q5_k", 256, 176, false, true, true},
    {Format::q6_k, "q6_k", 256, 210, false, true, true},
    {Format::q8_k, "q8_k", 256, 292, false, true, true},
    {Format::iq1_s, "iq1_s", 256, 50, false, true, true},
    {Format::iq1_m, "iq1_m", 256, 56, false, true, true},
    {Format::iq2_xxs, "iq2_xxs", 256, 66, false, true, true},
    {Format::iq2_xs, "iq2_xs", 256, 74, false, true, true},
    {Format::iq2_s, "iq2_s", 256, 82, false, true, true},
    {Format::iq3_xxs, "iq3_xxs", 256, 98, false, true, true},
    {Format::iq3_s, "iq3_s", 256, 110, false, true, true},
    {Format::iq4_nl, "iq4_nl", 32, 18, false, true, true},
    {Format::iq4_xs, "iq4_xs", 256, 136, false, true, true},
    {Format::tq1_0, "tq1_0", 256, 54, false, true, true},
    {Format::tq2_0, "tq2_0", 256, 66, false, true, true},
    {Format::q6_0, "q6_0", 32, 26, false, true, true},
    {Format::iq2_k, "iq2_k", 256, 76, false, true, true},
    {Format::iq3_k, "iq3_k", 256, 110, false, true, true},
    {Format::iq4_k, "iq4_k", 256, 144, false, true, true},
    {Format::iq5_k, "iq5_k", 256, 176, false, true, true},
    {Format::iq6_k, "iq6_k", 256, 212, false, true, true},
    {Format::iq2_ks, "iq2_ks", 256, 70, false, true, true, 2},
    {Format::iq3_ks, "iq3_ks", 256, 102, false, true, true, 2},
    {Format::iq4_ks, "iq4_ks", 256, 136, false, true, true, 4},
    {Format::iq5_ks, "iq5_ks", 256, 168, false, true, true, 4},
    {Format::iq4_kss, "iq4_kss", 256, 128, false, true, true, 4},
    {Format::iq2_kl, "iq2_kl", 256, 86, false, true, true, 2},
    {Format::iq1_kt, "iq1_kt", 256, 56, false, true, true, 4},
    {Format::iq2_kt, "iq2_kt", 256, 68, false, true, true, 4},
    {Format::iq3_kt, "iq3_kt", 256, 100, false, true, true, 4},
    {Format::iq4_kt, "iq4_kt", 256, 128, false, true, true, 4},
    {Format::iq1_bn, "iq1_bn", 64, 13, false, true, true, 2},
    {Format::iq2_bn, "iq2_bn", 64, 16, false, true, true, 4},
    {Format::bf16_2to4, "bf16_2to4", 8, 8 + 1, true, false},
    {Format::f16_2to4, "f16_2to4", 8, 8 + 1, true, false},
    {Format::fp8_2to4, "fp8_2to4", 8, 4 + 1, true, false},
    {Format::int8_2to4, "int8_2to4", 8, 4 + 1, false, false, false, 4},
    {Format::unknown, "unknown", 1, 0, false, false},
}};

constexpr bool ordered() {
  for (std::size_t i = 0; i < kFormats; ++i)
    if (kTable[i].format != static_cast<Format>(i)) return false;
  return true;
}
static_assert(ordered(), "the format table must list the formats in the enum's order");

struct Alias {
  std::string_view name;
  Format format;
};
constexpr Alias kAliases[] = {
    {"float64", Format::f64},
    {"double", Format::f64},
    {"float32", Format::f32},
    {"fp32", Format::f32},
    {"float", Format::f32},
    {"float16", Format::f16},
    {"fp16", Format::f16},
    {"half", Format::f16},
    {"bfloat16", Format::bf16},
    {"fp8", Format::fp8_tensor},
    {"fp8_e4m3", Format::f8_e4m3},
    {"fp8_e5m2", Format::f8_e5m2},
    {"f8", Format::f8_e4m3},
    {"float8_e4m3fn", Format::f8_e4m3},
    {"float8_e5m2", Format::f8_e5m2},
    {"int4", Format::int4_g128},
    {"awq", Format::int4_g128},
    {"gptq", Format::int4_g128},
    {"w4a16", Format::int4_g128},
    {"w8a8", Format::int8},
    {"w8a16", Format::int8},
    {"int3", Format::int3_g128},
    {"int2", Format::int2_g128},
    {"fp4", Format::nvfp4},
    {"q8", Format::q8_0},
};

}  // namespace

const FormatInfo& info(Format f) {
  auto i = static_cast<std::size_t>(f);
  return kTable[i < kFormats ? i : static_cast<std::size_t>(Format::unknown)];
}

std::optional<Format> sparse_of(Format f) {
  switch (f) {
    case Format::bf16:
      return Format::bf16_2to4;
    case Format::f16:
      return Format::f16_2to4;
    case Format::fp8_tensor:
    case Format::f8_e4m3:
      return Format::fp8_2to4;
    case Format::int8:
      return Format::int8_2to4;
    default:
      return is_sparse(f) ? std::optional(f) : std::nullopt;
  }
}

Format dense_of(Format f) {
  switch (f) {
    case Format::bf16_2to4:
      return Format::bf16;
    case Format::f16_2to4:
      return Format::f16;
    case Format::fp8_2to4:
      return Format::fp8_tensor;
    case Format::int8_2to4:
      return Format::int8;
    default:
      return f;
  }
}

std::optional<Format> format_by_name(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::tolower(c));
  });
  for (const FormatInfo& i : kTable)
    if (i.name == lower && i.format != Format::unknown) return i.format;
  for (const Alias& a : kAliases)
    if (a.name == lower) return a.format;
  return std::nullopt;
}

double bits_per_element(Format f) {
  const FormatInfo& i = info(f);
  return 8.0 * static_cast<double>(i.block_bytes) / static_cast<double>(i.block_elements);
}

std::optional<ByteCount> bytes_of(Format f, std::int64_t rows, std::int64_t row_length) {
  if (f >= Format::unknown || rows < 0 || row_length < 0) return std::nullopt;
  const FormatInfo& i = info(f);
  auto blocks_in = [](std::int64_t n, std::int64_t block) { return n / block + (n % block != 0); };
  std::optional<std::int64_t> bytes;
  if (f == Format::fp8_block) {
    // One fp32 scale for each started 128 x 128 block.
    auto elements = checked_mul(rows, row_length);
    auto blocks = checked_mul(blocks_in(rows, 128), blocks_in(row_length, 128));
    auto scales = blocks ? checked_mul(*blocks, 4) : std::nullopt;
    bytes = elements && scales ? checked_add(*elements, *scales) : std::nullopt;
  } else if (i.gguf) {
    auto row = checked_mul(blocks_in(row_length, i.block_elements), i.block_bytes);
    if (row) row = checked_add(*row, i.row_bytes);
    bytes = row ? checked_mul(*row, rows) : std::nullopt;
  } else {
    auto elements = checked_mul(rows, row_length);
    if (elements) bytes = checked_mul(blocks_in(*elements, i.block_elements), i.block_bytes);
    auto beside = checked_mul(rows, i.row_bytes);
    bytes = bytes && beside ? checked_add(*bytes, *beside) : std::nullopt;
  }
  if (!bytes) return std::nullopt;
  return ByteCount(*bytes);
}

}  // namespace trigon
