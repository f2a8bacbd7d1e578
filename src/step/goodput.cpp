#include "step/goodput.hpp"

#include <algorithm>
#include <cmath>

namespace trigon {

double checkpoint_interval(double write, double failure) {
  if (write >= 2 * failure) return failure;
  const double x = write / (2 * failure);
  return std::sqrt(2 * write * failure) * (1 + std::sqrt(x) / 3 + x / 9) - write;
}

Goodput goodput_of(const Reliability& r, double work, double bytes, int cards, int nodes) {
  constexpr double kShort = 3600;
  Goodput g;
  if (!(work >= kShort) || r.card_failure_seconds <= 0 || r.write_bytes_per_second <= 0) return g;
  g.write = bytes / (r.write_bytes_per_second * std::max(1, nodes));
  g.failure = r.card_failure_seconds / std::max(1, cards);
  g.restart = r.restart_seconds + g.write;  // a checkpoint is read as fast as it is written
  g.interval = std::min(checkpoint_interval(g.write, g.failure), work);
  if (g.interval <= 0) return g;
  // Expected wall time of one interval and its checkpoint.
  const double wall =
      g.failure * std::exp(g.restart / g.failure) * std::expm1((g.interval + g.write) / g.failure);
  g.share = g.interval / wall;
  return g;
}

}  // namespace trigon
