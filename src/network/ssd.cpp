// Single-shot detectors with a ResNet or VGG-like trunk: Liu et al. 2015, arXiv:1512.02325. The
// ResNet-50 form ends after the third stage, kept at stride 8, with five pairs of extra
// convolutions and one 3 x 3 head a level.

#include <string>

#include "network/detection.hpp"
#include "network/families.hpp"

namespace trigon {

Model build_ssd(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const ValueId image = b.input({3, spec.height(), spec.image_width()});
  BackboneFacts f = backbone_facts(spec);
  std::vector<ValueId> levels;
  {
    auto in_backbone = b.scope("backbone");
    DetectorUnit stem;
    stem.kernel = 7;
    stem.stride = 2;
    stem.norm = f.norm;
    ValueId x = b.max_pool("maxpool", unit(b, "stem", image, 64, stem), 3, 2, 1);
    x = residual_stage(b, x, f, 0, 1);
    x = residual_stage(b, x, f, 1, 2);
    levels.push_back(residual_stage(b, x, f, 2, 1));
  }
  const auto middle = spec.wholes("extra_middle"), out = spec.wholes("extra_out");
  for (std::size_t i = 0; i < middle.size() && i < out.size(); ++i) {
    auto in_extra = b.scope("extra" + std::to_string(i));
    DetectorUnit o;
    o.norm = f.norm;
    o.kernel = 1;
    const ValueId x = unit(b, "reduce", levels.back(), middle[i], o);
    // The last two shrink by their missing border, the others by a stride of two.
    ConvolutionOptions c;
    const bool valid = i + 2 >= middle.size();
    c.stride = valid ? 1 : 2;
    if (valid) c.padding = 0;
    const ValueId y = b.convolution("conv", x, out[i], c);
    levels.push_back(b.activation("relu", detector_norm(b, "norm", y, f.norm), Activation::relu));
  }
  const auto boxes = spec.wholes("boxes");
  std::vector<ValueId> outputs;
  for (std::size_t i = 0; i < levels.size() && i < boxes.size(); ++i) {
    auto in_head = b.scope("head" + std::to_string(i));
    ConvolutionOptions o;
    o.bias = true;
    outputs.push_back(b.convolution("loc", levels[i], boxes[i] * 4, o));
    outputs.push_back(b.convolution("conf", levels[i], boxes[i] * spec.whole("classes"), o));
  }
  const ValueId found = b.select("detections", outputs, {200, 6});
  return network_model(spec, b.finish({found}), WorkUnit::image,
                       {spec.height(), spec.image_width()});
}

}  // namespace trigon
