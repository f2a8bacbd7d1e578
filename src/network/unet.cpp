// Rombach et al. 2021 (arXiv:2112.10752), appendix; SDXL: Podell et al. 2023 (arXiv:2307.01952),
// table 1.

#include "network/unet.hpp"

#include "network/autoencoder.hpp"
#include "network/latent_blocks.hpp"
#include "network/transformer_block.hpp"

namespace trigon {
namespace {

struct UNet {
  std::vector<std::int64_t> widths, depths, heads;  // of the levels, the finest first
  std::int64_t layers, context_width;
  bool linear_projections;
};

ValueId cross_attention(NetworkBuilder& b, ValueId x, ValueId context, std::int64_t heads) {
  auto in_attention = b.scope("attn2");
  const std::int64_t width = b.width(x);
  const ValueId q = b.linear("to_q", x, width, false);
  const ValueId k = b.linear("to_k", context, width, false);
  const ValueId v = b.linear("to_v", context, width, false);
  AttentionOptions o;
  o.heads = heads;
  return b.linear("to_out", b.attention("core", q, k, v, o), width);
}

ValueId transformer_block(NetworkBuilder& b, ValueId x, ValueId context, std::int64_t heads) {
  SelfAttention a;
  a.heads = heads;
  a.bias = false;
  a.one_projection = false;
  x = b.add("add1", x, self_attention(b, b.layer_norm("norm1", x), a));
  x = b.add("add2", x, cross_attention(b, b.layer_norm("norm2", x), context, heads));
  FeedForward f;
  f.width = 4 * b.width(x);
  f.kind = FeedForwardKind::gated;
  f.one_projection = true;
  return b.add("add3", x, feed_forward(b, b.layer_norm("norm3", x), f));
}

ValueId transformer(NetworkBuilder& b, std::string_view name, const UNet& u, ValueId x,
                    ValueId context, std::int64_t depth, std::int64_t heads) {
  auto in_transformer = b.scope(name);
  const std::int64_t c = b.channels(x), h = b.shape(x)[1], w = b.shape(x)[2];
  ValueId y = b.group_norm("norm", x, 32);
  if (u.linear_projections)
    y = b.linear("proj_in", b.flatten_to_tokens("tokens", y), c);
  else
    y = b.flatten_to_tokens("tokens", convolution_1x1(b, "proj_in", y, c));
  for (std::int64_t i = 0; i < depth; ++i) {
    auto in_block = b.scope("transformer_blocks." + std::to_string(i));
    y = transformer_block(b, y, context, heads);
  }
  if (u.linear_projections)
    y = b.tokens_to_image("image", b.linear("proj_out", y, c), h, w);
  else
    y = convolution_1x1(b, "proj_out", b.tokens_to_image("image", y, h, w), c);
  return b.add("add", x, y);
}

// A sinusoid through two layers.
ValueId embedded(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t width) {
  auto in_embedding = b.scope(name);
  return b.linear("linear_2", b.activation("act", b.linear("linear_1", x, width), Activation::silu),
                  width);
}

UNet unet_of(const NetworkSpec& spec) {
  UNet u;
  u.widths = spec.wholes("widths");
  u.depths = spec.wholes("depths");
  u.depths.resize(u.widths.size(), 0);
  // Heads are as many everywhere or as wide everywhere.
  for (std::int64_t w : u.widths)
    u.heads.push_back(spec.has("heads") ? spec.whole("heads") : w / spec.whole("head_width"));
  u.layers = spec.whole("layers");
  u.context_width = spec.whole("context_width");
  u.linear_projections = spec.flag("linear_projections");
  return u;
}

}  // namespace

Graph unet_graph(const NetworkSpec& spec, std::int64_t tokens) {
  const UNet u = unet_of(spec);
  const std::int64_t stride = latent_stride(spec), latent = spec.whole("latent");
  NetworkBuilder b(spec.source());
  const ValueId noisy = b.input({latent, spec.height() / stride, spec.image_width() / stride});
  ValueId context = b.input({tokens, spec.whole("encoder_width", u.context_width)});
  if (spec.has("encoder_width")) context = b.linear("encoder_hid_proj", context, u.context_width);
  const std::int64_t time_width = 4 * u.widths[0];
  ValueId time = embedded(b, "time_embedding", b.input({1, u.widths[0]}), time_width);
  if (const std::int64_t added = spec.whole("added_condition", 0); added > 0)
    time =
        b.add("add_condition", time, embedded(b, "add_embedding", b.input({1, added}), time_width));

  ValueId x = convolution_3x3(b, "conv_in", noisy, u.widths[0]);
  std::vector<ValueId> skips{x};
  auto layer = [&](std::size_t level, std::int64_t i) {
    const std::string number = std::to_string(i);
    x = residual_block(b, "resnets." + number, x, u.widths[level], time);
    if (u.depths[level] > 0)
      x = transformer(b, "attentions." + number, u, x, context, u.depths[level], u.heads[level]);
  };
  for (std::size_t level = 0; level < u.widths.size(); ++level) {
    auto in_level = b.scope("down_blocks." + std::to_string(level));
    for (std::int64_t i = 0; i < u.layers; ++i) {
      layer(level, i);
      skips.push_back(x);
    }
    if (level + 1 == u.widths.size()) break;
    x = convolution_3x3(b, "downsamplers.0", x, u.widths[level], 2);
    skips.push_back(x);
  }
  {
    auto in_middle = b.scope("mid_block");
    const std::size_t last = u.widths.size() - 1;
    x = residual_block(b, "resnets.0", x, u.widths[last], time);
    x = transformer(b, "attentions.0", u, x, context, spec.whole("middle_depth"), u.heads[last]);
    x = residual_block(b, "resnets.1", x, u.widths[last], time);
  }
  for (std::size_t level = u.widths.size(); level-- > 0;) {
    auto in_level = b.scope("up_blocks." + std::to_string(u.widths.size() - 1 - level));
    for (std::int64_t i = 0; i <= u.layers; ++i) {
      x = b.concatenate("skip" + std::to_string(i), {x, skips.back()});
      skips.pop_back();
      layer(level, i);
    }
    if (level > 0) x = upsample_block(b, "upsamplers.0", x);
  }
  return b.finish({convolution_3x3(b, "conv_out", norm_silu(b, "conv_norm_out", x), latent)});
}

}  // namespace trigon
