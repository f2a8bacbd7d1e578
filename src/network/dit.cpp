// DiT: Peebles and Xie 2022 (arXiv:2212.09748); PixArt-alpha: Chen et al. 2023 (arXiv:2310.00426),
// PixArt-Sigma: Chen et al. 2024 (arXiv:2403.04692).

#include "network/autoencoder.hpp"
#include "network/diffusion_transformer.hpp"
#include "network/modulation.hpp"

namespace trigon {
namespace {

struct Dit {
  std::int64_t width, depth, heads, patch, latent, sinusoid;
};

Dit dit_of(const NetworkSpec& spec) {
  return {spec.whole("width"), spec.whole("depth"),  spec.whole("heads"),
          spec.whole("patch"), spec.whole("latent"), spec.whole("sinusoid")};
}

// Positions are sinusoids that nobody trains.
ValueId latent_tokens(NetworkBuilder& b, const NetworkSpec& spec, const Dit& d) {
  const std::int64_t stride = latent_stride(spec);
  const ValueId noisy = b.input({d.latent, spec.height() / stride, spec.image_width() / stride});
  const ValueId x = patch_tokens(b, "pos_embed.proj", noisy, d.patch, d.width);
  return b.add("pos_embed.add", x, b.input({b.tokens(x), d.width}));
}

FeedForward feed_forward_of(const Dit& d) {
  FeedForward f;
  f.width = 4 * d.width;
  return f;
}

SelfAttention attention_of(const Dit& d, bool one_projection) {
  SelfAttention a;
  a.heads = d.heads;
  a.one_projection = one_projection;
  return a;
}

ValueId cross_attention(NetworkBuilder& b, ValueId x, ValueId text, const Dit& d) {
  auto in_attention = b.scope("attn2");
  const ValueId q = b.linear("to_q", x, d.width), k = b.linear("to_k", text, d.width);
  AttentionOptions o;
  o.heads = d.heads;
  return b.linear("to_out", b.attention("core", q, k, b.linear("to_v", text, d.width), o), d.width);
}

// One network gives shifts, scales and gates for all blocks; each block adds a table of its own.
ValueId pixart_block(NetworkBuilder& b, ValueId x, ValueId text, ValueId shared, const Dit& d) {
  const ValueId table = b.add("table", b.reshape("six", shared, {6, d.width}),
                              learned(b, "scale_shift_table", 6, d.width));
  const ValueId flat = b.reshape("flat", table, {1, 6 * d.width});
  const std::vector<ValueId> m = b.split("parts", flat, 1, std::vector<std::int64_t>(6, d.width));
  ValueId y = self_attention(b, modulated_norm(b, "norm1", x, m[0], m[1]), attention_of(d, false));
  x = gated_add(b, "add1", x, m[2], y);
  x = b.add("add2", x, cross_attention(b, x, text, d));
  y = feed_forward(b, modulated_norm(b, "norm2", x, m[3], m[4]), feed_forward_of(d));
  return gated_add(b, "add3", x, m[5], y);
}

}  // namespace

Graph dit_graph(const NetworkSpec& spec) {
  const Dit d = dit_of(spec);
  NetworkBuilder b(spec.source());
  ValueId x = latent_tokens(b, spec, d);
  const ValueId label =
      b.embedding("y_embedder", b.input({1}, Format::i64), spec.whole("classes") + 1, d.width);
  const ValueId time = condition_embedding(b, "t_embedder", b.input({1, d.sinusoid}), d.width);
  const ValueId condition = b.add("condition", time, label);
  for (std::int64_t i = 0; i < d.depth; ++i) {
    auto in_block = b.scope("blocks." + std::to_string(i));
    const std::vector<ValueId> m = modulation(b, "adaLN", condition, 6, d.width);
    ValueId y = self_attention(b, modulated_norm(b, "norm1", x, m[0], m[1]), attention_of(d, true));
    x = gated_add(b, "add1", x, m[2], y);
    y = feed_forward(b, modulated_norm(b, "norm2", x, m[3], m[4]), feed_forward_of(d));
    x = gated_add(b, "add2", x, m[5], y);
  }
  return b.finish({modulated_output(b, x, condition, d.patch * d.patch * 2 * d.latent)});
}

Graph pixart_graph(const NetworkSpec& spec, std::int64_t tokens) {
  const Dit d = dit_of(spec);
  NetworkBuilder b(spec.source());
  ValueId x = latent_tokens(b, spec, d);
  const ValueId caption = b.input({tokens, spec.whole("context_width")});
  ValueId text = b.linear("caption_projection.linear_1", caption, d.width);
  text = b.linear("caption_projection.linear_2",
                  b.activation("caption_projection.act", text, Activation::gelu), d.width);
  ValueId time = condition_embedding(b, "timestep_embedder", b.input({1, d.sinusoid}), d.width);
  if (spec.flag("size_conditions")) {
    // Height and width give a third of the width each, the aspect ratio the last.
    const ValueId sizes =
        condition_embedding(b, "resolution_embedder", b.input({2, d.sinusoid}), d.width / 3);
    const ValueId ratio =
        condition_embedding(b, "aspect_ratio_embedder", b.input({1, d.sinusoid}), d.width / 3);
    time = b.add("add_sizes", time,
                 b.reshape("sizes", b.concatenate("join", {sizes, ratio}), {1, d.width}));
  }
  const ValueId shared =
      b.linear("adaln_single.linear", b.activation("adaln_single.silu", time, Activation::silu),
               6 * d.width);
  for (std::int64_t i = 0; i < d.depth; ++i) {
    auto in_block = b.scope("transformer_blocks." + std::to_string(i));
    x = pixart_block(b, x, text, shared, d);
  }
  const ValueId table = b.add("table", learned(b, "scale_shift_table", 2, d.width), time);
  const std::vector<ValueId> m =
      b.split("parts", b.reshape("flat", table, {1, 2 * d.width}), 1, {d.width, d.width});
  return b.finish({b.linear("proj_out", modulated_norm(b, "norm_out", x, m[0], m[1]),
                            d.patch * d.patch * 2 * d.latent)});
}

}  // namespace trigon
