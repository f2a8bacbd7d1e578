#include "decide/triangle.hpp"

#include <algorithm>

namespace trigon {
namespace {

// Headroom that counts as full marks: 20 % over what is needed.
constexpr double kHeadroom = 1.2;

double share_of_engines(const Catalogues& all, const Accelerator& a) {
  double runs = 0, known = 0;
  for (const std::string& id : all.engines.ids()) {
    auto e = all.engines.find(id);
    if (!e || e->vendors.empty()) continue;
    ++known;
    runs += e->made_for(a);
  }
  return known > 0 ? runs / known : 0;
}

double share_of_precisions(const Accelerator& a) {
  constexpr MathMode kModes[] = {MathMode::fp16_matrix_fp32_accumulate, MathMode::bf16_matrix,
                                 MathMode::fp8_matrix, MathMode::int8_matrix, MathMode::fp4_matrix};
  double have = 0;
  for (MathMode m : kModes) have += a.peak_of(m).has_value();
  return have / static_cast<double>(std::size(kModes));
}

}  // namespace

double deciding_speed(const PlanReport& r, bool training) {
  // Serving at a rate delivers the rate whatever the card; what it could deliver is its speed.
  if (training) {
    if (const auto& tokens = r[Metric::train_tokens_per_second]) return tokens->value;
    const auto& samples = r[Metric::samples_per_second_per_gpu];
    return samples ? samples->value * r.cluster.count() : 0;
  }
  for (Metric m : {Metric::capacity_requests_per_second, Metric::output_tokens_per_second})
    if (const auto& e = r[m]; e && e->value > 0) return e->value;
  return 0;
}

Triangle triangle_of(const Catalogues& all, const PlanReport& r, bool training,
                     const TriangleScale& scale) {
  Triangle t;
  const Accelerator& a = *r.cluster.accelerator;
  double speed = deciding_speed(r, training);
  double per_dollar = 0, per_watt = 0;
  if (const auto& usd = r[Metric::usd_per_hour]; usd && scale.speed_per_dollar > 0)
    per_dollar = speed / usd->value / scale.speed_per_dollar;
  if (const auto& w = r[Metric::power_watts]; w && scale.speed_per_watt > 0)
    per_watt = speed / w->value / scale.speed_per_watt;
  double room = 0;
  if (r[Metric::memory_bytes] && r[Metric::usable_bytes])
    room = std::clamp(r[Metric::usable_bytes]->value / r[Metric::memory_bytes]->value / kHeadroom,
                      0.0, 1.0);
  double engines = share_of_engines(all, a), precisions = share_of_precisions(a);
  t.parts = {{message(DecideMessage::part_speed_per_dollar), per_dollar},
             {message(DecideMessage::part_speed_per_watt), per_watt},
             {message(DecideMessage::part_memory_headroom), room},
             {message(DecideMessage::part_engines), engines},
             {message(DecideMessage::part_precisions), precisions}};
  t.compute_density = (per_dollar + per_watt) / 2;
  t.memory = room;
  t.ecosystem = (engines + precisions) / 2;
  t.score = (t.compute_density + t.memory + t.ecosystem) / 3;
  return t;
}

}  // namespace trigon
