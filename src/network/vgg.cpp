// Chains of plain convolutions: AlexNet in one column (Krizhevsky 2014, arXiv:1404.5997), VGG
// (Simonyan and Zisserman 2014, arXiv:1409.1556), SqueezeNet (Iandola et al. 2016,
// arXiv:1602.07360).

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

ValueId biased(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
               std::int64_t kernel, std::int64_t stride = 1,
               std::optional<Extent> padding = std::nullopt) {
  ConvolutionOptions o;
  o.kernel = kernel;
  o.stride = stride;
  o.padding = std::move(padding);
  o.bias = true;
  return b.convolution(name, x, out, o);
}

// Two layers of 4096 over a fixed grid, then the classes.
ValueId wide_classifier(NetworkBuilder& b, const NetworkSpec& spec, ValueId x, std::int64_t grid) {
  x = b.adaptive_average_pool("avgpool", x, {grid, grid});
  x = b.reshape("flatten", x, {elements(b.shape(x))});
  for (const char* name : {"fc1", "fc2"})
    x = b.dropout("drop", b.activation("relu", b.linear(name, x, 4096), Activation::relu));
  return b.linear("fc", x, spec.whole("classes", 1000));
}

ValueId fire(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t squeeze,
             std::int64_t expand) {
  auto scope = b.scope(name);
  x = b.activation("relu", biased(b, "squeeze", x, squeeze, 1), Activation::relu);
  const ValueId one = b.activation("relu", biased(b, "expand1x1", x, expand, 1), Activation::relu);
  const ValueId three =
      b.activation("relu", biased(b, "expand3x3", x, expand, 3), Activation::relu);
  return b.concatenate("cat", {one, three});
}

}  // namespace

Model build_vgg(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const bool normalized = spec.flag("batch_norm");
  const auto channels = spec.wholes("channels");
  ValueId x = image_input(b, spec);
  std::size_t stage = 0;
  for (std::int64_t depth : spec.wholes("depths")) {
    auto scope = b.scope("features." + std::to_string(stage));
    for (std::int64_t i = 0; i < depth; ++i) {
      const std::string n = std::to_string(i);
      x = biased(b, n, x, of_stage(channels, stage, std::int64_t{64}), 3);
      if (normalized) x = b.batch_norm(n + ".bn", x);
      x = b.activation("relu", x, Activation::relu);
    }
    x = b.max_pool("pool", x, 2, 2);
    ++stage;
  }
  return image_model(spec, b, wide_classifier(b, spec, x, 7));
}

Model build_alexnet(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  auto relu = [&](ValueId v) { return b.activation("relu", v, Activation::relu); };
  ValueId x = relu(biased(b, "features.0", image_input(b, spec), 64, 11, 4, Extent(2)));
  x = b.max_pool("pool1", x, 3, 2);
  x = b.max_pool("pool2", relu(biased(b, "features.3", x, 192, 5)), 3, 2);
  x = relu(biased(b, "features.6", x, 384, 3));
  x = relu(biased(b, "features.8", x, 256, 3));
  x = relu(biased(b, "features.10", x, 256, 3));
  return image_model(spec, b, wide_classifier(b, spec, b.max_pool("pool3", x, 3, 2), 6));
}

// Both versions differ in the first convolution and in where they pool.
Model build_squeezenet(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const auto pools = spec.wholes("pool_before");  // fire modules that a pool precedes
  ValueId x = biased(b, "features.0", image_input(b, spec), spec.whole("stem_width"),
                     spec.whole("stem_kernel"), 2, Extent(0));
  x = b.activation("relu", x, Activation::relu);
  const auto squeeze = spec.wholes("squeeze");
  for (std::size_t i = 0; i < squeeze.size(); ++i) {
    if (std::find(pools.begin(), pools.end(), static_cast<std::int64_t>(i)) != pools.end())
      x = b.max_pool("pool" + std::to_string(i), x, 3, 2, 0, true);
    x = fire(b, "fire" + std::to_string(i + 2), x, squeeze[i], squeeze[i] * 4);
  }
  x = biased(b, "classifier", b.dropout("drop", x), spec.whole("classes", 1000), 1);
  x = b.global_average_pool("avgpool", b.activation("relu", x, Activation::relu));
  return image_model(spec, b, x);
}

}  // namespace trigon
