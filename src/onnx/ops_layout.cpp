// Operators that show or move the same elements: reshape, transpose, slice, concatenate.

#include <algorithm>
#include <numeric>

#include "onnx/op.hpp"

namespace trigon::onnx {
namespace {

void reshape(Op& op) {
  const TensorShape from = op.shape(0);
  auto target = op.version() < 5 && op.inputs() < 2 ? op.list("shape") : op.need_integers(1);
  if (!op.ok()) return;
  const bool zero_is_zero = op.integer("allowzero", 0) != 0;
  std::optional<std::size_t> open;
  std::int64_t rest = 1;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && !zero_is_zero) {
      if (i >= from.size()) return op.fail(OnnxMessage::impossible_size, shape_text(target));
      target[i] = from[i];
    }
    if (target[i] == -1) {
      if (open) return op.fail(OnnxMessage::impossible_size, shape_text(target));
      open = i;
      continue;
    }
    auto product = target[i] < 0 ? std::nullopt : checked_mul(rest, target[i]);
    if (!product) return op.fail(OnnxMessage::impossible_size, shape_text(target));
    rest = *product;
  }
  const std::int64_t n = op.in(0).count();
  if (open) {
    if (rest == 0 ? n != 0 : n % rest != 0)
      return op.fail(OnnxMessage::shape_mismatch, shape_text(from), shape_text(target));
    target[*open] = rest == 0 ? 0 : n / rest;
  }
  op.view(0, 0, std::move(target));
}

void flatten(Op& op) {
  const TensorShape s = op.shape(0);
  const std::int64_t given = op.integer("axis", 1);
  if (!op.ok()) return;
  const auto rank = static_cast<std::int64_t>(s.size());
  if (given < -rank || given > rank) return op.fail(OnnxMessage::bad_attribute, "axis", given);
  const std::int64_t a = given < 0 ? given + rank : given;
  TensorShape y{1, 1};
  for (std::int64_t i = 0; i < rank; ++i) y[i < a ? 0 : 1] *= s[static_cast<std::size_t>(i)];
  op.view(0, 0, y);
}

void squeeze(Op& op) {
  const TensorShape s = op.shape(0);
  const bool chosen = op.has(1) || op.given("axes");
  const auto axes = op.axes(op.list_or_input("axes", 1), s.size());
  if (!op.ok()) return;
  TensorShape y;
  for (std::size_t i = 0; i < s.size(); ++i) {
    const bool named = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (named && s[i] != 1) return op.fail(OnnxMessage::shape_mismatch, shape_text(s), "axes");
    if (chosen ? !named : s[i] != 1) y.push_back(s[i]);
  }
  op.view(0, 0, y);
}

void unsqueeze(Op& op) {
  const TensorShape s = op.shape(0);
  const auto values = op.list_or_input("axes", 1);
  const auto axes = op.axes(values, s.size() + values.size());
  if (!op.ok()) return;
  TensorShape y;
  std::size_t next = 0;
  for (std::size_t i = 0; i < s.size() + axes.size(); ++i)
    y.push_back(std::find(axes.begin(), axes.end(), i) != axes.end() ? 1 : s[next++]);
  op.view(0, 0, y);
}

std::vector<std::int64_t> strides_of(const TensorShape& s) {
  std::vector<std::int64_t> out(s.size(), 1);
  for (std::size_t i = s.size(); i-- > 1;) out[i - 1] = out[i] * s[i];
  return out;
}

// Known contents of output 0, element by element: `from` gives the flat index in input 0.
template <class From>
void copy_contents(Op& op, Value& y, From from) {
  const Value& x = op.in(0);
  if (!x.known() || !op.importer().spend_contents(y.count())) return;
  if (x.integers) y.integers.emplace();
  if (x.reals) y.reals.emplace();
  TensorShape at(y.shape.size());
  for (std::int64_t e = 0; e < y.count(); ++e) {
    const auto i = static_cast<std::size_t>(from(at));
    if (x.integers) y.integers->push_back((*x.integers)[i]);
    if (x.reals) y.reals->push_back((*x.reals)[i]);
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < y.shape[d]) break;
      at[d] = 0;
    }
  }
}

void transpose(Op& op) {
  const Value& x = op.in(0);
  auto order = op.list("perm");
  if (!op.given("perm")) {
    order.resize(x.rank());
    std::iota(order.rbegin(), order.rend(), 0);
  }
  const auto axes = op.axes(order, x.rank());
  if (!op.ok()) return;
  if (axes.size() != x.rank())
    return op.fail(OnnxMessage::bad_attribute, "perm", shape_text(order));
  TensorShape to;
  for (std::size_t a : axes) to.push_back(x.shape[a]);
  Value& y = op.set(0, x.type, to);
  if (!op.ok()) return;
  const auto strides = strides_of(x.shape);
  copy_contents(op, y, [&](const TensorShape& at) {
    std::int64_t i = 0;
    for (std::size_t d = 0; d < at.size(); ++d) i += at[d] * strides[axes[d]];
    return i;
  });
  y.constant = x.constant;
  if (x.constant) {
    y.stored = x.stored;
    y.beside = x.beside;
    return;
  }
  // Only dimensions of one change their places: the bytes stay.
  std::vector<std::size_t> moving;
  for (std::size_t a : axes)
    if (x.shape[a] != 1) moving.push_back(a);
  if (std::is_sorted(moving.begin(), moving.end())) return op.emit(Reinterpret{}, {0});
  op.emit(Move{}, {0});
}

void slice(Op& op) {
  const Value& x = op.in(0);
  const bool old = op.version() < 10 && op.inputs() < 2;
  auto starts = old ? op.list("starts") : op.need_integers(1);
  auto ends = old ? op.list("ends") : op.need_integers(2);
  std::vector<std::int64_t> chosen = old         ? op.list("axes")
                                     : op.has(3) ? op.need_integers(3)
                                                 : std::vector<std::int64_t>();
  std::vector<std::int64_t> steps =
      !old && op.has(4) ? op.need_integers(4) : std::vector<std::int64_t>(starts.size(), 1);
  if (chosen.empty() && starts.size() <= x.rank()) {
    chosen.resize(starts.size());
    std::iota(chosen.begin(), chosen.end(), 0);
  }
  const auto axes = op.axes(chosen, x.rank());
  if (!op.ok()) return;
  if (axes.size() != starts.size() || ends.size() != starts.size() || steps.size() != starts.size())
    return op.fail(OnnxMessage::shape_mismatch, shape_text(starts), shape_text(ends));
  TensorShape to = x.shape, first(x.rank()), by(x.rank(), 1);
  bool whole = true;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t n = x.shape[axes[i]], step = steps[i];
    if (step == 0 || step == INT64_MIN) return op.fail(OnnxMessage::bad_attribute, "steps", step);
    auto from_end = [&](std::int64_t v) {
      return v < 0 ? std::max(v, -n - 1) + n : std::min(v, n);
    };
    std::int64_t start = from_end(starts[i]), end = from_end(ends[i]);
    if (step > 0) {
      start = std::clamp<std::int64_t>(start, 0, n);
      end = std::clamp<std::int64_t>(end, 0, n);
    } else {
      start = std::clamp<std::int64_t>(start, 0, n - 1);
      end = std::clamp<std::int64_t>(end, -1, n - 1);
      if (ends[i] < -n) end = -1;
    }
    const std::int64_t reach = step > 0 ? end - start : start - end;
    const std::int64_t stride = step > 0 ? step : -step;
    to[axes[i]] = n == 0 || reach <= 0 ? 0 : (reach - 1) / stride + 1;
    first[axes[i]] = start;
    by[axes[i]] = step;
    whole = whole && to[axes[i]] == n && step == 1;
  }
  if (whole) return op.alias(0, 0);
  Value& y = op.set(0, x.type, to);
  if (!op.ok()) return;
  const auto strides = strides_of(x.shape);
  copy_contents(op, y, [&](const TensorShape& at) {
    std::int64_t i = 0;
    for (std::size_t d = 0; d < at.size(); ++d) i += (first[d] + at[d] * by[d]) * strides[d];
    return i;
  });
  op.emit(Move{}, {0});
}

void split(Op& op) {
  const Value& x = op.in(0);
  const std::size_t a = op.axis(op.integer("axis", 0), x.rank());
  if (!op.ok()) return;
  std::vector<std::int64_t> sizes = op.list_or_input("split", 1);
  if (!op.ok()) return;
  const std::int64_t n = x.shape[a];
  const auto parts = static_cast<std::int64_t>(std::max<std::size_t>(op.outputs(), 1));
  if (sizes.empty()) {
    const std::int64_t each = (n + parts - 1) / parts;
    for (std::int64_t i = 0; i < parts; ++i)
      sizes.push_back(std::clamp<std::int64_t>(n - i * each, 0, each));
  }
  std::int64_t sum = 0;
  for (std::int64_t s : sizes) sum = s < 0 ? -1 : checked_add(sum, s).value_or(-1);
  if (sum != n || sizes.size() != op.outputs())
    return op.fail(OnnxMessage::shape_mismatch, shape_text(x.shape), shape_text(sizes));
  const auto strides = strides_of(x.shape);
  std::int64_t from = 0;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    TensorShape to = x.shape;
    to[a] = sizes[k];
    Value& y = op.set(k, x.type, to);
    if (!op.ok()) return;
    copy_contents(op, y, [&](const TensorShape& at) {
      std::int64_t i = from * strides[a];
      for (std::size_t d = 0; d < at.size(); ++d) i += at[d] * strides[d];
      return i;
    });
    from += sizes[k];
  }
  op.emit(Move{}, {0});
}

void concatenate(Op& op) {
  TensorShape to = op.shape(0);
  const std::size_t a = op.axis(op.integer("axis", op.version() < 4 ? 1 : 0), to.size());
  bool integers = true, reals = true;
  for (std::size_t i = 0; i < op.inputs() && op.ok(); ++i) {
    const Value& x = op.in(i);
    integers = integers && x.integers;
    reals = reals && x.reals;
    if (i == 0 || !op.ok()) continue;
    bool fits = x.rank() == to.size() && !to.empty();
    for (std::size_t d = 0; fits && d < to.size(); ++d) fits = d == a || to[d] == x.shape[d];
    if (!fits) return op.fail(OnnxMessage::shape_mismatch, shape_text(to), shape_text(x.shape));
    to[a] = checked_add(to[a], x.shape[a]).value_or(-1);
  }
  if (!op.ok()) return;
  if (op.inputs() == 1) return op.alias(0, 0);
  Value& y = op.set(0, op.in(0).type, to);
  if (!op.ok()) return;
  if ((integers || reals) && op.importer().spend_contents(y.count())) {
    std::int64_t outer = 1;
    for (std::size_t d = 0; d < a; ++d) outer *= to[d];
    if (integers)
      y.integers.emplace();
    else
      y.reals.emplace();
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::size_t i = 0; i < op.inputs(); ++i) {
        const std::int64_t chunk = op.in(i).count() / std::max<std::int64_t>(outer, 1);
        if (integers) {
          auto from = op.in(i).integers->begin() + o * chunk;
          y.integers->insert(y.integers->end(), from, from + chunk);
        } else {
          auto from = op.in(i).reals->begin() + o * chunk;
          y.reals->insert(y.reals->end(), from, from + chunk);
        }
      }
  }
  op.emit(Move{}, op.range_of_inputs());
}

void expand(Op& op) {
  const Value& x = op.in(0);
  const auto target = op.need_integers(1);
  if (!op.ok()) return;
  auto to = broadcast(x.shape, target);
  if (!to) return op.fail(OnnxMessage::shape_mismatch, shape_text(x.shape), shape_text(target));
  if (*to == x.shape) return op.alias(0, 0);
  Value& y = op.set(0, x.type, *to);
  if (!op.ok()) return;
  const auto strides = strides_of(x.shape);
  const std::size_t lead = y.rank() - x.rank();
  copy_contents(op, y, [&](const TensorShape& at) {
    std::int64_t i = 0;
    for (std::size_t d = 0; d < x.rank(); ++d) i += x.shape[d] == 1 ? 0 : at[d + lead] * strides[d];
    return i;
  });
  op.emit(Move{}, {0});
}

void tile(Op& op) {
  const Value& x = op.in(0);
  const auto times = op.need_integers(1);
  if (!op.ok()) return;
  if (times.size() != x.rank())
    return op.fail(OnnxMessage::shape_mismatch, shape_text(x.shape), shape_text(times));
  TensorShape to;
  for (std::size_t i = 0; i < times.size(); ++i)
    to.push_back(checked_mul(x.shape[i], times[i]).value_or(-1));
  if (to == x.shape) return op.alias(0, 0);
  Value& y = op.set(0, x.type, to);
  if (!op.ok()) return;
  const auto strides = strides_of(x.shape);
  copy_contents(op, y, [&](const TensorShape& at) {
    std::int64_t i = 0;
    for (std::size_t d = 0; d < at.size(); ++d) i += at[d] % x.shape[d] * strides[d];
    return i;
  });
  op.emit(Move{}, {0});
}

// A copy of the same shape.
void same(Op& op) {
  op.set(0, op.in(0).type, op.shape(0));
  op.emit(Move{}, {0});
}

}  // namespace

const OperatorTable& layout_operators() {
  static const OperatorTable table = {
      {"Reshape", reshape},
      {"Flatten", flatten},
      {"Squeeze", squeeze},
      {"Unsqueeze", unsqueeze},
      {"ExpandDims", unsqueeze},
      {"Transpose", transpose},
      {"Slice", slice},
      {"Split", split},
      {"Concat", concatenate},
      {"Expand", expand},
      {"Tile", tile},
      {"ReverseSequence", same},
      {"Trilu", same},
  };
  return table;
}

}  // namespace trigon::onnx
