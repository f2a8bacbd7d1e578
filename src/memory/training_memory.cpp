// What a rank holds while it trains: states divided by ZeRO, saved activations of the
// micro-batches in flight, the loss.

#include <algorithm>
#include <cmath>
#include <utility>

#include "memory/adapter_states.hpp"
#include "memory/formulas.hpp"
#include "memory/in_flight.hpp"
#include "memory/memory_model.hpp"
#include "memory/recipe.hpp"
#include "memory/stage_layers.hpp"
#include "plan/legality.hpp"

namespace trigon {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

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
  // Partial groups each hold the optimizer state whole (Megatron's
  // --num-distributed-optimizer-instances); with ZeRO-3 all of it (hybrid sharding).
  const double groups = std::max(1, plan.optimizer_groups);
  const double dense_parts = std::max(1.0, dense_shards / groups);
  const double expert_parts = std::max(1.0, expert_shards / groups);
  auto divided = [&](double dense_bytes, double expert_bytes, int from_stage) {
    return plan.zero >= from_stage ? dense_bytes / dense_parts + expert_bytes / expert_parts
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
  // Copies that 8-bit products read, of the matrices of the layers (transformer_engine/pytorch/
  // module/base.py: with a transpose where the hardware multiplies no other layout).
  if (!tuning_ && engine_.eight_bit_copies && bits_per_element(plan.weights) == 8) {
    const double copy = (capability_ >= 10 ? 1 : 2) - (engine_.eight_bit_weights ? 2 : 0);
    dense_weights += copy * (dense.parameters() - dense.tables - dense.heads - dense.vectors);
    expert_weights += copy * experts.parameters();
  }
  const double apart = engine_.ends_stay_gathered && plan.zero >= 3
                           ? (dense.tables + dense.heads) * state.weight
                           : 0;
  // A vision tower is frozen, in its own format and whole on every tensor rank (ms-swift's
  // freeze_vit and mcore_bridge).
  const double tower =
      stage == 0 ? tower_bytes_ / (plan.zero >= 3 ? std::max(1.0, dense_parts) : 1) : 0;
  // The frozen copy that answers are compared with, in 16 bit and divided like trained weights;
  // adapters are switched off instead.
  if (plan.reference && !tuning_) {
    dense_weights += 2 * dense.parameters();
    expert_weights += 2 * experts.parameters();
    recorder.step([&] {
      return DerivationStep{
          &memory_formula::reference,
          2 * (dense.parameters() + experts.parameters()),
          "B",
          "reference",
          {{"dense", 2 * dense.parameters(), "B"}, {"experts", 2 * experts.parameters(), "B"}}};
    });
  }
  const double kept_whole = plan.offload_weights ? 0 : apart * (1 - 1 / dense_parts) + tower;
  m[MemoryTerm::weights] = divided(dense_weights, expert_weights, 3) + kept_whole;
  if (plan.offload_weights) {
    m.host.states = m[MemoryTerm::weights];
    m[MemoryTerm::weights] = 0;
  }
  recorder.step([&] {
    return DerivationStep{&memory_formula::sharded_weights,
                          m[MemoryTerm::weights],
                          "B",
                          "stage " + std::to_string(stage),
                          {{"dense", plan.offload_weights ? 0 : dense_weights, "B"},
                           {"dense_shards", plan.zero >= 3 ? dense_parts : 1, ""},
                           {"experts", plan.offload_weights ? 0 : expert_weights, "B"},
                           {"expert_shards", plan.zero >= 3 ? expert_parts : 1, ""},
                           {"kept_whole", kept_whole, "B"}}};
  });

  KindShare scratch;
  double unit = 0, unit_parameters = 0, largest_matrix = 0;
  double adapted = 0, adapter_in_out = 0, adapter_out = 0, adapter_area = 0;
  bool has_experts = false;
  double forward = 0, saved_layers = 0, saved_drafts = 0, working = 0, widest = 0;
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
    adapter_in_out +=
        layers.stored(k) * s.weights.adapter_in_out + n * local_experts * s.weights.expert_in_out;
    adapter_out +=
        layers.stored(k) * s.weights.adapter_out + n * local_experts * s.weights.expert_out;
    adapted += layers.stored(k) * s.weights.adapted + n * local_experts * s.weights.expert_adapted;
    adapter_area += layers.stored(k) * s.weights.adapter_area;
    // Inputs of a fixed length may be longer than what is learnt from them: all is stated for a
    // token of `sequence_`.
    const double keys =
        d(positions_of(*kind_stacks_[k],
                       static_cast<std::int64_t>(kind_stacks_[k] == stack_ ? sequence_ : source_)));
    const double share = scale * keys / sequence_;
    const double routed = std::max(plan.tensor, 1);
    const double all = s.saved[sp][0].at(keys) + s.experts[0].at(expert_inner, routed);
    const double kept = s.saved[sp][how].at(keys) + s.experts[how].at(expert_inner, routed);
    has_experts = has_experts || s.weights.expert_count > 0;
    const double of_layer = (covered * kept + (1 - covered) * all) * share;
    saved_layers += n * of_layer;
    widest = std::max(widest, of_layer);
    if (last && k == draft_kind_) saved_drafts = d(draft_layers_) * of_layer;
    forward = std::max(forward, s.forward[sp].at(keys) * share);
    // A recomputed layer is rebuilt whole before its backward.
    if (plan.recompute == Recompute::full)
      working = std::max(working, (all + s.backward[sp].at(keys)) * share);
  }

  const bool gradients_divided =
      plan.zero >= 2 && !(engine_.unsharded_accumulation && plan.accumulation > 1);
  auto reduced = [&](double dense_bytes, double expert_bytes) {
    return gradients_divided ? dense_bytes / dense_parts + expert_bytes / expert_parts
                             : dense_bytes + expert_bytes;
  };
  // Gradients and optimizer of what trains; bytes of the parameters that the optimizer steps here.
  const int degree = degree_index(plan.tensor);
  const EndShare computed_ends = degree >= 0 ? EndShare{} : end_share(std::max(plan.tensor, 1));
  const EndShare& ends = degree >= 0 ? ends_[static_cast<std::size_t>(degree)] : computed_ends;
  double gradients = 0, persistent = 0, stepped = 0, adapter_gradients = 0;
  if (tuning_) {
    WeightShare adapters;
    adapters.kept_parameters = form_.parameters > 0
                                   ? form_.parameters
                                   : adapter_rank_ * adapter_in_out + (dora_ ? adapter_out : 0);
    adapters.edges = adapter_in_out + adapter_rank_ * 2 * adapted;
    adapters.vectors = dora_ ? adapter_out : 0;
    WeightShare whole_ends;
    if (form_.ends && first) whole_ends += ends.embedding;
    if (form_.ends && last) whole_ends += ends.head;
    const AdapterStates a = adapter_states(adapters, whole_ends, plan, dense_shards);
    // Changes of whole matrices are kept in 32 bit.
    // Of one layer at a time where layers are recomputed.
    const double alive = plan.recompute == Recompute::full ? std::max(1.0, layers.total()) : 1;
    const double deltas = form_.delta ? 4 * adapter_area / alive : 0;
    m[MemoryTerm::adapters] = a.total() + deltas;
    stepped = a.stepped;
    adapter_gradients = a.gradients;
    m.host.states += a.on_host;
    if (plan.zero >= 3 && engine_.mixed_units)
      gradients = reduced(dense.parameters() * 2, experts.parameters() * 2);
    persistent = m[MemoryTerm::adapters];
    recorder.step([&] {
      return DerivationStep{&memory_formula::adapters,
                            m[MemoryTerm::adapters],
                            "B",
                            "stage " + std::to_string(stage),
                            {{"weights", a.weights, "B"},
                             {"gradients", a.gradients, "B"},
                             {"states", a.states, "B"},
                             {"deltas", deltas, "B"}}};
    });
  } else {
    gradients = reduced(dense.parameters() * state.gradient, experts.parameters() * state.gradient);
    m[MemoryTerm::master_weights] =
        divided(dense.parameters() * state.master, experts.parameters() * state.master, 1);
    const double dense_moments = moment_bytes(dense, plan.optimizer, state.moment);
    const double expert_moments = moment_bytes(experts, plan.optimizer, state.moment);
    m[MemoryTerm::optimizer] = divided(dense_moments, expert_moments, 1);
    // In host memory: offloaded, or paged there while activations need the device's.
    const bool on_host = plan.offload_optimizer || plan.optimizer == Optimizer::adamw_8bit_paged;
    if (on_host) m.host.states += std::exchange(m[MemoryTerm::optimizer], 0);
    if (plan.offload_optimizer) {
      m.host.states += std::exchange(m[MemoryTerm::master_weights], 0);
      const double kept = host_gradient_bytes(state);
      m.host.states += divided(dense.parameters() * kept, experts.parameters() * kept, 1);
    }
    persistent = m[MemoryTerm::master_weights] + m[MemoryTerm::optimizer];
    stepped = divided(dense.parameters(), experts.parameters(), 1) *
              (state.master > 0 ? state.master : state.weight);
    recorder.step([&] {
      return DerivationStep{&memory_formula::optimizer,
                            persistent,
                            "B",
                            "stage " + std::to_string(stage),
                            {{"dense", dense.parameters(), ""},
                             {"dense_shards", plan.zero >= 1 ? dense_parts : 1, ""},
                             {"experts", experts.parameters(), ""},
                             {"expert_shards", plan.zero >= 1 ? expert_parts : 1, ""},
                             {"master_bytes", plan.offload_optimizer ? 0 : state.master, "B"},
                             {"dense_moments", on_host ? 0 : dense_moments, "B"},
                             {"expert_moments", on_host ? 0 : expert_moments, "B"}}};
    });
  }

  // Whole units at once under ZeRO-3; the dequantised matrix of a quantised base; 16-bit copies
  // that autocast keeps.
  const bool whole = plan.zero >= 3 && (dense_parts > 1 || plan.offload_weights);
  // Without resharding every layer stays whole from its forward to its backward pass.
  double whole_units = 0;
  if (whole && !plan.reshard) {
    whole_units = dense_weights + expert_weights;
  } else if (whole) {
    whole_units = engine_.gathered_layers * unit;
    if (engine_.gathered_ends)
      whole_units += (first ? ends.embedding.bytes(0) : 0) + (last ? ends.head.bytes(0) : 0);
    const double all = dense.parameters() + experts.parameters();
    if (all > 0)
      whole_units = std::max(whole_units, std::min(engine_.gathered_parameters, all) / all *
                                              (dense_weights + expert_weights));
  }
  const double unit_gradient = whole && !tuning_ ? unit_parameters * state.gradient : 0;
  const bool quantised = tuning_ && (bits > 0 ? info(plan.weights).weight_only || quantised_base_
                                              : info(main_format_).weight_only);
  if (quantised && engine_.eager.quantised_head && last)
    largest_matrix = std::max(largest_matrix, ends.head.parameters());
  const double dequantised = quantised ? largest_matrix * 2 * engine_.eager.dequantised_copies : 0;
  double casts = 0;
  if (!tuning_ && state.cast_copy > 0)
    casts = state.cast_copy * (plan.zero >= 3 ? engine_.gathered_layers * unit_parameters
                                              : dense.parameters() + experts.parameters());
  // On one card ZeRO divides nothing but keeps its buffers.
  const bool reduces = plan.zero == 1 || plan.zero == 2 || plan.data * plan.context == 1;
  double buckets = reduces ? engine_.reduce_bucket * state.gradient : 0;
  if (plan.zero == 0 && plan.data > 1 && engine_.data_parallel_buckets)
    buckets += tuning_ ? adapter_gradients : gradients;
  const double gathered = whole_units + unit_gradient + dequantised + casts + buckets;
  m[MemoryTerm::gathered] = gathered;
  recorder.step([&] {
    return DerivationStep{&memory_formula::gathered,
                          gathered,
                          "B",
                          "stage " + std::to_string(stage),
                          {{"units", whole_units, "B", engine_.fact_id("gathered_layers")},
                           {"gradient", unit_gradient, "B"},
                           {"dequantised", dequantised, "B"},
                           {"casts", casts, "B"},
                           {"buckets", buckets, "B"}}};
  });

  // Activations of the micro-batches in flight; one layer's forward temporaries on top. Offloaded
  // ones leave while the next layer runs.
  const double flight = plan.offload_activations ? 1 : in_flight(plan, stage);
  if (plan.offload_activations) {
    const double stay = std::min(saved_layers, 2 * widest);
    m.host.activations = tokens * (saved_layers - stay) * in_flight(plan, stage);
    saved_layers = stay;
  }
  // Layers for multi-token prediction run with the last chunk alone.
  double activations = tokens * (saved_layers * flight - saved_drafts * (flight - 1));
  const double shard = plan.sequence_parallel ? std::max(plan.tensor, 1) : 1;
  const double h = d(stack_->hidden);
  // Embedding output of the first stage, final norm's input and the head's input of the last.
  if (first) activations += flight * tokens * h / shard * (element + (dropout_ ? 1 : 0));
  if (last) activations += 2 * tokens * h / shard * element;
  const double transient = tokens * std::max(forward, working);
  const double head_tokens = tokens * stack_->label_share /
                             static_cast<double>(std::max<std::int64_t>(engine_.loss_chunks, 1));
  double loss = 0, loss_rows = 0;
  if (last && has_vocabulary_head(*stack_)) {
    loss_rows = ends.head_rows;
    loss = head_tokens * loss_rows * engine_.loss_bytes_per_logit;
    // Losses of multi-token prediction come first and keep their 32-bit softmax.
    loss += d(draft_layers_) * head_tokens * loss_rows * 4;
    if (engine_.loss_chunks > 1) loss += tokens * loss_rows * element;
  }
  // Caches that the forward pass makes live until it returns; held outputs, the caches and 32-bit
  // logits among them, until the backward pass ends. Without recomputation they are what attention
  // saves.
  const double caches = engine_.caches_in_training && plan.recompute == Recompute::full
                            ? cache_bytes(plan, stage, d(plan.micro_batch), sequence_)
                            : 0;
  const double held = engine_.outputs_held ? caches + 4 * head_tokens * loss_rows : 0;
  const double held_caches = engine_.outputs_held ? caches : 0;
  if (caches > 0)
    recorder.step([&] {
      return DerivationStep{&memory_formula::forward_caches,
                            caches,
                            "B",
                            "stage " + std::to_string(stage),
                            {{"micro_batches", 1, ""}, {"bytes_per_micro_batch", caches, "B"}}};
    });
  // Loss and the backward of the last layer follow each other.
  m[MemoryTerm::activations] = activations;
  if (loss + caches > transient + held) {
    m[MemoryTerm::logits] = loss;
    m[MemoryTerm::kv_cache] = caches;
  } else {
    m[MemoryTerm::activations] += transient;
    m[MemoryTerm::logits] = held - held_caches;
    m[MemoryTerm::kv_cache] = held_caches;
  }
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
                           {"value_bytes", engine_.loss_bytes_per_logit + 4 * d(draft_layers_), "B",
                            engine_.fact_id("loss_bytes_per_logit")}}};
  });

  // Which moment is fullest. Gradients that do not persist grow while activations shrink, so one
  // of the two is whole and the other absent; temporaries of the optimizer step meet no
  // activations.
  // Gradients of offloaded weights leave with them (torch.distributed.fsdp CPUOffload).
  if (plan.offload_weights && !tuning_) {
    if (!plan.offload_optimizer) m.host.states += gradients;
    gradients = 0;
  }
  m[MemoryTerm::gradients] = gradients;
  const double live =
      m[MemoryTerm::activations] + m[MemoryTerm::logits] + m[MemoryTerm::kv_cache] + gathered;
  // Stated for parameters of 32 bit.
  if (engine_.step_parameters > 0 && plan.zero >= 3)
    stepped = std::min(stepped, 4 * engine_.step_parameters);
  // An offloaded optimizer steps on the host (deepspeed/ops/adam/cpu_adam.py).
  if (plan.offload_optimizer) stepped = 0;
  const double step_temporaries = engine_.optimizer_step_bytes / 4 * stepped;
  if (!engine_.gradients_persist && plan.accumulation <= 1) {
    if (live >= gradients + step_temporaries) {
      m[MemoryTerm::gradients] = 0;
    } else {
      m[MemoryTerm::activations] = step_temporaries;
      m[MemoryTerm::logits] = m[MemoryTerm::kv_cache] = 0;
      m[MemoryTerm::gathered] = 0;
    }
  } else if (step_temporaries > live) {
    m[MemoryTerm::activations] = step_temporaries;
    m[MemoryTerm::logits] = m[MemoryTerm::kv_cache] = 0;
    m[MemoryTerm::gathered] = 0;
  }
  recorder.step([&] {
    return DerivationStep{&memory_formula::gradients,
                          gradients,
                          "B",
                          "stage " + std::to_string(stage),
                          {{"dense", gradients > 0 ? dense.parameters() : 0, ""},
                           {"dense_shards", gradients_divided ? dense_parts : 1, ""},
                           {"experts", gradients > 0 ? experts.parameters() : 0, ""},
                           {"expert_shards", gradients_divided ? expert_parts : 1, ""},
                           {"gradient_bytes", tuning_ ? 2 : state.gradient, "B"}}};
  });
  m[MemoryTerm::workspaces] = workspace_bytes(has_experts);
  m[MemoryTerm::fragmentation] =
      engine_.fragmentation * (m[MemoryTerm::activations] + m[MemoryTerm::logits]);
  if (engine_.fragmentation > 0)
    recorder.step([&] {
      return DerivationStep{&memory_formula::fragmentation,
                            m[MemoryTerm::fragmentation],
                            "B",
                            "stage " + std::to_string(stage),
                            {{"share", engine_.fragmentation, "", engine_.fact_id("fragmentation")},
                             {"activations", m[MemoryTerm::activations], "B"},
                             {"logits", m[MemoryTerm::logits], "B"}}};
    });
  add_host(plan, m, recorder);
  add_runtime(plan, m, recorder);
  return m;
}

template RankMemory MemoryModel::training_memory(const Plan&, int, NoRecord&) const;
template RankMemory MemoryModel::training_memory(const Plan&, int, Record&) const;

}  // namespace trigon
