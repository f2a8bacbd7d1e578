#pragma once
// The best plan of a job on one cluster, over the whole space of its degrees.

#include "decide/report.hpp"

namespace trigon {

// Memory fuller than this leaves no room for what was not counted.
inline constexpr double kTightShare = 0.9;

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

// Whether a plan fits with room to spare, also at the high end of its range.
bool has_room(const MemoryModel& memory, const MemoryErrors& errors, const Plan& plan);

// How full memory may be where a smaller micro-batch or more recomputation would leave room:
// tuned results run at the edge, advice keeps away from it.
enum class Filling : std::uint8_t { to_the_edge, with_room };

// Orders plans: limits first, in training room to spare where that is wanted, then what the job
// wants (capacity when serving, throughput for a batch, time when training), then fewer ranks to a
// model, then the plan's own order, so that the answer does not depend on how the space was walked.
Result<BestPlan> best_plan(const Setup& s, const PlanRequest& fixed,
                           Filling filling = Filling::to_the_edge);

}  // namespace trigon
