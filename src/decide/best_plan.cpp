#include "decide/best_plan.hpp"

namespace trigon {

bool has_room(const MemoryModel& memory, const MemoryErrors& errors, const Plan& plan) {
  const RankMemory rank = memory.fullest(plan).memory;
  const Range used = range_of(rank, errors), budget = memory.budget_bytes(plan, rank);
  return used.value <= kTightShare * budget.value && used.high <= budget.low;
}

Result<BestPlan> best_plan(const Setup& s, const PlanRequest& fixed, Filling filling,
                           Offloading offloading, const std::atomic<bool>* stop) {
  PlanSearchOptions options;
  options.stop = stop;
  options.filling = filling;
  options.offload = offloading == Offloading::where_nothing_fits;
  auto found = search_plans(s, fixed, options);
  if (!found) return tl::unexpected(found.error());
  BestPlan out;
  out.best = std::move(found->best);
  out.illegal = std::move(found->illegal);
  out.counts.plans_considered = found->tally.decided;
  out.counts.plans_evaluated = found->tally.whole;
  out.counts.plans_pruned = found->tally.decided - found->tally.whole;
  return out;
}

}  // namespace trigon
