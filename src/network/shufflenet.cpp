// ShuffleNet V2: Ma et al. 2018, arXiv:1807.11164, table 5.

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

ValueId unit(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
             std::int64_t kernel, std::int64_t stride, bool depthwise) {
  UnitOptions o;
  o.kernel = kernel;
  o.stride = stride;
  o.groups = depthwise ? out : 1;
  o.act = depthwise ? Activation::none : Activation::relu;
  return convolution_unit(b, name, x, out, o);
}

ValueId shuffle_block(NetworkBuilder& b, ValueId x, std::int64_t out, std::int64_t stride) {
  const std::int64_t half = out / 2;
  ValueId aside = x, y = x;
  if (stride > 1) {
    aside = unit(b, "branch1.0", x, b.channels(x), 3, stride, true);
    aside = unit(b, "branch1.1", aside, half, 1, 1, false);
  } else {
    const auto halves = b.split("split", x, 0, {half, half});
    aside = halves[0];
    y = halves[1];
  }
  y = unit(b, "branch2.0", y, half, 1, 1, false);
  y = unit(b, "branch2.1", y, half, 3, stride, true);
  y = unit(b, "branch2.2", y, half, 1, 1, false);
  const ValueId both = b.concatenate("cat", {aside, y});
  return b.transpose("shuffle", both, TensorShape(b.shape(both)));
}

}  // namespace

Model build_shufflenet(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const auto widths = spec.wholes("widths");
  const std::int64_t repeats[] = {4, 8, 4};
  ValueId x = unit(b, "conv1", image_input(b, spec), 24, 3, 2, false);
  x = b.max_pool("maxpool", x, 3, 2, 1);
  for (std::size_t s = 0; s < 3; ++s)
    for (std::int64_t i = 0; i < repeats[s]; ++i) {
      auto scope = b.scope("stage" + std::to_string(s + 2) + "." + std::to_string(i));
      x = shuffle_block(b, x, of_stage(widths, s, std::int64_t{48}), i == 0 ? 2 : 1);
    }
  x = unit(b, "conv5", x, spec.whole("head_width", 1024), 1, 1, false);
  return image_model(spec, b, classifier(b, spec, "fc", x));
}

}  // namespace trigon
