#pragma once
// The best plan of a job on one cluster, over the whole space of its degrees.

#include "decide/plan_search.hpp"

namespace trigon {

struct BestPlan {
  std::optional<Chosen> best;      // absent: nothing divides
  std::optional<Message> illegal;  // why the last candidate could not run, when none can
  SearchCounts counts;
};

// Whether a plan fits with room to spare, also at the high end of its range.
bool has_room(const MemoryModel& memory, const MemoryErrors& errors, const Plan& plan);

// Whether training may keep more in host memory than was asked for.
enum class Offloading : std::uint8_t { as_asked, where_nothing_fits };

// `search_plans` without families and front, on the calling thread.
Result<BestPlan> best_plan(const Setup& s, const PlanRequest& fixed,
                           Filling filling = Filling::to_the_edge,
                           Offloading offloading = Offloading::as_asked,
                           const std::atomic<bool>* stop = nullptr);

}  // namespace trigon
