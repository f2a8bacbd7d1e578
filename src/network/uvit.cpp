// aMUSEd: Patil et al. 2024 (arXiv:2401.01808); a masked transformer between convolutional blocks
// that writes the codes of an image's latent (diffusers models/unets/uvit_2d.py).

#include "network/autoencoder.hpp"
#include "network/diffusion_transformer.hpp"
#include "network/latent_blocks.hpp"
#include "network/modulation.hpp"

namespace trigon {
namespace {

struct UVit {
  std::int64_t width, depth, heads, mlp_width;   // of the transformer
  std::int64_t channels, blocks, channel_heads;  // of the convolutional blocks
  bool halves;                                   // the transformer sees half the resolution
};

// A 1 x 1 convolution without a bias.
ValueId pointwise(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out) {
  ConvolutionOptions o;
  o.kernel = 1;
  return b.convolution(name, x, out, o);
}

ValueId attention(NetworkBuilder& b, std::string_view name, ValueId x, ValueId context,
                  std::int64_t heads) {
  auto in_attention = b.scope(name);
  const std::int64_t width = b.width(x);
  const ValueId q = b.linear("to_q", x, width, false), k = b.linear("to_k", context, width, false);
  AttentionOptions o;
  o.heads = heads;
  return b.linear("to_out", b.attention("core", q, k, b.linear("to_v", context, width, false), o),
                  width, false);
}

// Normalised, then scaled and shifted by the condition (AdaLayerNormContinuous).
ValueId conditioned_norm(NetworkBuilder& b, std::string_view name, ValueId x, ValueId condition) {
  auto in_norm = b.scope(name);
  const std::int64_t width = b.width(x);
  const std::vector<ValueId> m = b.split(
      "parts",
      b.linear("linear", b.activation("silu", condition, Activation::silu), 2 * width, false), 1,
      {width, width});
  return b.elementwise("modulate", {b.rms_norm("norm", x), m[0], m[1]}, "modulate", 3,
                       Keeps::inputs);
}

ValueId transformer_layer(NetworkBuilder& b, ValueId x, ValueId text, ValueId condition,
                          const UVit& u) {
  const ValueId own = conditioned_norm(b, "norm1", x, condition);
  x = b.add("add1", x, attention(b, "attn1", own, own, u.heads));
  x = b.add("add2", x,
            attention(b, "attn2", conditioned_norm(b, "norm2", x, condition), text, u.heads));
  FeedForward f;
  f.width = u.mlp_width;
  f.kind = FeedForwardKind::gated;
  f.bias = false;
  f.one_projection = true;
  return b.add("add3", x, feed_forward(b, conditioned_norm(b, "norm3", x, condition), f));
}

// ConvNeXt's block with a response norm, scaled and shifted by the condition.
ValueId residual(NetworkBuilder& b, std::string_view name, ValueId x, ValueId condition) {
  auto in_block = b.scope(name);
  const std::int64_t c = b.channels(x), h = b.shape(x)[1], w = b.shape(x)[2];
  ConvolutionOptions o;
  o.kernel = 3;
  o.groups = c;
  ValueId y = b.flatten_to_tokens("tokens", b.convolution("depthwise", x, c, o));
  y = b.activation("act", b.linear("linear_1", b.rms_norm("norm", y), 4 * c, false),
                   Activation::gelu);
  y = b.elementwise("response_norm", {y}, "normalize", 6, Keeps::inputs);
  b.last().weights.push_back(b.weight("response_norm.gamma", {4 * c}));
  b.last().weights.push_back(b.weight("response_norm.beta", {4 * c}));
  y = b.add("add", b.flatten_to_tokens("input", x), b.linear("linear_2", y, c, false));
  const std::vector<ValueId> m =
      b.split("parts",
              b.linear("cond_embeds_mapper", b.activation("silu", condition, Activation::silu),
                       2 * c, false),
              1, {c, c});
  y = b.elementwise("modulate", {y, m[0], m[1]}, "modulate", 2, Keeps::inputs);
  return b.tokens_to_image("image", y, h, w);
}

ValueId block(NetworkBuilder& b, std::string_view name, ValueId x, ValueId text, ValueId condition,
              const UVit& u) {
  auto in_level = b.scope(name);
  for (std::int64_t i = 0; i < u.blocks; ++i) {
    const std::string number = std::to_string(i);
    x = residual(b, "res_blocks." + number, x, condition);
    const std::int64_t c = b.channels(x), h = b.shape(x)[1], w = b.shape(x)[2];
    auto in_block = b.scope("attention_blocks." + number);
    const ValueId context =
        b.linear("kv_mapper", b.activation("silu", text, Activation::silu), c, false);
    ValueId y = b.flatten_to_tokens("tokens", x);
    y = b.add("add1", y, attention(b, "attn1", b.rms_norm("norm1", y), context, u.channel_heads));
    y = b.add("add2", y, attention(b, "attn2", b.rms_norm("norm2", y), context, u.channel_heads));
    x = b.tokens_to_image("image", y, h, w);
  }
  return x;
}

UVit uvit_of(const NetworkSpec& spec) {
  return {spec.whole("width"),         spec.whole("depth"),    spec.whole("heads"),
          spec.whole("mlp_width"),     spec.whole("channels"), spec.whole("blocks"),
          spec.whole("channel_heads"), spec.flag("halves")};
}

// Between resolutions: a norm and a convolution of side two.
ValueId halved(NetworkBuilder& b, std::string_view name, ValueId x, bool down) {
  auto in_step = b.scope(name);
  const std::int64_t c = b.channels(x), h = b.shape(x)[1], w = b.shape(x)[2];
  const ValueId y =
      b.tokens_to_image("image", b.rms_norm("norm", b.flatten_to_tokens("tokens", x)), h, w);
  ConvolutionOptions o;
  o.kernel = 2;
  o.stride = 2;
  o.padding = 0;
  return down ? b.convolution("conv", y, c, o) : b.transposed_convolution("conv", y, c, o);
}

}  // namespace

Graph uvit_graph(const NetworkSpec& spec, std::int64_t tokens) {
  const UVit u = uvit_of(spec);
  const std::int64_t stride = latent_stride(spec), codes = spec.whole("codes");
  const std::int64_t h = spec.height() / stride, w = spec.image_width() / stride;
  NetworkBuilder b(spec.source());
  const ValueId text = b.rms_norm(
      "encoder_proj_layer_norm",
      b.linear("encoder_proj", b.input({tokens, spec.whole("context_width")}), u.width, false));
  ValueId condition = b.input({1, spec.whole("condition_width")});
  {
    auto in_condition = b.scope("cond_embed");
    condition = b.linear("linear_1", condition, u.width, false);
    condition =
        b.linear("linear_2", b.activation("act", condition, Activation::silu), u.width, false);
  }
  // One row of the table is the mask.
  ValueId x = b.embedding("embed.embeddings", b.input({h * w}, Format::i64),
                          spec.whole("vocabulary"), u.channels);
  x = pointwise(b, "embed.conv",
                b.tokens_to_image("embed.image", b.rms_norm("embed.layer_norm", x), h, w),
                u.channels);
  if (u.halves) x = halved(b, "down_block.downsample", x, true);
  x = block(b, "down_block", x, text, condition, u);
  const std::int64_t inner_h = b.shape(x)[1], inner_w = b.shape(x)[2];
  x = b.linear("project_to_hidden",
               b.rms_norm("project_to_hidden_norm", b.flatten_to_tokens("tokens", x)), u.width,
               false);
  for (std::int64_t i = 0; i < u.depth; ++i) {
    auto in_layer = b.scope("transformer_layers." + std::to_string(i));
    x = transformer_layer(b, x, text, condition, u);
  }
  x = b.linear("project_from_hidden", b.rms_norm("project_from_hidden_norm", x), u.channels, false);
  x = block(b, "up_block", b.tokens_to_image("image", x, inner_h, inner_w), text, condition, u);
  if (u.halves) x = halved(b, "up_block.upsample", x, false);
  x = b.flatten_to_tokens("mlm_layer.tokens", pointwise(b, "mlm_layer.conv1", x, u.channels));
  x = b.tokens_to_image("mlm_layer.image", b.rms_norm("mlm_layer.layer_norm", x), h, w);
  return b.finish({pointwise(b, "mlm_layer.conv2", x, codes)});
}

}  // namespace trigon
