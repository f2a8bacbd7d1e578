// Networks that mix tokens without attention: MLP-Mixer (arXiv:2105.01601), ResMLP
// (arXiv:2105.03404), PoolFormer (arXiv:2111.11418), ConvMixer (arXiv:2201.09792).

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

ValueId affine(NetworkBuilder& b, std::string_view name, ValueId x) {
  const std::string n(name);
  return b.node(name, Elementwise{"affine", 2, Keeps::inputs}, {x},
                {b.weight(n + ".alpha", {b.width(x)}), b.weight(n + ".beta", {b.width(x)})},
                TensorShape(b.shape(x)));
}

ValueId mlp(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t hidden) {
  auto scope = b.scope(name);
  const std::int64_t out = b.width(x);
  return b.linear("fc2", b.activation("act", b.linear("fc1", x, hidden), Activation::gelu), out);
}

// Across tokens: the image's patches are the last dimension.
template <class Mix>
ValueId across_tokens(NetworkBuilder& b, ValueId x, Mix&& mix) {
  const TensorShape back = b.shape(x);
  return b.transpose("back", mix(b.transpose("transpose", x, {back[1], back[0]})), back);
}

ValueId mixer_block(NetworkBuilder& b, ValueId x, std::int64_t token_hidden) {
  ValueId y = across_tokens(b, b.layer_norm("norm1", x),
                            [&](ValueId t) { return mlp(b, "mlp_tokens", t, token_hidden); });
  x = b.add("add1", x, y);
  return b.add("add2", x, mlp(b, "mlp_channels", b.layer_norm("norm2", x), 4 * b.width(x)));
}

ValueId resmlp_block(NetworkBuilder& b, ValueId x) {
  ValueId y = across_tokens(b, affine(b, "norm1", x),
                            [&](ValueId t) { return b.linear("linear_tokens", t, b.width(t)); });
  x = b.add("add1", x, b.scale("ls1", y));
  y = mlp(b, "mlp_channels", affine(b, "norm2", x), 4 * b.width(x));
  return b.add("add2", x, b.scale("ls2", y));
}

ValueId biased(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
               std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  ConvolutionOptions o;
  o.kernel = kernel;
  o.stride = stride;
  o.padding = Extent(padding);
  o.bias = true;
  return b.convolution(name, x, out, o);
}

ValueId pool_block(NetworkBuilder& b, ValueId x) {
  const std::int64_t c = b.channels(x);
  ValueId y = b.group_norm("norm1", x, 1);
  const ValueId mean = b.average_pool("pool", y, 3, 1, 1);
  y = b.elementwise("subtract", {mean, y}, "subtract", 1, Keeps::nothing);
  x = b.add("add1", x, b.scale("ls1", y, true));
  y = biased(b, "mlp.fc1", b.group_norm("norm2", x, 1), 4 * c, 1, 1, 0);
  y = biased(b, "mlp.fc2", b.activation("gelu", y, Activation::gelu), c, 1, 1, 0);
  return b.add("add2", x, b.scale("ls2", y, true));
}

}  // namespace

Model build_mixer(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const std::int64_t patch = spec.whole("patch"), width = spec.whole("width");
  const bool residual = spec.text("mix", "mlp") == "linear";
  ValueId x = biased(b, "stem", image_input(b, spec), width, patch, patch, 0);
  x = b.flatten_to_tokens("flatten", x);
  for (std::int64_t i = 0; i < spec.whole("depth"); ++i) {
    auto scope = b.scope("blocks." + std::to_string(i));
    x = residual ? resmlp_block(b, x) : mixer_block(b, x, width / 2);
  }
  x = residual ? affine(b, "norm", x) : b.layer_norm("norm", x);
  x = b.linear("head", b.reduce("mean", x, {width}), spec.whole("classes", 1000));
  return image_model(spec, b, x);
}

Model build_poolformer(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const auto depths = spec.wholes("depths"), widths = spec.wholes("widths");
  ValueId x = image_input(b, spec);
  for (std::size_t s = 0; s < depths.size(); ++s) {
    auto in_stage = b.scope("stages." + std::to_string(s));
    const std::int64_t width = of_stage(widths, s, std::int64_t{64});
    x = s == 0 ? biased(b, "stem", x, width, 7, 4, 2) : biased(b, "downsample", x, width, 3, 2, 1);
    for (std::int64_t i = 0; i < depths[s]; ++i) {
      auto in_block = b.scope("blocks." + std::to_string(i));
      x = pool_block(b, x);
    }
  }
  x = b.group_norm("norm", x, 1);
  return image_model(spec, b, classifier(b, spec, "head", x));
}

Model build_convmixer(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const std::int64_t width = spec.whole("width"), patch = spec.whole("patch"),
                     kernel = spec.whole("kernel");
  auto finished = [&](const char* name, ValueId x) {
    return b.batch_norm(name, b.activation("gelu", x, Activation::gelu));
  };
  ValueId x = finished("stem.bn", biased(b, "stem", image_input(b, spec), width, patch, patch, 0));
  ConvolutionOptions depthwise;
  depthwise.kernel = kernel;
  depthwise.groups = width;
  depthwise.bias = true;
  for (std::int64_t i = 0; i < spec.whole("depth"); ++i) {
    auto scope = b.scope("blocks." + std::to_string(i));
    x = b.add("add", finished("bn1", b.convolution("conv_dw", x, width, depthwise)), x);
    x = finished("bn2", biased(b, "conv_pw", x, width, 1, 1, 0));
  }
  return image_model(spec, b, classifier(b, spec, "head", x));
}

}  // namespace trigon
