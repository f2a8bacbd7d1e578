// Attention of every kind: its projections, its scores, its indexers and compressors.

#include <algorithm>
#include <cmath>

#include "lower/layer_writer.hpp"

namespace trigon {

void LayerWriter::attention(const Attention& a) {
  double t = tensor();
  double kv_ranks = std::min<double>(t, static_cast<double>(std::max<std::int64_t>(1, a.kv_heads)));
  double rows = tokens();
  linear("attention.q", a.q, t, 1, rows);
  if (!a.shares_cache_of) {
    linear("attention.k", a.k, kv_ranks, 1, rows);
    if (!a.keys_are_values) linear("attention.v", a.v, kv_ranks, 1, rows);
  }
  double heads = static_cast<double>(a.heads) / t;
  double kv_heads = static_cast<double>(a.kv_heads) / kv_ranks;
  double qk = static_cast<double>(a.head_dim), v = static_cast<double>(a.value_dim);
  // Keys that serve as values are cached and read once.
  bool one_cache = a.keys_are_values && !a.values_cached_apart;
  // Rotation, per-head norms and the cache write touch q and k once.
  elementwise("attention.rotate", rows * (heads + kv_heads) * qk, pass.fused_elementwise ? 1 : 3,
              pass.fused_elementwise ? 1 : 3);
  mirrored();
  const double keys = chosen_keys(a.indexer, mean_keys(a, pass));
  copy_cache(heads, kv_heads, qk + v);
  scores("attention.scores", heads, kv_heads, qk, v, keys, heads / std::max(1.0, kv_heads),
         kv_heads * (one_cache ? qk : qk + v));
  if (!stack.generates) out.back().weights = pass.activations;  // nothing is cached
  if (a.window && pass.score_bytes <= 0 &&
      static_cast<double>(*a.window) < pass.cached_tokens + pass.new_tokens)
    out.back().window = static_cast<double>(*a.window);
  score_positions(a, heads, qk, keys);
  if (a.gate) {
    linear("attention.gate", *a.gate, t, 1, rows);
    elementwise("attention.gate", rows * heads * v, 2, 1);
  }
  linear("attention.o", a.o, 1, t, rows);
  reduce_hidden("attention.reduce");
}

// Frameworks that grow a cache by making a longer one read and write all of it each pass; where
// heads that share a key do not share its memory, keys and values are written for each of them.
void LayerWriter::copy_cache(double heads, double kv_heads, double width) {
  const double held = pass.sequences * (pass.cached_tokens + pass.new_tokens) * kv_heads * width;
  if (pass.cache_copied && pass.cached_tokens > 0) {
    elementwise("attention.cache_copy", held, 1, 1);
    out.back().flops = 0;
  }
  if (pass.heads_expanded && heads > kv_heads) {
    elementwise("attention.expand", held, 1, heads / kv_heads);
    out.back().flops = 0;
  }
}

// What learnt positions add to the scores.
void LayerWriter::score_positions(const Attention& a, double heads, double qk, double keys) {
  if (a.score_bias) {
    // One bias for all sequences where kernels add it inside; an eager sum of whole scores else.
    if (pass.fused_elementwise)
      elementwise("attention.bias", pass.new_tokens / pass.context * keys * heads, 1, 0);
    else
      elementwise("attention.bias", tokens() * keys * heads, 2, 1);
  }
  if (a.position_terms > 0 && stack.relative_positions) {
    // Disentangled attention (arXiv:2006.03654): content against the table of relative positions
    // and back, each gathered by distance and added to the scores.
    const double terms = static_cast<double>(a.position_terms);
    const double table = static_cast<double>(stack.relative_positions->in);
    for (std::int64_t i = 0; i < a.position_terms; ++i)
      linear("attention.positions", i % 2 == 0 ? a.k : a.q, tensor(), 1, table);
    Operator op;
    op.kind = OperatorKind::gemm;
    op.name = "attention.position_scores";
    op.m = tokens() * heads;
    op.n = table;
    op.k = qk;
    op.weights = op.activations = pass.activations;
    op.flops = 2 * op.m * op.n * op.k * terms;
    op.data_bytes = terms * op.m * (op.n + op.k) * act();
    out.push_back(op);
    elementwise("attention.position_gather", terms * tokens() * keys * heads, 2, 1);
  }
}

void LayerWriter::cross(const Attention& a) {
  double t = tensor(), rows = tokens();
  double kv_ranks = std::min<double>(t, static_cast<double>(std::max<std::int64_t>(1, a.kv_heads)));
  double source = pass.sequences * pass.source_tokens;
  linear("cross.q", a.q, t, 1, rows);
  if (pass.project_source) {
    linear("cross.k", a.k, kv_ranks, 1, source / pass.context);
    linear("cross.v", a.v, kv_ranks, 1, source / pass.context);
  }
  double heads = static_cast<double>(a.heads) / t;
  double kv_heads = static_cast<double>(a.kv_heads) / kv_ranks;
  double qk = static_cast<double>(a.head_dim), v = static_cast<double>(a.value_dim);
  scores("cross.scores", heads, kv_heads, qk, v, pass.source_tokens,
         heads / std::max(1.0, kv_heads), 0);
  Operator& op = out.back();
  op.data_bytes += source * kv_heads * (qk + v) * element_bytes(pass.kv);
  linear("cross.o", a.o, 1, t, rows);
  reduce_hidden("cross.reduce");
}

// `cache_width`: elements of the cache per token on this rank.
void LayerWriter::scores(const char* name, double heads, double kv_heads, double qk, double v,
                         double keys, double group, double cache_width) {
  Operator op;
  op.kind = OperatorKind::attention;
  op.name = name;
  op.sequences = pass.sequences;
  op.query_tokens = pass.new_tokens / pass.context;
  op.key_tokens = keys;
  op.group_size = group;
  op.m = heads;
  op.n = kv_heads;
  op.k = qk;
  op.activations = pass.activations;
  op.weights = pass.kv;
  op.flops = 2 * tokens() * keys * heads * (qk + v);
  double context = pass.cached_tokens + pass.new_tokens;
  double reachable = std::min(context, keys + pass.new_tokens);
  op.data_bytes = pass.sequences * reachable * cache_width * element_bytes(pass.kv) +
                  tokens() * heads * (qk + v) * act();
  if (pass.heads_expanded)
    op.data_bytes += pass.sequences * reachable * (group - 1) * cache_width * act();
  if (pass.score_bytes > 0) {
    // Plain products know no causality: a query meets every key that is there.
    const double met = std::max(keys, std::min(context, keys + (pass.new_tokens - 1) / 2));
    op.key_tokens = met;
    op.flops = 2 * tokens() * met * heads * (qk + v);
    op.data_bytes += tokens() * met * heads * pass.score_bytes;
    op.scores_kept = true;
  }
  out.push_back(op);
}

void LayerWriter::latent(const LatentAttention& a) {
  double t = tensor(), rows = tokens();
  double heads = static_cast<double>(a.heads) / t;
  if (a.q_down) linear("attention.q_down", *a.q_down, 1, 1, rows);
  linear("attention.q_up", a.q_up, t, 1, rows);
  linear("attention.kv_down", a.kv_down, 1, 1, rows);
  elementwise("attention.rotate", rows * (heads + 1) * static_cast<double>(a.rope_dim), 1, 1);
  mirrored();
  double rank = static_cast<double>(a.kv_lora_rank), rope = static_cast<double>(a.rope_dim);
  double nope = static_cast<double>(a.nope_dim), value = static_cast<double>(a.value_dim);
  bool decode = pass.new_tokens < 2 && pass.cached_tokens > 0;
  double keys = keys_within(pass, kNoWindow);
  bool sparse = a.indexer && a.indexer->top_k > 0;
  if (sparse) {
    index(*a.indexer, keys);
    keys = keys_within(pass, static_cast<double>(a.indexer->top_k));
  }
  // Queries that each choose their own tokens cannot share expanded heads.
  if (pass.absorbed_latent && (decode || sparse)) {
    // kv_up is applied to queries and outputs instead of to every cached token, and all heads
    // share the one latent: 2 x heads operations a byte.
    linear("attention.kv_absorb", a.kv_up, t, 1, rows);
    scores("attention.scores", heads, 1, rank + rope, rank, keys, heads, rank + rope);
  } else {
    // A cached latent is expanded again for each pass; expanded heads are cached as they are.
    double cached = pass.absorbed_latent ? pass.sequences * pass.cached_tokens : 0;
    linear("attention.kv_up", a.kv_up, t, 1, rows + cached);
    scores("attention.scores", heads, heads, nope + rope, value, keys, 1,
           heads * (nope + rope + value));
  }
  linear("attention.o", a.o, 1, t, rows);
  reduce_hidden("attention.reduce");
}

// The sparse indexer scores every cached token with small heads and FP8 keys, whole on each rank
// of a tensor group.
void LayerWriter::index(const SparseIndexer& x, double keys) {
  linear("indexer.q", x.q, 1, 1, tokens());
  linear("indexer.k", x.k, 1, 1, tokens());
  if (x.weights.out > 0) linear("indexer.weights", x.weights, 1, 1, tokens());
  double heads = static_cast<double>(x.heads), width = static_cast<double>(x.head_dim);
  scores("indexer.scores", heads, 1, width, 0, keys, heads, width);
  // Its own width of elements whatever the main cache holds, queries included.
  Operator& op = out.back();
  double key = x.eight_bit ? 1 : 2;
  op.weights = x.eight_bit ? Format::fp8_tensor : Format::bf16;
  op.data_bytes = key * (pass.sequences * (pass.cached_tokens + pass.new_tokens) * width +
                         tokens() * heads * width);
}

// Heads choose blocks of one key head (MiniMax-M3) or tokens of a latent cache.
double LayerWriter::chosen_keys(const std::optional<SparseIndexer>& x, double keys) {
  if (!x || x->top_k <= 0) return keys;
  index(*x, keys);
  return std::min(keys, keys_within(pass, static_cast<double>(x->top_k)));
}

// Old tokens are pooled `ratio` to an entry; a query reads the window and the entries, or the
// best of them.
void LayerWriter::compressed(const CompressedAttention& a) {
  double t = tensor(), rows = tokens();
  double heads = static_cast<double>(a.heads) / t, width = static_cast<double>(a.head_dim);
  linear("attention.q_down", a.q_down, 1, 1, rows);
  linear("attention.q_up", a.q_up, t, 1, rows);
  linear("attention.kv", a.kv, 1, 1, rows);
  elementwise("attention.rotate", rows * (heads + 1) * width, 1, 1);
  double keys = keys_within(pass, static_cast<double>(a.window));
  if (a.compressor) {
    pool("compressor", *a.compressor, rows);
    double entries = keys_within(pass, kNoWindow) / static_cast<double>(a.compressor->ratio);
    if (a.indexer) {
      linear("indexer.q", a.indexer->q, 1, 1, rows);
      linear("indexer.weights", a.indexer->weights, 1, 1, rows);
      pool("indexer.compressor", a.indexer->compressor, rows);
      double small = static_cast<double>(a.indexer->head_dim);
      double all = static_cast<double>(a.indexer->heads);
      scores("indexer.scores", all, 1, small, 0, entries, all, small);
      out.back().weights = Format::fp8_tensor;
      out.back().data_bytes = pass.sequences * entries * small + rows * all * small;
      entries = std::min(entries, static_cast<double>(a.indexer->top_k));
    }
    keys += entries;
  }
  scores("attention.scores", heads, 1, width, width, keys, heads, width);
  linear("attention.o_down", a.o_down, t, 1, rows);
  linear("attention.o_up", a.o_up, 1, t, rows);
  reduce_hidden("attention.reduce");
}

void LayerWriter::pool(const char* name, const KeyCompressor& c, double rows) {
  linear(name, c.keys, 1, 1, rows);
  linear(name, c.gate, 1, 1, rows);
  elementwise(name, rows * static_cast<double>(c.keys.out), 2, 1 / static_cast<double>(c.ratio));
}

}  // namespace trigon
