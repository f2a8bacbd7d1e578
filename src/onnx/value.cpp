#include "onnx/value.hpp"

#include <algorithm>

namespace trigon::onnx {

std::string shape_text(const TensorShape& s) {
  std::string out;
  for (std::int64_t d : s) out += (out.empty() ? "" : "x") + std::to_string(d);
  return out.empty() ? "scalar" : out;
}

std::optional<Format> format_of_type(std::int32_t type) {
  switch (type) {
    case kFloat:
      return Format::f32;
    case kFloat16:
      return Format::f16;
    case kBfloat16:
      return Format::bf16;
    case kDouble:
    case kComplex64:
      return Format::f64;
    case kFloat8E4M3FN:
    case kFloat8E4M3FNUZ:
      return Format::f8_e4m3;
    case kFloat8E5M2:
    case kFloat8E5M2FNUZ:
      return Format::f8_e5m2;
    case kInt64:
    case kUint64:
      return Format::i64;
    case kInt32:
    case kUint32:
      return Format::i32;
    case kInt16:
    case kUint16:
      return Format::i16;
    case kInt8:
      return Format::i8;
    case kUint8:
    case kString:
    case kFloat8E8M0:
      return Format::u8;
    case kBool:
      return Format::boolean;
    case kUint4:
    case kInt4:
    case kFloat4E2M1:
      return Format::int4_g128;
    default:
      return std::nullopt;
  }
}

TensorShape item_shape(const TensorShape& whole) {
  if (whole.empty()) return {1};
  if (whole.size() > 1 && whole.front() == 1) return TensorShape(whole.begin() + 1, whole.end());
  return whole;
}

std::optional<TensorShape> broadcast(const TensorShape& a, const TensorShape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  TensorShape out(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t x = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    const std::int64_t y = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[i] = x == 1 ? y : x;
  }
  return out;
}

std::optional<std::int64_t> checked_elements(const TensorShape& s) {
  std::int64_t n = 1;
  for (std::int64_t d : s) {
    if (d < 0 || d > kMostDimension) return std::nullopt;
    // Every factor counts, also beside a zero, so that parts of the shape can be multiplied.
    const std::int64_t factor = d == 0 ? 1 : d;
    if (n > kMostElements / factor) return std::nullopt;
    n *= factor;
  }
  for (std::int64_t d : s)
    if (d == 0) return 0;
  return n;
}

}  // namespace trigon::onnx
