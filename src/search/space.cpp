#include "search/space.hpp"

#include <algorithm>

namespace trigon {
namespace {

std::vector<std::int32_t> powers_dividing(std::int64_t n, std::int32_t most) {
  std::vector<std::int32_t> out;
  for (std::int64_t d = 1; d <= n && d <= most; d *= 2)
    if (n % d == 0) out.push_back(static_cast<std::int32_t>(d));
  return out;
}

}  // namespace

TrainRecipe recipe_of(const EnginePolicy& engine) {
  const std::string& r = engine.default_recipe;
  if (r == "mixed_fp32_grad") return TrainRecipe::mixed_fp32_grad;
  if (r == "pure_bf16") return TrainRecipe::pure_bf16;
  if (r == "autocast_fp32") return TrainRecipe::autocast_fp32;
  if (r == "fp32") return TrainRecipe::fp32;
  return TrainRecipe::mixed_16bit;
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
  for (std::int32_t b = 1; b <= 64 && b <= std::max<std::int64_t>(1, global_batch); b *= 2)
    out.push_back(b);
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

void training_plans(const PlanRequest& fixed, const EnginePolicy& engine, bool mixture_of_experts,
                    int count, int per_node, std::int64_t layers, std::int64_t global_batch,
                    bool adapters, std::vector<Plan>& out) {
  for (std::int32_t t : tensor_degrees(fixed, count, per_node)) {
    if (t > count || count % t != 0 || (t > 1 && !engine.tensor_parallel)) continue;
    int rest = count / t;
    for (int p = 1; p <= rest && p <= layers; ++p) {
      if (rest % p != 0 || (p > 1 && !engine.pipeline_parallel)) continue;
      if (fixed.pipeline && *fixed.pipeline != p) continue;
      int replicas = rest / p;
      for (std::int32_t c : {fixed.context.value_or(1)}) {
        if (replicas % c != 0) continue;
        int d = replicas / c;
        if (fixed.data && *fixed.data != d) continue;
        if (global_batch % d != 0) continue;
        std::int64_t per_rank = global_batch / d;
        std::vector<std::int32_t> experts{1};
        if (mixture_of_experts && engine.expert_parallel)
          for (std::int32_t e : powers_dividing(replicas, 64))
            if (e > 1) experts.push_back(e);
        for (std::int32_t e : experts) {
          if (fixed.expert && *fixed.expert != e) continue;
          for (std::int32_t mb : micro_batches(fixed, global_batch)) {
            if (per_rank % mb != 0) continue;
            for (Recompute r : {Recompute::none, Recompute::selective, Recompute::full}) {
              if (fixed.recompute && *fixed.recompute != r) continue;
              for (std::int32_t z : {0, 1, 2, 3}) {
                if (fixed.zero && *fixed.zero != z) continue;
                // Stages beyond 1 split gradients every micro-batch; pipelines do not allow that.
                if (!fixed.zero && ((z >= 2 && p > 1) || (z > 0 && replicas == 1))) continue;
                if (!fixed.zero && adapters && z != 0 && z != 3) continue;
                Plan plan;
                plan.tensor = t;
                plan.pipeline = p;
                plan.context = c;
                plan.data = d;
                plan.expert = e;
                plan.micro_batch = mb;
                plan.accumulation = static_cast<std::int32_t>(per_rank / mb);
                plan.recompute = r;
                plan.zero = z;
                plan.sequence_parallel = fixed.sequence_parallel.value_or(t > 1);
                plan.recipe = fixed.recipe.value_or(recipe_of(engine));
                plan.virtual_stages = fixed.virtual_stages.value_or(1);
                take_switches(fixed, plan);
                out.push_back(plan);
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace trigon
