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

ValueId maxvit_block(NetworkBuilder& b, ValueId x, const MaxVit& m, std::int64_t out,
                     std::int64_t stride) {
  x = inverted_residual(b, x, m, out, stride);
  const std::int64_t h = b.shape(x)[1], w = b.shape(x)[2];
  ValueId t = b.flatten_to_tokens("channels_last", x);
  t = partition_attention(b, "attn_block", t, m);
  t = partition_attention(b, "attn_grid", t, m);
  return b.tokens_to_image("channels_first", t, h, w);
}

// Attention over all positions; the first of a stage halves the sides and widens.
ValueId transformer_block(NetworkBuilder& b, ValueId x, const MaxVit& m, std::int64_t out,
                          std::int64_t stride) {
  ValueId shortcut = x, y = b.layer_norm("norm1", x, true, true);
  if (stride > 1) {
    shortcut = b.average_pool("shortcut.pool", x, stride, stride, 0, true);
    y = b.average_pool("norm1.down", y, stride, stride, 0, true);
  }
  if (b.channels(x) != out)
    shortcut = convolution(b, "shortcut.expand", shortcut, out, 1, 1, 1, true);
  const std::int64_t h = b.shape(y)[1], w = b.shape(y)[2];
  ValueId t = b.flatten_to_tokens("tokens", y);
  const std::vector<ValueId> qkv =
      b.split("qkv.split", b.linear("attn.qkv", t, 3 * out), 1, {out, out, out});
  AttentionOptions o;
  o.heads = out / m.head;
  t = b.attention("attn.core", qkv[0], qkv[1], qkv[2], o);
  b.last().weights.push_back(
      b.weight("attn.position_bias", {(2 * h - 1) * (2 * w - 1), out / m.head}));
  t = b.add("add1", b.linear("attn.proj", t, out), b.flatten_to_tokens("shortcut", shortcut));
  FeedForward f;
  f.width = 4 * out;
  t = b.add("add2", t, feed_forward(b, b.layer_norm("norm2", t), f));
  return b.tokens_to_image("image", t, h, w);
}

ValueId any_block(NetworkBuilder& b, ValueId x, const MaxVit& m, const std::string& kind,
                  std::int64_t out, std::int64_t stride) {
  if (kind == "convolution") return inverted_residual(b, x, m, out, stride);
  if (kind == "attention") return transformer_block(b, x, m, out, stride);
  return maxvit_block(b, x, m, out, stride);
}

}  // namespace

Model build_maxvit(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  // Windows cover a 32nd of each side; the sheet asks for multiples of 32.
  MaxVit m;
  m.window_h = spec.height() / 32;
  m.window_w = spec.image_width() / 32;
  const std::vector<std::int64_t> depths = spec.wholes("depths"), widths = spec.wholes("widths");
  const std::vector<std::string> kinds =
      spec.has("blocks") ? spec.texts("blocks") : std::vector<std::string>{};
  const std::int64_t stem = spec.whole("stem_width");
  const bool bias = spec.flag("stem_bias");
  ValueId x = b.input({3, spec.height(), spec.image_width()});
  x = b.batch_norm("stem.norm1", convolution(b, "stem.conv1", x, stem, 3, 2, 1, bias));
  x = convolution(b, "stem.conv2", b.activation("stem.act", x, Activation::gelu), stem, 3, 1, 1,
                  bias);
  for (std::size_t stage = 0; stage < depths.size() && stage < widths.size(); ++stage) {
    for (std::int64_t i = 0; i < depths[stage]; ++i) {
      auto in_block = b.scope("stages." + std::to_string(stage) + ".blocks." + std::to_string(i));
      const std::string kind = stage < kinds.size() ? kinds[stage] : "both";
      x = any_block(b, x, m, kind, widths[stage], i == 0 ? 2 : 1);
    }
  }
  x = b.layer_norm("head.norm", b.global_average_pool("head.pool", x));
  x = b.activation("head.act", b.linear("head.pre_logits", x, spec.whole("head_width")),
                   Activation::tanh);
  x = b.linear("head.fc", x, spec.whole("classes", 1000));
  return network_model(spec, b.finish({x}), WorkUnit::image, {spec.height(), spec.image_width()});
}

}  // namespace trigon
