// Residual networks: He et al. 2015 (arXiv:1512.03385), ResNeXt (arXiv:1611.05431), wide
// (arXiv:1605.07146). In bottlenecks the stride lies on the 3 x 3 convolution ("v1.5").

#include "network/builder.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

struct Block {
  std::int64_t width = 64, out = 64, stride = 1, groups = 1;
  bool bottleneck = true;
};

ValueId residual_block(NetworkBuilder& b, ValueId x, const Block& k) {
  ValueId y = x;
  auto unit = [&](const char* name, const char* norm, std::int64_t out, Extent kernel,
                  std::int64_t stride, std::int64_t groups, bool act) {
    ConvolutionOptions o;
    o.kernel = kernel;
    o.stride = stride;
    o.groups = groups;
    y = b.batch_norm(norm, b.convolution(name, y, out, o));
    if (act) y = b.activation("relu", y, Activation::relu);
  };
  if (k.bottleneck) {
    unit("conv1", "bn1", k.width, 1, 1, 1, true);
    unit("conv2", "bn2", k.width, 3, k.stride, k.groups, true);
    unit("conv3", "bn3", k.out, 1, 1, 1, false);
  } else {
    unit("conv1", "bn1", k.width, 3, k.stride, 1, true);
    unit("conv2", "bn2", k.out, 3, 1, 1, false);
  }
  ValueId shortcut = x;
  if (k.stride != 1 || b.channels(x) != k.out) {
    ConvolutionOptions o;
    o.kernel = 1;
    o.stride = k.stride;
    shortcut = b.batch_norm("downsample.1", b.convolution("downsample.0", x, k.out, o));
  }
  return b.activation("relu", b.add("add", y, shortcut), Activation::relu);
}

}  // namespace

Model build_resnet(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const bool bottleneck = spec.text("block") == "bottleneck";
  const std::int64_t groups = spec.whole("groups", 1), base = spec.whole("width_per_group", 64);
  ValueId x = b.input({3, spec.height(), spec.image_width()});
  ConvolutionOptions stem;
  stem.kernel = 7;
  stem.stride = 2;
  x = b.activation("relu", b.batch_norm("bn1", b.convolution("conv1", x, 64, stem)),
                   Activation::relu);
  x = b.max_pool("maxpool", x, 3, 2, 1);
  std::int64_t planes = 64;
  int stage = 1;
  for (std::int64_t depth : spec.wholes("depths")) {
    auto in_stage = b.scope("layer" + std::to_string(stage));
    for (std::int64_t i = 0; i < depth; ++i) {
      auto in_block = b.scope(std::to_string(i));
      Block k;
      k.width = bottleneck ? planes * base / 64 * groups : planes;
      k.out = bottleneck ? planes * 4 : planes;
      k.stride = i == 0 && stage > 1 ? 2 : 1;
      k.groups = groups;
      k.bottleneck = bottleneck;
      x = residual_block(b, x, k);
    }
    planes *= 2;
    ++stage;
  }
  x = b.linear("fc", b.global_average_pool("avgpool", x), spec.whole("classes", 1000));
  return network_model(spec, b.finish({x}), WorkUnit::image, {spec.height(), spec.image_width()});
}

}  // namespace trigon
