#include "step/items.hpp"

#include <algorithm>
#include <cmath>

#include "memory/graph_bytes.hpp"
#include "step/evaluate_parts.hpp"
#include "step/pass_time.hpp"

namespace trigon {
namespace {

// A pass takes as long as the device works, or as the host needs to launch it all.
double pass_seconds(const Tables& t, const OperatorList& ops) {
  return with_host(t.device, list_seconds(t.device, ops),
                   host_launches(t, ops) * t.device.engine.operator_overhead_seconds);
}

}  // namespace

// What a library launches itself costs the host no call; a graph that a runtime compiled ahead is
// launched whole (NVIDIA TensorRT developer guide, "CUDA Graphs").
double host_launches(const Tables& t, const OperatorList& ops) {
  if (t.engine.launch == Launch::graphs && !t.engine.trains) return 0;
  double launches = 0;
  for (const Operator& op : ops)
    if (!op.in_library) launches += op.repeat;
  return launches;
}

bool on_frozen_base(const Job& job) {
  const FineTune* tune = std::get_if<FineTune>(&job);
  return tune && tune->method != TuneMethod::full;
}

void lower_component(const Tables& t, const Component& component, double items, bool training,
                     OperatorList& out) {
  const Graph* graph = std::get_if<Graph>(&component.body);
  if (!graph) return;
  ItemPass pass;
  pass.items = items;
  pass.activations = t.domain.activations;
  pass.weights = t.domain.weights.value_or(t.domain.activations);
  auto unit = [&](MathClass c) { return t.device.unit[static_cast<std::size_t>(c)]; };
  pass.tf32_convolutions = t.engine.tf32_convolutions && unit(MathClass::tf32).peak > 0;
  const MathMode half = unit(MathClass::half).mode;
  pass.matrix_units = half == MathMode::bf16_matrix ||
                      half == MathMode::fp16_matrix_fp32_accumulate ||
                      half == MathMode::fp16_matrix_fp16_accumulate;
  pass.fusion = t.engine.fusion;
  pass.channels_first = t.engine.channels_first;
  const bool sixteen = bits_per_element(pass.activations) == 16;
  pass.autocast =
      sixteen && (pass.weights == Format::f32 || (training && !on_frozen_base(t.job) &&
                                                  t.engine.default_recipe == "autocast_fp32"));
  pass.flash_attention = t.engine.flash_attention;
  pass.training = training;
  lower_graph(*graph, pass, out);
  // Frameworks that also train keep filters in a plain order: on processors each call writes them
  // once more in the order of its kernel (oneDNN documentation, "Understanding Memory Formats").
  if (t.engine.trains && t.device.accelerator->kind == DeviceKind::cpu)
    for (Operator& op : out)
      if (op.kind == OperatorKind::convolution) op.weight_bytes *= 3;
}

namespace {

// Lowers what runs, once: later fills only price it again.
template <class Rows>
void lower_items(Tables& t, std::size_t batches, bool training, Rows rows) {
  const std::size_t wanted = t.model->components.size() * batches;
  if (t.item_operators.size() == wanted) return;
  t.item_operators.assign(wanted, {});
  std::size_t i = 0;
  for (const Component& c : t.model->components)
    for (std::size_t b = 0; b < batches; ++b, ++i) {
      const bool runs = training ? c.training != Component::Training::absent : c.serves;
      const bool trained = training && c.training == Component::Training::trained;
      if (runs) lower_component(t, c, rows(c, b), trained, t.item_operators[i]);
    }
}

}  // namespace

void fill_item_inference(Tables& t, const std::vector<std::int32_t>& batches) {
  InferenceTables& i = t.inference;
  i.batches = batches;
  const std::size_t n = i.batches.size();
  lower_items(t, n, false, [&](const Component& c, std::size_t b) {
    return i.batches[b] * static_cast<double>(c.rows);
  });
  i.prefill.assign(n, {});
  i.decode.assign(n, {});
  std::size_t at = 0;
  for (const Component& c : t.model->components)
    for (std::size_t b = 0; b < n; ++b, ++at) {
      if (!c.serves) continue;
      PassTime& into = c.runs == Runs::once ? i.prefill[b] : i.decode[b];
      into.layers += pass_seconds(t, t.item_operators[at]);
      into.ends += t.device.engine.step_overhead_seconds;
    }
}

namespace {

// DistributedDataParallel copies every gradient into its bucket and, summed, back: two launches for
// each tensor, four passes over 32-bit gradients (torch/csrc/distributed/c10d/reducer.cpp,
// mark_variable_ready_dense and finalize_bucket_dense).
struct BucketCopies {
  double tensors = 0, seconds = 0;
};
BucketCopies bucket_copies(const Tables& t, const Component& component) {
  BucketCopies out;
  const auto graph = std::get_if<Graph>(&component.body);
  if (!graph || t.engine.autograd != Autograd::eager) return out;
  double parameters = 0;
  for (const GraphWeight& w : graph->weights) {
    if (!w.trains || w.by_row) continue;
    ++out.tensors;
    parameters += static_cast<double>(elements(w.shape));
  }
  const DeviceModel& d = t.device;
  out.seconds =
      16 * parameters / (d.bandwidth * d.operators.stream.ceiling * d.engine.stream_factor);
  return out;
}

}  // namespace

void fill_item_training(Tables& t) {
  TrainTables& tr = t.train;
  tr.pass.clear();
  if (t.item_operators.empty()) {
    tr.forward_flops = tr.attention_forward_flops = tr.head_flops = 0;
    tr.parameters = tr.exchanged_bytes = 0;
    for (const Component& c : t.model->components) {
      auto graph = std::get_if<Graph>(&c.body);
      if (!graph || c.training != Component::Training::trained) continue;
      tr.forward_flops += 2 * multiply_accumulates(*graph);
      tr.parameters += static_cast<double>(count_parameters(*graph) - count_row_parameters(*graph));
      for (const GraphNode& n : graph->nodes)
        if (std::holds_alternative<TableLookup>(n.operation) && !n.weights.empty() &&
            graph->weights[n.weights.front()].by_row)
          for (ValueId v : n.outputs)
            tr.exchanged_bytes += static_cast<double>(n.repeat) *
                                  static_cast<double>(elements(graph->values[v].shape)) *
                                  bits_per_element(t.domain.activations) / 8;
    }
    tr.trainable_parameters = tr.parameters;
    tr.frozen_base = on_frozen_base(t.job);
    if (tr.frozen_base) {
      const FineTune& tune = std::get<FineTune>(t.job);
      const GraphAdapters adapters{static_cast<double>(tune.rank), tune.targets};
      tr.trainable_parameters = 0;
      for (const Component& c : t.model->components) {
        auto graph = std::get_if<Graph>(&c.body);
        if (!graph || c.training != Component::Training::trained) continue;
        tr.trainable_parameters +=
            adapters.rank * bytes_of_graph(*graph, true, true, &adapters).adapter_in_out;
      }
    }
    tr.trainable_share = tr.trainable_parameters / std::max(1.0, tr.parameters);
  }
  const std::vector<std::int32_t>& batches = t.domain.micro_batch;
  lower_items(t, batches.size(), true,
              [&](const Component&, std::size_t b) -> double { return batches[b]; });
  std::vector<TrainPass> passes(batches.size());
  std::size_t at = 0;
  for (const Component& c : t.model->components)
    for (std::size_t b = 0; b < batches.size(); ++b, ++at) {
      const bool trained = c.training == Component::Training::trained;
      double forward = 0;
      BackwardTime backward;
      for (const Operator& op : t.item_operators[at]) {
        forward += op.repeat * operator_time(t.device, op).seconds;
        if (trained) {
          const BackwardTime back = backward_time(t.device, op, !tr.frozen_base);
          backward.input += op.repeat * back.input;
          backward.weight += op.repeat * back.weight;
        }
      }
      const double host =
          host_launches(t, t.item_operators[at]) * t.device.engine.operator_overhead_seconds;
      LayerWork& work = passes[b].layers;
      work.forward += with_host(t.device, forward, host);
      // Products have two gradients to launch; autograd adds its own work to each.
      const double waited = trained ? with_host(t.device, backward.total(), 2 * host) : 0;
      if (trained && !tr.frozen_base) {
        const auto [tensors, copies] = bucket_copies(t, c);
        const double launched = 2 * tensors * t.device.engine.operator_overhead_seconds;
        passes[b].buckets +=
            with_host(t.device, backward.total() + copies, 2 * host + launched) - waited;
      }
      const double weight = backward.total() > 0 ? waited * backward.weight / backward.total() : 0;
      work.weight += weight;
      work.input += waited - weight;
    }
  // Only data parallelism divides a graph; other degrees are refused before they get here.
  for (std::size_t degrees =
           t.domain.tensor.size() * t.domain.expert.size() * t.domain.context.size() * 2;
       degrees > 0; --degrees)
    tr.pass.insert(tr.pass.end(), passes.begin(), passes.end());
}

double item_batch_seconds(const Tables& t, const Plan& plan, double items) {
  if (t.stack) return t.device.engine.request_overhead_seconds + prefill_seconds(t, plan, items);
  const PassTime once = at_batch(t.inference, t.inference.prefill, 0, items);
  const PassTime step = at_batch(t.inference, t.inference.decode, 0, items);
  const double steps = static_cast<double>(t.model->item->steps);
  return t.device.engine.request_overhead_seconds + once.layers + once.ends +
         steps * (step.layers + step.ends);
}

}  // namespace trigon
