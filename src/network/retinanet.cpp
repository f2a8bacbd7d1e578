// One-stage detectors with a focal loss on a feature pyramid: Lin et al. 2017, arXiv:1708.02002.

#include <string>

#include "network/detection.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

// Four 3 x 3 convolutions and one to `out`, the same weights on every level.
std::vector<ValueId> head(NetworkBuilder& b, const char* name, const std::vector<ValueId>& levels,
                          std::int64_t out) {
  auto in_head = b.scope(name);
  std::vector<ValueId> outputs;
  const std::size_t first = b.next_weight();
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (i > 0) b.share_weights_from(first);
    ConvolutionOptions o;
    o.bias = true;
    ValueId x = levels[i];
    for (int k = 0; k < 4; ++k)
      x = b.activation("relu", b.convolution("conv" + std::to_string(k), x, b.channels(x), o),
                       Activation::relu);
    outputs.push_back(b.convolution("predict", x, out, o));
  }
  b.stop_sharing();
  return outputs;
}

}  // namespace

Model build_retinanet(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const std::int64_t anchors = 9, classes = spec.whole("classes");
  const ValueId image = b.input({3, spec.height(), spec.image_width()});
  std::vector<ValueId> stages = residual_backbone(b, image, backbone_facts(spec));
  stages.erase(stages.begin());  // levels at strides 8, 16, 32
  std::vector<ValueId> levels = feature_pyramid(b, stages, 256, DetectorNorm::frozen, false);
  ConvolutionOptions down;
  down.stride = 2;
  down.bias = true;
  const ValueId base = spec.flag("p6_from_c5") ? stages.back() : levels.back();
  levels.push_back(b.convolution("p6", base, 256, down));
  levels.push_back(
      b.convolution("p7", b.activation("p6_relu", levels.back(), Activation::relu), 256, down));
  std::vector<ValueId> outputs = head(b, "classification", levels, anchors * classes);
  for (ValueId v : head(b, "regression", levels, anchors * 4)) outputs.push_back(v);
  // At most 1000 candidates of each level, then suppression.
  const ValueId boxes = b.select("detections", outputs, {100, 6});
  return network_model(spec, b.finish({boxes}), WorkUnit::image,
                       {spec.height(), spec.image_width()});
}

}  // namespace trigon
