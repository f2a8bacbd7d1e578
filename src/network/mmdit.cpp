// Stable Diffusion 3: Esser et al. 2024 (arXiv:2403.03206); FLUX.1 as its published weights and
// github:huggingface/diffusers models/transformers/transformer_flux.py have it.

#include "network/autoencoder.hpp"
#include "network/diffusion_transformer.hpp"
#include "network/modulation.hpp"

namespace trigon {
namespace {

struct Joint {
  std::int64_t width, heads;
  bool normalised;  // queries and keys, for each head
  bool rotary;
};

struct Projected {
  ValueId q, k, v;
};

ValueId head_norm(NetworkBuilder& b, std::string_view name, ValueId x, const Joint& j) {
  if (!j.normalised) return x;
  const std::int64_t tokens = b.tokens(x), head = j.width / j.heads;
  const ValueId by_head = b.reshape("by_head", x, {tokens * j.heads, head});
  return b.reshape("joined", b.rms_norm(name, by_head), {tokens, j.width});
}

Projected project(NetworkBuilder& b, std::string_view stream, ValueId x, const Joint& j) {
  auto in_stream = b.scope(stream);
  const ValueId q = b.linear("to_q", x, j.width), k = b.linear("to_k", x, j.width);
  return {head_norm(b, "norm_q", q, j), head_norm(b, "norm_k", k, j), b.linear("to_v", x, j.width)};
}

ValueId attend(NetworkBuilder& b, Projected p, const Joint& j) {
  if (j.rotary) {
    p.q = rotate(b, "q_rotary", p.q);
    p.k = rotate(b, "k_rotary", p.k);
  }
  AttentionOptions o;
  o.heads = j.heads;
  return b.attention("core", p.q, p.k, p.v, o);
}

// One attention over the tokens of both streams; gives back each stream's part.
std::pair<ValueId, ValueId> joint_attention(NetworkBuilder& b, ValueId image, ValueId text,
                                            const Joint& j) {
  auto in_attention = b.scope("attn");
  const std::int64_t image_tokens = b.tokens(image), text_tokens = b.tokens(text);
  const Projected x = project(b, "image", image, j), y = project(b, "text", text, j);
  const Projected both{b.concatenate("q", {x.q, y.q}), b.concatenate("k", {x.k, y.k}),
                       b.concatenate("v", {x.v, y.v})};
  const std::vector<ValueId> parts =
      b.split("streams", attend(b, both, j), 0, {image_tokens, text_tokens});
  return {parts[0], parts[1]};
}

ValueId mlp(NetworkBuilder& b, std::string_view name, ValueId x) {
  auto in_mlp = b.scope(name);
  FeedForward f;
  f.width = 4 * b.width(x);
  return feed_forward(b, x, f);
}

ValueId own_attention(NetworkBuilder& b, ValueId x, const Joint& j) {
  auto in_attention = b.scope("attn2");
  return b.linear("to_out", attend(b, project(b, "image", x, j), j), j.width);
}

struct Streams {
  ValueId image, text;
};

// `last`: the text only informs the image. `twice`: the image attends to itself too (SD 3.5
// medium).
Streams joint_block(NetworkBuilder& b, Streams s, ValueId condition, const Joint& j, bool last,
                    bool twice) {
  const auto m = modulation(b, "norm1.linear", condition, twice ? 9 : 6, j.width);
  const auto c = modulation(b, "norm1_context.linear", condition, last ? 2 : 6, j.width);
  const ValueId image = modulated_norm(b, "norm1", s.image, m[0], m[1]);
  const ValueId text = modulated_norm(b, "norm1_context", s.text, c[0], c[1]);
  const auto [from_image, from_text] = joint_attention(b, image, text, j);
  const ValueId before = s.image;
  s.image = gated_add(b, "add1", s.image, m[2], b.linear("attn.to_out", from_image, j.width));
  if (twice) {
    const ValueId own = modulated_norm(b, "norm1_2", before, m[6], m[7]);
    s.image = gated_add(b, "add_own", s.image, m[8], own_attention(b, own, j));
  }
  const ValueId y = mlp(b, "ff", modulated_norm(b, "norm2", s.image, m[3], m[4]));
  s.image = gated_add(b, "add2", s.image, m[5], y);
  if (last) return s;
  s.text =
      gated_add(b, "add1_context", s.text, c[2], b.linear("attn.to_add_out", from_text, j.width));
  const ValueId z = mlp(b, "ff_context", modulated_norm(b, "norm2_context", s.text, c[3], c[4]));
  s.text = gated_add(b, "add2_context", s.text, c[5], z);
  return s;
}

// Attention and feed-forward side by side, joined by one projection.
ValueId single_block(NetworkBuilder& b, ValueId x, ValueId condition, const Joint& j) {
  const auto m = modulation(b, "norm.linear", condition, 3, j.width);
  const ValueId y = modulated_norm(b, "norm", x, m[0], m[1]);
  const ValueId wide =
      b.activation("act_mlp", b.linear("proj_mlp", y, 4 * j.width), Activation::gelu);
  auto in_attention = b.scope("attn");
  const ValueId attended = attend(b, project(b, "joint", y, j), j);
  const ValueId joined = b.concatenate("join", {attended, wide}, 1);
  return gated_add(b, "add", x, m[2], b.linear("proj_out", joined, j.width));
}

ValueId noisy_latent(NetworkBuilder& b, const NetworkSpec& spec) {
  const std::int64_t stride = latent_stride(spec);
  return b.input({spec.whole("latent"), spec.height() / stride, spec.image_width() / stride});
}

}  // namespace

Graph mmdit_graph(const NetworkSpec& spec, std::int64_t tokens) {
  const Joint j{spec.whole("width"), spec.whole("heads"), spec.flag("head_norms"), false};
  const std::int64_t depth = spec.whole("depth"), patch = spec.whole("patch");
  const std::int64_t twice = spec.whole("twice_attending_blocks", 0);
  NetworkBuilder b(spec.source());
  Streams s{};
  s.image = patch_tokens(b, "pos_embed.proj", noisy_latent(b, spec), patch, j.width);
  s.image = b.add("pos_embed.add", s.image, b.input({b.tokens(s.image), j.width}));
  s.text = b.linear("context_embedder", b.input({tokens, spec.whole("context_width")}), j.width);
  const ValueId time =
      condition_embedding(b, "timestep_embedder", b.input({1, spec.whole("sinusoid")}), j.width);
  const ValueId pooled =
      condition_embedding(b, "text_embedder", b.input({1, spec.whole("pooled_width")}), j.width);
  const ValueId condition = b.add("condition", time, pooled);
  for (std::int64_t i = 0; i < depth; ++i) {
    auto in_block = b.scope("transformer_blocks." + std::to_string(i));
    s = joint_block(b, s, condition, j, i + 1 == depth, i < twice);
  }
  return b.finish({modulated_output(b, s.image, condition, patch * patch * spec.whole("latent"))});
}

Graph flux_graph(const NetworkSpec& spec, std::int64_t tokens) {
  const Joint j{spec.whole("width"), spec.whole("heads"), true, true};
  const std::int64_t patch = spec.whole("patch"), sinusoid = spec.whole("sinusoid");
  NetworkBuilder b(spec.source());
  const ValueId noisy = noisy_latent(b, spec);
  const std::int64_t values = spec.whole("latent") * patch * patch;
  const ValueId packed = b.transpose("pack", noisy, {elements(b.shape(noisy)) / values, values});
  Streams s{b.linear("x_embedder", packed, j.width),
            b.linear("context_embedder", b.input({tokens, spec.whole("context_width")}), j.width)};
  ValueId condition = condition_embedding(b, "timestep_embedder", b.input({1, sinusoid}), j.width);
  if (spec.flag("distilled_guidance"))
    condition = b.add("add_guidance", condition,
                      condition_embedding(b, "guidance_embedder", b.input({1, sinusoid}), j.width));
  condition = b.add(
      "condition", condition,
      condition_embedding(b, "text_embedder", b.input({1, spec.whole("pooled_width")}), j.width));
  for (std::int64_t i = 0; i < spec.whole("depth"); ++i) {
    auto in_block = b.scope("transformer_blocks." + std::to_string(i));
    s = joint_block(b, s, condition, j, false, false);
  }
  const std::int64_t image_tokens = b.tokens(s.image);
  ValueId x = b.concatenate("streams", {s.text, s.image});
  for (std::int64_t i = 0; i < spec.whole("single_depth"); ++i) {
    auto in_block = b.scope("single_transformer_blocks." + std::to_string(i));
    x = single_block(b, x, condition, j);
  }
  x = b.slice("image", x, 0, image_tokens);
  return b.finish({modulated_output(b, x, condition, values)});
}

}  // namespace trigon
