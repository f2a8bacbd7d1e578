// If, Loop and Scan: graphs inside nodes.

#include <algorithm>

#include "model/json_value.hpp"
#include "onnx/op.hpp"

namespace trigon::onnx {
namespace {

constexpr std::int64_t kMostTurns = 1 << 20;

Context inside(const Op& op, std::int64_t turns) {
  Context c = op.context();
  c.depth += 1;
  c.repeat *= turns;
  c.prefix = inner_prefix(op.name());
  return c;
}

const OnnxGraph* body_of(Op& op, std::string_view key) {
  const OnnxAttribute* a = op.attribute(key);
  if (a && a->graph) return a->graph.get();
  if (op.ok()) op.fail(OnnxMessage::attribute_missing, key);
  return nullptr;
}

// Both are tried; the costlier one stays.
void branch(Op& op) {
  const OnnxGraph *then = body_of(op, "then_branch"), *otherwise = body_of(op, "else_branch");
  if (!then || !otherwise) return;
  Importer& importer = op.importer();
  const Context c = inside(op, 1);
  auto run = [&](const OnnxGraph& g) {
    Scope own;
    own.around = &op.scope();
    return importer.run_inside(g, c, own);
  };
  std::vector<ValuePtr> values;
  if (const auto* known = op.integers(0); known && known->size() == 1) {
    values = run(known->front() ? *then : *otherwise);
  } else {
    const Importer::Mark before = importer.mark();
    auto cost = [&] {
      double sum = 0;
      const Graph& g = importer.graph();
      for (std::size_t i = before.nodes; i < g.nodes.size(); ++i) sum += flops(g, g.nodes[i]);
      return sum;
    };
    run(*then);
    const double first = cost();
    // A branch for other sizes than these (another sampling rate) may not fit.
    const std::optional<Error> misfit = importer.take_error();
    importer.back_to(before);
    values = run(*otherwise);
    if (misfit && !importer.ok()) importer.take_error();
    if (!misfit && (!importer.ok() || first > cost())) {
      importer.take_error();
      importer.back_to(before);
      values = run(*then);
    } else if (misfit && values.empty() && op.outputs() > 0) {
      importer.refuse(*misfit);
    }
    importer.note(message(OnnxMessage::note_branch, op.name()));
  }
  for (std::size_t k = 0; k < values.size() && k < op.outputs(); ++k) op.put(k, values[k]);
}

// A value that is another one each turn.
ValuePtr changing(const Value& v) {
  auto out = std::make_shared<Value>(v);
  out->integers.reset();
  out->reals.reset();
  return out;
}

// Carried values keep their shapes; what a turn gives besides is stacked along a new axis.
void finish_loop(Op& op, const OnnxGraph& body, std::size_t carried_from, std::size_t carried,
                 const std::vector<ValuePtr>& start, const std::vector<ValuePtr>& end,
                 std::int64_t turns, const std::vector<std::int64_t>& axes) {
  for (std::size_t i = 0; i < carried; ++i) {
    const ValuePtr& v = end[carried_from + i];
    if (!v->items && (v->shape != start[i]->shape))
      return op.fail(OnnxMessage::loop_shape, printable(body.outputs[carried_from + i].name));
    op.put(i, v->constant ? changing(*v) : v);
  }
  for (std::size_t k = carried; k < op.outputs() && carried_from + k < end.size(); ++k) {
    const ValuePtr& v = end[carried_from + k];
    TensorShape s = v->shape;
    const std::int64_t given = k - carried < axes.size() ? axes[k - carried] : 0;
    const std::size_t a = op.axis(given, s.size() + 1);
    if (!op.ok()) return;
    s.insert(s.begin() + static_cast<std::ptrdiff_t>(a), turns);
    const std::size_t stacked = op.inner(v->type, s);
    op.emit_inner(Move{}, stacked, op.add({v}));
    op.put(k, op.pointer(stacked));
  }
}

// M, condition, carried...: the body takes turn, condition, carried... and gives condition,
// carried..., stacked...
void loop(Op& op) {
  const OnnxGraph* body = body_of(op, "body");
  if (!body) return;
  const auto* most = op.integers(0);
  const auto* condition = op.integers(1);
  if (op.has(1) && condition && condition->size() == 1 && condition->front() == 0) {
    // Not run at all: the carried values come out as they went in.
    for (std::size_t k = 0; k + 2 < op.inputs(); ++k) op.alias(k, k + 2);
    return;
  }
  const std::int64_t turns = most && most->size() == 1 ? most->front() : -1;
  if (turns < 0 || turns > kMostTurns ||
      op.context().repeat * std::max<std::int64_t>(turns, 1) > kMostTurns)
    return op.fail(OnnxMessage::loop_count);
  const std::size_t carried = op.inputs() > 2 ? op.inputs() - 2 : 0;
  if (body->inputs.size() != carried + 2 || body->outputs.size() < carried + 1)
    return op.fail(OnnxMessage::input_missing, static_cast<std::int64_t>(body->inputs.size()));
  Scope own;
  own.around = &op.scope();
  Value turn;
  turn.type = kInt64;
  turn.constant = true;
  own.values[body->inputs[0].name] = std::make_shared<const Value>(turn);
  turn.type = kBool;
  own.values[body->inputs[1].name] = std::make_shared<const Value>(turn);
  std::vector<ValuePtr> start;
  for (std::size_t i = 0; i < carried; ++i) {
    const Value& v = op.in(i + 2);
    if (!op.ok()) return;
    start.push_back(op.pointer(i + 2));
    own.values[body->inputs[i + 2].name] = v.items ? start.back() : changing(v);
  }
  const auto end =
      op.importer().run_inside(*body, inside(op, std::max<std::int64_t>(turns, 1)), own);
  if (!op.ok()) return;
  // The condition that a turn computes may end it earlier: the most turns count.
  finish_loop(op, *body, 1, carried, start, end, turns, {});
}

// States..., scanned...: version 8 has sequence lengths first and a batch before all.
void scan(Op& op) {
  const OnnxGraph* body = body_of(op, "body");
  if (!body) return;
  const bool batched = op.version() < 9;
  const std::int64_t scanned_count = op.need_integer_attribute("num_scan_inputs");
  const std::size_t first = batched ? 1 : 0;
  if (!op.ok()) return;
  if (scanned_count < 1 || scanned_count > static_cast<std::int64_t>(op.inputs() - first))
    return op.fail(OnnxMessage::bad_attribute, "num_scan_inputs", scanned_count);
  const auto scanned = static_cast<std::size_t>(scanned_count);
  const std::size_t states = op.inputs() - first - scanned;
  if (body->inputs.size() != states + scanned || body->outputs.size() < states)
    return op.fail(OnnxMessage::input_missing, static_cast<std::int64_t>(body->inputs.size()));
  const auto axes = op.list("scan_input_axes");
  std::int64_t turns = -1, batch = 1;
  Scope own;
  own.around = &op.scope();
  std::vector<ValuePtr> start;
  auto without_batch = [&](std::size_t i) {
    auto v = std::make_shared<Value>(*changing(op.in(i)));
    if (batched) {
      op.need_rank(i, 1);
      if (!op.ok()) return v;
      batch = std::max<std::int64_t>(v->shape.front(), 1);
      v->shape.erase(v->shape.begin());
    }
    return v;
  };
  for (std::size_t i = 0; i < states && op.ok(); ++i) {
    auto v = without_batch(first + i);
    start.push_back(v);
    own.values[body->inputs[i].name] = v;
  }
  for (std::size_t i = 0; i < scanned && op.ok(); ++i) {
    auto v = without_batch(first + states + i);
    if (!op.ok()) return;
    const std::size_t a = op.axis(i < axes.size() ? axes[i] : 0, v->rank());
    if (!op.ok()) return;
    if (turns >= 0 && turns != v->shape[a])
      return op.fail(OnnxMessage::shape_mismatch, shape_text(v->shape), std::to_string(turns));
    turns = v->shape[a];
    v->shape.erase(v->shape.begin() + static_cast<std::ptrdiff_t>(a));
    own.values[body->inputs[states + i].name] = v;
  }
  if (!op.ok()) return;
  auto all = checked_mul(std::max<std::int64_t>(turns, 1), batch);
  if (!all || *all > kMostTurns || op.context().repeat * *all > kMostTurns)
    return op.fail(OnnxMessage::loop_count);
  const auto end = op.importer().run_inside(*body, inside(op, *all), own);
  if (!op.ok()) return;
  if (!batched)
    return finish_loop(op, *body, 0, states, start, end, turns, op.list("scan_output_axes"));
  for (std::size_t k = 0; k < end.size() && k < op.outputs(); ++k) {
    TensorShape s = end[k]->shape;
    if (k < states && s != start[k]->shape)
      return op.fail(OnnxMessage::loop_shape, printable(body->outputs[k].name));
    if (k >= states) s.insert(s.begin(), turns);
    s.insert(s.begin(), batch);
    const std::size_t whole = op.inner(end[k]->type, s);
    op.emit_inner(Move{}, whole, op.add({end[k]}));
    op.put(k, op.pointer(whole));
  }
}

}  // namespace

const OperatorTable& control_operators() {
  static const OperatorTable table = {{"If", branch}, {"Loop", loop}, {"Scan", scan}};
  return table;
}

}  // namespace trigon::onnx
