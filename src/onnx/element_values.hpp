#pragma once
// Known values of single elements, computed as the operator would: shape arithmetic.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <type_traits>

#include "base/byte_count.hpp"
#include "onnx/value.hpp"

namespace trigon::onnx {

template <class T>
T apply_unary(std::string_view op, T v) {
  if (op == "Neg") {
    if constexpr (std::is_integral_v<T>)
      return v == INT64_MIN ? v : -v;
    else
      return -v;
  }
  if (op == "Relu") return std::max<T>(v, 0);
  if constexpr (std::is_integral_v<T>) {
    if (op == "Abs") return v == INT64_MIN ? v : std::abs(v);
    if (op == "Not") return v == 0;
    if (op == "Sign") return v > 0 ? 1 : v < 0 ? -1 : 0;
    return v;
  } else {
    if (op == "Abs") return std::fabs(v);
    if (op == "Ceil") return std::ceil(v);
    if (op == "Floor") return std::floor(v);
    if (op == "Round") return std::nearbyint(v);
    if (op == "Sqrt") return std::sqrt(v);
    if (op == "Exp") return std::exp(v);
    if (op == "Log") return std::log(v);
    if (op == "Reciprocal") return 1 / v;
    return v;
  }
}
inline bool folds_unary(std::string_view op, bool integer) {
  if (op == "Neg" || op == "Abs" || op == "Relu") return true;
  if (integer) return op == "Not" || op == "Sign";
  return op == "Ceil" || op == "Floor" || op == "Round" || op == "Sqrt" || op == "Exp" ||
         op == "Log" || op == "Reciprocal";
}

// Absent where the result is none of 64 bits.
inline std::optional<std::int64_t> apply_integer(std::string_view op, std::int64_t a,
                                                 std::int64_t b) {
  if (op == "Add" || op == "Sum") return checked_add(a, b);
  if (op == "Sub") return b == INT64_MIN ? std::nullopt : checked_add(a, -b);
  if (op == "Mul") return checked_mul(a, b);
  if (op == "Div" || op == "Mod") {
    if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
    if (op == "Div") return a / b;
    const std::int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
  if (op == "Max") return std::max(a, b);
  if (op == "Min") return std::min(a, b);
  if (op == "Equal") return a == b;
  if (op == "Greater") return a > b;
  if (op == "GreaterOrEqual") return a >= b;
  if (op == "Less") return a < b;
  if (op == "LessOrEqual") return a <= b;
  if (op == "And") return a != 0 && b != 0;
  if (op == "Or") return a != 0 || b != 0;
  if (op == "Xor") return (a != 0) != (b != 0);
  if (op == "Pow") {
    if (b < 0 || b > 64) return std::nullopt;
    std::int64_t v = 1;
    for (std::int64_t i = 0; i < b; ++i) {
      auto next = checked_mul(v, a);
      if (!next) return std::nullopt;
      v = *next;
    }
    return v;
  }
  return std::nullopt;
}

inline std::optional<double> apply_real(std::string_view op, double a, double b) {
  if (op == "Add" || op == "Sum") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return a / b;
  if (op == "Max") return std::max(a, b);
  if (op == "Min") return std::min(a, b);
  if (op == "Pow") return std::pow(a, b);
  if (op == "Mod") return std::fmod(a, b);
  return std::nullopt;
}
inline std::optional<std::int64_t> compare_real(std::string_view op, double a, double b) {
  if (op == "Equal") return a == b;
  if (op == "Greater") return a > b;
  if (op == "GreaterOrEqual") return a >= b;
  if (op == "Less") return a < b;
  if (op == "LessOrEqual") return a <= b;
  return std::nullopt;
}

// Where an element of the broadcast result comes from.
class Source {
 public:
  Source(const TensorShape& from, const TensorShape& to) : to_(to), strides_(to.size()) {
    std::int64_t stride = 1;
    for (std::size_t i = from.size(); i-- > 0;) {
      strides_[i + to.size() - from.size()] = from[i] == 1 ? 0 : stride;
      stride *= from[i];
    }
  }
  std::size_t operator()(std::int64_t flat) const {
    std::int64_t at = 0;
    for (std::size_t i = to_.size(); i-- > 0;) {
      at += flat % to_[i] * strides_[i];
      flat /= to_[i];
    }
    return static_cast<std::size_t>(at);
  }

 private:
  const TensorShape& to_;
  std::vector<std::int64_t> strides_;
};

}  // namespace trigon::onnx
