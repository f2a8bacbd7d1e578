// Attention and rotary embedding of ai.onnx (opset 23).

#include "onnx/attention.hpp"

#include <algorithm>

namespace trigon::onnx {

void emit_attention(Op& op, const AttentionSizes& s, const Indices& data,
                    const Indices& parameters) {
  AttentionCore a;
  a.sequences = s.batch;
  a.heads = s.heads;
  a.kv_heads = s.kv_heads;
  a.head_dim = s.head_dim;
  a.value_dim = s.value_dim;
  a.queries = s.queries;
  a.keys = s.keys;
  a.causal = s.causal && s.queries == s.keys;
  a.fused = !s.biased;
  op.emit(a, data, parameters);
}

namespace {

// Q, K, V [b, tokens, heads * d] or [b, heads, tokens, d], mask, past key, past value.
void attention(Op& op) {
  op.need_rank(0, 3, 4);
  op.need_rank(1, 3, 4);
  op.need_rank(2, 3, 4);
  if (!op.ok()) return;
  const bool flat = op.rank(0) == 3;
  AttentionSizes s;
  s.batch = op.dim(0, 0);
  s.heads = flat ? op.need_integer_attribute("q_num_heads") : op.dim(0, 1);
  s.kv_heads = flat ? op.need_integer_attribute("kv_num_heads") : op.dim(1, 1);
  if (!op.ok()) return;
  if (s.heads < 1 || s.kv_heads < 1 || (flat && s.heads > kMostStep) || s.heads % s.kv_heads != 0 ||
      (flat && (op.dim(0, 2) % s.heads != 0 || op.dim(2, 2) % s.kv_heads != 0)))
    return op.fail(OnnxMessage::bad_attribute, "q_num_heads", s.heads);
  s.queries = flat ? op.dim(0, 1) : op.dim(0, 2);
  s.keys = flat ? op.dim(1, 1) : op.dim(1, 2);
  s.head_dim = flat ? op.dim(0, 2) / s.heads : op.dim(0, 3);
  s.value_dim = flat ? op.dim(2, 2) / s.kv_heads : op.dim(2, 3);
  if (op.has(4)) s.keys = checked_add(s.keys, op.dim(4, 2)).value_or(-1);
  s.causal = op.integer("is_causal", 0) != 0;
  s.biased = op.has(3) && is_floating(op.in(3).type);
  op.set(0, op.in(0).type,
         flat ? TensorShape{s.batch, s.queries, s.heads * s.value_dim}
              : TensorShape{s.batch, s.heads, s.queries, s.value_dim});
  if (op.wants(1)) op.set(1, op.in(1).type, {s.batch, s.kv_heads, s.keys, s.head_dim});
  if (op.wants(2)) op.set(2, op.in(2).type, {s.batch, s.kv_heads, s.keys, s.value_dim});
  if (op.wants(3)) op.set(3, op.in(0).type, {s.batch, s.heads, s.queries, s.keys});
  emit_attention(op, s, {0, 1, 2, 3, 4, 5});
}

// Two products and an addition an element.
void rotary(Op& op) {
  op.set(0, op.in(0).type, op.shape(0));
  op.emit(Elementwise{"rotary", 3, Keeps::nothing}, {0}, {}, op.range_of_inputs(1));
}

}  // namespace

const OperatorTable& attention_operators() {
  static const OperatorTable table = {{"Attention", attention}, {"RotaryEmbedding", rotary}};
  return table;
}

}  // namespace trigon::onnx
