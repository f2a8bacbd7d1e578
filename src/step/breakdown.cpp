#include "step/breakdown.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "step/breakdown_parts.hpp"
#include "step/items.hpp"
#include "step/pass_time.hpp"
#include "step/serving_passes.hpp"

namespace trigon {
namespace {

MathUnit unit_of(const DeviceModel& d, const Operator& op) {
  MathUnit vector{d.vector_peak, MathMode::fp32_vector};
  MathUnit unit = vector;
  auto matrix = [&](Format weights) {
    return d.unit[static_cast<std::size_t>(math_class(d, weights, op.activations))];
  };
  switch (op.kind) {
    case OperatorKind::gemm:
    case OperatorKind::grouped_gemm:
      unit = matrix(op.weights);
      break;
    case OperatorKind::convolution:
      // A filter of its own for each channel leaves the matrix unit nothing to share.
      unit = op.groups > 1 && op.n < 2 ? vector : matrix(op.weights);
      break;
    case OperatorKind::attention:
      unit = matrix(op.activations);
      break;
    case OperatorKind::scan:
      unit = op.matrix_form ? matrix(op.activations) : vector;
      break;
    default:
      break;
  }
  // Work is counted as if it were dense; sparse units skip half of it.
  if (is_sparse(op.weights) && unit.mode != MathMode::fp32_vector) unit.peak *= 2;
  return unit;
}

}  // namespace

void add(CostedPass& out, const Tables& t, const Operator& op, double calls,
         const std::string& component) {
  OperatorLine line;
  line.op = op;
  line.component = component;
  line.time = operator_time(t.device, op);
  line.calls = calls;
  line.seconds = calls * line.time.seconds;
  line.unit = unit_of(t.device, op);
  out.operators.push_back(std::move(line));
}

double seconds_of(const CostedPass& p, std::size_t from) {
  double sum = 0;
  for (std::size_t i = from; i < p.operators.size(); ++i) sum += p.operators[i].seconds;
  return sum;
}

// What waiting for the host adds to the device's seconds.
double beyond(const DeviceModel& d, double device, double host) {
  return with_host(d, device, host) - device;
}

namespace {

// A pass of a stack, `times` times over.
void add_stack(CostedPass& out, const Tables& t, const Stack& stack, const Pass& pass,
               double times) {
  OperatorList ops;
  for (const LayerRun& run : stack.runs) {
    ops.clear();
    lower_layer(stack, run.layer, pass, ops);
    const double count = times * static_cast<double>(run.count);
    const std::size_t from = out.operators.size();
    for (const Operator& op : ops) add(out, t, op, count * op.repeat);
    const double layers = seconds_of(out, from);
    out.host_floor += with_layer_host(t, pass, ops, layers, count) - layers;
  }
  ops.clear();
  lower_embedding(stack, pass, ops);
  lower_head(stack, pass, ops);
  for (const Operator& op : ops) add(out, t, op, times * op.repeat);
}

CostedPass decode_at(const Tables& t, const Plan& plan, double batch) {
  CostedPass out;
  add_stack(out, t, *t.stack, decode_pass(t, plan.tensor, plan.expert, batch), 1);
  return out;
}

CostedPass prompts_at(const Tables& t, const Plan& plan, double batch) {
  CostedPass out;
  const PromptPasses passes = prompt_passes(t, batch);
  const Stack* encoder = t.stack->generates ? t.source : t.stack;
  if (encoder)
    add_stack(out, t, *encoder, encoder_pass(t, plan.tensor, plan.expert, passes.sequences),
              passes.passes);
  if (t.stack->generates)
    add_stack(out, t, *t.stack, prefill_pass(t, plan.tensor, plan.expert, passes), passes.passes);
  return out;
}

CostedPass items_at(const Tables& t, double items) {
  CostedPass out;
  for (const Component& c : t.model->components) {
    if (!c.serves) continue;
    OperatorList ops;
    lower_component(t, c, items * static_cast<double>(c.rows), false, ops);
    const double runs = c.runs == Runs::each_step ? static_cast<double>(t.model->item->steps) : 1;
    const std::size_t from = out.operators.size();
    for (const Operator& op : ops)
      add(out, t, op, runs * op.repeat, t.model->components.size() > 1 ? c.name : std::string());
    out.host_floor +=
        beyond(t.device, seconds_of(out, from),
               runs * host_launches(t, ops) * t.device.engine.operator_overhead_seconds);
  }
  return out;
}

// A pass at a batch between those of the tables: its operators take what `at_batch` makes of their
// times at the two beside it.
template <class Make>
CostedPass between(const std::vector<std::int32_t>& grid, double batch, Make make) {
  const double b = std::max(batch, 1.0);
  if (b <= grid.front()) return make(grid.front());
  CostedPass here = make(b);
  double share = 0, scale = 1;  // of the upper batch; of a lone one
  std::size_t upper = 0;
  if (grid.size() == 1) {
    scale = b / grid.front();
  } else {
    while (upper + 1 < grid.size() && grid[upper] < b) ++upper;
    upper = std::max<std::size_t>(upper, 1);
    share = (b - grid[upper - 1]) / (grid[upper] - grid[upper - 1]);
  }
  const CostedPass low = make(grid.size() == 1 ? grid.front() : grid[upper - 1]);
  const CostedPass high = grid.size() == 1 ? low : make(grid[upper]);
  if (low.operators.size() != here.operators.size() ||
      high.operators.size() != here.operators.size())
    return here;
  auto blend = [&](double x, double y) { return scale * ((1 - share) * x + share * y); };
  for (std::size_t i = 0; i < here.operators.size(); ++i) {
    OperatorLine& line = here.operators[i];
    line.seconds = blend(low.operators[i].seconds, high.operators[i].seconds);
    if (line.calls > 0) line.time.seconds = line.seconds / line.calls;
  }
  here.host_floor = blend(low.host_floor, high.host_floor);
  return here;
}

bool equal(const OperatorLine& a, const OperatorLine& b) {
  const Operator &x = a.op, &y = b.op;
  return std::string_view(x.name) == y.name && a.backward == b.backward &&
         a.component == b.component && x.kind == y.kind && x.m == y.m && x.n == y.n && x.k == y.k &&
         x.groups == y.groups && x.weights == y.weights && x.activations == y.activations &&
         x.flops == y.flops && x.weight_bytes == y.weight_bytes && x.data_bytes == y.data_bytes &&
         x.payload_bytes == y.payload_bytes && x.ranks == y.ranks &&
         x.query_tokens == y.query_tokens && x.key_tokens == y.key_tokens;
}

StepBreakdown broken_down(const Tables& t, StepPart part, double seconds, double sequences,
                          const CostedPass& pass, double share, std::vector<RestLine> rest) {
  StepBreakdown out;
  out.part = part;
  out.seconds = seconds;
  out.sequences = sequences;
  out.bandwidth = t.device.bandwidth;
  for (const OperatorLine& line : pass.operators) {
    auto same = std::find_if(out.operators.begin(), out.operators.end(),
                             [&](const OperatorLine& x) { return equal(x, line); });
    if (same == out.operators.end()) {
      out.operators.push_back(line);
      out.operators.back().seconds *= share;
    } else {
      same->calls += line.calls;
      same->seconds += share * line.seconds;
    }
  }
  std::stable_sort(
      out.operators.begin(), out.operators.end(),
      [](const OperatorLine& a, const OperatorLine& b) { return a.seconds > b.seconds; });
  rest.push_back({StepRest::host_floor, pass.host_floor * share});
  rest.push_back({StepRest::beside_products, -pass.beside * share});
  double left = seconds;
  for (const OperatorLine& line : out.operators) left -= line.seconds;
  for (const RestLine& line : rest) left -= line.seconds;
  if (std::fabs(left) > 1e-9 * seconds) rest.push_back({StepRest::other, left});
  std::erase_if(rest, [](const RestLine& r) { return r.seconds == 0; });
  std::sort(rest.begin(), rest.end(),
            [](const RestLine& a, const RestLine& b) { return a.what < b.what; });
  out.rest = std::move(rest);
  return out;
}

StepBreakdown prompts(const Tables& t, const Plan& plan, double sequences, StepPart part) {
  const PassParts parts = prefill_parts(t, plan, sequences);
  // Passes overlap in a pipeline, and each operator's time with them.
  const std::size_t row = index_in(t.domain.tensor, plan.tensor) * t.domain.expert.size() +
                          index_in(t.domain.expert, plan.expert);
  const PassTime alone = at_batch(t.inference, t.inference.prefill, row, sequences);
  const double share = alone.layers > 0 ? parts.layers / alone.layers : 1;
  const double once = part == StepPart::item_batch ? t.device.engine.request_overhead_seconds : 0;
  return broken_down(
      t, part, parts.total() + once, sequences,
      between(t.inference.batches, sequences, [&](double b) { return prompts_at(t, plan, b); }),
      share,
      {{StepRest::step_overhead, parts.overhead},
       {StepRest::sends, parts.sends},
       {StepRest::request_overhead, once}});
}

StepBreakdown decode(const Tables& t, const Plan& plan, double sequences) {
  const PassParts parts = decode_parts(t, plan, sequences);
  return broken_down(
      t, StepPart::decode, parts.total(), sequences,
      between(t.inference.batches, parts.batch, [&](double b) { return decode_at(t, plan, b); }), 1,
      {{StepRest::step_overhead, parts.overhead}, {StepRest::sends, parts.sends}});
}

StepBreakdown items(const Tables& t, const Plan& plan, double batch) {
  const PassTime once = at_batch(t.inference, t.inference.prefill, 0, batch);
  const PassTime step = at_batch(t.inference, t.inference.decode, 0, batch);
  return broken_down(
      t, StepPart::item_batch, item_batch_seconds(t, plan, batch), batch,
      between(t.inference.batches, batch, [&](double b) { return items_at(t, b); }), 1,
      {{StepRest::step_overhead, once.ends + static_cast<double>(t.model->item->steps) * step.ends},
       {StepRest::request_overhead, t.device.engine.request_overhead_seconds}});
}

}  // namespace

double StepBreakdown::bound_by(Bound b) const {
  double sum = 0;
  for (const OperatorLine& line : operators)
    if (line.time.bound == b) sum += line.seconds;
  return sum;
}

std::vector<StepBreakdown> break_down(const Tables& t, const Plan& plan, const Evaluation& e) {
  if (!t.memory.serving()) {
    StepBreakdown s =
        broken_down(t, StepPart::train_step, e[Metric::step_seconds], std::max(1, plan.micro_batch),
                    training_passes(t, plan, e), 1, training_rest(t, plan, e));
    add_timeline(t, plan, e, s);
    return {std::move(s)};
  }
  const bool fixed = std::holds_alternative<Batch>(t.job);
  const double batch = fixed ? std::max(1, plan.micro_batch) : std::max(1.0, e.sequences_together);
  if (!t.stack) return {items(t, plan, batch)};
  if (!t.stack->generates) return {prompts(t, plan, batch, StepPart::item_batch)};
  return {prompts(t, plan, fixed ? batch : 1, StepPart::prefill), decode(t, plan, batch)};
}

}  // namespace trigon
