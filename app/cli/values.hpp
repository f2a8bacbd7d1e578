#pragma once
// Values that only the command line writes: limits with a percentile, dates.

#include <string_view>

#include "base/result.hpp"
#include "job/job.hpp"

namespace trigon {

// "1s" (p95) or "p99:1s".
Result<LatencyLimit> parse_latency(std::string_view text, std::string_view where);
// "ttft=1s,tpot=p99:50ms".
Result<ServeLimits> parse_slo(std::string_view text, std::string_view where);
// "2025-06-30", a real day.
Result<std::string> parse_date(std::string_view text, std::string_view where);

}  // namespace trigon
