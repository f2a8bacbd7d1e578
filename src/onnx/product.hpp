#pragma once
// Products of matrices, whatever the operator around them.

#include "onnx/op.hpp"

namespace trigon::onnx {

// Inputs a [..., m, k] and b [..., k, n] (transposed where said) make `output`, of the shape that
// matmul gives. `beside` holds biases, which train; `constants` scales and zero points. A stored b
// of two dimensions is a projection, a stored a as well, turned around.
struct Product {
  std::size_t a = 0, b = 1;
  bool transpose_a = false, transpose_b = false;
  Indices beside, constants;
};
// The shape; empty after an error.
std::optional<TensorShape> product_shape(Op& op, const Product& p);
// Output 0 of `type`.
void multiply(Op& op, const Product& p, std::int32_t type);
// Into an inner value, whose index is returned.
std::size_t multiply_inner(Op& op, const Product& p, std::int32_t type, std::string_view suffix);

}  // namespace trigon::onnx
