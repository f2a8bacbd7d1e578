// MaxViT: Tu et al. 2022 (arXiv:2204.01697), as the TensorFlow weights and timm have it: an
// inverted residual with squeeze and excitation, attention within windows, attention across a grid.

#include "network/families.hpp"
#include "network/transformer_block.hpp"

namespace trigon {
namespace {

struct MaxVit {
  std::int64_t head = 32;  // width of a head
  std::int64_t expansion = 4;
  std::int64_t window_h, window_w;
};

ValueId convolution(NetworkBuilder& b, const char* name, ValueId x, std::int64_t out,
                    std::int64_t kernel, std::int64_t stride, std::int64_t groups, bool bias) {
  ConvolutionOptions o;
  o.kernel = kernel;
  o.stride = stride;
  o.groups = groups;
  o.bias = bias;
  o.same = true;
  return b.convolution(name, x, out, o);
}

ValueId inverted_residual(NetworkBuilder& b, ValueId x, const MaxVit& m, std::int64_t out,
                          std::int64_t stride) {
  auto in_conv = b.scope("conv");
  ValueId shortcut = x;
  if (stride > 1) shortcut = b.average_pool("shortcut.pool", x, stride, stride, 0, true);
  if (b.channels(x) != out)
    shortcut = convolution(b, "shortcut.expand", shortcut, out, 1, 1, 1, true);
  const std::int64_t wide = out * m.expansion;
  auto normed = [&](const char* name, ValueId v) {
    return b.activation("act", b.batch_norm(name, v), Activation::gelu);
  };
  ValueId y = b.batch_norm("pre_norm", x);
  y = normed("norm1", convolution(b, "conv1_1x1", y, wide, 1, 1, 1, false));
  y = normed("norm2", convolution(b, "conv2_kxk", y, wide, 3, stride, wide, false));
  ValueId gate = b.reshape("se.square", b.global_average_pool("se.pool", y), {wide, 1, 1});
  gate = b.activation("se.act", convolution(b, "se.fc1", gate, out / 4, 1, 1, 1, true),
                      Activation::silu);
  gate = b.activation("se.gate", convolution(b, "se.fc2", gate, wide, 1, 1, 1, true),
                      Activation::sigmoid);
  y = convolution(b, "conv3_1x1", b.multiply("se.scale", y, gate), out, 1, 1, 1, true);
  return b.add("add", y, shortcut);
}

// Tokens come and go as [h * w, c]; both partitions have windows of the same size.
ValueId partition_attention(NetworkBuilder& b, const char* name, ValueId x, const MaxVit& m) {
  auto in_attention = b.scope(name);
  const std::int64_t tokens = b.tokens(x), width = b.width(x);
  SelfAttention a;
  a.heads = width / m.head;
  a.sequences = tokens / (m.window_h * m.window_w);
  a.bias_rows = (2 * m.window_h - 1) * (2 * m.window_w - 1);
  ValueId y = b.transpose("partition", b.layer_norm("norm1", x), {tokens, width});
  y = b.transpose("reverse", self_attention(b, y, a), {tokens, width});
  x = b.add("add1", x, y);
  FeedForward f;
  f.width = 4 * width;
  return b.add("add2", x, feed_forward(b, b.layer_norm("norm2", x), f));
}

}  // namespace

Model build_maxvit(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  // Windows cover a 32nd of each side; the sheet asks for multiples of 32.
  MaxVit m;
  m.window_h = spec.height() / 32;
  m.window_w = spec.image_width() / 32;
  const std::vector<std::int64_t> depths = spec.wholes("depths"), widths = spec.wholes("widths");
  const std::int64_t stem = spec.whole("stem_width");
  ValueId x = b.input({3, spec.height(), spec.image_width()});
  x = b.batch_norm("stem.norm1", convolution(b, "stem.conv1", x, stem, 3, 2, 1, true));
  x = convolution(b, "stem.conv2", b.activation("stem.act", x, Activation::gelu), stem, 3, 1, 1,
                  true);
  for (std::size_t stage = 0; stage < depths.size() && stage < widths.size(); ++stage) {
    for (std::int64_t i = 0; i < depths[stage]; ++i) {
      auto in_block = b.scope("stages." + std::to_string(stage) + ".blocks." + std::to_string(i));
      x = inverted_residual(b, x, m, widths[stage], i == 0 ? 2 : 1);
      const std::int64_t h = b.shape(x)[1], w = b.shape(x)[2];
      ValueId t = b.flatten_to_tokens("channels_last", x);
      t = partition_attention(b, "attn_block", t, m);
      t = partition_attention(b, "attn_grid", t, m);
      x = b.tokens_to_image("channels_first", t, h, w);
    }
  }
  x = b.layer_norm("head.norm", b.global_average_pool("head.pool", x));
  x = b.activation("head.act", b.linear("head.pre_logits", x, spec.whole("head_width")),
                   Activation::tanh);
  x = b.linear("head.fc", x, spec.whole("classes", 1000));
  return network_model(spec, b.finish({x}), WorkUnit::image, {spec.height(), spec.image_width()});
}

}  // namespace trigon
