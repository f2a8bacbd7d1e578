#pragma once
// The golden triangle: compute density, memory, ecosystem, each 0 to 1 with the parts shown.

#include "decide/report.hpp"

namespace trigon {

// What the best candidate of a recommendation reaches; shares are against it.
struct TriangleScale {
  double speed_per_dollar = 0, speed_per_watt = 0;
};

double deciding_speed(const PlanReport& r, bool training);
Triangle triangle_of(const Catalogues& all, const PlanReport& r, bool training,
                     const TriangleScale& scale);

}  // namespace trigon
