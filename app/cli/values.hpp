#pragma once
// Values that only the command line writes: limits with a percentile, dates.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "job/job.hpp"

namespace trigon {

// "1s" (p95) or "p99:1s".
Result<LatencyLimit> parse_latency(std::string_view text, std::string_view where);
// "ttft=1s,tpot=p99:50ms".
Result<ServeLimits> parse_slo(std::string_view text, std::string_view where);
// "2025-06-30", a real day.
Result<std::string> parse_date(std::string_view text, std::string_view where);
// "224", or height and width "512x768".
Result<std::vector<std::int64_t>> parse_pixels(std::string_view text, std::string_view where);
// "3,1": parts of a whole for each card in turn, not all zero.
Result<std::vector<float>> parse_shares(std::string_view text, std::string_view where);
// "input=1x3x224x224", several with commas between them.
using NamedShapes = std::map<std::string, std::vector<std::int64_t>>;
Result<NamedShapes> parse_shapes(std::string_view text, std::string_view where);

}  // namespace trigon
