// DenseNet: Huang et al. 2016, arXiv:1608.06993, table 1. A layer reads all maps before it; the
// joined maps are written out before each normalization.

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {

Model build_densenet(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const std::int64_t growth = spec.whole("growth");
  auto normalized = [&](const char* name, ValueId v) {
    return b.activation("relu", b.batch_norm(name, v), Activation::relu);
  };
  ConvolutionOptions stem, one, three;
  stem.kernel = 7;
  stem.stride = 2;
  one.kernel = 1;
  ValueId x = b.convolution("conv0", image_input(b, spec), spec.whole("stem_width"), stem);
  x = b.max_pool("pool0", normalized("norm0", x), 3, 2, 1);
  const auto depths = spec.wholes("depths");
  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    auto in_stage = b.scope("denseblock" + std::to_string(stage + 1));
    for (std::int64_t i = 0; i < depths[stage]; ++i) {
      auto in_layer = b.scope("denselayer" + std::to_string(i + 1));
      ValueId y = b.convolution("conv1", normalized("norm1", x), 4 * growth, one);
      y = b.convolution("conv2", normalized("norm2", y), growth, three);
      x = b.concatenate("cat", {x, y});
    }
    if (stage + 1 == depths.size()) break;
    x = b.convolution("transition.conv", normalized("transition.norm", x), b.channels(x) / 2, one);
    x = b.average_pool("transition.pool", x, 2, 2);
  }
  return image_model(spec, b, classifier(b, spec, "classifier", normalized("norm5", x)));
}

}  // namespace trigon
