// Shapes as values, and values made of nothing: constants, ranges, random numbers.

#include <algorithm>
#include <cmath>

#include "model/json_value.hpp"
#include "onnx/op.hpp"

namespace trigon::onnx {
namespace {

void shape_of(Op& op) {
  const TensorShape s = op.shape(0);
  const auto rank = static_cast<std::int64_t>(s.size());
  auto clamp = [&](std::int64_t v) {
    return std::clamp<std::int64_t>(v < 0 ? std::max(v, -rank) + rank : v, 0, rank);
  };
  const std::int64_t start = clamp(op.integer("start", 0)), end = clamp(op.integer("end", rank));
  std::vector<std::int64_t> v;
  for (std::int64_t i = start; i < end; ++i) v.push_back(s[static_cast<std::size_t>(i)]);
  Value& y = op.set(0, kInt64, {static_cast<std::int64_t>(v.size())});
  y.constant = true;
  y.integers = std::move(v);
}

void size_of(Op& op) {
  const std::int64_t n = op.in(0).count();
  Value& y = op.set(0, kInt64, {});
  y.constant = true;
  y.integers = std::vector<std::int64_t>{n};
}

void constant(Op& op) {
  if (const OnnxAttribute* a = op.attribute("value"); a && a->tensor)
    return op.put(0, op.importer().add_tensor(*a->tensor, op.name()));
  if (const OnnxAttribute* a = op.attribute("sparse_value"); a && a->tensor)
    return op.put(0, op.importer().add_tensor(*a->tensor, op.name()));
  const OnnxAttribute* a = nullptr;
  if ((a = op.attribute("value_int")) && a->integer) {
    op.set(0, kInt64, {}).integers = std::vector<std::int64_t>{*a->integer};
  } else if ((a = op.attribute("value_ints"))) {
    op.set(0, kInt64, {static_cast<std::int64_t>(a->integers.size())}).integers = a->integers;
  } else if ((a = op.attribute("value_float")) && a->real) {
    op.set(0, kFloat, {}).reals = std::vector<double>{*a->real};
  } else if ((a = op.attribute("value_floats"))) {
    op.set(0, kFloat, {static_cast<std::int64_t>(a->reals.size())}).reals = a->reals;
  } else if (op.given("value_string")) {
    op.set(0, kString, {});
  } else if ((a = op.attribute("value_strings"))) {
    op.set(0, kString, {static_cast<std::int64_t>(a->texts.size())});
  } else {
    op.fail(OnnxMessage::attribute_missing, "value");
  }
}

void constant_of_shape(Op& op) {
  const auto to = op.need_integers(0);
  if (!op.ok()) return;
  std::int32_t type = kFloat;
  // One element, of either kind.
  std::vector<std::int64_t> whole;
  std::vector<double> real{0};
  if (const OnnxAttribute* a = op.attribute("value"); a && a->tensor) {
    type = a->tensor->type;
    real.clear();
    auto integers = integer_contents(op.importer().file(), *a->tensor);
    auto reals = real_contents(op.importer().file(), *a->tensor);
    if (integers && integers->size() == 1) whole = *integers;
    if (reals && reals->size() == 1) real = *reals;
  }
  Value& y = op.set(0, type, to);
  if (!op.ok() || !op.importer().spend_contents(y.count())) return;
  const auto n = static_cast<std::size_t>(y.count());
  if (!whole.empty()) y.integers = std::vector<std::int64_t>(n, whole[0]);
  if (!real.empty()) y.reals = std::vector<double>(n, real[0]);
}

void range(Op& op) {
  const std::int32_t type = op.in(0).type;
  if (!op.ok()) return;
  std::int64_t n = 0;
  if (is_integer(type)) {
    const std::int64_t start = op.need_integer(0), limit = op.need_integer(1);
    const std::int64_t delta = op.inputs() > 2 ? op.need_integer(2) : 1;
    if (!op.ok()) return;
    if (delta == 0 || delta == INT64_MIN || start < -kMostDimension || start > kMostDimension ||
        limit < -kMostDimension || limit > kMostDimension)
      return op.fail(OnnxMessage::bad_attribute, "delta", delta);
    const std::int64_t reach = delta > 0 ? limit - start : start - limit;
    const std::int64_t step = delta > 0 ? delta : -delta;
    n = reach <= 0 ? 0 : (reach - 1) / step + 1;
    Value& y = op.set(0, type, {n});
    if (!op.ok() || !op.importer().spend_contents(n)) return;
    y.integers.emplace();
    for (std::int64_t i = 0; i < n; ++i) y.integers->push_back(start + i * delta);
    return;
  }
  std::vector<double> v;
  for (std::size_t i = 0; i < 3; ++i) {
    auto one = op.need_reals(i);
    if (!op.ok()) return;
    v.push_back(one.size() == 1 ? one[0] : 0);
  }
  const double count = std::ceil((v[1] - v[0]) / v[2]);
  if (!(count < 1e12)) return op.fail(OnnxMessage::bad_attribute, "delta", v[2]);
  n = count > 0 ? static_cast<std::int64_t>(count) : 0;
  Value& y = op.set(0, type, {n});
  if (!op.ok() || !op.importer().spend_contents(n)) return;
  y.reals.emplace();
  for (std::int64_t i = 0; i < n; ++i) y.reals->push_back(v[0] + static_cast<double>(i) * v[2]);
}

std::int32_t type_attribute(Op& op, std::string_view key, std::int32_t otherwise) {
  const std::int64_t t = op.integer(key, otherwise);
  return t > 0 && t <= kInt2 ? static_cast<std::int32_t>(t) : otherwise;
}

void eye_like(Op& op) {
  op.need_rank(0, 2, 2);
  op.set(0, type_attribute(op, "dtype", op.in(0).type), op.shape(0)).constant = true;
}

// Different numbers each time, so a value that flows.
void random_of_shape(Op& op) {
  op.vary();
  op.set(0, type_attribute(op, "dtype", kFloat), op.list("shape"));
  op.emit(Elementwise{"random", 4, Keeps::nothing}, {});
}
void random_like(Op& op) {
  op.vary();
  op.set(0, type_attribute(op, "dtype", op.in(0).type), op.shape(0));
  op.emit(Elementwise{"random", 4, Keeps::nothing}, {0});
}
void multinomial(Op& op) {
  op.need_rank(0, 2, 2);
  op.vary();
  op.set(0, type_attribute(op, "dtype", kInt32), {op.dim(0, 0), op.integer("sample_size", 1)});
  op.emit(Selection{}, {0});
}

// Texts: their number is known, what is left of them is not.
void string_normalizer(Op& op) {
  op.importer().note(message(OnnxMessage::note_bound, op.node().op, op.name()));
  op.set(0, kString, op.shape(0));
  op.emit(Selection{}, {0});
}

void tfidf(Op& op) {
  op.need_rank(0, 1, 2);
  const auto places = op.list("ngram_indexes");
  std::int64_t most = -1;
  for (std::int64_t p : places) most = std::max(most, p);
  if (!op.ok() || most >= kMostDimension)
    return op.fail(OnnxMessage::attribute_missing, "ngram_indexes");
  TensorShape to{most + 1};
  if (op.rank(0) == 2) to.insert(to.begin(), op.dim(0, 0));
  op.set(0, kFloat, to);
  op.emit(Selection{}, {0});
}

}  // namespace

const OperatorTable& shape_operators() {
  static const OperatorTable table = {{"Shape", shape_of},
                                      {"Size", size_of},
                                      {"Constant", constant},
                                      {"ConstantOfShape", constant_of_shape},
                                      {"Range", range},
                                      {"EyeLike", eye_like},
                                      {"RandomNormal", random_of_shape},
                                      {"RandomUniform", random_of_shape},
                                      {"RandomNormalLike", random_like},
                                      {"RandomUniformLike", random_like},
                                      {"Bernoulli", random_like},
                                      {"Multinomial", multinomial},
                                      {"StringNormalizer", string_normalizer},
                                      {"TfIdfVectorizer", tfidf}};
  return table;
}

}  // namespace trigon::onnx
