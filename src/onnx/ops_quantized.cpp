// Quantisation, and products and functions of quantised values. Scales and zero points are
// constants; weights keep the bytes of the file.

#include <algorithm>

#include "onnx/product.hpp"

namespace trigon::onnx {
namespace {

std::int32_t type_of_zero_point(Op& op, std::size_t zero_point, std::int32_t otherwise) {
  return op.has(zero_point) ? op.in(zero_point).type : otherwise;
}

void quantize(Op& op) {
  std::int64_t type = op.integer("output_dtype", 0);
  if (type < 1 || type > kInt2) type = type_of_zero_point(op, 2, kUint8);
  op.set(0, static_cast<std::int32_t>(type), op.shape(0));
  op.emit(Elementwise{"quantize", 3, Keeps::nothing}, {0}, {}, {1, 2});
}

void dequantize(Op& op) {
  const Value& x = op.in(0);
  const std::int32_t type = op.in(1).type;
  Value& y = op.set(0, type, x.shape);
  if (!op.ok()) return;
  if (!x.constant || !x.stored)
    return op.emit(Elementwise{"dequantize", 2, Keeps::nothing}, {0}, {}, {1, 2});
  // A stored weight: as the file has it, its scales beside it.
  y.constant = true;
  y.stored = x.stored;
  y.beside = x.beside;
  for (std::size_t i : {std::size_t{1}, std::size_t{2}})
    if (op.has(i) && op.in(i).stored) y.beside.push_back(*op.in(i).stored);
}

void dynamic_quantize(Op& op) {
  op.set(0, kUint8, op.shape(0));
  op.set(1, kFloat, {});
  op.set(2, kUint8, {});
  op.emit(Elementwise{"quantize", 5, Keeps::nothing}, {0});
}

void matmul_integer(Op& op) { multiply(op, {0, 1, false, false, {}, {2, 3}}, kInt32); }
void matmul_integer16(Op& op) { multiply(op, {}, kInt32); }
// A, B, a_scale, b_scale, a_zero, b_zero, bias.
void matmul_integer_to_float(Op& op) {
  multiply(op, {0, 1, false, false, {6}, {2, 3, 4, 5}}, op.in(2).type);
}
// A, B, b_scale, b_zero, bias.
void dynamic_quantize_matmul(Op& op) {
  multiply(op, {0, 1, false, false, {4}, {2, 3}}, op.in(0).type);
}
// a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero.
void quantized_matmul(Op& op) {
  multiply(op, {0, 3, false, false, {}, {1, 2, 4, 5, 6, 7}},
           type_of_zero_point(op, 7, op.in(0).type));
}
// A, a_scale, a_zero, B, b_scale, b_zero, C, y_scale, y_zero.
void quantized_gemm(Op& op) {
  Product p{
      0, 3, op.integer("transA", 0) != 0, op.integer("transB", 0) != 0, {6}, {1, 2, 4, 5, 7, 8}};
  multiply(op, p, op.has(7) ? type_of_zero_point(op, 8, op.in(0).type) : std::int32_t{kFloat});
}

// A, A_scale, A_zero, B, B_scale, B_zero, C_scale, C_zero.
void quantized_binary(Op& op) {
  auto y = broadcast(op.shape(0), op.shape(3));
  if (!op.ok()) return;
  if (!y)
    return op.fail(OnnxMessage::shape_mismatch, shape_text(op.shape(0)), shape_text(op.shape(3)));
  op.set(0, op.in(0).type, *y);
  op.emit(Elementwise{op.node().op == "QLinearMul" ? "multiply" : "add", 6, Keeps::nothing}, {0, 3},
          {}, {1, 2, 4, 5, 6, 7});
}

void quantized_unary(Op& op) {
  op.set(0, op.in(0).type, op.shape(0));
  op.emit(Elementwise{"sigmoid", 8, Keeps::nothing}, {0}, {}, op.range_of_inputs(1));
}

void quantized_softmax(Op& op) {
  op.set(0, op.in(0).type, op.shape(0));
  op.emit(Softmax{}, {0}, {}, op.range_of_inputs(1));
}

// y_scale, y_zero, then triples of tensor, scale, zero.
void quantized_concatenation(Op& op) {
  Indices tensors, constants{0, 1};
  for (std::size_t i = 2; i < op.inputs(); ++i) (i % 3 == 2 ? tensors : constants).push_back(i);
  if (tensors.empty()) return op.fail(OnnxMessage::input_missing, 3);
  TensorShape y = op.shape(tensors[0]);
  const std::size_t a = op.axis(op.integer("axis", 1), y.size());
  for (std::size_t i = 1; i < tensors.size() && op.ok(); ++i) {
    const TensorShape s = op.shape(tensors[i]);
    if (s.size() != y.size())
      return op.fail(OnnxMessage::shape_mismatch, shape_text(y), shape_text(s));
    if (!y.empty()) y[a] = checked_add(y[a], s[a]).value_or(-1);
  }
  op.set(0, op.in(tensors[0]).type, y);
  op.emit(Move{}, tensors, {}, constants);
}

void quantized_global_average(Op& op) {
  op.need_rank(0, 3);
  TensorShape x = op.shape(0);
  if (!op.ok()) return;
  TensorShape y(x.size(), 1);
  y[0] = x[0];
  if (op.integer("channels_last", 0))
    y.back() = x.back();
  else
    y[1] = x[1];
  op.set(0, op.in(0).type, y);
  op.emit(Reduction{}, {0}, {}, op.range_of_inputs(1));
}

}  // namespace

const OperatorTable& quantized_operators() {
  static const OperatorTable table = {{"QuantizeLinear", quantize},
                                      {"DequantizeLinear", dequantize},
                                      {"DynamicQuantizeLinear", dynamic_quantize},
                                      {"MatMulInteger", matmul_integer},
                                      {"MatMulInteger16", matmul_integer16},
                                      {"MatMulIntegerToFloat", matmul_integer_to_float},
                                      {"DynamicQuantizeMatMul", dynamic_quantize_matmul},
                                      {"QLinearMatMul", quantized_matmul},
                                      {"QGemm", quantized_gemm},
                                      {"QLinearAdd", quantized_binary},
                                      {"QLinearMul", quantized_binary},
                                      {"QLinearSigmoid", quantized_unary},
                                      {"QLinearLeakyRelu", quantized_unary},
                                      {"QLinearSoftmax", quantized_softmax},
                                      {"QLinearConcat", quantized_concatenation},
                                      {"QLinearGlobalAveragePool", quantized_global_average}};
  return table;
}

}  // namespace trigon::onnx
