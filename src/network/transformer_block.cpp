#include "network/transformer_block.hpp"

namespace trigon {
namespace {

// One product for q, k and v; the bias leaves the keys out where they have none.
std::vector<ValueId> joined_projections(NetworkBuilder& b, ValueId x, std::int64_t q,
                                        std::int64_t kv, const SelfAttention& a) {
  ValueId y = b.linear("qkv", x, q + 2 * kv, a.bias && a.key_bias);
  if (a.bias && !a.key_bias) b.last().weights.push_back(b.weight("qv.bias", {q + kv}));
  return b.split("qkv.split", y, 1, {q, kv, kv});
}

}  // namespace

ValueId rotate(NetworkBuilder& b, std::string_view name, ValueId x) {
  return b.elementwise(name, {x}, "rotary", 3, Keeps::nothing);
}

ValueId self_attention(NetworkBuilder& b, ValueId x, const SelfAttention& a) {
  auto in_attention = b.scope("attn");
  const std::int64_t width = b.width(x), inner = a.inner > 0 ? a.inner : width;
  const std::int64_t kv = a.kv_heads > 0 ? inner / a.heads * a.kv_heads : inner;
  std::vector<ValueId> qkv;
  if (a.one_projection)
    qkv = joined_projections(b, x, inner, kv, a);
  else
    qkv = {b.linear("q", x, inner, a.bias), b.linear("k", x, kv, a.bias && a.key_bias),
           b.linear("v", x, kv, a.bias)};
  if (a.rotary) {
    qkv[0] = rotate(b, "q_rotary", qkv[0]);
    qkv[1] = rotate(b, "k_rotary", qkv[1]);
  }
  if (a.cosine) {
    qkv[0] = b.elementwise("q_norm", {qkv[0]}, "normalize", 4, Keeps::inputs);
    b.last().weights.push_back(b.weight("logit_scale", {a.heads}));
    qkv[1] = b.elementwise("k_norm", {qkv[1]}, "normalize", 4, Keeps::inputs);
  }
  AttentionOptions o;
  o.heads = a.heads;
  o.kv_heads = a.kv_heads;
  o.sequences = a.sequences;
  o.causal = a.causal;
  o.fused = a.fused;
  o.bias = a.position_bias;
  ValueId y = b.attention("core", qkv[0], qkv[1], qkv[2], o);
  if (a.bias_rows > 0)
    b.last().weights.push_back(b.weight("position_bias", {a.bias_rows, a.heads}));
  if (a.norm_inside) y = b.layer_norm("norm", y);
  return b.linear("proj", y, width, a.out_bias);
}

ValueId feed_forward(NetworkBuilder& b, ValueId x, const FeedForward& f) {
  auto in_mlp = b.scope("mlp");
  const std::int64_t width = b.width(x);
  ValueId y;
  if (f.kind == FeedForwardKind::plain) {
    y = b.activation("act", b.linear("fc1", x, f.width, f.bias), f.activation);
  } else if (f.one_projection) {
    const std::vector<ValueId> both =
        b.split("fc1.split", b.linear("fc1", x, 2 * f.width, f.bias), 1, {f.width, f.width});
    y = b.multiply("gate", b.activation("act", both[0], f.activation), both[1]);
  } else {
    const ValueId gate = b.activation("act", b.linear("fc1_g", x, f.width, f.bias), f.activation);
    y = b.multiply("gate", gate, b.linear("fc1_x", x, f.width, f.bias));
  }
  if (f.norm_inside) y = b.layer_norm("norm", y);
  return b.linear("fc2", y, width, f.bias);
}

ValueId prepend_tokens(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t count) {
  const std::int64_t width = b.width(x), rows = b.tokens(x) + count;
  return b.node(name, Move{}, {x}, {b.weight(name, {count, width})}, {rows, width});
}

ValueId learned(NetworkBuilder& b, std::string_view name, std::int64_t rows, std::int64_t width,
                std::int64_t read) {
  if (read == 0) read = rows;
  return b.node(name, TableLookup{read}, {}, {b.weight(name, {rows, width})}, {read, width});
}

ValueId patch_tokens(NetworkBuilder& b, std::string_view name, ValueId image, std::int64_t patch,
                     std::int64_t width, bool bias, std::int64_t stride) {
  ConvolutionOptions o;
  o.kernel = patch;
  o.stride = stride > 0 ? stride : patch;
  o.padding = 0;
  o.bias = bias;
  return b.flatten_to_tokens("flatten", b.convolution(name, image, width, o));
}

}  // namespace trigon
