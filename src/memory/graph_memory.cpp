// What a rank holds of a model that is made of graphs: weights of all components, values alive in
// the largest of them, values saved for the backward pass.

#include <algorithm>
#include <cmath>
#include <utility>

#include "memory/adapter_states.hpp"
#include "memory/formulas.hpp"
#include "memory/memory_model.hpp"
#include "memory/recipe.hpp"

namespace trigon {

std::vector<MemoryModel::GraphPart> MemoryModel::graph_parts(const Model& model,
                                                             const EnginePolicy& engine,
                                                             const Job& job) {
  const FineTune* tune = std::get_if<FineTune>(&job);
  GraphAdapters adapters;
  if (tune) adapters = {static_cast<double>(tune->rank), tune->targets};
  std::vector<GraphPart> out;
  for (const Component& c : model.components) {
    auto graph = std::get_if<Graph>(&c.body);
    if (!graph) continue;
    GraphPart part;
    const bool adapted =
        tune && tune->method != TuneMethod::full && c.training == Component::Training::trained;
    part.bytes =
        bytes_of_graph(*graph, engine.flash_attention, true, adapted ? &adapters : nullptr);
    part.rows = static_cast<double>(c.rows);
    part.serves = c.serves;
    part.trained = c.training == Component::Training::trained;
    part.frozen = c.training == Component::Training::frozen;
    out.push_back(part);
  }
  return out;
}

// Weights in floating point take the plan's format, others keep theirs. Tables by row stay as they
// are stored, divided over the data-parallel ranks, in training (updated in place, without moments)
// as in inference.
double MemoryModel::graph_weight_bytes(const GraphPart& part, const Plan& plan,
                                       double trained_bytes) const {
  const double rows = part.bytes.row_bytes / std::max(1, plan.data);
  if (trained_bytes > 0)
    return part.bytes.weight_floats * trained_bytes + part.bytes.weight_bytes + rows;
  if (plan.weights == main_format_) return part.bytes.stored_bytes - part.bytes.row_bytes + rows;
  return rows + part.bytes.weight_floats * bits_per_element(plan.weights) / 8 +
         part.bytes.weight_bytes;
}

template <class Recorder>
RankMemory MemoryModel::graph_memory(const Plan& plan, double items, Recorder& recorder) const {
  RankMemory m;
  const StateBytes state = state_bytes(plan.recipe);
  const double element = bits_per_element(plan.activations) / 8;
  const double shards = std::max(1, plan.data);
  auto divided = [&](double bytes, int from) { return plan.zero >= from ? bytes / shards : bytes; };
  WeightShare adapters;
  double trained = 0, frozen = 0, parameters = 0, alive = 0, kept = 0, working = 0;
  for (const GraphPart& p : graphs_) {
    if (serving_) {
      if (!p.serves) continue;
      const double weights = graph_weight_bytes(p, plan, 0);
      const double values = p.rows * p.bytes.forward.at(element);
      if (plan.offload_weights) m.host.states += weights;
      if (!plan.offload_weights) {
        frozen += weights;
        alive = std::max(alive, values);
      } else if (weights + items * values > frozen + items * alive) {
        // Components wait in host memory for their turn: the fullest moment is that of one.
        frozen = weights;
        alive = values;
      }
      continue;
    }
    if (p.trained && tuning_) {
      frozen += graph_weight_bytes(p, plan, bits_per_element(plan.weights) / 8);
      // Autocast caches casts of leaves that need gradients alone (ATen autocast_mode.cpp,
      // cached_cast): those of frozen weights wait for the backward pass, one for each product.
      if (bits_per_element(plan.weights) > 8 * element && plan.recompute != Recompute::full)
        m[MemoryTerm::gathered] += p.bytes.weight_floats * element;
      adapters.kept_parameters += adapter_rank_ * p.bytes.adapter_in_out;
      adapters.edges += p.bytes.adapter_in_out + adapter_rank_ * 2 * p.bytes.adapted;
      const bool casts = element < 4 && adapters_in_32_bit(plan.recipe);
      kept += (casts ? p.bytes.saved_casts : p.bytes.saved).at(element);
      working = std::max(working, 2 * p.bytes.largest.at(element));
    } else if (p.trained) {
      trained += graph_weight_bytes(p, plan, state.weight);
      parameters += p.bytes.parameters;
      kept += p.bytes.saved.at(element);
      // The backward of a node holds its inputs and outputs and the gradients of both.
      working = std::max(working, 2 * p.bytes.largest.at(element));
    } else if (p.frozen) {
      frozen += graph_weight_bytes(p, plan, bits_per_element(plan.activations) / 8);
      alive = std::max(alive, p.bytes.forward.at(element));
    }
  }
  m[MemoryTerm::weights] = divided(trained, 3) + frozen;
  recorder.step([&] {
    return DerivationStep{&memory_formula::graph_weights,
                          m[MemoryTerm::weights],
                          "B",
                          "one rank",
                          {{"trained", trained, "B"},
                           {"shards", plan.zero >= 3 ? shards : 1, ""},
                           {"frozen", frozen, "B"}}};
  });
  const AdapterStates states = adapter_states(adapters, {}, plan, shards);
  double item = alive, largest = 0;
  if (!serving_) {
    m[MemoryTerm::gradients] = divided(parameters * state.gradient, 2);
    m[MemoryTerm::master_weights] = divided(parameters * state.master, 1);
    WeightShare all;
    all.matrix_parameters = parameters;
    m[MemoryTerm::optimizer] = divided(moment_bytes(all, plan.optimizer, state.moment), 1);
    if (plan.offload_optimizer || plan.optimizer == Optimizer::adamw_8bit_paged)
      m.host.states = std::exchange(m[MemoryTerm::optimizer], 0);
    if (plan.offload_optimizer) {
      m.host.states += std::exchange(m[MemoryTerm::master_weights], 0);
      m.host.states += divided(parameters * host_gradient_bytes(state), 1);
    }
    if (state.cast_copy > 0) m[MemoryTerm::gathered] += parameters * state.cast_copy;
    // Checkpointing keeps what the segments start from; with segments of equal size that is about
    // the square root (Chen et al. 2016, arXiv:1604.06174), and one segment is rebuilt whole.
    if (plan.recompute == Recompute::full) {
      const double segments = std::sqrt(std::max(1.0, kept / std::max(1.0, working / 2)));
      kept = 2 * kept / segments;
    }
    if (tuning_) {
      m[MemoryTerm::adapters] = states.total();
      m.host.states = states.on_host;
    }
    // Frozen components run before the trained ones keep anything.
    item = std::max(kept, alive);
    largest = items * working;
  }
  m[MemoryTerm::activations] = items * item + largest;
  recorder.step([&] {
    return DerivationStep{&memory_formula::graph_activations,
                          m[MemoryTerm::activations],
                          "B",
                          "one rank",
                          {{"items", items, ""}, {"item", item, "B"}, {"largest", largest, "B"}}};
  });
  // Temporaries of the optimizer's step meet no activations.
  const double step =
      !serving_ && plan.optimizer == Optimizer::adamw && !plan.offload_optimizer
          ? (divided(parameters * std::max(state.weight, state.master), 1) + states.stepped) *
                engine_.optimizer_step_bytes / 4
          : 0;
  if (step > m[MemoryTerm::activations] + m[MemoryTerm::gathered]) {
    m[MemoryTerm::activations] = step;
    m[MemoryTerm::gathered] = 0;
  }
  add_host(plan, m, recorder);
  add_runtime(plan, m, recorder);
  m[MemoryTerm::fragmentation] = engine_.fragmentation * m[MemoryTerm::activations];
  return m;
}

template RankMemory MemoryModel::graph_memory(const Plan&, double, NoRecord&) const;
template RankMemory MemoryModel::graph_memory(const Plan&, double, Record&) const;

}  // namespace trigon
