#include "evidence/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace trigon {

namespace {

double signed_error(const Compared& c) {
  if (c.measured == 0) return c.predicted.value == 0 ? 0 : 1;
  return c.predicted.value / c.measured - 1;
}

double mean(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x;
  return sum / static_cast<double>(v.size());
}

}  // namespace

double relative_error(const Compared& c) { return std::fabs(signed_error(c)); }

std::optional<double> quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

ErrorStatistics error_statistics(const std::vector<Compared>& rows) {
  ErrorStatistics s;
  if (rows.empty()) return s;
  std::vector<double> errors, signed_errors, ratios;
  double inside = 0;
  for (const Compared& c : rows) {
    errors.push_back(relative_error(c));
    signed_errors.push_back(signed_error(c));
    if (c.predicted.low > 0) ratios.push_back(c.predicted.high / c.predicted.low);
    if (c.predicted.low <= c.measured && c.measured <= c.predicted.high) inside += 1;
  }
  s.median_error = quantile(errors, 0.5);
  s.p90_error = quantile(errors, 0.9);
  s.mean_error = mean(errors);
  s.bias = mean(signed_errors);
  s.inside_interval = inside / static_cast<double>(rows.size());
  s.interval_ratio = quantile(ratios, 0.5);
  return s;
}

}  // namespace trigon
