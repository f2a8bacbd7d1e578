#pragma once
// What is shown is never a bare number: a value, its range and where it came from.

#include <cstdint>

namespace trigon {

// How a number came about, best first.
enum class Basis : std::uint8_t { exact, measured, interpolated, calibrated, analytic, bound };

inline Basis worse(Basis a, Basis b) { return a > b ? a : b; }

template <class Q>
struct Estimate {
  Q value{}, low{}, high{};
  Basis basis = Basis::analytic;
};

template <class Q>
constexpr Estimate<Q> exactly(Q v) {
  return {v, v, v, Basis::exact};
}

}  // namespace trigon
