#include "search/space.hpp"

#include <algorithm>

namespace trigon {
TrainRecipe recipe_of(const EnginePolicy& engine) {
  return recipe_of(engine.default_recipe).value_or(TrainRecipe::mixed_16bit);
}

std::vector<std::int32_t> tensor_degrees(const PlanRequest& fixed, int count, int per_node) {
  if (fixed.tensor) return {*fixed.tensor};
  std::vector<std::int32_t> out;
  int most = std::min(count, per_node);
  for (std::int32_t t = 1; t <= most; t *= 2) out.push_back(t);
  if (!out.empty() && out.back() != most && count % most == 0) out.push_back(most);
  return out;
}

std::vector<std::int32_t> micro_batches(const PlanRequest& fixed, std::int64_t global_batch) {
  if (fixed.micro_batch) return {*fixed.micro_batch};
  std::vector<std::int32_t> out;
  for (std::int32_t b = 1; b <= 64 && b <= std::max<std::int64_t>(1, global_batch); ++b)
    if (std::max<std::int64_t>(1, global_batch) % b == 0) out.push_back(b);
  return out;
}

void serving_plans(const PlanRequest& fixed, const EnginePolicy& engine, bool mixture_of_experts,
                   int count, int per_node, std::int64_t layers, std::vector<Plan>& out) {
  for (std::int32_t t : tensor_degrees(fixed, count, per_node)) {
    if (t > count || count % t != 0 || (t > 1 && !engine.tensor_parallel)) continue;
    int rest = count / t;
    for (int p = 1; p <= rest; ++p) {
      if (rest % p != 0 || p > layers || (p > 1 && !engine.pipeline_parallel)) continue;
      if (fixed.pipeline && *fixed.pipeline != p) continue;
      int d = rest / p;
      if (fixed.data && *fixed.data != d) continue;
      // Rows and uneven shares are those of one process, which has all cards of a replica.
      const bool one_process = fixed.card_split == CardSplit::row || fixed.card_shares;
      if (one_process && !fixed.pipeline && d != fixed.data.value_or(1)) continue;
      // Every expert sliced over all ranks, or whole on one; between the two only where asked.
      std::vector<std::int32_t> experts{1};
      if (t > 1) experts.push_back(t);
      if (fixed.expert) experts = {*fixed.expert};
      for (std::int32_t e : experts) {
        if (t % e != 0 || (e > 1 && (!mixture_of_experts || !engine.expert_parallel))) continue;
        Plan plan;
        plan.tensor = t;
        plan.pipeline = p;
        plan.data = d;
        plan.expert = e;
        out.push_back(plan);
      }
    }
  }
}

}  // namespace trigon
