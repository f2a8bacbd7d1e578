#pragma once
// A small deterministic minimiser: random steps of shrinking size in log space, kept when they
// help. No gradients; a few parameters; the same result everywhere for the same seed.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

namespace trigon {

class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // Sum of uniforms: near enough to a bell for a search step, and the same on every platform.
  double bell() {
    double s = 0;
    for (int i = 0; i < 6; ++i) s += uniform();
    return (s - 3) * std::sqrt(2.0);
  }

 private:
  std::uint64_t state_;
};

struct FitParameter {
  double* value;
  double low, high;
};

// Minimises `loss` over the parameters in place; returns the loss reached.
inline double minimise(const std::vector<FitParameter>& parameters,
                       const std::function<double()>& loss, int iterations, std::uint64_t seed) {
  SplitMix random(seed);
  double best = loss();
  double step = 0.5;
  std::vector<double> kept(parameters.size());
  for (int i = 0; i < iterations; ++i) {
    for (std::size_t j = 0; j < parameters.size(); ++j) kept[j] = *parameters[j].value;
    std::size_t moves = 1 + random.next() % std::min<std::size_t>(2, parameters.size());
    for (std::size_t k = 0; k < moves; ++k) {
      const FitParameter& p = parameters[random.next() % parameters.size()];
      double v = *p.value * std::exp(step * random.bell());
      *p.value = v < p.low ? p.low : v > p.high ? p.high : v;
    }
    double now = loss();
    if (now < best)
      best = now;
    else
      for (std::size_t j = 0; j < parameters.size(); ++j) *parameters[j].value = kept[j];
    if (i % (iterations / 6 + 1) == iterations / 6) step *= 0.6;
  }
  return best;
}

}  // namespace trigon
