#include "network/autoencoder.hpp"

#include "network/latent_blocks.hpp"

namespace trigon {
namespace {

struct Autoencoder {
  std::vector<std::int64_t> widths;  // of the levels, the finest first
  std::int64_t layers, latent;
  bool moments;        // a 1 x 1 convolution on either side of the latent
  bool attention;      // in the middle
  std::int64_t codes;  // rows of a table that latents are taken from; 0: they are drawn
};

Autoencoder autoencoder_of(const NetworkSpec& spec) {
  Autoencoder a;
  for (std::int64_t m : spec.wholes("vae.multipliers"))
    a.widths.push_back(m * spec.whole("vae.width"));
  a.layers = spec.whole("vae.layers");
  a.latent = spec.whole("latent");
  a.moments = spec.flag("vae.moments_convolution", true);
  a.attention = spec.flag("vae.attention", true);
  a.codes = spec.whole("vae.codes", 0);
  return a;
}

// Attention of all pixels with one head as wide as the channels.
ValueId pixel_attention(NetworkBuilder& b, ValueId x) {
  auto in_attention = b.scope("attentions.0");
  const std::int64_t c = b.channels(x), h = b.shape(x)[1], w = b.shape(x)[2];
  const ValueId t = b.flatten_to_tokens("tokens", b.group_norm("group_norm", x, 32));
  const ValueId q = b.linear("to_q", t, c), k = b.linear("to_k", t, c), v = b.linear("to_v", t, c);
  const ValueId y = b.linear("to_out", b.attention("core", q, k, v, {}), c);
  return b.add("add", x, b.tokens_to_image("image", y, h, w));
}

ValueId middle(NetworkBuilder& b, ValueId x, const Autoencoder& a) {
  auto in_middle = b.scope("mid_block");
  x = residual_block(b, "resnets.0", x, b.channels(x));
  if (a.attention) x = pixel_attention(b, x);
  return residual_block(b, "resnets.1", x, b.channels(x));
}

}  // namespace

std::int64_t latent_stride(const NetworkSpec& spec) {
  return std::int64_t{1} << (spec.wholes("vae.multipliers").size() - 1);
}

Graph autoencoder_decoder_graph(const NetworkSpec& spec) {
  const Autoencoder a = autoencoder_of(spec);
  const std::int64_t stride = latent_stride(spec);
  NetworkBuilder b(spec.source());
  const std::int64_t h = spec.height() / stride, w = spec.image_width() / stride;
  ValueId x;
  if (a.codes > 0)
    x = b.tokens_to_image(
        "latent",
        b.embedding("quantize.embedding", b.input({h * w}, Format::i64), a.codes, a.latent), h, w);
  else
    x = b.input({a.latent, h, w});
  if (a.moments) x = convolution_1x1(b, "post_quant_conv", x, a.latent);
  x = middle(b, convolution_3x3(b, "decoder.conv_in", x, a.widths.back()), a);
  for (std::size_t i = a.widths.size(); i-- > 0;) {
    auto in_level = b.scope("up_blocks." + std::to_string(a.widths.size() - 1 - i));
    for (std::int64_t j = 0; j <= a.layers; ++j)
      x = residual_block(b, "resnets." + std::to_string(j), x, a.widths[i]);
    if (i > 0) x = upsample_block(b, "upsamplers.0", x);
  }
  return b.finish({convolution_3x3(b, "conv_out", norm_silu(b, "conv_norm_out", x), 3)});
}

Graph autoencoder_encoder_graph(const NetworkSpec& spec) {
  const Autoencoder a = autoencoder_of(spec);
  NetworkBuilder b(spec.source());
  ValueId x = b.input({3, spec.height(), spec.image_width()});
  x = convolution_3x3(b, "encoder.conv_in", x, a.widths.front());
  for (std::size_t i = 0; i < a.widths.size(); ++i) {
    auto in_level = b.scope("down_blocks." + std::to_string(i));
    for (std::int64_t j = 0; j < a.layers; ++j)
      x = residual_block(b, "resnets." + std::to_string(j), x, a.widths[i]);
    if (i + 1 < a.widths.size()) x = convolution_3x3(b, "downsamplers.0", x, a.widths[i], 2);
  }
  x = norm_silu(b, "conv_norm_out", middle(b, x, a));
  // A mean and a variance where latents are drawn.
  const std::int64_t out = (a.codes > 0 ? 1 : 2) * a.latent;
  x = convolution_3x3(b, "conv_out", x, out);
  if (a.moments) x = convolution_1x1(b, "quant_conv", x, out);
  return b.finish({x});
}

}  // namespace trigon
