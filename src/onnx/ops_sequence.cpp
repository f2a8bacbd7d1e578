// Sequences of tensors and optional values, kept as lists while the graph is read.

#include <algorithm>

#include "onnx/op.hpp"

namespace trigon::onnx {
namespace {

constexpr std::size_t kMostItems = 4096;

void put_sequence(Op& op, std::vector<ValuePtr> items) {
  if (items.size() > kMostItems ||
      !op.importer().spend_contents(8 * static_cast<std::int64_t>(items.size())))
    return op.fail(OnnxMessage::bad_attribute, "length", static_cast<std::int64_t>(items.size()));
  Value v;
  v.items = std::move(items);
  v.constant = true;
  for (const ValuePtr& i : *v.items) v.constant = v.constant && i->constant;
  op.put(0, std::make_shared<const Value>(std::move(v)));
}

// The items of input i, or an error.
std::vector<ValuePtr> items_of(Op& op, std::size_t i) {
  const Value& v = op.in(i);
  if (v.items) return *v.items;
  if (op.ok())
    op.fail(OnnxMessage::bad_rank, static_cast<std::int64_t>(i + 1), shape_text(v.shape));
  return {};
}

// Position `input` names in a sequence of n; without a known one, items alike stand for each other.
std::size_t position(Op& op, std::size_t input, std::size_t n, const std::vector<ValuePtr>& items) {
  const auto* at = op.integers(input);
  if (!at) {
    bool alike = !items.empty();
    for (const ValuePtr& i : items) alike = alike && i->shape == items[0]->shape;
    if (!alike && op.ok())
      op.fail(OnnxMessage::data_dependent, static_cast<std::int64_t>(input + 1));
    return 0;
  }
  return op.axis(at->size() == 1 ? at->front() : INT64_MAX, n);
}

void construct(Op& op) {
  std::vector<ValuePtr> items;
  for (std::size_t i = 0; i < op.inputs() && op.ok(); ++i) {
    op.in(i);
    items.push_back(op.pointer(i));
  }
  if (op.ok()) put_sequence(op, std::move(items));
}
void empty(Op& op) { put_sequence(op, {}); }

void at(Op& op) {
  const auto items = items_of(op, 0);
  const std::size_t i = position(op, 1, items.size(), items);
  if (op.ok()) op.put(0, items[i]);
}

void insert(Op& op) {
  auto items = items_of(op, 0);
  op.in(1);
  const std::size_t i = op.has(2) ? position(op, 2, items.size() + 1, items) : items.size();
  if (!op.ok()) return;
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(i), op.pointer(1));
  put_sequence(op, std::move(items));
}

void erase(Op& op) {
  auto items = items_of(op, 0);
  if (op.ok() && items.empty()) return op.fail(OnnxMessage::bad_attribute, "position", -1);
  const std::size_t i = op.has(1) ? position(op, 1, items.size(), items) : items.size() - 1;
  if (!op.ok()) return;
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(i));
  put_sequence(op, std::move(items));
}

void length(Op& op) {
  const auto n = static_cast<std::int64_t>(items_of(op, 0).size());
  Value& y = op.set(0, kInt64, {});
  y.constant = true;
  y.integers = std::vector<std::int64_t>{n};
}

void split_to_sequence(Op& op) {
  const Value& x = op.in(0);
  const std::size_t a = op.axis(op.integer("axis", 0), x.rank());
  if (!op.ok()) return;
  const std::int64_t n = x.shape[a];
  std::vector<std::int64_t> sizes;
  bool drop = false;
  if (!op.has(1)) {
    if (n > static_cast<std::int64_t>(kMostItems))
      return op.fail(OnnxMessage::bad_attribute, "length", n);
    sizes.assign(static_cast<std::size_t>(n), 1);
    drop = op.integer("keepdims", 1) == 0;
  } else {
    const auto given = op.need_integers(1);
    if (!op.ok()) return;
    if (op.rank(1) == 0) {
      const std::int64_t each = given.front();
      if (each < 1 || n / each > static_cast<std::int64_t>(kMostItems))
        return op.fail(OnnxMessage::bad_attribute, "split", each);
      for (std::int64_t from = 0; from < n; from += each) sizes.push_back(std::min(each, n - from));
    } else {
      sizes = given;
    }
  }
  std::int64_t sum = 0;
  for (std::int64_t s : sizes) sum = s < 0 ? -1 : checked_add(sum, s).value_or(-1);
  if (sum != n) return op.fail(OnnxMessage::shape_mismatch, shape_text(x.shape), shape_text(sizes));
  std::vector<ValuePtr> items;
  for (std::int64_t s : sizes) {
    TensorShape to = x.shape;
    to[a] = s;
    if (drop) to.erase(to.begin() + static_cast<std::ptrdiff_t>(a));
    const std::size_t part = op.inner(x.type, to);
    op.emit_inner(Move{}, part, {0});
    items.push_back(op.pointer(part));
  }
  if (op.ok()) put_sequence(op, std::move(items));
}

void concatenate_sequence(Op& op) {
  const auto items = items_of(op, 0);
  const bool fresh = op.integer("new_axis", 0) != 0;
  if (!op.ok()) return;
  if (items.empty()) return op.fail(OnnxMessage::input_missing, 1);
  TensorShape to = items[0]->shape;
  const std::size_t a = op.axis(op.need_integer_attribute("axis"), to.size() + (fresh ? 1 : 0));
  if (!op.ok()) return;
  std::int64_t sum = 0;
  for (const ValuePtr& i : items) {
    if (i->items || i->rank() != to.size())
      return op.fail(OnnxMessage::shape_mismatch, shape_text(to), shape_text(i->shape));
    sum = checked_add(sum, fresh ? 1 : i->shape[a]).value_or(-1);
  }
  if (fresh)
    to.insert(to.begin() + static_cast<std::ptrdiff_t>(a), sum);
  else
    to[a] = sum;
  if (!op.wants(0)) return;
  op.set(0, items[0]->type, to);
  op.emit(Move{}, op.add(items));
}

void optional_value(Op& op) {
  if (op.has(0)) return op.alias(0, 0);
  put_sequence(op, {});
}
void optional_element(Op& op) { op.alias(0, 0); }
void optional_has(Op& op) {
  Value& y = op.set(0, kBool, {});
  y.constant = true;
  const bool there = op.has(0) && !(op.in(0).items && op.in(0).items->empty());
  y.integers = std::vector<std::int64_t>{there ? 1 : 0};
}

}  // namespace

const OperatorTable& sequence_operators() {
  static const OperatorTable table = {{"SequenceConstruct", construct},
                                      {"SequenceEmpty", empty},
                                      {"SequenceAt", at},
                                      {"SequenceInsert", insert},
                                      {"SequenceErase", erase},
                                      {"SequenceLength", length},
                                      {"SplitToSequence", split_to_sequence},
                                      {"ConcatFromSequence", concatenate_sequence},
                                      {"Optional", optional_value},
                                      {"OptionalGetElement", optional_element},
                                      {"OptionalHasElement", optional_has}};
  return table;
}

}  // namespace trigon::onnx
