// CLIP: Radford et al. 2021 (arXiv:2103.00020); T5 1.1: Raffel et al. 2019 (arXiv:1910.10683) with
// the gated units of Shazeer 2020 (arXiv:2002.05202); BERT: Devlin et al. 2018 (arXiv:1810.04805);
// ChatGLM3-6B: config.json of THUDM/chatglm3-6b.

#include "network/text_encoder.hpp"

#include "network/transformer_block.hpp"

namespace trigon {
namespace {

struct TextEncoder {
  std::string kind;
  std::int64_t tokens, vocabulary, width, layers, heads, kv_heads, mlp, inner;
};

ValueId clip_block(NetworkBuilder& b, ValueId x, const TextEncoder& t, Activation activation) {
  SelfAttention a;
  a.heads = t.heads;
  a.one_projection = false;
  a.causal = true;
  FeedForward f;
  f.width = t.mlp;
  f.activation = activation;
  x = b.add("add1", x, self_attention(b, b.layer_norm("norm1", x), a));
  return b.add("add2", x, feed_forward(b, b.layer_norm("norm2", x), f));
}

ValueId bert_block(NetworkBuilder& b, ValueId x, const TextEncoder& t) {
  SelfAttention a;
  a.heads = t.heads;
  a.one_projection = false;
  FeedForward f;
  f.width = t.mlp;
  x = b.layer_norm("norm1", b.add("add1", x, self_attention(b, x, a)));
  return b.layer_norm("norm2", b.add("add2", x, feed_forward(b, x, f)));
}

// The biases of T5's first layer are those of all.
ValueId t5_block(NetworkBuilder& b, ValueId x, const TextEncoder& t, ValueId bias) {
  SelfAttention a;
  a.heads = t.heads;
  a.inner = t.inner;
  a.bias = false;
  a.out_bias = false;
  a.one_projection = false;
  a.fused = false;
  a.position_bias = bias;
  FeedForward f;
  f.width = t.mlp;
  f.kind = FeedForwardKind::gated;
  f.bias = false;
  x = b.add("add1", x, self_attention(b, b.rms_norm("norm1", x), a));
  return b.add("add2", x, feed_forward(b, b.rms_norm("norm2", x), f));
}

ValueId glm_block(NetworkBuilder& b, ValueId x, const TextEncoder& t) {
  SelfAttention a;
  a.heads = t.heads;
  a.kv_heads = t.kv_heads;
  a.out_bias = false;
  a.rotary = true;
  a.causal = true;
  FeedForward f;
  f.width = t.mlp;
  f.kind = FeedForwardKind::gated;
  f.activation = Activation::silu;
  f.bias = false;
  f.one_projection = true;
  x = b.add("add1", x, self_attention(b, b.rms_norm("norm1", x), a));
  return b.add("add2", x, feed_forward(b, b.rms_norm("norm2", x), f));
}

}  // namespace

Graph text_encoder_graph(const NetworkSpec& spec, std::string_view name, std::int64_t tokens) {
  auto key = [&](const char* field) { return std::string(name) + "." + field; };
  NetworkBuilder b(spec.source());
  TextEncoder t;
  t.kind = spec.text(key("kind"));
  t.tokens = tokens > 0 ? tokens : spec.whole(key("tokens"));
  t.vocabulary = spec.whole(key("vocabulary"));
  t.width = spec.whole(key("width"));
  t.layers = spec.whole(key("layers"));
  t.heads = spec.whole(key("heads"));
  t.kv_heads = spec.whole(key("kv_heads"), t.heads);
  t.mlp = spec.whole(key("mlp_width"));
  t.inner = spec.whole(key("inner"), t.width);
  const bool t5 = t.kind == "t5", bert = t.kind == "bert", glm = t.kind == "glm";
  const Activation activation =
      spec.flag(key("quick_gelu")) ? Activation::silu : Activation::gelu;  // x sigmoid(1.702 x)
  ValueId x = b.embedding("tokens", b.input({t.tokens}, Format::i64), t.vocabulary, t.width);
  if (!t5 && !glm) {
    const std::int64_t positions = spec.whole(key("positions"));
    x = b.add("embed", x, learned(b, "positions", positions, t.width, t.tokens));
  }
  if (bert) {
    const std::int64_t types = spec.whole(key("types"));
    x = b.layer_norm("embed_norm", b.add("add_types", x, learned(b, "types", types, t.width, 1)));
  }
  ValueId bias = 0;
  if (t5) {
    const std::int64_t buckets = spec.whole(key("position_buckets"));
    bias = learned(b, "position_bias", buckets, t.heads);
  }
  for (std::int64_t i = 0; i < t.layers; ++i) {
    auto in_layer = b.scope("layers." + std::to_string(i));
    x = t5     ? t5_block(b, x, t, bias)
        : bert ? bert_block(b, x, t)
        : glm  ? glm_block(b, x, t)
               : clip_block(b, x, t, activation);
  }
  if (t5 || glm) x = b.rms_norm("final_norm", x);
  if (t.kind == "clip") x = b.layer_norm("final_norm", x);
  std::vector<ValueId> outputs{x};
  if (spec.flag(key("pooler")))
    outputs.push_back(b.activation(
        "pooler.tanh", b.linear("pooler", b.slice("first", x, 0, 1), t.width), Activation::tanh));
  if (const std::int64_t out = spec.whole(key("projection"), 0); out > 0) {
    const ValueId from = outputs.size() > 1 ? outputs.back() : b.slice("last", x, 0, 1);
    outputs.push_back(b.linear("projection", from, out, false));
  }
  return b.finish(outputs);
}

}  // namespace trigon
