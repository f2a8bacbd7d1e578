// Networks without normalization: Brock et al. 2021, arXiv:2102.06171, table 1. Weights are
// standardized when they are used: that costs as much as reading them and is not counted.

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

// A convolution with bias and a learned gain for each output channel.
ValueId scaled(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
               std::int64_t kernel, std::int64_t stride = 1, std::int64_t groups = 1) {
  ConvolutionOptions o;
  o.kernel = kernel;
  o.stride = stride;
  o.groups = groups;
  o.bias = true;
  const ValueId y = b.convolution(name, x, out, o);
  b.last().weights.push_back(b.weight(std::string(name) + ".gain", {out}));
  return y;
}

struct Block {
  std::int64_t out = 256, stride = 1, group_width = 128;
  double bottleneck = 0.5, reduction = 0.5;
  bool extra = true, first = false, efficient = false;
  Activation act = Activation::gelu;
};

ValueId block(NetworkBuilder& b, ValueId x, const Block& k) {
  auto act = [&](ValueId v) { return b.activation("act", v, k.act); };
  const std::int64_t mid = round_channels(static_cast<double>(k.out) * k.bottleneck);
  const std::int64_t groups = mid / k.group_width;
  ValueId y = act(x), shortcut = x;
  if (k.first) {
    shortcut = y;
    if (k.stride > 1) shortcut = b.average_pool("downsample.pool", shortcut, 2, 2, 0, true);
    shortcut = scaled(b, "downsample.conv", shortcut, k.out, 1);
  }
  y = scaled(b, "conv2", act(scaled(b, "conv1", y, mid, 1)), mid, 3, k.stride, groups);
  if (k.extra) y = scaled(b, "conv2b", act(y), mid, 3, 1, groups);
  y = scaled(b, "conv3", act(y), k.out, 1);
  if (k.efficient) {
    y = channel_attention(b, "attn", y);
  } else {
    Excitation e;
    e.reduced = round_channels(static_cast<double>(k.out) * k.reduction, 8, 0);
    y = squeeze_excite(b, "attn", y, e);
  }
  y = b.node("skipinit_gain", Elementwise{"scale", 1, Keeps::inputs}, {y},
             {b.weight("skipinit_gain", {1})}, TensorShape(b.shape(y)));
  return b.add("add", y, shortcut);
}

}  // namespace

Model build_nfnet(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  Block k;
  k.group_width = spec.whole("group_width", 128);
  k.bottleneck = spec.number("bottleneck", 0.5);
  k.reduction = spec.number("reduction", 0.5);
  k.efficient = spec.text("attention", "se") == "eca";
  k.act = activation_named(spec.text("act", "gelu")).value_or(Activation::gelu);
  ValueId x = image_input(b, spec);
  const std::int64_t strides[] = {2, 1, 1, 2};
  for (int i = 0; i < 4; ++i) {
    x = scaled(b, "stem.conv" + std::to_string(i + 1), x, 128 >> (3 - i), 3, strides[i]);
    if (i < 3) x = b.activation("stem.act", x, k.act);
  }
  const std::int64_t times = spec.whole("depth_times");
  const std::int64_t depths[] = {1, 2, 6, 3}, widths[] = {256, 512, 1536, 1536};
  for (std::size_t s = 0; s < 4; ++s) {
    auto in_stage = b.scope("stages." + std::to_string(s));
    for (std::int64_t i = 0; i < depths[s] * times; ++i) {
      auto in_block = b.scope(std::to_string(i));
      k.out = widths[s];
      k.first = i == 0;
      k.stride = i == 0 && s > 0 ? 2 : 1;
      x = block(b, x, k);
    }
  }
  x = b.activation("final_act", scaled(b, "final_conv", x, spec.whole("head_width", 3072), 1),
                   k.act);
  return image_model(spec, b, classifier(b, spec, "head.fc", x));
}

}  // namespace trigon
