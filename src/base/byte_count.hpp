#pragma once
// Exact byte counts (tensor sizes, file offsets): a 64-bit integer whose arithmetic is checked.
// Readers use `checked_*` on untrusted input; everything else may use the operators, where an
// overflow is a broken invariant and aborts.

#include <compare>
#include <cstdint>
#include <optional>

#include "base/quantity.hpp"

namespace trigon {

inline std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}
inline std::optional<std::int64_t> checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}

// Prints both operands and aborts: our bug, not the user's.
[[noreturn]] void broken_invariant(const char* what, std::int64_t a, std::int64_t b);

class ByteCount {
 public:
  constexpr ByteCount() = default;
  explicit constexpr ByteCount(std::int64_t v) : value_(v) {}
  constexpr std::int64_t value() const { return value_; }
  Bytes as_bytes() const { return Bytes::base(static_cast<double>(value_)); }
  friend constexpr auto operator<=>(ByteCount, ByteCount) = default;
  friend ByteCount operator+(ByteCount a, ByteCount b) {
    auto r = checked_add(a.value_, b.value_);
    if (!r) broken_invariant("byte count sum overflows", a.value_, b.value_);
    return ByteCount(*r);
  }
  friend ByteCount operator*(ByteCount a, std::int64_t k) {
    auto r = checked_mul(a.value_, k);
    if (!r) broken_invariant("byte count product overflows", a.value_, k);
    return ByteCount(*r);
  }
  ByteCount& operator+=(ByteCount b) { return *this = *this + b; }

 private:
  std::int64_t value_ = 0;
};

}  // namespace trigon
