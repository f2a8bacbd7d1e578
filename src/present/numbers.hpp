#pragma once
// Numbers as people read them: three significant digits, a unit of a fitting size. Values come in
// base units (bytes, seconds, operations, tokens, US dollars); `unit` is the word metric_info uses.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/estimate.hpp"

namespace trigon {

// "0.0123", "1.20", "12.0", "12,300": exactly `digits` significant digits, never in scientific
// notation between 1e-6 and 1e15. "-" for NaN, "inf" for infinity.
std::string significant(double v, int digits = 3);
// The same without trailing zeros behind the point, for prose: "1.2", "12".
std::string trimmed_number(double v, int digits = 3);
// "32,768".
std::string whole(std::int64_t v);

// How a value in base units is scaled for reading: shown = value / factor.
struct Scale {
  double factor = 1;
  std::string_view unit =
      "";  // "GiB", "ms", "TB/s"; a rate of items lives as long as what was asked
};
// The scale that suits a value of this magnitude. Memory is in GiB, bandwidth in GB/s.
Scale scale_for(double magnitude, std::string_view unit);
// "18.2 GiB", "1.2 s", "32,768 tokens", "300B tokens".
std::string in_words(double v, std::string_view unit);
// "18.2 GiB (17.9 to 18.9)"; an exact estimate has no range. `between` joins the two ends.
std::string in_words(const Estimate<double>& e, std::string_view unit,
                     std::string_view between = " to ");
// "8.03B", "405B", "124M".
std::string short_count(double v);

}  // namespace trigon
