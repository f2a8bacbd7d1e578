#include "onnx/windows.hpp"

#include <algorithm>

namespace trigon::onnx {

TensorShape spatial_of(const TensorShape& whole, std::size_t from) {
  return whole.size() < from
             ? TensorShape()
             : TensorShape(whole.begin() + static_cast<std::ptrdiff_t>(from), whole.end());
}

Windows windows_of(Op& op, std::size_t dimensions, const TensorShape& kernel) {
  Windows w;
  auto read = [&](const char* key, std::size_t n, std::int64_t otherwise, std::int64_t least) {
    std::vector<std::int64_t> v = op.list(key);
    if (v.empty()) v.assign(n, otherwise);
    bool good = v.size() == n;
    for (std::int64_t x : v) good = good && x >= least && x <= kMostStep;
    if (!good && op.ok()) op.fail(OnnxMessage::bad_attribute, key, shape_text(op.list(key)));
    if (!good) v.assign(n, 1);
    return v;
  };
  w.kernel =
      op.given("kernel_shape") || kernel.empty() ? read("kernel_shape", dimensions, 1, 1) : kernel;
  std::int64_t all = 1;
  for (std::int64_t k : w.kernel) {
    if (k < 1 || k > kMostStep || all > kMostElements / std::max<std::int64_t>(k, 1)) {
      if (op.ok()) op.fail(OnnxMessage::bad_attribute, "kernel_shape", shape_text(w.kernel));
      w.kernel.assign(dimensions, 1);
      break;
    }
    all *= k;
  }
  if (w.kernel.size() != dimensions) {
    if (op.ok()) op.fail(OnnxMessage::bad_attribute, "kernel_shape", shape_text(w.kernel));
    w.kernel.assign(dimensions, 1);
  }
  w.strides = read("strides", dimensions, 1, 1);
  w.dilations = read("dilations", dimensions, 1, 1);
  // Negative pads crop; they do occur.
  const auto pads = read("pads", 2 * dimensions, 0, -kMostStep);
  w.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(dimensions));
  w.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(dimensions), pads.end());
  w.auto_pad = op.text("auto_pad", "NOTSET");
  if (w.auto_pad != "NOTSET" && w.auto_pad != "VALID" && w.auto_pad != "SAME_UPPER" &&
      w.auto_pad != "SAME_LOWER" && !w.auto_pad.empty() && op.ok())
    op.fail(OnnxMessage::bad_attribute, "auto_pad", w.auto_pad);
  return w;
}

TensorShape positions(Op& op, const Windows& w, const TensorShape& in, bool ceil) {
  TensorShape out;
  for (std::size_t i = 0; i < in.size() && i < w.kernel.size(); ++i) {
    const std::int64_t reach = w.dilations[i] * (w.kernel[i] - 1) + 1, s = w.strides[i];
    if (w.auto_pad == "SAME_UPPER" || w.auto_pad == "SAME_LOWER") {
      out.push_back((in[i] + s - 1) / s);
      continue;
    }
    const bool padded = w.auto_pad != "VALID";
    const std::int64_t before = padded ? w.before[i] : 0, after = padded ? w.after[i] : 0;
    const std::int64_t room = in[i] + before + after - reach;
    if (room < 0) {
      if (op.ok())
        op.fail(OnnxMessage::shape_mismatch, shape_text(in), "window " + shape_text(w.kernel));
      return TensorShape(in.size(), 1);
    }
    std::int64_t n = (room + (ceil ? s - 1 : 0)) / s + 1;
    // The last window starts inside the input or its leading padding.
    if (ceil && (n - 1) * s >= in[i] + before) --n;
    out.push_back(n);
  }
  return out;
}

}  // namespace trigon::onnx
