#include "onnx/product.hpp"

#include <algorithm>

namespace trigon::onnx {
namespace {

struct Sizes {
  TensorShape batch;  // broadcast
  std::int64_t m = 1, n = 1, k = 1;
  bool row = false, column = false;  // a or b was a vector
};

std::optional<Sizes> sizes_of(Op& op, const Product& p) {
  TensorShape a = op.shape(p.a), b = op.shape(p.b);
  if (!op.ok()) return std::nullopt;
  if (a.empty() || b.empty()) {
    op.fail(OnnxMessage::bad_rank, static_cast<std::int64_t>((a.empty() ? p.a : p.b) + 1),
            shape_text({}));
    return std::nullopt;
  }
  Sizes s;
  if (a.size() == 1) {
    s.row = true;
    a.insert(a.begin(), 1);
  }
  if (b.size() == 1) {
    s.column = true;
    b.push_back(1);
  }
  std::size_t ra = a.size(), rb = b.size();
  if (p.transpose_a && !s.row) std::swap(a[ra - 1], a[ra - 2]);
  if (p.transpose_b && !s.column) std::swap(b[rb - 1], b[rb - 2]);
  s.m = a[ra - 2];
  s.k = a[ra - 1];
  s.n = b[rb - 1];
  auto batch = broadcast(TensorShape(a.begin(), a.end() - 2), TensorShape(b.begin(), b.end() - 2));
  if (s.k != b[rb - 2] || !batch) {
    op.fail(OnnxMessage::shape_mismatch, shape_text(op.shape(p.a)), shape_text(op.shape(p.b)));
    return std::nullopt;
  }
  s.batch = std::move(*batch);
  return s;
}

TensorShape shape_of(const Sizes& s) {
  TensorShape out = s.batch;
  if (!s.row) out.push_back(s.m);
  if (!s.column) out.push_back(s.n);
  return out;
}

// Writes what computes it through `emit`.
template <class Emit>
void lower(Op& op, const Product& p, const Sizes& s, Emit emit) {
  const bool a_stored = op.in(p.a).constant, b_stored = op.in(p.b).constant;
  Indices parameters, constants = p.constants;
  auto flat = [&](std::size_t i) {
    return op.in(i).count() == op.dim(i, -1) * (op.rank(i) > 1 ? op.dim(i, -2) : 1);
  };
  if (b_stored && !a_stored && flat(p.b)) {
    TensorShape x = op.shape(p.a);
    if (p.transpose_a && x.size() > 1) std::swap(x[x.size() - 1], x[x.size() - 2]);
    parameters = {p.b};
    parameters.insert(parameters.end(), p.beside.begin(), p.beside.end());
    emit(Projection{}, Indices{op.seen_as(p.a, x)}, parameters, constants);
    return;
  }
  if (a_stored && !b_stored && flat(p.a)) {
    TensorShape x = op.shape(p.b);
    if (!p.transpose_b && x.size() > 1) std::swap(x[x.size() - 1], x[x.size() - 2]);
    parameters = {p.a};
    parameters.insert(parameters.end(), p.beside.begin(), p.beside.end());
    emit(Projection{}, Indices{op.seen_as(p.b, x)}, parameters, constants);
    return;
  }
  const std::int64_t batch = checked_elements(s.batch).value_or(1);
  emit(MatrixProduct{batch, s.m, s.n, s.k}, Indices{p.a, p.b}, p.beside, constants);
}

}  // namespace

std::optional<TensorShape> product_shape(Op& op, const Product& p) {
  auto s = sizes_of(op, p);
  if (!s) return std::nullopt;
  return shape_of(*s);
}

void multiply(Op& op, const Product& p, std::int32_t type) {
  auto s = sizes_of(op, p);
  if (!s) return;
  op.set(0, type, shape_of(*s));
  if (!op.ok()) return;
  lower(op, p, *s,
        [&](NodeOperation o, const Indices& data, const Indices& parameters,
            const Indices& constants) { op.emit(o, data, parameters, constants); });
}

std::size_t multiply_inner(Op& op, const Product& p, std::int32_t type, std::string_view suffix) {
  auto s = sizes_of(op, p);
  if (!s) return p.a;
  const std::size_t to = op.inner(type, shape_of(*s));
  if (op.ok())
    lower(op, p, *s,
          [&](NodeOperation o, const Indices& data, const Indices& parameters,
              const Indices& constants) {
            op.emit_inner(o, to, data, parameters, constants, suffix);
          });
  return to;
}

}  // namespace trigon::onnx
