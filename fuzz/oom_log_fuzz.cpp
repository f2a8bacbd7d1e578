// The reader of logs: any text gives a bounded report whose lines and figures hold.

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "engine/oom_report.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const trigon::OomReport r = trigon::read_oom_log(text);
  if (r.events.size() > 64 || r.estimates.size() > 64) std::abort();
  std::int64_t last = 0;
  for (const trigon::OomEvent& e : r.events) {
    if (e.line < last || e.line > r.lines || e.times < 1) std::abort();
    last = e.line;
    if (e.quoted.size() > 200) std::abort();
    for (const auto& v : e.figures.values)
      if (v && !std::isfinite(*v)) std::abort();
    for (const trigon::OomEvidence& x : e.evidence)
      if (x.line < 0 || x.line > r.lines) std::abort();
  }
  for (const trigon::OomEstimate& e : r.estimates)
    if (e.line < 1 || e.line > r.lines) std::abort();
  return 0;
}
