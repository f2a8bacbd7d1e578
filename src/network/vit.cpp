// Vision transformers: Dosovitskiy et al. 2020 (arXiv:2010.11929), DeiT (arXiv:2012.12877,
// arXiv:2204.07118), BEiT (arXiv:2106.08254), EVA-02 (arXiv:2303.11331), SigLIP (arXiv:2303.15343),
// DINOv2 (arXiv:2304.07193), the spectrogram transformer AST (arXiv:2104.01778) and timm's variants
// with relative positions, parallel blocks or a residual network in front.

#include "network/vit.hpp"

#include "network/families.hpp"
#include "network/transformer_block.hpp"
#include "network/vit_stem.hpp"

namespace trigon {
namespace {

struct Vit {
  std::int64_t width, depth, heads, mlp, parallel;
  bool bias, key_bias, norm_after, scaled, gated, joined, rotary, mlp_norm, attention_norm, fused;
  std::int64_t rows = 0;         // of position biases that each block learns
  std::int64_t bias_hidden = 0;  // of the network that computes them
  bool one_bias = false;         // for all blocks
};

Vit vit_of(const NetworkSpec& spec) {
  Vit v{};
  v.width = spec.whole("width");
  v.depth = spec.whole("depth");
  v.heads = spec.whole("heads");
  v.mlp =
      spec.has("mlp_width")
          ? spec.whole("mlp_width")
          : static_cast<std::int64_t>(static_cast<double>(v.width) * spec.number("mlp_ratio", 4));
  v.parallel = spec.whole("parallel", 1);
  v.bias = spec.flag("qkv_bias", true);
  v.key_bias = spec.flag("key_bias", true);
  v.norm_after = spec.flag("norm_after");
  v.scaled = spec.flag("layer_scale");
  v.gated = spec.flag("gated");
  v.joined = spec.flag("joined_projections", true);
  v.rotary = spec.flag("rotary");
  v.mlp_norm = spec.flag("mlp_norm");
  v.attention_norm = spec.flag("attention_norm");
  v.fused = spec.flag("fused", true);
  v.bias_hidden = spec.whole("bias_hidden", 0);
  v.one_bias = spec.flag("one_bias");
  return v;
}

// Log-distances of all offsets through a small network, Swin V2's (arXiv:2111.09883, 3.3).
ValueId computed_bias(NetworkBuilder& b, std::int64_t rows, std::int64_t hidden,
                      std::int64_t heads) {
  auto in_bias = b.scope("rel_pos.mlp");
  const ValueId offsets =
      b.node("offsets", TableLookup{rows}, {}, {b.weight("offsets", {rows, 2}, false)}, {rows, 2});
  return b.linear("fc2", b.activation("act", b.linear("fc1", offsets, hidden), Activation::relu),
                  heads);
}

ValueId attention_branch(NetworkBuilder& b, ValueId x, const Vit& v,
                         std::optional<ValueId> shared) {
  SelfAttention a;
  a.heads = v.heads;
  a.bias = v.bias;
  a.key_bias = v.key_bias;
  a.one_projection = v.joined;
  a.rotary = v.rotary;
  a.fused = v.fused;
  a.norm_inside = v.attention_norm;
  a.position_bias = shared;
  if (!shared && v.bias_hidden > 0)
    a.position_bias = computed_bias(b, v.rows, v.bias_hidden, v.heads);
  else if (!shared)
    a.bias_rows = v.rows;
  ValueId y = v.norm_after ? x : b.layer_norm("norm1", x);
  y = self_attention(b, y, a);
  if (v.norm_after) y = b.layer_norm("norm1", y);
  return v.scaled ? b.scale("ls1", y) : y;
}

ValueId mlp_branch(NetworkBuilder& b, ValueId x, const Vit& v) {
  FeedForward f;
  f.width = v.mlp;
  f.norm_inside = v.mlp_norm;
  if (v.gated) {
    f.kind = FeedForwardKind::gated;
    f.activation = Activation::silu;
    f.one_projection = v.joined;
  }
  ValueId y = v.norm_after ? x : b.layer_norm("norm2", x);
  y = feed_forward(b, y, f);
  if (v.norm_after) y = b.layer_norm("norm2", y);
  return v.scaled ? b.scale("ls2", y) : y;
}

template <class Branch>
ValueId residual(NetworkBuilder& b, ValueId x, std::int64_t parallel, const char* name,
                 const Branch& branch) {
  ValueId sum = x;
  for (std::int64_t i = 0; i < parallel; ++i) {
    auto in_branch = b.scope(std::string(name) + std::to_string(i));
    sum = b.add("add", sum, branch());
  }
  return sum;
}

ValueId block(NetworkBuilder& b, ValueId x, const Vit& v, std::optional<ValueId> shared) {
  x = residual(b, x, v.parallel, "attns", [&] { return attention_branch(b, x, v, shared); });
  return residual(b, x, v.parallel, "ffns", [&] { return mlp_branch(b, x, v); });
}

// A learned query attends to all tokens (SigLIP).
ValueId attention_pool(NetworkBuilder& b, ValueId x, const Vit& v) {
  auto in_pool = b.scope("attn_pool");
  const ValueId q = b.linear("q", learned(b, "latent", 1, v.width), v.width);
  const std::vector<ValueId> kv =
      b.split("kv.split", b.linear("kv", x, 2 * v.width), 1, {v.width, v.width});
  AttentionOptions o;
  o.heads = v.heads;
  x = b.linear("proj", b.attention("core", q, kv[0], kv[1], o), v.width);
  FeedForward f;
  f.width = v.mlp;
  return b.add("add", x, feed_forward(b, b.layer_norm("norm", x), f));
}

struct Patches {
  ValueId x;
  std::int64_t rows, columns;  // of patches
};

Patches embed(NetworkBuilder& b, const NetworkSpec& spec, const Vit& v) {
  const std::int64_t h = spec.height(), w = spec.image_width(),
                     channels = spec.whole("channels", 3);
  ValueId x = b.input({channels, h, w});
  if (spec.has("stem")) x = vit_stem(b, spec, x);
  const std::int64_t patch = spec.whole("patch", 1), stride = spec.whole("patch_stride", patch);
  const std::int64_t rows = (b.shape(x)[1] - patch) / stride + 1;
  const std::int64_t columns = (b.shape(x)[2] - patch) / stride + 1;
  return {patch_tokens(b, "patch_embed.proj", x, patch, v.width, !spec.flag("norm_before"), stride),
          rows, columns};
}

// Heads: one of the class token or of the mean, a second of the distillation token.
ValueId classify(NetworkBuilder& b, const NetworkSpec& spec, ValueId x, const Vit& v) {
  const std::string pooling = spec.text("pooling", "token");
  const std::int64_t classes = spec.whole("classes", 1000);
  const bool norm_pooled = spec.flag("norm_pooled");
  if (!norm_pooled) x = b.layer_norm("norm", x);
  const std::int64_t tokens = b.tokens(x);
  if (pooling == "attention") {
    x = attention_pool(b, x, v);
  } else if (pooling == "mean") {
    x = b.reduce("mean", x, {1, v.width});
  } else if (pooling == "special_tokens") {  // AST: the mean of its two, normalised again
    x = b.layer_norm("head_norm", b.reduce("mean", b.slice("tokens", x, 0, 2), {1, v.width}));
  } else if (pooling == "token_and_mean") {  // DINOv2's linear head
    x = b.concatenate("join", {b.slice("token", x, 0, 1), b.reduce("mean", x, {1, v.width})}, 1);
  } else if (tokens > 1) {
    const ValueId all = x;
    x = b.slice("token", all, 0, 1);
    if (spec.flag("distilled") && classes > 0) {
      const ValueId second = b.linear("head_dist", b.slice("distilled", all, 0, 1), classes);
      return b.add("average", b.linear("head", x, classes), second);
    }
  }
  if (norm_pooled) x = b.layer_norm("fc_norm", x);
  if (spec.flag("pooler"))
    x = b.activation("tanh", b.linear("pooler", x, v.width), Activation::tanh);
  if (spec.has("projection")) return b.linear("projection", x, spec.whole("projection"), false);
  return classes > 0 ? b.linear("head", x, classes) : x;
}

ValueId encode(NetworkBuilder& b, const NetworkSpec& spec, Vit v) {
  Patches t = embed(b, spec, v);
  const std::int64_t special = (spec.flag("class_token", true) ? 1 : 0) +
                               (spec.flag("distilled") ? 1 : 0) + spec.whole("registers", 0);
  const std::int64_t patches = b.tokens(t.x);
  const std::string positions = spec.text("positions", "all");
  if (positions == "patches") t.x = b.add_parameter("pos_embed", t.x, {patches, v.width});
  if (special > 0) t.x = prepend_tokens(b, "cls_token", t.x, special);
  if (positions == "all") t.x = b.add_parameter("pos_embed", t.x, {b.tokens(t.x), v.width});
  if (spec.flag("norm_before")) t.x = b.layer_norm("norm_pre", t.x);
  // Offsets of patches in both directions; BEiT has three more for its class token.
  v.rows = (2 * t.rows - 1) * (2 * t.columns - 1) + (v.bias_hidden > 0 || special == 0 ? 0 : 3);
  if (!spec.flag("position_bias")) v.rows = 0;
  std::optional<ValueId> shared;
  if (v.rows > 0 && v.one_bias && v.bias_hidden > 0)
    shared = computed_bias(b, v.rows, v.bias_hidden, v.heads);
  for (std::int64_t i = 0; i < v.depth; ++i) {
    auto in_block = b.scope("blocks." + std::to_string(i));
    t.x = block(b, t.x, v, shared);
  }
  return t.x;
}

}  // namespace

Graph vit_graph(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const Vit v = vit_of(spec);
  return b.finish({classify(b, spec, encode(b, spec, v), v)});
}

Model build_vit(const NetworkSpec& spec) {
  Model m =
      network_model(spec, vit_graph(spec), WorkUnit::image, {spec.height(), spec.image_width()});
  if (spec.has("frame_seconds")) {
    m.item->unit = WorkUnit::utterance;
    m.item->audio_seconds = spec.number("frame_seconds") * static_cast<double>(spec.image_width());
  }
  return m;
}

}  // namespace trigon
