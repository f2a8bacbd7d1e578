// What a rank holds while it trains: states divided by ZeRO, saved activations of the
// micro-batches in flight, the loss.

#include <algorithm>
#include <cmath>

#include "memory/formulas.hpp"
#include "memory/memory_model.hpp"
#include "memory/recipe.hpp"
#include "memory/stage_layers.hpp"
#include "plan/legality.hpp"

namespace trigon {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

// Micro-batches whose activations a stage keeps, in whole stages. 1F1B: as many as stages follow
// (Narayanan et al. 2021, arXiv:2104.04473, sections 2.2 and 3.1). Interleaved: Megatron-LM warms
// up with 2 (p - stage - 1) + (v - 1) p chunks and runs one more, each 1/v of a stage; the first
// stage then keeps 1 + (p - 1) / (p v) times the activations of a model (arXiv:2205.05198).
double in_flight(const Plan& plan, int stage) {
  const double p = plan.pipeline, v = plan.virtual_stages, m = plan.accumulation;
  if (p <= 1) return 1;
  if (v <= 1) return std::min(m, p - stage);
  return std::min(m * v, 2 * (p - stage - 1) + (v - 1) * p + 1) / v;
}

}  // namespace

template <class Recorder>
RankMemory MemoryModel::training_memory(const Plan& plan, int stage, Recorder& recorder) const {
  RankMemory m;
  const StateBytes state = state_bytes(plan.recipe);
  const StageLayers layers = stage_layers(plan, stage);
  const bool first = stage == 0, last = stage == plan.pipeline - 1;
  WeightShare experts;
  const WeightShare dense = stage_weights(plan, stage, &experts, recorder);

  // Shards: dense parameters over data x context ranks; experts over those of them that hold the
  // same experts.
  const double dense_shards = std::max(1, plan.data * plan.context);
  const double expert_inner = expert_tensor_ranks(plan, false);
  const double expert_shards =
      std::max(1.0, dense_shards * plan.tensor / expert_inner / std::max(plan.expert, 1));
  auto divided = [&](double dense_bytes, double expert_bytes, int from_stage) {
    return plan.zero >= from_stage ? dense_bytes / dense_shards + expert_bytes / expert_shards
                                   : dense_bytes + expert_bytes;
  };

  // Bytes of a parameter of the base: trained weights follow the recipe, frozen ones their format.
  const double bits = tuning_ ? weight_bits(plan) : state.weight * 8;
  double dense_weights, expert_weights;
  if (tuning_) {
    dense_weights = dense.bytes(bits);
    expert_weights = experts.bytes(bits);
  } else {
    dense_weights = dense.parameters() * state.weight;
    expert_weights = experts.parameters() * state.weight;
  }
  m[MemoryTerm::weights] = divided(dense_weights, expert_weights, 3);
  if (plan.offload_weights) m[MemoryTerm::weights] = 0;
  recorder.step([&] {
    return DerivationStep{&memory_formula::sharded_weights,
                          m[MemoryTerm::weights],
                          "B",
                          "stage " + std::to_string(stage),
                          {{"dense", plan.offload_weights ? 0 : dense_weights, "B"},
                           {"dense_shards", plan.zero >= 3 ? dense_shards : 1, ""},
                           {"experts", plan.offload_weights ? 0 : expert_weights, "B"},
                           {"expert_shards", plan.zero >= 3 ? expert_shards : 1, ""}}};
  });

  KindShare scratch;
  double unit = 0, unit_parameters = 0, largest_matrix = 0;
  double adapted = 0, adapter_in_out = 0, adapter_out = 0;
  double forward = 0, saved_layers = 0, working = 0, widest = 0;
  // The part of the layers that recomputation covers.
  const double covered = plan.recompute == Recompute::full && plan.recompute_layers > 0
                             ? std::min(1.0, plan.recompute_layers / std::max(1.0, layers.total()))
                             : 1;
  const double element = activation_element(plan), scale = element / 2;
  const auto sp = static_cast<std::size_t>(plan.sequence_parallel ? 1 : 0);
  const auto how = static_cast<std::size_t>(plan.recompute);
  const double tokens = d(plan.micro_batch) * sequence_ / std::max(plan.context, 1);
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    const double n = layers.count(k);
    if (n == 0) continue;
    const KindShare& s = kind_at(k, plan.tensor, scratch);
    const double local_experts =
        s.weights.expert_count > 0 ? std::ceil(s.weights.expert_count / std::max(plan.expert, 1)) /
                                         s.weights.expert_count / expert_inner
                                   : 0;
    const WeightShare own = s.weights.experts.times(local_experts);
    const double parameters = s.weights.dense.parameters() + own.parameters();
    const double weights =
        tuning_ ? s.weights.dense.bytes(bits) + own.bytes(bits) : parameters * state.weight;
    unit = std::max(unit, weights);
    unit_parameters = std::max(unit_parameters, parameters);
    largest_matrix = std::max(largest_matrix, s.weights.largest_matrix);
    adapter_in_out += layers.stored(k) * s.weights.adapter_in_out;
    adapter_out += layers.stored(k) * s.weights.adapter_out;
    adapted += layers.stored(k) * s.weights.adapted;
    // Inputs of a fixed length may be longer than what is learnt from them: all is stated for a
    // token of `sequence_`.
    const double keys =
        d(positions_of(*kind_stacks_[k],
                       static_cast<std::int64_t>(kind_stacks_[k] == stack_ ? sequence_ : source_)));
    const double share = scale * keys / sequence_;
    const double kept = s.saved[sp][how].at(keys), all = s.saved[sp][0].at(keys);
    const double of_layer = (covered * kept + (1 - covered) * all) * share;
    saved_layers += n * of_layer;
    widest = std::max(widest, of_layer);
    forward = std::max(forward, s.forward[sp].at(keys) * share);
    // A recomputed layer is rebuilt whole before its backward.
    if (plan.recompute == Recompute::full)
      working = std::max(working, s.saved[sp][0].at(keys) * share);
  }

  // Gradients and optimizer of what trains.
  double gradients = 0, persistent = 0;
  if (tuning_) {
    const StateBytes a = plan.recipe == TrainRecipe::pure_bf16 ? state_bytes(TrainRecipe::pure_bf16)
                                                               : state_bytes(TrainRecipe::fp32);
    WeightShare adapters;
    adapters.kept_parameters = adapter_rank_ * adapter_in_out + (dora_ ? adapter_out : 0);
    adapters.edges = adapter_in_out + adapter_rank_ * 2 * adapted;
    adapters.vectors = dora_ ? adapter_out : 0;
    const double parameters = adapters.parameters();
    const double moments = moment_bytes(adapters, plan.optimizer, a.moment);
    m[MemoryTerm::adapters] =
        (parameters * (a.weight + a.gradient) + moments) / (plan.zero >= 3 ? dense_shards : 1);
    gradients = 0;
    persistent = m[MemoryTerm::adapters];
    recorder.step([&] {
      return DerivationStep{&memory_formula::adapters,
                            m[MemoryTerm::adapters],
                            "B",
                            "stage " + std::to_string(stage),
                            {{"parameters", parameters, ""},
                             {"state_bytes", a.weight + a.gradient, "B"},
                             {"moments", moments, "B"},
                             {"shards", plan.zero >= 3 ? dense_shards : 1, ""}}};
    });
  } else {
    gradients =
        divided(dense.parameters() * state.gradient, experts.parameters() * state.gradient, 2);
    m[MemoryTerm::master_weights] =
        divided(dense.parameters() * state.master, experts.parameters() * state.master, 1);
    const double dense_moments = moment_bytes(dense, plan.optimizer, state.moment);
    const double expert_moments = moment_bytes(experts, plan.optimizer, state.moment);
    m[MemoryTerm::optimizer] = divided(dense_moments, expert_moments, 1);
    // In host memory: offloaded, or paged there while activations need the device's.
    const bool on_host = plan.offload_optimizer || plan.optimizer == Optimizer::adamw_8bit_paged;
    if (on_host) m[MemoryTerm::optimizer] = 0;
    if (plan.offload_optimizer) m[MemoryTerm::master_weights] = 0;
    persistent = m[MemoryTerm::master_weights] + m[MemoryTerm::optimizer];
    recorder.step([&] {
      return DerivationStep{&memory_formula::optimizer,
                            persistent,
                            "B",
                            "stage " + std::to_string(stage),
                            {{"dense", dense.parameters(), ""},
                             {"dense_shards", plan.zero >= 1 ? dense_shards : 1, ""},
                             {"experts", experts.parameters(), ""},
                             {"expert_shards", plan.zero >= 1 ? expert_shards : 1, ""},
                             {"master_bytes", plan.offload_optimizer ? 0 : state.master, "B"},
                             {"dense_moments", on_host ? 0 : dense_moments, "B"},
                             {"expert_moments", on_host ? 0 : expert_moments, "B"}}};
    });
  }

  // Whole units at once under ZeRO-3; the dequantised matrix of a quantised base; 16-bit copies
  // that autocast keeps.
  const bool whole = plan.zero >= 3 && dense_shards > 1;
  // Without resharding every layer stays whole from its forward to its backward pass.
  const double whole_units = !whole         ? 0
                             : plan.reshard ? engine_.gathered_layers * unit
                                            : dense_weights + expert_weights;
  const double unit_gradient = whole && !tuning_ ? unit_parameters * state.gradient : 0;
  const bool quantised = tuning_ && (bits > 0 ? info(plan.weights).weight_only || quantised_base_
                                              : info(main_format_).weight_only);
  const double dequantised = quantised ? largest_matrix * 2 : 0;
  double casts = 0;
  if (!tuning_ && state.cast_copy > 0)
    casts = state.cast_copy * (plan.zero >= 3 ? engine_.gathered_layers * unit_parameters
                                              : dense.parameters() + experts.parameters());
  const double gathered = whole_units + unit_gradient + dequantised + casts;
  m[MemoryTerm::gathered] = gathered;
  recorder.step([&] {
    return DerivationStep{&memory_formula::gathered,
                          gathered,
                          "B",
                          "stage " + std::to_string(stage),
                          {{"units", whole_units, "B", engine_.fact_id("gathered_layers")},
                           {"gradient", unit_gradient, "B"},
                           {"dequantised", dequantised, "B"},
                           {"casts", casts, "B"}}};
  });

  // Activations of the micro-batches in flight; one layer's forward temporaries on top. Offloaded
  // ones leave while the next layer runs.
  const double flight = plan.offload_activations ? 1 : in_flight(plan, stage);
  if (plan.offload_activations) saved_layers = std::min(saved_layers, 2 * widest);
  double activations = tokens * saved_layers * flight;
  const double shard = plan.sequence_parallel ? std::max(plan.tensor, 1) : 1;
  const double h = d(stack_->hidden);
  // Embedding output of the first stage, final norm's input and the head's input of the last.
  if (first) activations += flight * tokens * h / shard * element;
  if (last) activations += 2 * tokens * h / shard * element;
  const double transient = tokens * std::max(forward, working);
  const double head_tokens = tokens * stack_->label_share /
                             static_cast<double>(std::max<std::int64_t>(engine_.loss_chunks, 1));
  double loss = 0, loss_rows = 0;
  if (last && has_vocabulary_head(*stack_)) {
    const int i = degree_index(plan.tensor);
    const double rows = i >= 0 ? ends_[static_cast<std::size_t>(i)].head_rows
                               : end_share(std::max(plan.tensor, 1)).head_rows;
    loss_rows = rows;
    loss = head_tokens * rows * engine_.loss_bytes_per_logit;
    if (engine_.loss_chunks > 1) loss += tokens * rows * element;
  }
  // Loss and the backward of the last layer follow each other.
  m[MemoryTerm::activations] = activations;
  if (loss > transient)
    m[MemoryTerm::logits] = loss;
  else
    m[MemoryTerm::activations] += transient;
  if constexpr (Recorder::on) explain_saved(plan, stage, recorder);
  recorder.step([&] {
    return DerivationStep{&memory_formula::saved,
                          activations,
                          "B",
                          "stage " + std::to_string(stage),
                          {{"tokens", tokens, "tokens"},
                           {"saved", saved_layers, "B/token"},
                           {"in_flight", flight, ""},
                           {"ends", activations - tokens * saved_layers * flight, "B"}}};
  });
  recorder.step([&] {
    return DerivationStep{&memory_formula::logits,
                          loss,
                          "B",
                          "stage " + std::to_string(stage),
                          {{"rows", head_tokens, "tokens"},
                           {"vocabulary", loss_rows, ""},
                           {"value_bytes", engine_.loss_bytes_per_logit, "B",
                            engine_.fact_id("loss_bytes_per_logit")}}};
  });

  // Which moment is fullest. Gradients that do not persist grow while activations shrink, so one
  // of the two is whole and the other absent; temporaries of the optimizer step meet no
  // activations.
  m[MemoryTerm::gradients] = gradients;
  const double live = m[MemoryTerm::activations] + m[MemoryTerm::logits] + gathered;
  const double step_temporaries =
      tuning_ ? 0
              : engine_.optimizer_step_bytes * divided(dense.parameters(), experts.parameters(), 1);
  if (!engine_.gradients_persist && plan.accumulation <= 1) {
    if (live >= gradients + step_temporaries) {
      m[MemoryTerm::gradients] = 0;
    } else {
      m[MemoryTerm::activations] = step_temporaries;
      m[MemoryTerm::logits] = 0;
      m[MemoryTerm::gathered] = 0;
    }
  } else if (step_temporaries > live) {
    m[MemoryTerm::activations] = step_temporaries;
    m[MemoryTerm::logits] = 0;
    m[MemoryTerm::gathered] = 0;
  }
  recorder.step([&] {
    return DerivationStep{&memory_formula::gradients,
                          gradients,
                          "B",
                          "stage " + std::to_string(stage),
                          {{"dense", tuning_ ? 0 : dense.parameters(), ""},
                           {"dense_shards", plan.zero >= 2 ? dense_shards : 1, ""},
                           {"experts", tuning_ ? 0 : experts.parameters(), ""},
                           {"expert_shards", plan.zero >= 2 ? expert_shards : 1, ""},
                           {"gradient_bytes", state.gradient, "B"}}};
  });
  m[MemoryTerm::fragmentation] =
      engine_.fragmentation * (m[MemoryTerm::activations] + m[MemoryTerm::logits]);
  add_runtime(plan, m, recorder);
  return m;
}

template RankMemory MemoryModel::training_memory(const Plan&, int, NoRecord&) const;
template RankMemory MemoryModel::training_memory(const Plan&, int, Record&) const;

}  // namespace trigon
