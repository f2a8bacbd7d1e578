// Convolutions of every kind: y[n, m, p] = sum over c in the group and the window.

#include <algorithm>

#include "onnx/windows.hpp"

namespace trigon::onnx {
namespace {

// Where an operator has its inputs; absent ones are past the end.
struct Places {
  std::size_t x = 0, w = 1, bias = 2;
  Indices constants;
};

void multiply_windows(Op& op, const Places& p, std::int64_t groups, std::int64_t window,
                      bool transposed, const TensorShape& y) {
  op.as_image(p.x);
  op.as_image_out(0);
  const bool stored = op.in(p.w).constant;
  if (!op.ok()) return;
  if (stored && !op.in(p.x).constant) {
    op.emit(Convolution{groups, window, transposed}, {p.x}, {p.w, p.bias}, p.constants);
    return;
  }
  // The kernel is computed too: a product of activations.
  const TensorShape& at = transposed ? op.shape(p.x) : y;
  const std::int64_t positions =
      op.in(p.x).count() == 0 || at[0] * at[1] == 0 ? 0 : elements(at) / at[1];
  MatrixProduct m;
  m.batch = groups;
  m.m = positions;
  m.n = (transposed ? op.dim(p.w, 1) : op.dim(p.w, 0) / groups);
  m.k = (transposed ? op.dim(p.x, 1) / groups : op.dim(p.w, 1)) * window;
  op.emit(m, {p.x, p.w}, {p.bias}, p.constants);
}

void convolve(Op& op, const Places& p, std::int32_t type) {
  op.need_rank(p.x, 3);
  const TensorShape x = op.shape(p.x), w = op.shape(p.w);
  const std::int64_t groups = op.integer("group", 1);
  if (!op.ok()) return;
  if (w.size() != x.size() || groups < 1 || x[1] % groups != 0 || w[1] != x[1] / groups ||
      w[0] % groups != 0)
    return op.fail(OnnxMessage::shape_mismatch, shape_text(x), shape_text(w));
  const Windows windows = windows_of(op, x.size() - 2, spatial_of(w));
  TensorShape y{x[0], w[0]};
  if (!op.ok()) return;
  if (windows.kernel != spatial_of(w))
    return op.fail(OnnxMessage::shape_mismatch, shape_text(w), shape_text(windows.kernel));
  for (std::int64_t n : positions(op, windows, spatial_of(x))) y.push_back(n);
  if (!op.ok()) return;
  op.set(0, type, y);
  multiply_windows(op, p, groups, windows.elements(), false, y);
}

void convolution(Op& op) { convolve(op, {}, op.in(0).type); }
void fused_convolution(Op& op) { convolve(op, {0, 1, 2, {3}}, op.in(0).type); }
void convolution_integer(Op& op) { convolve(op, {0, 1, 99, {2, 3}}, kInt32); }
void quantized_convolution(Op& op) { convolve(op, {0, 3, 8, {1, 2, 4, 5, 6, 7}}, op.in(0).type); }
// X, W, offset, B, mask.
void deformable_convolution(Op& op) { convolve(op, {0, 1, 3, {2, 4}}, op.in(0).type); }

// Channels last: X [n, spatial..., c], W as usual.
void convolution_channels_last(Op& op) {
  op.need_rank(0, 3);
  if (!op.ok()) return;
  TensorShape x = op.shape(0), seen{x[0], x.back()};
  seen.insert(seen.end(), x.begin() + 1, x.end() - 1);
  const TensorShape w = op.shape(1);
  const std::int64_t groups = op.integer("group", 1);
  if (w.size() != x.size() || groups < 1 || seen[1] % groups != 0 || w[1] != seen[1] / groups ||
      w[0] % groups != 0)
    return op.fail(OnnxMessage::shape_mismatch, shape_text(x), shape_text(w));
  const Windows windows = windows_of(op, x.size() - 2, spatial_of(w));
  TensorShape y{x[0]};
  for (std::int64_t n : positions(op, windows, spatial_of(seen))) y.push_back(n);
  y.push_back(w[0]);
  if (!op.ok()) return;
  TensorShape image{x[0], w[0]};
  image.insert(image.end(), y.begin() + 1, y.end() - 1);
  const std::size_t as_x = op.seen_as(0, seen), as_y = op.inner(op.in(0).type, image);
  op.emit_inner(Convolution{groups, windows.elements(), false}, as_y, {as_x}, {1, 2}, {3});
  op.set(0, op.in(0).type, y);
  op.emit(Reinterpret{}, {as_y}, {}, {}, ".view");
}

void transposed(Op& op) {
  op.need_rank(0, 3);
  const TensorShape x = op.shape(0), w = op.shape(1);
  const std::int64_t groups = op.integer("group", 1);
  if (!op.ok()) return;
  if (w.size() != x.size() || groups < 1 || w[0] != x[1] || x[1] % groups != 0)
    return op.fail(OnnxMessage::shape_mismatch, shape_text(x), shape_text(w));
  const std::size_t n = x.size() - 2;
  Windows windows = windows_of(op, n, spatial_of(w));
  auto extra = op.list("output_padding");
  if (extra.empty()) extra.assign(n, 0);
  const auto fixed = op.list("output_shape");
  if (!op.ok()) return;
  if (extra.size() != n || *std::min_element(extra.begin(), extra.end()) < 0 ||
      *std::max_element(extra.begin(), extra.end()) > kMostStep)
    return op.fail(OnnxMessage::bad_attribute, "output_padding", shape_text(extra));
  if (!fixed.empty() && fixed.size() != n)
    return op.fail(OnnxMessage::bad_attribute, "output_shape", shape_text(fixed));
  auto channels = checked_mul(w[1], groups);
  TensorShape y{x[0], channels.value_or(-1)};
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t reach = windows.dilations[i] * (windows.kernel[i] - 1) + 1;
    std::int64_t size = 0;
    if (!fixed.empty())
      size = fixed[i];
    else if (windows.auto_pad == "SAME_UPPER" || windows.auto_pad == "SAME_LOWER")
      size = x[i + 2] * windows.strides[i];
    else
      size = windows.strides[i] * (x[i + 2] - 1) + extra[i] + reach -
             (windows.auto_pad == "VALID" ? 0 : windows.before[i] + windows.after[i]);
    y.push_back(size);
  }
  op.set(0, op.in(0).type, y);
  if (!op.ok()) return;
  multiply_windows(op, {}, groups, windows.elements(), true, y);
}

// X, W, B, pads: com.microsoft.
void transposed_with_pads(Op& op) {
  op.need_rank(0, 3);
  transposed(op);
}

}  // namespace

const OperatorTable& convolution_operators() {
  static const OperatorTable table = {{"Conv", convolution},
                                      {"FusedConv", fused_convolution},
                                      {"ConvInteger", convolution_integer},
                                      {"QLinearConv", quantized_convolution},
                                      {"DeformConv", deformable_convolution},
                                      {"NhwcConv", convolution_channels_last},
                                      {"NhwcFusedConv", convolution_channels_last},
                                      {"ConvTranspose", transposed},
                                      {"ConvTransposeWithDynamicPads", transposed_with_pads}};
  return table;
}

}  // namespace trigon::onnx
