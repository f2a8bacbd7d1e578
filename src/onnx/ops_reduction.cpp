// Sums, means, extremes over some dimensions.

#include <algorithm>
#include <numeric>

#include "onnx/op.hpp"

namespace trigon::onnx {
namespace {

void reduce(Op& op) {
  const Value& x = op.in(0);
  const bool nothing = op.integer("noop_with_empty_axes", 0) != 0;
  auto axes = op.axes(op.list_or_input("axes", 1), x.rank());
  if (!op.ok()) return;
  if (axes.empty() && nothing) return op.alias(0, 0);
  if (axes.empty()) {
    axes.resize(x.rank());
    std::iota(axes.begin(), axes.end(), std::size_t{0});
  }
  const bool keep = op.integer("keepdims", 1) != 0;
  TensorShape to;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end())
      to.push_back(x.shape[i]);
    else if (keep)
      to.push_back(1);
  }
  Value& y = op.set(0, x.type, to);
  if (!op.ok()) return;
  // Shape arithmetic: the product of sizes, the largest of them.
  if (x.integers && y.count() == 1 && x.count() > 0) {
    const std::string& n = op.node().op;
    std::optional<std::int64_t> v = x.integers->front();
    for (std::size_t i = 1; i < x.integers->size() && v; ++i) {
      const std::int64_t e = (*x.integers)[i];
      if (n == "ReduceProd")
        v = checked_mul(*v, e);
      else if (n == "ReduceSum")
        v = checked_add(*v, e);
      else if (n == "ReduceMax")
        v = std::max(*v, e);
      else if (n == "ReduceMin")
        v = std::min(*v, e);
      else
        v.reset();
    }
    if (v) y.integers = std::vector<std::int64_t>{*v};
  }
  op.emit(Reduction{}, {0});
}

void arg(Op& op) {
  const Value& x = op.in(0);
  const std::size_t a = op.axis(op.integer("axis", 0), x.rank());
  if (!op.ok()) return;
  TensorShape to = x.shape;
  if (op.integer("keepdims", 1))
    to[a] = 1;
  else
    to.erase(to.begin() + static_cast<std::ptrdiff_t>(a));
  op.set(0, kInt64, to);
  op.emit(Reduction{}, {0});
}

void cumulate(Op& op) {
  op.set(0, op.in(0).type, op.shape(0));
  op.emit(Elementwise{"cumulative_sum", 1, Keeps::nothing}, {0});
}

}  // namespace

const OperatorTable& reduction_operators() {
  static const OperatorTable table = {
      {"ReduceL1", reduce},        {"ReduceL2", reduce},   {"ReduceLogSum", reduce},
      {"ReduceLogSumExp", reduce}, {"ReduceMax", reduce},  {"ReduceMean", reduce},
      {"ReduceMin", reduce},       {"ReduceProd", reduce}, {"ReduceSum", reduce},
      {"ReduceSumSquare", reduce}, {"ArgMax", arg},        {"ArgMin", arg},
      {"CumSum", cumulate},        {"CumProd", cumulate}};
  return table;
}

}  // namespace trigon::onnx
