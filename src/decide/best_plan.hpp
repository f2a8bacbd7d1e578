#pragma once
// The best plan of a job on one cluster, over the whole space of its degrees.

#include "decide/report.hpp"

namespace trigon {

struct Chosen {
  Plan plan;
  Evaluation evaluation;
  double excess = 0;  // of the limits; 0: all hold
};

struct BestPlan {
  std::optional<Chosen> best;      // absent: nothing divides
  std::optional<Message> illegal;  // why the last candidate could not run, when none can
  SearchCounts counts;
};

// Orders plans: limits first, then what the job wants (capacity when serving, throughput for a
// batch, time when training), then fewer ranks to a model, then the plan's own order, so that the
// answer does not depend on how the space was walked.
Result<BestPlan> best_plan(const Setup& s, const PlanRequest& fixed);

}  // namespace trigon
