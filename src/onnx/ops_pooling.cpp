// Maxima and means over windows, whole pictures and regions.

#include <algorithm>

#include "onnx/windows.hpp"

namespace trigon::onnx {
namespace {

bool averages(const Op& op) {
  const std::string& n = op.node().op;
  return n == "AveragePool" || n == "LpPool" || n == "QLinearAveragePool" ||
         n == "GlobalAveragePool" || n == "GlobalLpPool" || n == "QLinearGlobalAveragePool";
}

void pool(Op& op) {
  op.need_rank(0, 3);
  const TensorShape x = op.shape(0);
  if (!op.ok()) return;
  if (!op.given("kernel_shape")) return op.fail(OnnxMessage::attribute_missing, "kernel_shape");
  const bool last = op.integer("channels_last", 0) != 0 || op.node().op == "NhwcMaxPool";
  TensorShape spatial = last ? TensorShape(x.begin() + 1, x.end() - 1) : spatial_of(x);
  const Windows w = windows_of(op, spatial.size(), {});
  const TensorShape at = positions(op, w, spatial, op.integer("ceil_mode", 0) != 0);
  TensorShape y{x[0]};
  if (!last) y.push_back(x[1]);
  y.insert(y.end(), at.begin(), at.end());
  if (last) y.push_back(x.back());
  op.set(0, op.in(0).type, y);
  if (op.wants(1)) op.set(1, kInt64, y);
  op.emit(Pooling{averages(op) ? Pooling::Kind::average : Pooling::Kind::maximum, w.elements()},
          {0}, {}, op.range_of_inputs(1));
}

void whole_picture(Op& op) {
  op.need_rank(0, 2);
  const TensorShape x = op.shape(0);
  if (!op.ok()) return;
  const bool last = op.integer("channels_last", 0) != 0;
  TensorShape y(x.size(), 1);
  y[0] = x[0];
  if (last)
    y.back() = x.back();
  else
    y[1] = x[1];
  op.set(0, op.in(0).type, y);
  op.emit(Reduction{}, {0}, {}, op.range_of_inputs(1));
}

void unpool(Op& op) {
  op.need_rank(0, 3);
  const TensorShape x = op.shape(0);
  const Windows w = windows_of(op, x.size() < 2 ? 0 : x.size() - 2, {});
  if (!op.ok()) return;
  TensorShape y{x[0], x[1]};
  for (std::size_t i = 2; i < x.size(); ++i)
    y.push_back((x[i] - 1) * w.strides[i - 2] - w.before[i - 2] - w.after[i - 2] + w.kernel[i - 2]);
  if (op.has(2)) y = op.need_integers(2);
  op.set(0, op.in(0).type, y);
  op.emit(Move{}, {0, 1});
}

// X [n, c, h, w], rois [r, 4 or 5] -> [r, c, ...].
void regions(Op& op) {
  op.need_rank(0, 4, 4);
  op.need_rank(1, 2, 2);
  if (!op.ok()) return;
  std::int64_t h = op.integer("output_height", 1), w = op.integer("output_width", 1);
  const auto pooled = op.list("pooled_shape");
  if (pooled.size() == 2) {
    h = pooled[0];
    w = pooled[1];
  }
  op.set(0, op.in(0).type, {op.dim(1, 0), op.dim(0, 1), h, w});
  // Four bilinear neighbours a sample; the number of samples is adaptive when 0: one is taken.
  const std::int64_t ratio = std::clamp<std::int64_t>(op.integer("sampling_ratio", 0), 1, 64);
  const bool maximum = op.node().op == "MaxRoiPool" || op.text("mode") == "max";
  op.emit(Pooling{maximum ? Pooling::Kind::maximum : Pooling::Kind::average, 4 * ratio * ratio},
          op.range_of_inputs());
}

}  // namespace

const OperatorTable& pooling_operators() {
  static const OperatorTable table = {{"MaxPool", pool},
                                      {"AveragePool", pool},
                                      {"LpPool", pool},
                                      {"GlobalMaxPool", whole_picture},
                                      {"GlobalAveragePool", whole_picture},
                                      {"GlobalLpPool", whole_picture},
                                      {"MaxUnpool", unpool},
                                      {"RoiAlign", regions},
                                      {"MaxRoiPool", regions}};
  return table;
}

}  // namespace trigon::onnx
