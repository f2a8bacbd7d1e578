#pragma once
// How good predictions are: errors, bias and how honest the ranges are, group by group.

#include <optional>
#include <string>
#include <vector>

#include "base/estimate.hpp"

namespace trigon {

struct Compared {
  double measured = 0;
  Estimate<double> predicted;
};

// |predicted / measured - 1|; for a measured zero, 0 when the prediction is zero too, else 1.
double relative_error(const Compared& c);

// Fractions, never percent. Absent when nothing was predicted.
struct ErrorStatistics {
  std::optional<double> median_error, p90_error, mean_error;
  std::optional<double> bias;             // mean of predicted / measured - 1
  std::optional<double> inside_interval;  // share of measurements within their range
  std::optional<double> interval_ratio;   // median of high / low
};

ErrorStatistics error_statistics(const std::vector<Compared>& rows);

// The value below which a share `q` (0..1) of `values` lies, between neighbours by linear
// interpolation. Empty for no values.
std::optional<double> quantile(std::vector<double> values, double q);

}  // namespace trigon
