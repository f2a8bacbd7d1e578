#pragma once
// The plans of a training job on a cluster: everything that divides the model over ranks, times
// everything that a rank chooses for itself. What the request fixes is fixed, what the engine
// cannot do is not there, and what does not divide is left out before anything is counted or timed.

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "search/families.hpp"
#include "search/space.hpp"

namespace trigon {

// The degrees of a plan. Everything below holds for all plans that share them.
struct Division {
  std::int32_t tensor = 1, pipeline = 1, virtual_stages = 1, context = 1, data = 1;
  std::int32_t expert = 1, expert_tensor = 0;
};

// What is kept in host memory between uses: bits, so that a later one may be compared with an
// earlier one. 0: nothing.
enum Offload : std::uint8_t { offload_optimizer = 1, offload_weights = 2, offload_activations = 4 };
inline int offloads_of(const Plan& p) {
  return (p.offload_optimizer ? offload_optimizer : 0) + (p.offload_weights ? offload_weights : 0) +
         (p.offload_activations ? offload_activations : 0);
}

struct TrainingFacts {
  int cards = 1, per_node = 1;
  std::int64_t layers = 1, global_batch = 1;
  std::int64_t sequence = 0;  // 0: nothing to divide by context parallelism
  bool experts = false, adapters = false;
  std::vector<TrainRecipe> recipes{};  // allowed ones; empty: the engine's own
};

// Why a plan cannot run whatever its memory, or nothing.
using Legality = std::function<std::optional<Message>(const Plan&)>;

struct TrainingSpace {
  Plan base;  // formats, switches and whatever else does not vary
  std::vector<Division> divisions;
  std::vector<std::int32_t> micro_batch, zero;
  std::vector<Recompute> recompute;
  std::vector<TrainRecipe> recipe;
  std::vector<std::uint8_t> offloads{0};  // 0 first
  std::int64_t global_batch = 1;
  std::optional<bool> sequence_parallel;  // fixed; otherwise wherever there are tensor ranks
  bool zero_fixed = false, adapters = false;
  Families families;
  std::optional<Message> illegal;  // why the last division that cannot run cannot

  // Distinct values over all divisions, for those who make tables.
  std::vector<std::int32_t> tensors() const, experts() const, contexts() const;
};

// `base` carries formats and switches. Divisions that `legal` refuses are left out; families keep
// the first reason. `with_offload`: the parts that the engine can offload may also be offloaded.
TrainingSpace training_space(const PlanRequest& fixed, const EnginePolicy& engine,
                             const TrainingFacts& facts, const Plan& base, bool with_offload,
                             const Legality& legal);

// Calls `visit(plan, families)` for every plan of one division, in nested order. The rules here are
// those that `legal` cannot see in a division: micro-batches that divide, ZeRO beside pipelines,
// offloaded weights without ZeRO-3.
template <class Visit>
void for_each_plan(const TrainingSpace& s, const Division& d, Visit&& visit) {
  Plan p = s.base;
  p.tensor = d.tensor;
  p.pipeline = d.pipeline;
  p.virtual_stages = d.virtual_stages;
  p.context = d.context;
  p.data = d.data;
  p.expert = d.expert;
  p.expert_tensor = d.expert_tensor;
  p.sequence_parallel = s.sequence_parallel.value_or(d.tensor > 1);
  const std::uint32_t divided = s.families.of_degrees(p);
  const int replicas = d.data * d.context;
  const std::int64_t share = s.global_batch / d.data;
  for (std::int32_t z : s.zero) {
    // Stages from 2 on divide gradients after every micro-batch, which pipelines do not allow; on
    // one replica there is nothing to divide; adapters are whole or, with the base, in parts.
    if (z == 2 && d.pipeline > 1) continue;
    if (!s.zero_fixed && ((z >= 2 && d.pipeline > 1) || (z > 0 && replicas == 1))) continue;
    if (!s.zero_fixed && s.adapters && z != 0 && z != 3) continue;
    p.zero = z;
    for (std::uint8_t off : s.offloads) {
      if ((off & offload_weights) && z != 3) continue;
      p.offload_optimizer = off & offload_optimizer;
      p.offload_weights = off & offload_weights;
      p.offload_activations = off & offload_activations;
      for (Recompute r : s.recompute) {
        p.recompute = r;
        const std::uint32_t families = divided | s.families.of_rank(p);
        for (TrainRecipe recipe : s.recipe) {
          p.recipe = recipe;
          for (std::int32_t mb : s.micro_batch) {
            if (share % mb != 0) continue;
            p.micro_batch = mb;
            p.accumulation = static_cast<std::int32_t>(share / mb);
            // Interleaved chunks go round in groups of as many micro-batches as stages.
            if (d.virtual_stages > 1 && p.interleave_group == 0 && p.accumulation % d.pipeline != 0)
              continue;
            visit(static_cast<const Plan&>(p), families);
          }
        }
      }
    }
  }
}

}  // namespace trigon
