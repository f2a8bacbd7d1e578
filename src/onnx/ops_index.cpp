// Rows and elements chosen by indices, and written to them.

#include <algorithm>

#include "onnx/op.hpp"

namespace trigon::onnx {
namespace {

void gather(Op& op) {
  const Value &x = op.in(0), &at = op.in(1);
  const std::size_t a = op.axis(op.integer("axis", 0), x.rank());
  if (!op.ok()) return;
  TensorShape to(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(a));
  to.insert(to.end(), at.shape.begin(), at.shape.end());
  to.insert(to.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(a) + 1, x.shape.end());
  Value& y = op.set(0, x.type, to);
  if (!op.ok()) return;
  if (x.known() && at.integers && op.importer().spend_contents(y.count())) {
    std::int64_t outer = 1, inner = 1;
    for (std::size_t d = 0; d < a; ++d) outer *= x.shape[d];
    for (std::size_t d = a + 1; d < x.rank(); ++d) inner *= x.shape[d];
    if (x.integers) y.integers.emplace();
    if (x.reals) y.reals.emplace();
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t v : *at.integers) {
        const std::int64_t n = x.shape[a], row = v < 0 ? v + n : v;
        if (row < 0 || row >= n) return op.fail(OnnxMessage::bad_attribute, "index", v);
        const std::int64_t from = (o * n + row) * inner;
        if (x.integers)
          y.integers->insert(y.integers->end(), x.integers->begin() + from,
                             x.integers->begin() + from + inner);
        if (x.reals)
          y.reals->insert(y.reals->end(), x.reals->begin() + from, x.reals->begin() + from + inner);
      }
  }
  // A stored table: rows are read from it.
  if (x.constant && !at.constant) return op.emit(TableLookup{at.count()}, {1}, {0});
  op.emit(TableLookup{at.count()}, {0, 1});
}

void gather_elements(Op& op) {
  const Value &x = op.in(0), &at = op.in(1);
  if (!op.ok()) return;
  if (x.rank() != at.rank())
    return op.fail(OnnxMessage::shape_mismatch, shape_text(x.shape), shape_text(at.shape));
  op.set(0, x.type, at.shape);
  op.emit(Selection{}, {0, 1});
}

void gather_nd(Op& op) {
  const Value &x = op.in(0), &at = op.in(1);
  op.need_rank(1, 1);
  const std::int64_t batch = op.integer("batch_dims", 0), depth = op.dim(1, -1);
  if (!op.ok()) return;
  if (batch < 0 || batch >= static_cast<std::int64_t>(at.rank()) || depth < 0 ||
      batch + depth > static_cast<std::int64_t>(x.rank()))
    return op.fail(OnnxMessage::shape_mismatch, shape_text(x.shape), shape_text(at.shape));
  TensorShape to(at.shape.begin(), at.shape.end() - 1);
  to.insert(to.end(), x.shape.begin() + batch + depth, x.shape.end());
  op.set(0, x.type, to);
  if (x.constant && !at.constant)
    return op.emit(TableLookup{at.count() / std::max<std::int64_t>(depth, 1)}, {1}, {0});
  op.emit(Selection{}, {0, 1});
}

// The result has the shape of the data.
void scatter(Op& op) {
  const Value& x = op.in(0);
  const Value& updates = op.in(2);
  if (!op.ok()) return;
  if (op.node().op != "ScatterND" && (op.rank(1) != updates.rank() || x.rank() != updates.rank()))
    return op.fail(OnnxMessage::shape_mismatch, shape_text(op.shape(1)), shape_text(updates.shape));
  op.set(0, x.type, x.shape);
  op.emit(Move{}, {0, 1, 2});
}

void one_hot(Op& op) {
  const auto depth_values = op.need_reals(1);
  TensorShape to = op.shape(0);
  if (!op.ok()) return;
  if (depth_values.size() != 1 || !(depth_values[0] >= 0 && depth_values[0] < 1e12))
    return op.fail(OnnxMessage::bad_rank, 2, shape_text(op.shape(1)));
  const std::size_t a = op.axis(op.integer("axis", -1), to.size() + 1);
  if (!op.ok()) return;
  to.insert(to.begin() + static_cast<std::ptrdiff_t>(a),
            static_cast<std::int64_t>(depth_values[0]));
  op.set(0, op.in(2).type, to);
  op.emit(Elementwise{"compare", 1, Keeps::nothing}, {0}, {}, {2});
}

// Bilinear samples of x [n, c, ...] at grid [n, ..., dimensions].
void grid_sample(Op& op) {
  op.need_rank(0, 3);
  op.need_rank(1, 3);
  if (!op.ok()) return;
  TensorShape to{op.dim(0, 0), op.dim(0, 1)};
  const TensorShape grid = op.shape(1);
  to.insert(to.end(), grid.begin() + 1, grid.end() - 1);
  op.set(0, op.in(0).type, to);
  op.emit(Elementwise{"grid_sample", 7, Keeps::inputs}, {0, 1});
}

// theta [n, d, d + 1], size -> [n, spatial..., d].
void affine_grid(Op& op) {
  op.need_rank(0, 3, 3);
  const auto size = op.need_integers(1);
  if (!op.ok()) return;
  if (size.size() < 3) return op.fail(OnnxMessage::bad_rank, 2, shape_text(size));
  TensorShape to{size[0]};
  to.insert(to.end(), size.begin() + 2, size.end());
  to.push_back(static_cast<std::int64_t>(size.size()) - 2);
  op.set(0, op.in(0).type, to);
  op.emit(Elementwise{"affine_grid", 2 * static_cast<double>(size.size() - 1), Keeps::nothing},
          {0});
}

}  // namespace

const OperatorTable& index_operators() {
  static const OperatorTable table = {
      {"Gather", gather},           {"GatherElements", gather_elements},
      {"GatherND", gather_nd},      {"Scatter", scatter},
      {"ScatterElements", scatter}, {"ScatterND", scatter},
      {"TensorScatter", scatter},   {"OneHot", one_hot},
      {"GridSample", grid_sample},  {"AffineGrid", affine_grid}};
  return table;
}

}  // namespace trigon::onnx
