// MobileViT (Mehta and Rastegari 2021, arXiv:2110.02178) and its second version with separable
// attention (arXiv:2206.02680). Attention runs among the pixels of equal place in 2 x 2 patches.

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

ValueId unit(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
             std::int64_t kernel, std::int64_t stride = 1, std::int64_t groups = 1,
             Activation act = Activation::silu) {
  UnitOptions o;
  o.kernel = kernel;
  o.stride = stride;
  o.groups = groups;
  o.act = act;
  return convolution_unit(b, name, x, out, o);
}

ValueId biased(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out) {
  ConvolutionOptions o;
  o.kernel = 1;
  o.bias = true;
  return b.convolution(name, x, out, o);
}

ValueId inverted(NetworkBuilder& b, ValueId x, std::int64_t out, std::int64_t stride,
                 double expand) {
  const std::int64_t in = b.channels(x), wide = round_channels(static_cast<double>(in) * expand);
  ValueId y = unit(b, "conv1", x, wide, 1);
  y = unit(b, "conv2", y, wide, 3, stride, wide);
  y = unit(b, "conv3", y, out, 1, 1, 1, Activation::none);
  return stride == 1 && in == out ? b.add("add", y, x) : y;
}

ValueId transformer_layer(NetworkBuilder& b, ValueId x) {
  const std::int64_t width = b.width(x);
  AttentionOptions o;
  o.heads = 4;
  o.sequences = 4;
  const ValueId all = b.linear("qkv", b.layer_norm("norm1", x), 3 * width);
  const auto qkv = b.split("split", all, 1, {width, width, width});
  ValueId y = b.attention("attn", qkv[0], qkv[1], qkv[2], o);
  x = b.add("add1", x, b.linear("proj", y, width));
  y = b.activation("act", b.linear("fc1", b.layer_norm("norm2", x), 2 * width), Activation::silu);
  return b.add("add2", x, b.linear("fc2", y, width));
}

// Scores of one column weigh the keys; their sum scales the values.
ValueId separable_layer(NetworkBuilder& b, ValueId x) {
  const std::int64_t width = b.channels(x);
  const ValueId all = biased(b, "qkv", b.group_norm("norm1", x, 1), 1 + 2 * width);
  const auto qkv = b.split("split", all, 0, {1, width, width});
  const ValueId scores = b.softmax("softmax", qkv[0]);
  const ValueId keys = b.multiply("weigh", qkv[1], scores);
  // One context for each place in the patch.
  const ValueId sum = b.reduce("context", keys, {width, 4});
  ValueId y = b.multiply("scale", b.activation("relu", qkv[2], Activation::relu), sum);
  x = b.add("add1", x, biased(b, "out", y, width));
  y = biased(b, "fc1", b.group_norm("norm2", x, 1), 2 * width);
  return b.add("add2", x, biased(b, "fc2", b.activation("act", y, Activation::silu), width));
}

ValueId attention_block(NetworkBuilder& b, ValueId x, std::int64_t dim, std::int64_t depth,
                        bool second) {
  const std::int64_t c = b.channels(x), height = b.shape(x)[1], columns = b.shape(x)[2];
  ConvolutionOptions to_dim;
  to_dim.kernel = 1;
  ValueId y = unit(b, "conv_kxk", x, c, 3, 1, second ? c : 1);
  y = b.convolution("conv_1x1", y, dim, to_dim);
  if (!second) y = b.flatten_to_tokens("unfold", y);
  for (std::int64_t i = 0; i < depth; ++i) {
    auto scope = b.scope("transformer." + std::to_string(i));
    y = second ? separable_layer(b, y) : transformer_layer(b, y);
  }
  if (second) return unit(b, "conv_proj", b.group_norm("norm", y, 1), c, 1, 1, 1, Activation::none);
  y = b.tokens_to_image("fold", b.layer_norm("norm", y), height, columns);
  y = unit(b, "conv_proj", y, c, 1);
  return unit(b, "conv_fusion", b.concatenate("cat", {x, y}), c, 3);
}

}  // namespace

Model build_mobilevit(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const bool second = spec.flag("separable");
  const double times = spec.number("width_multiplier", 1), expand = spec.number("expand");
  auto scaled = [&](std::int64_t c) {
    return static_cast<std::int64_t>(static_cast<double>(c) * times);
  };
  const auto widths = spec.wholes("widths"), dims = spec.wholes("dims"),
             repeats = spec.wholes("repeats");
  const std::int64_t depths[] = {2, 4, 3};
  ValueId x = unit(b, "stem", image_input(b, spec), scaled(spec.whole("stem_width")), 3, 2);
  for (std::size_t s = 0; s < 5; ++s) {
    auto in_stage = b.scope("stages." + std::to_string(s));
    const std::int64_t out = scaled(of_stage(widths, s, std::int64_t{64}));
    const std::int64_t count = s < 2 ? of_stage(repeats, s, std::int64_t{1}) : 1;
    for (std::int64_t i = 0; i < count; ++i) {
      auto in_block = b.scope(std::to_string(i));
      x = inverted(b, x, out, i == 0 && s > 0 ? 2 : 1, expand);
    }
    if (s < 2) continue;
    auto in_block = b.scope("1");
    const std::int64_t dim = second ? out / 2 : of_stage(dims, s - 2, std::int64_t{64});
    x = attention_block(b, x, dim, depths[s - 2], second);
  }
  if (const std::int64_t head = spec.whole("head_width", 0)) x = unit(b, "final_conv", x, head, 1);
  return image_model(spec, b, classifier(b, spec, "head.fc", x));
}

}  // namespace trigon
