// Sorting and choosing by value. What they give depends on data: the most they can give counts.

#include <algorithm>

#include "onnx/op.hpp"

namespace trigon::onnx {
namespace {

void bounded(Op& op) {
  op.importer().note(message(OnnxMessage::note_bound, op.node().op, op.name()));
}

void top_k(Op& op) {
  const Value& x = op.in(0);
  const std::size_t a = op.axis(op.integer("axis", -1), x.rank());
  std::int64_t k = 0;
  if (op.has(1)) {
    k = op.need_integer(1);
  } else {
    k = op.need_integer_attribute("k");
  }
  if (!op.ok()) return;
  if (k < 0 || k > x.shape[a]) return op.fail(OnnxMessage::bad_attribute, "k", k);
  TensorShape to = x.shape;
  to[a] = k;
  op.set(0, x.type, to);
  op.set(1, kInt64, to);
  op.emit(Selection{}, {0});
}

// boxes [n, boxes, 4], scores [n, classes, boxes] -> [chosen, 3].
void suppress(Op& op) {
  op.need_rank(0, 3, 3);
  op.need_rank(1, 3, 3);
  if (!op.ok()) return;
  std::int64_t most = op.dim(0, 1);
  const auto* limit = op.integers(2);
  if (limit && limit->size() == 1) most = std::clamp<std::int64_t>(limit->front(), 0, most);
  auto all = checked_mul(op.dim(1, 0), op.dim(1, 1));
  all = all ? checked_mul(*all, most) : all;
  if (!all) return op.fail(OnnxMessage::value_too_large);
  bounded(op);
  op.set(0, kInt64, {*all, 3});
  op.emit(Selection{}, {0, 1});
}

void nonzero(Op& op) {
  const Value& x = op.in(0);
  if (!op.ok()) return;
  const auto rank = static_cast<std::int64_t>(std::max<std::size_t>(x.rank(), 1));
  if (x.integers) {
    std::vector<std::int64_t> found;
    for (std::size_t i = 0; i < x.integers->size(); ++i)
      if ((*x.integers)[i] != 0) found.push_back(static_cast<std::int64_t>(i));
    const auto n = static_cast<std::int64_t>(found.size());
    Value& y = op.set(0, kInt64, {rank, n});
    if (op.ok() && x.rank() == 1) y.integers = std::move(found);
    return op.emit(Selection{}, {0});
  }
  bounded(op);
  op.set(0, kInt64, {rank, x.count()});
  op.emit(Selection{}, {0});
}

void unique(Op& op) {
  const Value& x = op.in(0);
  TensorShape to{x.count()};
  if (op.given("axis")) {
    const std::size_t a = op.axis(op.integer("axis", 0), x.rank());
    to = x.shape;
    if (!op.ok()) return;
    for (std::size_t k = 1; k < 4; ++k) op.set(k, kInt64, {x.shape[a]});
  } else {
    for (std::size_t k = 1; k < 4; ++k) op.set(k, kInt64, {x.count()});
  }
  bounded(op);
  op.set(0, x.type, to);
  op.emit(Selection{}, {0});
}

void compress(Op& op) {
  const Value& x = op.in(0);
  op.need_rank(1, 1, 1);
  if (!op.ok()) return;
  TensorShape to{x.count()};
  std::size_t a = 0;
  if (op.given("axis")) {
    a = op.axis(op.integer("axis", 0), x.rank());
    to = x.shape;
  }
  if (!op.ok() || to.empty()) return;
  if (const auto* chosen = op.integers(1)) {
    std::int64_t n = 0;
    for (std::int64_t v : *chosen) n += v != 0;
    to[a] = std::min(n, to[a]);
  } else {
    to[a] = std::min(to[a], op.dim(1, 0));
    bounded(op);
  }
  op.set(0, x.type, to);
  op.emit(Selection{}, {0, 1});
}

}  // namespace

const OperatorTable& selection_operators() {
  static const OperatorTable table = {{"TopK", top_k},
                                      {"NonMaxSuppression", suppress},
                                      {"NonZero", nonzero},
                                      {"Unique", unique},
                                      {"Compress", compress}};
  return table;
}

}  // namespace trigon::onnx
