// Functions of single elements: activations, arithmetic with broadcasting, comparisons, casts.
// Operations of one element: an exponential, logarithm or circular function counts as four, as in
// the networks that Trigon builds itself.

#include <algorithm>
#include <cmath>

#include "onnx/element_values.hpp"
#include "onnx/op.hpp"

namespace trigon::onnx {
namespace {

enum class Gives : std::uint8_t { same, boolean };

struct Function {
  std::string_view op;
  const char* name;
  double flops;
  Keeps keeps;
  Gives gives = Gives::same;
};

constexpr Function kUnary[] = {
    {"Abs", "abs", 1, Keeps::inputs},
    {"Acos", "acos", 4, Keeps::inputs},
    {"Acosh", "acosh", 6, Keeps::inputs},
    {"Asin", "asin", 4, Keeps::inputs},
    {"Asinh", "asinh", 6, Keeps::inputs},
    {"Atan", "atan", 4, Keeps::inputs},
    {"Atanh", "atanh", 6, Keeps::inputs},
    {"BitwiseNot", "not", 1, Keeps::nothing},
    {"Ceil", "ceil", 1, Keeps::nothing},
    {"Celu", "celu", 6, Keeps::output},
    {"Cos", "cos", 4, Keeps::inputs},
    {"Cosh", "cosh", 6, Keeps::inputs},
    {"Elu", "elu", 5, Keeps::output},
    {"Erf", "erf", 4, Keeps::inputs},
    {"Exp", "exp", 4, Keeps::output},
    {"FastGelu", "gelu", 8, Keeps::inputs},
    {"BiasGelu", "gelu", 9, Keeps::inputs},
    {"Floor", "floor", 1, Keeps::nothing},
    {"Gelu", "gelu", 8, Keeps::inputs},
    {"HardSigmoid", "hard_sigmoid", 3, Keeps::inputs},
    {"HardSwish", "hard_swish", 4, Keeps::inputs},
    {"IsInf", "is_inf", 1, Keeps::nothing, Gives::boolean},
    {"IsNaN", "is_nan", 1, Keeps::nothing, Gives::boolean},
    {"LeakyRelu", "leaky_relu", 2, Keeps::inputs},
    {"Log", "log", 4, Keeps::inputs},
    {"Mish", "mish", 12, Keeps::inputs},
    {"Neg", "negate", 1, Keeps::nothing},
    {"Not", "not", 1, Keeps::nothing, Gives::boolean},
    {"QuickGelu", "silu", 6, Keeps::inputs},
    {"Reciprocal", "reciprocal", 1, Keeps::output},
    {"Relu", "relu", 1, Keeps::output},
    {"Round", "round", 1, Keeps::nothing},
    {"Selu", "selu", 6, Keeps::output},
    {"Shrink", "shrink", 2, Keeps::inputs},
    {"Sigmoid", "sigmoid", 5, Keeps::output},
    {"Sign", "sign", 1, Keeps::nothing},
    {"Sin", "sin", 4, Keeps::inputs},
    {"Sinh", "sinh", 6, Keeps::inputs},
    {"Softplus", "softplus", 6, Keeps::inputs},
    {"Softsign", "softsign", 3, Keeps::inputs},
    {"Sqrt", "sqrt", 1, Keeps::output},
    {"Swish", "silu", 6, Keeps::inputs},
    {"Tan", "tan", 4, Keeps::output},
    {"Tanh", "tanh", 6, Keeps::output},
    {"ThresholdedRelu", "relu", 1, Keeps::output},
};

constexpr Function kBroadcast[] = {
    {"Add", "add", 1, Keeps::nothing},
    {"And", "and", 1, Keeps::nothing, Gives::boolean},
    {"BitShift", "shift", 1, Keeps::nothing},
    {"BitwiseAnd", "and", 1, Keeps::nothing},
    {"BitwiseOr", "or", 1, Keeps::nothing},
    {"BitwiseXor", "xor", 1, Keeps::nothing},
    {"Div", "divide", 1, Keeps::inputs},
    {"Equal", "compare", 1, Keeps::nothing, Gives::boolean},
    {"Greater", "compare", 1, Keeps::nothing, Gives::boolean},
    {"GreaterOrEqual", "compare", 1, Keeps::nothing, Gives::boolean},
    {"Less", "compare", 1, Keeps::nothing, Gives::boolean},
    {"LessOrEqual", "compare", 1, Keeps::nothing, Gives::boolean},
    {"Max", "maximum", 1, Keeps::mask},
    {"Mean", "mean", 1, Keeps::nothing},
    {"Min", "minimum", 1, Keeps::mask},
    {"Mod", "modulo", 1, Keeps::nothing},
    {"Mul", "multiply", 1, Keeps::inputs},
    {"Or", "or", 1, Keeps::nothing, Gives::boolean},
    {"PRelu", "prelu", 2, Keeps::inputs},
    {"Pow", "power", 4, Keeps::inputs},
    {"Sub", "subtract", 1, Keeps::nothing},
    {"Sum", "add", 1, Keeps::nothing},
    {"Xor", "xor", 1, Keeps::nothing, Gives::boolean},
};

const Function& function_of(const Op& op) {
  for (const Function& f : kUnary)
    if (f.op == op.node().op) return f;
  for (const Function& f : kBroadcast)
    if (f.op == op.node().op) return f;
  return kUnary[0];
}

void unary(Op& op) {
  const Function& f = function_of(op);
  const Value& x = op.in(0);
  Value& y = op.set(0, f.gives == Gives::boolean ? std::int32_t{kBool} : x.type, x.shape);
  if (!op.ok()) return;
  if (x.known() && folds_unary(f.op, x.integers.has_value()) &&
      op.importer().spend_contents(x.count())) {
    if (x.integers) {
      y.integers.emplace();
      for (std::int64_t v : *x.integers) y.integers->push_back(apply_unary(f.op, v));
    } else {
      y.reals.emplace();
      for (double v : *x.reals) y.reals->push_back(apply_unary(f.op, v));
    }
  }
  op.emit(Elementwise{f.name, f.flops, f.keeps}, {0}, op.range_of_inputs(1));
}

// Operators of two or more values; before opset 7 the second is laid over the first.
void combine(Op& op) {
  const Function& f = function_of(op);
  TensorShape shape = op.shape(0);
  for (std::size_t i = 1; i < op.inputs() && op.ok(); ++i) {
    if (f.op == "PRelu" || (op.version() < 7 && op.integer("broadcast", 0))) break;
    auto wider = broadcast(shape, op.shape(i));
    if (!wider)
      return op.fail(OnnxMessage::shape_mismatch, shape_text(shape), shape_text(op.shape(i)));
    shape = *wider;
  }
  const std::int32_t type = f.gives == Gives::boolean ? std::int32_t{kBool} : op.in(0).type;
  Value& y = op.set(0, type, shape);
  if (!op.ok()) return;
  const Indices all = op.range_of_inputs();
  bool integers = true, reals = true;
  for (std::size_t i : all) {
    integers = integers && op.in(i).integers;
    reals = reals && op.in(i).reals;
  }
  if ((integers || reals) && op.version() >= 7 && op.importer().spend_contents(y.count())) {
    std::vector<std::int64_t> whole;
    std::vector<double> real;
    std::vector<Source> sources;
    for (std::size_t i : all) sources.emplace_back(op.shape(i), y.shape);
    bool known = true;
    for (std::int64_t e = 0; e < y.count() && known; ++e) {
      if (integers) {
        std::optional<std::int64_t> v = (*op.in(all[0]).integers)[sources[0](e)];
        for (std::size_t i = 1; i < all.size() && v; ++i)
          v = apply_integer(f.op, *v, (*op.in(all[i]).integers)[sources[i](e)]);
        known = v.has_value();
        if (v) whole.push_back(*v);
        continue;
      }
      std::optional<double> v = (*op.in(all[0]).reals)[sources[0](e)];
      for (std::size_t i = 1; i < all.size() && v; ++i) {
        const double b = (*op.in(all[i]).reals)[sources[i](e)];
        if (f.gives == Gives::boolean) {
          auto truth = compare_real(f.op, *v, b);
          if (truth) whole.push_back(*truth);
          v = truth ? std::optional<double>(0) : std::nullopt;
        } else {
          v = apply_real(f.op, *v, b);
        }
      }
      known = v.has_value();
      if (v && f.gives != Gives::boolean) real.push_back(*v);
    }
    if (known && (integers || f.gives == Gives::boolean))
      y.integers = std::move(whole);
    else if (known)
      y.reals = std::move(real);
  }
  double flops = f.flops * std::max<double>(1, static_cast<double>(all.size()) - 1);
  // A square is a product, a root one operation.
  if (f.op == "Pow" && op.has(1) && op.in(1).count() == 1 && op.in(1).known()) {
    const double power = op.need_reals(1).front();
    if (power == 2 || power == 0.5) flops = 1;
  }
  if (f.op == "PRelu")
    op.emit(Elementwise{f.name, flops, f.keeps}, {0}, {1});
  else
    op.emit(Elementwise{f.name, flops, f.keeps}, all);
}

void where(Op& op) {
  auto shape = broadcast(op.shape(1), op.shape(2));
  if (shape) shape = broadcast(*shape, op.shape(0));
  if (!op.ok()) return;
  if (!shape)
    return op.fail(OnnxMessage::shape_mismatch, shape_text(op.shape(1)), shape_text(op.shape(2)));
  Value& y = op.set(0, op.in(1).type, *shape);
  if (!op.ok()) return;
  const Value &c = op.in(0), &a = op.in(1), &b = op.in(2);
  if (c.integers && a.integers && b.integers && op.importer().spend_contents(y.count())) {
    const Source from_c(c.shape, y.shape), from_a(a.shape, y.shape), from_b(b.shape, y.shape);
    y.integers.emplace();
    for (std::int64_t e = 0; e < y.count(); ++e)
      y.integers->push_back((*c.integers)[from_c(e)] ? (*a.integers)[from_a(e)]
                                                     : (*b.integers)[from_b(e)]);
  }
  op.emit(Elementwise{"select", 1, Keeps::mask}, {}, {}, {0, 1, 2});
}

void cast(Op& op) {
  const Value& x = op.in(0);
  std::int64_t to = op.node().op == "CastLike" ? op.in(1).type : op.integer("to", 0);
  if (!op.ok()) return;
  if (to < INT32_MIN || to > INT32_MAX || !format_of_type(static_cast<std::int32_t>(to)))
    return op.fail(OnnxMessage::bad_attribute, "to", to);
  const auto type = static_cast<std::int32_t>(to);
  Value& y = op.set(0, type, x.shape);
  if (!op.ok()) return;
  y.constant = x.constant;
  if (x.known() && op.importer().spend_contents(x.count())) {
    if (is_integer(type)) {
      y.integers.emplace();
      if (x.integers)
        for (std::int64_t v : *x.integers) y.integers->push_back(type == kBool ? v != 0 : v);
      else
        for (double v : *x.reals)
          y.integers->push_back(!(std::fabs(v) < 9e18) ? 0
                                : type == kBool        ? v != 0
                                                       : static_cast<std::int64_t>(v));
    } else if (is_floating(type)) {
      y.reals = op.need_reals(0);
    }
  }
  if (x.constant) {
    y.stored = x.stored;  // as the file has it
    y.beside = x.beside;
    return;
  }
  op.emit(Elementwise{"cast", 0, Keeps::nothing}, {0});
}

void clip(Op& op) {
  const Value& x = op.in(0);
  Value& y = op.set(0, x.type, x.shape);
  if (!op.ok()) return;
  if (x.integers && op.version() >= 11 && op.importer().spend_contents(x.count())) {
    const auto *low = op.integers(1), *high = op.integers(2);
    if ((!op.has(1) || (low && low->size() == 1)) && (!op.has(2) || (high && high->size() == 1))) {
      y.integers.emplace();
      for (std::int64_t v : *x.integers) {
        if (low) v = std::max(v, low->front());
        if (high) v = std::min(v, high->front());
        y.integers->push_back(v);
      }
    }
  }
  op.emit(Elementwise{"clip", 2, Keeps::inputs}, {0}, {}, op.range_of_inputs(1));
}

void dropout(Op& op) {
  const Value& x = op.in(0);
  op.set(0, x.type, x.shape);
  if (op.wants(1)) op.set(1, op.version() < 10 ? x.type : std::int32_t{kBool}, x.shape);
  op.emit(Elementwise{"dropout", 2, Keeps::mask}, {0});
}

// Learned values are added, then something else is done.
void bias_add(Op& op) {
  op.set(0, op.in(0).type, op.shape(0));
  op.emit(Elementwise{"add", 2, Keeps::nothing}, {0, 2}, {1});
}

void bias_split_gelu(Op& op) {
  TensorShape shape = op.shape(0);
  op.need_rank(0, 1);
  if (!op.ok()) return;
  shape.back() /= 2;
  op.set(0, op.in(0).type, std::move(shape));
  op.emit(Elementwise{"gelu", 11, Keeps::inputs}, {0}, {1});
}

void identity(Op& op) { op.alias(0, 0); }

// Old operators of ONNX's experimental set.
void same_shape(Op& op) {
  op.set(0, op.in(0).type, op.shape(0));
  op.emit(Elementwise{"scale", 2, Keeps::nothing}, {0});
}

// A step of an optimiser: new values of what it is given.
void optimizer_step(Op& op) {
  for (std::size_t k = 0; k < op.outputs(); ++k) {
    // R, T, then X_1.., G_1.., states: the outputs are new X and new states.
    const std::size_t each = op.node().op == "Adam" ? 4 : 3;
    const std::size_t n = (op.inputs() - 2) / each;
    const std::size_t from = k < n ? 2 + k : 2 + n + k;
    op.set(k, op.in(from).type, op.shape(from));
  }
  op.emit(Elementwise{"optimizer", 8, Keeps::nothing}, op.range_of_inputs(2));
}

}  // namespace

const OperatorTable& elementwise_operators() {
  static const OperatorTable table = [] {
    OperatorTable t;
    for (const Function& f : kUnary) t.push_back({f.op, unary});
    for (const Function& f : kBroadcast) t.push_back({f.op, combine});
    t.insert(t.end(), {{"Where", where},
                       {"Cast", cast},
                       {"CastLike", cast},
                       {"Clip", clip},
                       {"Dropout", dropout},
                       {"BiasDropout", bias_add},
                       {"BiasAdd", bias_add},
                       {"BiasSplitGelu", bias_split_gelu},
                       {"Identity", identity},
                       {"ImageScaler", same_shape},
                       {"ScaledTanh", same_shape},
                       {"ParametricSoftplus", same_shape},
                       {"Affine", same_shape},
                       {"Scale", same_shape},
                       {"Adagrad", optimizer_step},
                       {"Adam", optimizer_step},
                       {"Momentum", optimizer_step}});
    return t;
  }();
  return table;
}

}  // namespace trigon::onnx
