// Element types, and the values of small tensors.

#include "onnx/proto.hpp"
#include "onnx/wire.hpp"

namespace trigon::onnx {
namespace {

std::optional<std::int64_t> elements_of(const OnnxTensor& t) {
  std::int64_t n = 1;
  for (std::int64_t d : t.dims) {
    auto product = d < 0 ? std::nullopt : checked_mul(n, d);
    if (!product) return std::nullopt;
    n = *product;
  }
  return n;
}

// 16-bit floating point as a number: `exponent` bits of it.
double half_of(std::uint64_t bits, bool brain) {
  const auto h = static_cast<std::uint32_t>(bits & 0xffff);
  if (brain) return float_of(h << 16);
  const std::uint32_t sign = (h & 0x8000u) << 16, fraction = h & 0x3ffu, exponent = h >> 10 & 31;
  if (exponent == 0) return (sign ? -1.0 : 1.0) * static_cast<double>(fraction) / 16777216.0;
  if (exponent == 31) return float_of(sign | 0x7f800000u | fraction << 13);
  return float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

// The raw bits of each element.
std::optional<std::vector<std::uint64_t>> raw_bits(const ByteSource& file, const OnnxTensor& t,
                                                   std::int64_t n) {
  const std::int64_t bits = bits_of(t.type);
  if (bits == 0 || t.raw_size != (n * bits + 7) / 8) return std::nullopt;
  auto bytes = file.text(t.raw_at, t.raw_size, "a tensor");
  if (!bytes) return std::nullopt;
  std::vector<std::uint64_t> out;
  out.reserve(static_cast<std::size_t>(n));
  auto byte = [&](std::int64_t i) {
    return static_cast<std::uint64_t>(
        static_cast<unsigned char>((*bytes)[static_cast<std::size_t>(i)]));
  };
  for (std::int64_t i = 0; i < n; ++i) {
    if (bits < 8) {
      out.push_back(byte(i * bits / 8) >> (i * bits % 8) & ((1u << bits) - 1));
      continue;
    }
    std::uint64_t v = 0;
    for (std::int64_t b = 0; b < bits / 8; ++b) v |= byte(i * bits / 8 + b) << (8 * b);
    out.push_back(v);
  }
  return out;
}

std::int64_t signed_of(std::uint64_t v, std::int64_t bits) {
  if (bits >= 64) return static_cast<std::int64_t>(v);
  const std::uint64_t top = std::uint64_t{1} << (bits - 1);
  return static_cast<std::int64_t>((v & ((top << 1) - 1)) ^ top) - static_cast<std::int64_t>(top);
}

}  // namespace

std::int64_t bits_of(std::int32_t type) {
  switch (type) {
    case kUint2:
    case kInt2:
      return 2;
    case kUint4:
    case kInt4:
    case kFloat4E2M1:
      return 4;
    case kUint8:
    case kInt8:
    case kBool:
    case kFloat8E4M3FN:
    case kFloat8E4M3FNUZ:
    case kFloat8E5M2:
    case kFloat8E5M2FNUZ:
    case kFloat8E8M0:
      return 8;
    case kUint16:
    case kInt16:
    case kFloat16:
    case kBfloat16:
      return 16;
    case kFloat:
    case kInt32:
    case kUint32:
      return 32;
    case kInt64:
    case kUint64:
    case kDouble:
    case kComplex64:
      return 64;
    case kComplex128:
      return 128;
    default:
      return 0;
  }
}

bool is_floating(std::int32_t type) {
  switch (type) {
    case kFloat:
    case kFloat16:
    case kDouble:
    case kBfloat16:
    case kFloat8E4M3FN:
    case kFloat8E4M3FNUZ:
    case kFloat8E5M2:
    case kFloat8E5M2FNUZ:
    case kFloat4E2M1:
    case kFloat8E8M0:
      return true;
    default:
      return false;
  }
}

bool is_integer(std::int32_t type) {
  return bits_of(type) > 0 && !is_floating(type) && type != kComplex64 && type != kComplex128;
}

std::optional<std::vector<std::int64_t>> integer_contents(const ByteSource& file,
                                                          const OnnxTensor& t) {
  auto n = elements_of(t);
  if (!n || *n > kMostContents || !is_integer(t.type)) return std::nullopt;
  if (t.elsewhere && t.raw_size < 0) return std::nullopt;
  if (static_cast<std::int64_t>(t.integers.size()) == *n && t.raw_size <= 0) return t.integers;
  auto raw = raw_bits(file, t, *n);
  if (!raw) return std::nullopt;
  const bool with_sign = t.type == kInt8 || t.type == kInt16 || t.type == kInt32 ||
                         t.type == kInt64 || t.type == kInt4 || t.type == kInt2;
  std::vector<std::int64_t> out;
  for (std::uint64_t v : *raw)
    out.push_back(with_sign ? signed_of(v, bits_of(t.type)) : static_cast<std::int64_t>(v));
  return out;
}

std::optional<std::vector<double>> real_contents(const ByteSource& file, const OnnxTensor& t) {
  auto n = elements_of(t);
  if (!n || *n > kMostContents) return std::nullopt;
  if (t.type != kFloat && t.type != kDouble && t.type != kFloat16 && t.type != kBfloat16)
    return std::nullopt;
  if (t.elsewhere && t.raw_size < 0) return std::nullopt;
  const bool half = t.type == kFloat16 || t.type == kBfloat16;
  auto number = [&](std::uint64_t bits) {
    if (half) return half_of(bits, t.type == kBfloat16);
    return t.type == kDouble ? double_of(bits) : float_of(bits);
  };
  if (t.raw_size <= 0) {
    if (!half && static_cast<std::int64_t>(t.reals.size()) == *n) return t.reals;
    if (!half || static_cast<std::int64_t>(t.integers.size()) != *n) return std::nullopt;
    std::vector<double> out;
    for (std::int64_t v : t.integers) out.push_back(number(static_cast<std::uint64_t>(v)));
    return out;
  }
  auto raw = raw_bits(file, t, *n);
  if (!raw) return std::nullopt;
  std::vector<double> out;
  for (std::uint64_t v : *raw) out.push_back(number(v));
  return out;
}

}  // namespace trigon::onnx
