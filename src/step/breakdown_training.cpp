// Where a training step goes.

#include <algorithm>

#include "lower/lower.hpp"
#include "plan/stages.hpp"
#include "step/breakdown_parts.hpp"
#include "step/items.hpp"
#include "step/pass_time.hpp"
#include "step/training_work.hpp"

namespace trigon {
namespace {

// The forward and the backward line of an operator, `calls` times.
void add_both(CostedPass& out, const Tables& t, const Operator& op, double calls,
              const TrainOperator& time, const std::string& component = {}) {
  add(out, t, op, calls, component);
  OperatorLine& forward = out.operators.back();
  const bool longer = time.forward > forward.time.seconds;
  forward.time.seconds = time.forward;
  forward.seconds = calls * time.forward;
  if (longer && time.context > 0) forward.time.bound = Bound::link;
  if (time.backward.total() <= 0) return;
  OperatorLine back = forward;
  back.backward = true;
  back.time.seconds = time.backward.total();
  back.seconds = calls * back.time.seconds;
  const bool product = op.kind == OperatorKind::gemm || op.kind == OperatorKind::grouped_gemm ||
                       op.kind == OperatorKind::convolution;
  const double products = (time.backward.input > 0 ? 1 : 0) + (time.backward.weight > 0 ? 1 : 0);
  const double work = product ? products : op.kind == OperatorKind::attention ? 2.5 : 2;
  back.op.flops *= work;
  if (!back.collective()) {
    const double bytes = product ? products : 2;
    back.op.data_bytes = op.backward_bytes >= 0 ? op.backward_bytes : op.data_bytes * bytes;
    back.op.weight_bytes *= bytes;
  }
  out.operators.push_back(std::move(back));
}

// What the host adds to the lines from `from` on, of both directions.
double host_of(const DeviceModel& d, const CostedPass& out, std::size_t from, double host,
               std::pair<double, double> beside = {}) {
  double forward = -beside.first, backward = -beside.second;
  for (std::size_t i = from; i < out.operators.size(); ++i)
    (out.operators[i].backward ? backward : forward) += out.operators[i].seconds;
  return beyond(d, forward, host) + (backward > 0 ? beyond(d, backward, 2 * host) : 0);
}

CostedPass graph_passes(const Tables& t, const Plan& plan, double m) {
  CostedPass out;
  for (const Component& c : t.model->components) {
    if (c.training == Component::Training::absent) continue;
    const bool trained = c.training == Component::Training::trained;
    OperatorList ops;
    lower_component(t, c, plan.micro_batch, trained, ops);
    const std::size_t from = out.operators.size();
    for (const Operator& op : ops) {
      TrainOperator time;
      time.forward = operator_time(t.device, op).seconds;
      if (trained) time.backward = backward_time(t.device, op, !t.train.frozen_base);
      add_both(out, t, op, m * op.repeat, time,
               t.model->components.size() > 1 ? c.name : std::string());
    }
    out.host_floor += host_of(
        t.device, out, from, m * host_launches(t, ops) * t.device.engine.operator_overhead_seconds);
  }
  return out;
}

}  // namespace

CostedPass training_passes(const Tables& t, const Plan& plan, const Evaluation& e) {
  const double m = std::max(1, plan.accumulation);
  if (!t.stack) return graph_passes(t, plan, m);
  CostedPass out;
  std::int64_t sequence = 0;
  if (auto j = std::get_if<Train>(&t.job)) sequence = j->sequence;
  if (auto j = std::get_if<FineTune>(&t.job)) sequence = j->sequence;
  const Pass pass = training_pass_of(t, plan);
  const int p = std::max(1, plan.pipeline), v = p > 1 ? std::max(1, plan.virtual_stages) : 1;
  const int stage = e.train.slowest;
  const auto layers = static_cast<std::int64_t>(t.layers);
  // Layers of the stage among [begin, end).
  auto held = [&](std::int64_t begin, std::int64_t end) {
    std::int64_t n = 0;
    for (int k = 0; k < v; ++k) {
      const LayerRange r = p > 1 ? layers_of(plan, layers, stage, k) : LayerRange{0, layers};
      n += std::max<std::int64_t>(0, std::min(end, r.end) - std::max(begin, r.begin));
    }
    return static_cast<double>(n);
  };
  OperatorList ops;
  auto walk = [&](const Pass& own, double count) {
    const std::size_t from = out.operators.size();
    BesideProducts layer;
    for (const Operator& op : ops) {
      const TrainOperator x = train_operator(t, own, op, !t.train.frozen_base);
      add_both(out, t, op, m * count * op.repeat, x);
      layer.add(op, x);
    }
    auto beside = layer.hidden(t.engine, own);
    beside.first *= m * count, beside.second *= m * count;
    out.beside += beside.first + beside.second;
    out.host_floor += host_of(t.device, out, from, m * count * layer_host(t, ops), beside);
    ops.clear();
  };
  std::int64_t before = 0;
  for (const Stack* stack : stacks_in_order(*t.model)) {
    const Pass own = training_pass(t, *stack, sequence, pass);
    for (const LayerRun& run : stack->runs) {
      const double count = held(before, before + run.count);
      before += run.count;
      if (count <= 0) continue;
      lower_layer(*stack, run.layer, own, ops);
      walk(own, count);
    }
    if (stage == 0) {
      lower_embedding(*stack, own, ops);
      walk(own, 1);
    }
    if (stage == p - 1) {
      lower_head(*stack, own, ops);
      walk(own, 1);
    }
  }
  return out;
}

void add_timeline(const Tables& t, const Plan& plan, const Evaluation& e, StepBreakdown& out) {
  StepPipeline pipe;
  fill_pipeline(t, pass_of(t, plan), plan, pipe);
  out.stages = pipe.work.stages;
  out.virtual_stages = pipe.work.virtual_stages;
  out.micro_batches = pipe.work.micro_batches;
  out.passes_end = e.train.pipeline;
  out.tensor = e.train.tensor, out.expert = e.train.expert, out.context = e.train.context;
  out.forward = e[Metric::forward_seconds], out.backward = e[Metric::backward_seconds];
  constexpr int kPasses = 2048;
  if (out.stages * out.virtual_stages * out.micro_batches <= kPasses)
    out.events = play_pipeline(pipe.work);
}

std::vector<RestLine> training_rest(const Tables& t, const Plan&, const Evaluation& e) {
  return {{StepRest::step_overhead, t.device.engine.step_overhead_seconds},
          {StepRest::sends, e.train.sends},
          {StepRest::recompute, e[Metric::recompute_seconds]},
          {StepRest::optimizer, e[Metric::optimizer_seconds]},
          {StepRest::exposed_communication, e.train.gradients},
          {StepRest::slowed, e.train.slowed},
          {StepRest::offloaded, e.train.offloaded},
          {StepRest::loader, e.train.loader},
          {StepRest::bubble, e[Metric::bubble_seconds]}};
}

}  // namespace trigon
