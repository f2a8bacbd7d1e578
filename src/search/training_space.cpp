#include "search/training_space.hpp"

#include <algorithm>

#include "plan/legality.hpp"

namespace trigon {
namespace {

std::vector<std::int32_t> distinct(const std::vector<Division>& all,
                                   std::int32_t Division::*degree) {
  std::vector<std::int32_t> out;
  for (const Division& d : all) out.push_back(d.*degree);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  if (out.empty()) out.push_back(1);
  return out;
}

template <class T>
std::vector<T> fixed_or(const std::optional<T>& fixed, std::vector<T> all) {
  return fixed ? std::vector<T>{*fixed} : std::move(all);
}

std::vector<std::uint8_t> offload_choices(const PlanRequest& fixed, const EnginePolicy& e,
                                          const TrainingFacts& f, bool widened) {
  std::vector<std::uint8_t> out;
  for (int bits = 0; bits < 8; ++bits) {
    auto allowed = [&](int bit, const std::optional<bool>& asked, bool engine) {
      const bool on = bits & bit;
      if (asked) return on == *asked;
      return !on || (widened && engine);
    };
    // Adapters leave little of an optimizer to move.
    if (allowed(offload_optimizer, fixed.offload_optimizer, e.offloads_optimizer && !f.adapters) &&
        allowed(offload_weights, fixed.offload_weights, e.offloads_weights) &&
        allowed(offload_activations, fixed.offload_activations, e.offloads_activations))
      out.push_back(static_cast<std::uint8_t>(bits));
  }
  return out;
}

// In which order stages run their passes. Chunks of layers are interleaved.
std::vector<Schedule> schedules(const PlanRequest& fixed, const EnginePolicy& e, int pipeline,
                                int virtual_stages) {
  if (fixed.schedule) return {*fixed.schedule};
  std::vector<Schedule> out{Schedule::one_f_one_b};
  if (pipeline == 1 || virtual_stages > 1) return out;
  if (e.gpipe || fixed.any_schedule) out.push_back(Schedule::gpipe);
  if (e.zero_bubble || fixed.any_schedule) out.push_back(Schedule::zero_bubble);
  return out;
}

std::vector<ContextExchange> exchanges(const PlanRequest& fixed, const EnginePolicy& e) {
  if (fixed.context_exchange) return {*fixed.context_exchange};
  std::vector<ContextExchange> out;
  if (e.context_ring || !e.context_all_to_all) out.push_back(ContextExchange::ring);
  if (e.context_all_to_all) out.push_back(ContextExchange::all_to_all);
  return out;
}

// In a ring, context ranks take turns at both ends of a sequence, so that causal attention is as
// much work on each: twice as many pieces as ranks (Megatron-LM, arguments.py: the sequence is
// divisible by twice the context-parallel size).
std::vector<std::int32_t> context_degrees(const PlanRequest& fixed, const EnginePolicy& e,
                                          const TrainingFacts& f, int rest) {
  if (fixed.context) return {*fixed.context};
  std::vector<std::int32_t> out{1};
  if (!e.context_parallel || f.sequence <= 0) return out;
  for (std::int32_t c = 2; c <= rest && f.sequence % c == 0; c *= 2)
    if (rest % c == 0) out.push_back(c);
  return out;
}

std::vector<std::int32_t> virtual_degrees(const PlanRequest& fixed, const EnginePolicy& e,
                                          std::int64_t layers, int pipeline) {
  if (fixed.virtual_stages) return {*fixed.virtual_stages};
  std::vector<std::int32_t> out{1};
  // Embedding and loss may each take the place of a layer.
  // The order of whole stages was asked for.
  if (fixed.schedule && *fixed.schedule != Schedule::interleaved) return out;
  if ((e.interleaved_stages || fixed.any_schedule) && pipeline > 1)
    for (std::int32_t v = 2; std::int64_t{1} * v * pipeline <= layers + 2; ++v) out.push_back(v);
  return out;
}

std::vector<std::int32_t> expert_degrees(const PlanRequest& fixed, const EnginePolicy& e,
                                         const TrainingFacts& f, int replicas) {
  if (fixed.expert) return {*fixed.expert};
  std::vector<std::int32_t> out{1};
  if (f.experts && e.expert_parallel)
    for (std::int32_t x = 2; x <= replicas && replicas % x == 0; x *= 2) out.push_back(x);
  return out;
}

void name_families(TrainingSpace& s, const PlanRequest& fixed, const EnginePolicy& e,
                   const TrainingFacts& f) {
  Families& out = s.families;
  if (e.tensor_parallel || fixed.tensor)
    for (std::int32_t t : tensor_degrees(fixed, f.cards, f.per_node))
      out.add({FamilyKind::tensor, t});
  if (e.pipeline_parallel && f.layers > 1)
    for (std::int32_t kind : {0, 1, 2, 3, 4}) {
      const bool can = kind < 2 || fixed.any_schedule || (kind == 2 && e.interleaved_stages) ||
                       (kind == 3 && e.gpipe) || (kind == 4 && e.zero_bubble);
      if (can) out.add({FamilyKind::pipeline, kind});
    }
  for (std::int32_t z : s.zero) out.add({FamilyKind::zero, z});
  if (s.grouped[1] || s.grouped[2] || s.grouped[3])
    for (std::int32_t kind : {0, 1}) out.add({FamilyKind::groups, kind});
  for (Recompute r : s.recompute) out.add({FamilyKind::recompute, static_cast<std::int32_t>(r)});
  if (f.experts && e.expert_parallel)
    for (std::int32_t kind : {0, 1}) out.add({FamilyKind::expert, kind});
  if (e.context_parallel && f.sequence > 0)
    for (std::int32_t kind : {0, 1, 2})
      if (kind == 0 || (kind == 1 ? e.context_ring : e.context_all_to_all))
        out.add({FamilyKind::context, kind});
  if (s.offloads.size() > 1)
    for (std::uint8_t bits : s.offloads) out.add({FamilyKind::offload, bits});
}

// The divisions of one set of degrees that can run.
void orders_and_exchanges(TrainingSpace& s, const PlanRequest& fixed, const EnginePolicy& engine,
                          const TrainingFacts& f, Plan& probe, const Legality& legal) {
  const std::vector<ContextExchange> ways = exchanges(fixed, engine);
  for (Schedule order : schedules(fixed, engine, probe.pipeline, probe.virtual_stages))
    for (ContextExchange way : ways) {
      if (probe.context == 1 && way != ways.front()) continue;
      // Parts of heads need no turns.
      if (!fixed.context && probe.context > 1 && way == ContextExchange::ring &&
          f.sequence % (2 * probe.context) != 0)
        continue;
      probe.schedule = order;
      probe.context_exchange = way;
      if (auto why = legal(probe)) {
        s.families.refuse(probe, *why);
        s.illegal = std::move(why);
        continue;
      }
      s.divisions.push_back({probe.tensor, probe.pipeline, probe.virtual_stages, probe.context,
                             probe.data, probe.expert, probe.expert_tensor, order, way});
    }
}

}  // namespace

std::vector<std::int32_t> TrainingSpace::tensors() const {
  return distinct(divisions, &Division::tensor);
}
std::vector<std::int32_t> TrainingSpace::experts() const {
  return distinct(divisions, &Division::expert);
}
std::vector<std::int32_t> TrainingSpace::contexts() const {
  return distinct(divisions, &Division::context);
}
std::vector<std::int32_t> TrainingSpace::expert_slices() const {
  std::vector<std::int32_t> out;
  Plan p;
  for (const Division& d : divisions) {
    p.tensor = d.tensor, p.data = d.data, p.context = d.context;
    p.expert = d.expert, p.expert_tensor = d.expert_tensor;
    const std::int32_t slices = trigon::expert_slices(p);
    if (std::find(out.begin(), out.end(), slices) == out.end()) out.push_back(slices);
  }
  std::sort(out.begin(), out.end());
  return out;
}
std::vector<ContextExchange> TrainingSpace::exchanges() const {
  std::vector<ContextExchange> out;
  for (const Division& d : divisions)
    if (std::find(out.begin(), out.end(), d.exchange) == out.end()) out.push_back(d.exchange);
  std::sort(out.begin(), out.end());
  return out;
}

TrainingSpace training_space(const PlanRequest& fixed, const EnginePolicy& engine,
                             const TrainingFacts& f, const Plan& base, bool with_offload,
                             const Legality& legal) {
  TrainingSpace s;
  s.base = base;
  s.global_batch = f.global_batch;
  s.adapters = f.adapters;
  s.zero_fixed = fixed.zero.has_value();
  s.sequence_parallel = fixed.sequence_parallel;
  s.micro_batch = micro_batches(fixed, f.global_batch);
  s.zero = fixed_or<std::int32_t>(fixed.zero, {0, 1, 2, 3});
  s.recompute = fixed_or<Recompute>(fixed.recompute,
                                    {Recompute::none, Recompute::selective, Recompute::full});
  s.recipe = fixed_or<TrainRecipe>(fixed.recipe, f.recipes);
  if (s.recipe.empty()) s.recipe = {recipe_of(engine)};
  s.offloads = offload_choices(fixed, engine, f, with_offload);
  s.groups = fixed.optimizer_groups;
  for (std::size_t z = 1; z < s.grouped.size(); ++z)
    s.grouped[z] = !fixed.optimizer_groups && engine.zero_groups[z] && !f.adapters;
  name_families(s, fixed, engine, f);

  Plan probe = base;
  probe.micro_batch = 1;
  probe.zero = fixed.zero.value_or(fixed.offload_weights.value_or(false) ? 3 : 0);
  probe.offload_optimizer = probe.offload_activations = false;
  probe.offload_weights = fixed.offload_weights.value_or(false);
  for (std::int32_t t : tensor_degrees(fixed, f.cards, f.per_node)) {
    if (t > f.cards || f.cards % t != 0 || (t > 1 && !engine.tensor_parallel)) continue;
    const int ranks = f.cards / t;
    for (int p = 1; p <= ranks && p <= f.layers + 2; ++p) {
      if (ranks % p != 0 || (p > 1 && !engine.pipeline_parallel)) continue;
      if (fixed.pipeline && *fixed.pipeline != p) continue;
      const int rest = ranks / p;
      for (std::int32_t v : virtual_degrees(fixed, engine, f.layers, p))
        for (std::int32_t c : context_degrees(fixed, engine, f, rest)) {
          if (c < 1 || rest % c != 0) continue;
          const int d = rest / c;
          if ((fixed.data && *fixed.data != d) || f.global_batch % d != 0) continue;
          for (std::int32_t e : expert_degrees(fixed, engine, f, d * c)) {
            // Experts divided by the tensor ranks, or whole on one of them.
            const bool either =
                !fixed.expert_tensor && e > 1 && t > 1 && std::int64_t{1} * d * c % e == 0;
            for (std::int32_t inner : {0, 1}) {
              if (inner == 1 && !either) continue;
              probe.tensor = t;
              probe.pipeline = p;
              probe.virtual_stages = v;
              probe.context = c;
              probe.data = d;
              probe.expert = e;
              probe.expert_tensor = inner == 1 ? 1 : fixed.expert_tensor.value_or(0);
              probe.accumulation = p;  // what micro-batches divide is asked of each plan
              orders_and_exchanges(s, fixed, engine, f, probe, legal);
            }
          }
        }
    }
  }
  return s;
}

}  // namespace trigon
