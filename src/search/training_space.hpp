#pragma once
// The plans of a training job on a cluster: everything that divides the model over ranks, times
// everything that a rank chooses for itself. What the request fixes is fixed, what the engine
// cannot do is not there, and what does not divide is left out before anything is counted or timed.

#include <array>
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
  Schedule schedule = Schedule::one_f_one_b;
  ContextExchange exchange = ContextExchange::ring;
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
  // Parts of the replicas that each hold the divided states whole: fixed, or wherever the engine
  // makes such parts, by ZeRO stage.
  std::optional<std::int32_t> groups;
  std::array<bool, 4> grouped{};
  Families families;
  std::optional<Message> illegal;  // why the last division that cannot run cannot

  // Distinct values over all divisions, for those who make tables.
  std::vector<std::int32_t> tensors() const, experts() const, contexts() const;
  std::vector<std::int32_t> expert_slices() const;
  std::vector<ContextExchange> exchanges() const;
};

// `base` carries formats and switches. Divisions that `legal` refuses are left out; families keep
// the first reason. `with_offload`: the parts that the engine can offload may also be offloaded.
TrainingSpace training_space(const PlanRequest& fixed, const EnginePolicy& engine,
                             const TrainingFacts& facts, const Plan& base, bool with_offload,
                             const Legality& legal);

// Into how many parts the states may be divided: powers of two, of at least two replicas each.
inline std::int32_t most_groups(const TrainingSpace& s, std::int32_t zero, int replicas) {
  return zero > 0 && s.grouped[static_cast<std::size_t>(zero)] ? replicas / 2 : 1;
}

// A plan of a division before what its ranks do is chosen.
inline Plan divided(const TrainingSpace& s, const Division& d) {
  Plan p = s.base;
  p.tensor = d.tensor;
  p.pipeline = d.pipeline;
  p.virtual_stages = d.virtual_stages;
  p.context = d.context;
  p.data = d.data;
  p.expert = d.expert;
  p.expert_tensor = d.expert_tensor;
  p.schedule = d.schedule;
  p.context_exchange = d.exchange;
  p.sequence_parallel = s.sequence_parallel.value_or(d.tensor > 1);
  return p;
}

// The plans of a division that share the pipeline of `p`.
template <class Visit>
void for_each_beside(const TrainingSpace& s, const Division& d, Plan p, Visit&& visit) {
  const int replicas = d.data * d.context;
  for (std::int32_t z : s.zero) {
    // Stages from 2 on divide gradients after every micro-batch, which pipelines do not allow;
    // on one replica there is nothing to divide; adapters are whole or, with the base, in
    // parts.
    if (z == 2 && d.pipeline > 1) continue;
    if (!s.zero_fixed && z >= 2 && d.pipeline > 1) continue;
    // ZeRO-3 is also how weights stay in host memory.
    const bool alone = !s.zero_fixed && replicas == 1;
    if (alone && (z == 1 || z == 2)) continue;
    if (!s.zero_fixed && s.adapters && z != 0 && z != 3) continue;
    p.zero = z;
    const std::int32_t least = s.groups.value_or(1), most = most_groups(s, z, replicas);
    for (std::int32_t groups = least; groups == least || groups <= most; groups *= 2) {
      if (replicas % groups != 0) break;
      p.optimizer_groups = groups;
      for (std::uint8_t off : s.offloads) {
        if ((off & offload_weights) && z != 3) continue;
        if (alone && z == 3 && !(off & offload_weights)) continue;
        p.offload_optimizer = off & offload_optimizer;
        p.offload_weights = off & offload_weights;
        p.offload_activations = off & offload_activations;
        for (TrainRecipe recipe : s.recipe) {
          p.recipe = recipe;
          visit(static_cast<const Plan&>(p));
        }
      }
    }
  }
}

// Calls `visit(plan, families)` for every plan of one division, in nested order. The rules here are
// those that `legal` cannot see in a division: micro-batches that divide, ZeRO beside pipelines,
// offloaded weights without ZeRO-3. A visitor with `enter` says of each pipeline whether it wants
// its plans, and is told how many it left.
template <class Visit>
void for_each_plan(const TrainingSpace& s, const Division& d, Visit&& visit) {
  Plan p = divided(s, d);
  const FamilySet of_division = s.families.of_degrees(p);
  const std::int64_t share = s.global_batch / d.data;
  // What decides the pipeline is outside, so that those who time plans find it unchanged; as many
  // plans are inside, whatever it is.
  std::int64_t beside_it = -1;
  for (Recompute r : s.recompute) {
    p.recompute = r;
    for (std::int32_t mb : s.micro_batch) {
      if (share % mb != 0) continue;
      p.micro_batch = mb;
      p.accumulation = static_cast<std::int32_t>(share / mb);
      // Interleaved chunks go round in groups of as many micro-batches as stages.
      if (d.virtual_stages > 1 && p.interleave_group == 0 && p.accumulation % d.pipeline != 0)
        continue;
      if constexpr (requires { visit.enter(p); }) {
        if (!visit.enter(p)) {
          if (beside_it < 0) {
            beside_it = 0;
            for_each_beside(s, d, p, [&](const Plan&) { ++beside_it; });
          }
          visit.skip(beside_it);
          continue;
        }
      }
      for_each_beside(
          s, d, p, [&](const Plan& each) { visit(each, of_division | s.families.of_rank(each)); });
    }
  }
}

}  // namespace trigon
