#include "present/numbers.hpp"

#include <cmath>
#include <cstdio>

#include "base/quantity.hpp"

namespace trigon {
namespace {

// Commas between groups of three digits before the point.
std::string grouped(std::string s) {
  std::size_t start = s[0] == '-' ? 1 : 0;
  std::size_t point = s.find('.');
  if (point == s.npos) point = s.size();
  for (std::size_t i = point; i > start + 3;) s.insert(i -= 3, 1, ',');
  return s;
}

constexpr Scale kBytes[] = {{1, "B"}, {kKi, "KiB"}, {kMi, "MiB"}, {kGi, "GiB"}, {kTi, "TiB"}};
constexpr Scale kBytesPerSecond[] = {
    {1, "B/s"}, {1e3, "kB/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}, {1e12, "TB/s"}};
constexpr Scale kSeconds[] = {{1e-6, "us"},
                              {1e-3, "ms"},
                              {1, "s"},
                              {60, "min"},
                              {3600, "h"},
                              {86400, "d"},
                              {86400.0 * 365, "years"}};
constexpr Scale kFlops[] = {{1, "FLOP"},     {1e3, "kFLOP"},  {1e6, "MFLOP"}, {1e9, "GFLOP"},
                            {1e12, "TFLOP"}, {1e15, "PFLOP"}, {1e18, "EFLOP"}};
constexpr Scale kFlopsPerSecond[] = {{1, "FLOPS"}, {1e9, "GFLOPS"}, {1e12, "TFLOPS"}};
constexpr Scale kWatts[] = {{1, "W"}, {1e3, "kW"}, {1e6, "MW"}};
constexpr Scale kJoules[] = {{1, "J"}, {3.6e3, "Wh"}, {3.6e6, "kWh"}, {3.6e9, "MWh"}};

template <std::size_t N>
Scale pick(const Scale (&scales)[N], double magnitude, double at_least) {
  Scale best = scales[0];
  for (const Scale& s : scales)
    if (magnitude >= s.factor * at_least) best = s;
  return best;
}

}  // namespace

std::string significant(double v, int digits) {
  if (std::isnan(v)) return "-";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  if (v == 0) return "0";
  char text[64];
  // Rounds to the digits first, so that 999.6 becomes 1,000 and not 1000.0.
  std::snprintf(text, sizeof text, "%.*e", digits - 1, v);
  int exponent = std::atoi(std::string(text).substr(std::string(text).find('e') + 1).c_str());
  if (exponent < -6 || exponent >= 15) return text;
  double rounded = std::strtod(text, nullptr);
  int decimals = digits - 1 - exponent;
  std::snprintf(text, sizeof text, "%.*f", decimals > 0 ? decimals : 0, rounded);
  return grouped(text);
}

std::string trimmed_number(double v, int digits) {
  std::string s = significant(v, digits);
  if (s.find('.') == s.npos || s.find('e') != s.npos) return s;
  while (s.back() == '0') s.pop_back();
  if (s.back() == '.') s.pop_back();
  return s;
}

std::string whole(std::int64_t v) { return grouped(std::to_string(v)); }

std::string short_count(double v) {
  constexpr Scale scales[] = {{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "B"}, {1e12, "T"}};
  Scale s = pick(scales, std::fabs(v), 0.9995);
  return trimmed_number(v / s.factor) + std::string(s.unit);
}

Scale scale_for(double magnitude, std::string_view unit) {
  magnitude = std::fabs(magnitude);
  if (magnitude == 0 && unit == "s") return {1, "s"};
  if (unit == "B") {
    if (magnitude >= 0.1 * kGi && magnitude < 10 * kTi) return {kGi, "GiB"};
    return pick(kBytes, magnitude, 1);
  }
  if (unit == "B/s") return pick(kBytesPerSecond, magnitude, 1);
  // 90 s and 90 min read better than 1.5 min and 1.5 h.
  if (unit == "s") return pick(kSeconds, magnitude, magnitude < 2 ? 1 : 2);
  if (unit == "FLOP") return pick(kFlops, magnitude, 1);
  if (unit == "FLOP/s") return pick(kFlopsPerSecond, magnitude, 1);
  if (unit == "W") return pick(kWatts, magnitude, 10);
  if (unit == "J") return pick(kJoules, magnitude, 10);
  if (unit == "1/s")
    return magnitude > 0 && magnitude < 0.1 ? Scale{1.0 / 3600, "/h"} : Scale{1, "/s"};
  for (const char* known : {"tokens", "tokens/s", "USD", "USD/h", "samples/s"})
    if (unit == known) return {1, known};
  // Rates of items are named by what they count.
  constexpr std::string_view kRate = "/s";
  if (unit.size() > kRate.size() && unit.substr(unit.size() - kRate.size()) == kRate)
    return {1, unit};
  return {1, ""};
}

namespace {

// Whole tokens are told exactly where they are known exactly.
std::string scaled(double v, const Scale& s, std::string_view unit, bool exact = true) {
  if (unit == "tokens" && (exact || std::fabs(v) >= 1e7)) {
    if (std::fabs(v) >= 1e7) return short_count(v);
    return whole(static_cast<std::int64_t>(std::llround(v)));
  }
  if (unit == "" && v == std::floor(v) && std::fabs(v) < 1e6)
    return whole(static_cast<std::int64_t>(v));
  if (unit == "USD" && std::fabs(v) >= 1 && std::fabs(v) < 100) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", v);
    return text;
  }
  return trimmed_number(v / s.factor);
}

std::string with_unit(std::string number, std::string_view unit) {
  if (unit.empty()) return number;
  if (unit.front() != '/') number += ' ';
  return number.append(unit);
}

}  // namespace

std::string in_words(double v, std::string_view unit) {
  if (std::isnan(v)) return "-";
  Scale s = scale_for(v, unit);
  return with_unit(scaled(v, s, unit), s.unit);
}

std::string in_words(const Estimate<double>& e, std::string_view unit, std::string_view between) {
  if (std::isnan(e.value)) return "-";
  bool exact = e.basis == Basis::exact;
  Scale s = scale_for(e.value, unit);
  std::string out = with_unit(scaled(e.value, s, unit, exact), s.unit);
  if (exact || (e.low == e.value && e.high == e.value)) return out;
  // An end a thousand times away says that there is none: a queue that grows, a rate that stops.
  constexpr double kNoEnd = 1e3;
  double most = e.value > 0 && e.high > kNoEnd * e.value ? HUGE_VAL : e.high;
  double least = e.value > 0 && e.low > 0 && e.low < e.value / kNoEnd ? 0 : e.low;
  if (unit == "tokens") most = e.high;
  std::string low = scaled(least, s, unit, false), high = scaled(most, s, unit, false);
  if (low == high) return out;
  return out + " (" + low + std::string(between) + high + ")";
}

}  // namespace trigon
