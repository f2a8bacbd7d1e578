// Operators that change the size of pictures and other tensors: pad, crop, resize.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "onnx/op.hpp"

namespace trigon::onnx {
namespace {

void pad(Op& op) {
  const Value& x = op.in(0);
  auto pads = op.list_or_input(op.given("paddings") ? "paddings" : "pads", 1);
  std::vector<std::size_t> axes;
  if (op.has(3)) {
    axes = op.axes(op.need_integers(3), x.rank());
  } else {
    axes.resize(x.rank());
    std::iota(axes.begin(), axes.end(), std::size_t{0});
  }
  if (!op.ok()) return;
  if (pads.size() != 2 * axes.size())
    return op.fail(OnnxMessage::shape_mismatch, shape_text(x.shape), shape_text(pads));
  TensorShape to = x.shape;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    auto both = checked_add(pads[i], pads[i + axes.size()]);
    auto sum = both ? checked_add(*both, to[axes[i]]) : std::nullopt;
    to[axes[i]] = sum.value_or(-1);
  }
  if (to == x.shape && op.in(0).rank() > 0) return op.alias(0, 0);
  op.set(0, x.type, to);
  op.emit(Move{}, {0});
}

// Sizes, or scales: floor(in * scale).
void resize(Op& op) {
  const Value& x = op.in(0);
  const bool upsample = op.node().op == "Upsample" || op.version() < 11;
  const std::size_t scales_at = upsample ? 1 : 2;
  std::vector<std::size_t> axes = op.axes(op.list("axes"), x.rank());
  if (axes.empty()) {
    axes.resize(x.rank());
    std::iota(axes.begin(), axes.end(), std::size_t{0});
  }
  if (!op.ok()) return;
  TensorShape to = x.shape;
  if (!upsample && op.has(3) && op.in(3).count() > 0) {
    const auto sizes = op.need_integers(3);
    if (!op.ok()) return;
    if (sizes.size() != axes.size())
      return op.fail(OnnxMessage::shape_mismatch, shape_text(x.shape), shape_text(sizes));
    const std::string policy = op.text("keep_aspect_ratio_policy", "stretch");
    double scale = 0;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const double s = static_cast<double>(sizes[i]) /
                       static_cast<double>(std::max<std::int64_t>(x.shape[axes[i]], 1));
      scale = i == 0 ? s : policy == "not_larger" ? std::min(scale, s) : std::max(scale, s);
    }
    for (std::size_t i = 0; i < axes.size(); ++i) {
      to[axes[i]] = sizes[i];
      if (policy != "stretch") {
        const double n = std::round(scale * static_cast<double>(x.shape[axes[i]]));
        to[axes[i]] = n >= 0 && n < 1e12 ? static_cast<std::int64_t>(n) : -1;
      }
    }
  } else {
    std::vector<double> scales = op.reals("scales");
    if (scales.empty() && op.given("height_scale"))
      scales = {1, 1, op.real("height_scale", 1), op.real("width_scale", 1)};
    if (scales.empty()) scales = op.need_reals(scales_at);
    if (!op.ok()) return;
    if (scales.size() != axes.size())
      return op.fail(OnnxMessage::bad_attribute, "scales",
                     static_cast<std::int64_t>(scales.size()));
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const double n = std::floor(static_cast<double>(x.shape[axes[i]]) * scales[i]);
      to[axes[i]] = n >= 0 && n < 1e12 ? static_cast<std::int64_t>(n) : -1;
    }
  }
  if (to == x.shape) return op.alias(0, 0);
  op.set(0, x.type, to);
  op.emit(Move{}, {0});
}

void depth_to_space(Op& op) {
  op.need_rank(0, 4, 4);
  const std::int64_t b = op.need_integer_attribute("blocksize");
  if (!op.ok()) return;
  const TensorShape s = op.shape(0);
  if (b < 1 || b > kMostStep) return op.fail(OnnxMessage::bad_attribute, "blocksize", b);
  const bool deeper = op.node().op == "SpaceToDepth";
  if (deeper ? s[2] % b != 0 || s[3] % b != 0 : s[1] % (b * b) != 0)
    return op.fail(OnnxMessage::shape_mismatch, shape_text(s), "blocksize " + std::to_string(b));
  if (deeper && s[1] > kMostDimension / (b * b)) return op.fail(OnnxMessage::value_too_large);
  op.set(0, op.in(0).type,
         deeper ? TensorShape{s[0], s[1] * b * b, s[2] / b, s[3] / b}
                : TensorShape{s[0], s[1] / (b * b), s[2] * b, s[3] * b});
  op.emit(Move{}, {0});
}

void center_crop_pad(Op& op) {
  const auto sizes = op.need_integers(1);
  TensorShape to = op.shape(0);
  auto axes = op.axes(op.list("axes"), to.size());
  if (axes.empty()) {
    axes.resize(to.size());
    std::iota(axes.begin(), axes.end(), std::size_t{0});
  }
  if (!op.ok()) return;
  if (axes.size() != sizes.size())
    return op.fail(OnnxMessage::shape_mismatch, shape_text(to), shape_text(sizes));
  for (std::size_t i = 0; i < axes.size(); ++i) to[axes[i]] = sizes[i];
  op.set(0, op.in(0).type, to);
  op.emit(Move{}, {0});
}

// input [n, c * block, positions] -> [n, c, image].
void column_to_image(Op& op) {
  op.need_rank(0, 3, 3);
  const auto image = op.need_integers(1), block = op.need_integers(2);
  std::int64_t window = 1;
  for (std::int64_t b : block) window = b < 1 ? 0 : checked_mul(window, b).value_or(0);
  if (!op.ok()) return;
  if (window < 1 || op.dim(0, 1) % window != 0)
    return op.fail(OnnxMessage::shape_mismatch, shape_text(op.shape(0)), shape_text(block));
  TensorShape to{op.dim(0, 0), op.dim(0, 1) / window};
  to.insert(to.end(), image.begin(), image.end());
  op.set(0, op.in(0).type, to);
  op.emit(Elementwise{"add", 1, Keeps::nothing}, {0});
}

void crop(Op& op) {
  op.need_rank(0, 4, 4);
  const auto border = op.list("border"), scale = op.list("scale");
  TensorShape to = op.shape(0);
  if (!op.ok()) return;
  if (border.size() != 4) return op.fail(OnnxMessage::attribute_missing, "border");
  for (std::int64_t b : border)
    if (b < 0 || b > kMostStep) return op.fail(OnnxMessage::bad_attribute, "border", b);
  to[2] = scale.size() == 2 ? scale[0] : to[2] - border[1] - border[3];
  to[3] = scale.size() == 2 ? scale[1] : to[3] - border[0] - border[2];
  op.set(0, op.in(0).type, to);
  op.emit(Move{}, {0});
}

}  // namespace

const OperatorTable& resampling_operators() {
  static const OperatorTable table = {{"Pad", pad},
                                      {"Resize", resize},
                                      {"Upsample", resize},
                                      {"DepthToSpace", depth_to_space},
                                      {"SpaceToDepth", depth_to_space},
                                      {"CenterCropPad", center_crop_pad},
                                      {"Col2Im", column_to_image},
                                      {"Crop", crop}};
  return table;
}

}  // namespace trigon::onnx
