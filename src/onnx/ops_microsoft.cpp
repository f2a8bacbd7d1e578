// What onnxruntime's optimiser writes (domain com.microsoft): fused attention, 4-bit products.

#include <algorithm>

#include "onnx/attention.hpp"
#include "onnx/product.hpp"

namespace trigon::onnx {
namespace {

std::int64_t heads_of(Op& op, std::string_view key) {
  const std::int64_t n = op.need_integer_attribute(key);
  if (op.ok() && (n < 1 || n > kMostStep)) op.fail(OnnxMessage::bad_attribute, key, n);
  return std::max<std::int64_t>(n, 1);
}

// x [b, tokens, in], weights [in, q + k + v], bias, mask, past, bias of the scores. QAttention has
// scales and zero points between.
void fused_attention(Op& op, std::size_t past_at, const Indices& constants, std::size_t bias_at) {
  op.need_rank(0, 3, 3);
  op.need_rank(1, 2, 2);
  AttentionSizes s;
  s.heads = s.kv_heads = heads_of(op, "num_heads");
  if (!op.ok()) return;
  const std::int64_t all = op.dim(1, 1);
  auto widths = op.list("qkv_hidden_sizes");
  if (widths.empty()) widths.assign(3, all / 3);
  if (widths.size() != 3 || *std::min_element(widths.begin(), widths.end()) < 1 ||
      *std::max_element(widths.begin(), widths.end()) > kMostDimension ||
      widths[0] + widths[1] + widths[2] != all || widths[0] % s.heads != 0 ||
      widths[2] % s.heads != 0)
    return op.fail(OnnxMessage::bad_attribute, "qkv_hidden_sizes", shape_text(widths));
  s.batch = op.dim(0, 0);
  s.queries = s.keys = op.dim(0, 1);
  s.head_dim = widths[0] / s.heads;
  s.value_dim = widths[2] / s.heads;
  s.causal = op.integer("unidirectional", 0) != 0;
  s.biased = op.has(bias_at) && is_floating(op.in(bias_at).type);
  if (op.has(past_at)) s.keys = checked_add(s.keys, op.dim(past_at, 3)).value_or(-1);
  Product p;
  p.beside = {2};
  p.constants = constants;
  const std::int32_t type = constants.empty() ? op.in(0).type : op.in(3).type;
  const std::size_t joined = multiply_inner(op, p, type, ".qkv");
  if (!op.ok()) return;
  op.set(0, type, {s.batch, s.queries, widths[2]});
  if (op.wants(1)) op.set(1, type, {2, s.batch, s.heads, s.keys, s.head_dim});
  emit_attention(op, s, {joined, past_at, bias_at});
}
void attention(Op& op) { fused_attention(op, 4, {}, 5); }
void quantized_attention(Op& op) { fused_attention(op, 8, {3, 4, 6, 7}, 99); }

// query [b, tokens, width], key, value (or packed into query or key), bias, masks, past.
void multi_head(Op& op) {
  op.need_rank(0, 3, 5);
  AttentionSizes s;
  s.heads = s.kv_heads = heads_of(op, "num_heads");
  if (!op.ok()) return;
  s.batch = op.dim(0, 0);
  s.queries = s.keys = op.dim(0, 1);
  s.causal = op.integer("unidirectional", 0) != 0;
  s.biased = op.has(5);
  Indices data{0, 1, 2, 5, 6, 7};
  std::int64_t width = 0;
  if (op.rank(0) == 5) {  // [b, tokens, heads, 3, d]
    s.head_dim = s.value_dim = op.dim(0, 4);
  } else {
    width = op.dim(0, 2);
    s.head_dim = s.value_dim = width / s.heads;
    if (width % s.heads != 0) return op.fail(OnnxMessage::bad_attribute, "num_heads", s.heads);
    if (op.has(1)) {
      if (op.rank(1) == 4 && op.has(2)) {  // [b, heads, keys, d], kept from the encoder
        s.keys = op.dim(1, 2);
        s.value_dim = op.dim(2, 3);
      } else {
        s.keys = op.dim(1, 1);
        if (op.has(2) && op.rank(2) == 3) s.value_dim = op.dim(2, 2) / s.heads;
      }
    }
  }
  if (op.has(6)) s.keys = checked_add(s.keys, op.dim(6, 2)).value_or(-1);
  auto out = checked_mul(s.value_dim, s.heads);
  op.set(0, op.in(0).type, {s.batch, s.queries, out.value_or(-1)});
  if (op.wants(1)) op.set(1, op.in(0).type, {s.batch, s.heads, s.keys, s.head_dim});
  if (op.wants(2)) op.set(2, op.in(0).type, {s.batch, s.heads, s.keys, s.value_dim});
  emit_attention(op, s, data, {3});
}

// query, key, value, past key, past value [b, kv heads, past, d], lengths, rotary tables.
void grouped_query(Op& op) {
  op.need_rank(0, 3, 3);
  AttentionSizes s;
  s.heads = heads_of(op, "num_heads");
  s.kv_heads = heads_of(op, "kv_num_heads");
  if (!op.ok()) return;
  if (s.heads % s.kv_heads != 0)
    return op.fail(OnnxMessage::bad_attribute, "kv_num_heads", s.kv_heads);
  const bool packed = !op.has(1);
  const std::int64_t rows = packed ? s.heads + 2 * s.kv_heads : s.heads;
  if (op.dim(0, 2) % rows != 0) return op.fail(OnnxMessage::bad_attribute, "num_heads", s.heads);
  s.batch = op.dim(0, 0);
  s.queries = s.keys = op.dim(0, 1);
  s.head_dim = s.value_dim = op.dim(0, 2) / rows;
  s.causal = true;
  if (op.has(3)) s.keys = checked_add(s.keys, op.dim(3, 2)).value_or(-1);
  op.set(0, op.in(0).type, {s.batch, s.queries, s.heads * s.head_dim});
  for (std::size_t k = 1; k < 3; ++k)
    if (op.wants(k)) op.set(k, op.in(0).type, {s.batch, s.kv_heads, s.keys, s.head_dim});
  if (!op.ok()) return;
  const std::int64_t window = op.integer("local_window_size", -1);
  if (window > 0 && window < s.keys && s.queries < s.keys)
    s.keys = std::min(s.keys, window + s.queries - 1);
  emit_attention(op, s, {0, 1, 2, 3, 4});
}

// 4-bit values in groups with a scale each; the format has the scales and zero points in it.
Format grouped_format(const Op& op) {
  const std::int64_t group = op.integer("block_size", 32);
  return group < 64 ? Format::int4_g32 : group < 128 ? Format::int4_g64 : Format::int4_g128;
}

// A [.., k] times B, n rows of k values of `bits` bits in blocks with a scale each.
void matmul_n_bits(Op& op, bool blockwise_float) {
  op.need_rank(0, 1);
  const std::int64_t k = op.need_integer_attribute("K"), n = op.need_integer_attribute("N");
  const std::int64_t bits = blockwise_float ? 4 : op.integer("bits", 4);
  if (!op.ok()) return;
  if (k < 1 || n < 1 || k > kMostDimension || n > kMostDimension || op.dim(0, -1) != k)
    return op.fail(OnnxMessage::bad_attribute, "K", k);
  if (bits != 4 && bits != 8) return op.fail(OnnxMessage::bad_attribute, "bits", bits);
  TensorShape to = op.shape(0);
  to.back() = n;
  op.set(0, op.in(0).type, to);
  if (!op.ok()) return;
  if (!checked_elements({n, k})) return op.fail(OnnxMessage::value_too_large);
  // The weight as n x k values of its bits, not as the bytes that hold them.
  if (op.in(1).stored)
    op.importer().see_constant_as(*op.in(1).stored, {n, k},
                                  bits == 4 ? grouped_format(op) : Format::int8);
  if (!op.in(1).constant)
    return op.emit(MatrixProduct{1, op.in(0).count() / k, n, k}, {0, 1}, {5}, {2, 3, 4});
  op.emit(Projection{}, {0}, {1, 5}, bits == 4 ? Indices{4} : Indices{2, 3, 4});
}
void matmul_integer_bits(Op& op) { matmul_n_bits(op, false); }
void matmul_block_float(Op& op) { matmul_n_bits(op, true); }

void rotary(Op& op) {
  op.set(0, op.in(0).type, op.shape(0));
  op.emit(Elementwise{"rotary", 3, Keeps::nothing}, {0}, {}, op.range_of_inputs(1));
}

void inverse(Op& op) {
  op.need_rank(0, 2);
  const TensorShape s = op.shape(0);
  if (!op.ok()) return;
  const std::int64_t n = s.back();
  op.set(0, op.in(0).type, s);
  // Gauss-Jordan: n^3 multiply-accumulates.
  op.emit(MatrixProduct{n == 0 ? 0 : op.in(0).count() / n, 1, n, n}, {0});
}

// Distances of each row of a to each of b.
void distances(Op& op) {
  op.need_rank(0, 2, 2);
  op.need_rank(1, 2, 2);
  if (!op.ok()) return;
  op.set(0, op.in(0).type, {op.dim(0, 0), op.dim(1, 0)});
  op.emit(MatrixProduct{1, op.dim(0, 0), op.dim(1, 0), op.dim(0, 1)}, {0, 1});
}

// data packed in blocks, indices, scales: rows of a 4-bit table.
void gather_block_quantized(Op& op) {
  const TensorShape table = op.shape(0), at = op.shape(1);
  const std::size_t a = op.axis(op.integer("gather_axis", 0), table.size());
  if (!op.ok()) return;
  TensorShape to(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(a));
  to.insert(to.end(), at.begin(), at.end());
  to.insert(to.end(), table.begin() + static_cast<std::ptrdiff_t>(a) + 1, table.end());
  // Bytes hold two values of 4 bits.
  if (op.in(0).type == kUint8 && op.integer("bits", 4) == 4 && !to.empty())
    to.back() = checked_mul(to.back(), 2).value_or(-1);
  op.set(0, op.in(2).type, to);
  const bool nibbles = op.integer("bits", 4) == 4;
  if (op.in(0).type == kUint8 && nibbles && op.in(0).stored && !table.empty() && op.ok()) {
    TensorShape values = table;
    values.back() *= 2;
    if (!checked_elements(values)) return op.fail(OnnxMessage::value_too_large);
    op.importer().see_constant_as(*op.in(0).stored, values, grouped_format(op));
  }
  op.emit(TableLookup{op.in(1).count()}, {1}, {0}, nibbles ? Indices{} : Indices{2, 3});
}

}  // namespace

const OperatorTable& microsoft_operators() {
  static const OperatorTable table = [] {
    OperatorTable t = {{"Attention", attention},
                       {"QAttention", quantized_attention},
                       {"MultiHeadAttention", multi_head},
                       {"DecoderMaskedMultiHeadAttention", multi_head},
                       {"GroupQueryAttention", grouped_query},
                       {"MatMulNBits", matmul_integer_bits},
                       {"MatMulBnb4", matmul_block_float},
                       {"RotaryEmbedding", rotary},
                       {"Inverse", inverse},
                       {"CDist", distances},
                       {"GatherBlockQuantized", gather_block_quantized}};
    for (const OperatorTable* more : {&product_operators(), &convolution_operators(),
                                      &pooling_operators(), &recurrent_operators()})
      t.insert(t.end(), more->begin(), more->end());
    for (const OperatorEntry& e : pooling_operators()) {
      if (e.name == "MaxPool") t.push_back({"NhwcMaxPool", e.run});
      if (e.name == "AveragePool") t.push_back({"QLinearAveragePool", e.run});
    }
    return t;
  }();
  return table;
}

}  // namespace trigon::onnx
