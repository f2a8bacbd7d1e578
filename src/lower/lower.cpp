#include "lower/lower.hpp"

#include <algorithm>
#include <cmath>

namespace trigon {
namespace {

double element_bytes(Format f) { return bits_per_element(f) / 8; }

bool is_sixteen_or_wider(Format f) {
  return f == Format::bf16 || f == Format::f16 || f == Format::f32;
}

constexpr double kNoWindow = 1e18;

// Mean keys of a causal query: query i of the pass (1..fresh) sees min(cached + i, window).
double keys_within(const Pass& pass, double window) {
  double cached = pass.cached_tokens, fresh = pass.new_tokens;
  if (cached >= window) return window;
  if (cached + fresh <= window) return cached + (fresh + 1) / 2;
  double ramp = window - cached;  // queries that do not fill the window yet
  return (ramp * (cached + (ramp + 1) / 2) + (fresh - ramp) * window) / fresh;
}

struct LayerWriter {
  const Stack& stack;
  const Pass& pass;
  OperatorList& out;

  double tokens() const { return pass.sequences * pass.new_tokens / pass.context; }
  double act() const { return element_bytes(pass.activations); }
  double tensor() const { return pass.tensor; }

  // A projection of all tokens. `divisor` ranks share its `n` (column) or `k` (row) dimension.
  void linear(const char* name, const Linear& l, double column_ranks, double row_ranks,
              double rows) {
    Operator op;
    op.kind = OperatorKind::gemm;
    op.name = name;
    op.m = rows;
    op.n = static_cast<double>(l.out) / column_ranks;
    op.k = static_cast<double>(l.in) / row_ranks;
    op.weights = l.format;
    if (pass.replace_weights && is_sixteen_or_wider(l.format)) op.weights = *pass.replace_weights;
    op.activations = pass.activations;
    op.flops = 2 * op.m * op.n * op.k;
    op.weight_bytes = op.n * op.k * element_bytes(op.weights);
    op.data_bytes = rows * (op.n + op.k) * act();
    out.push_back(op);
  }

  // `values` elements of the hidden size class, read `reads` and written `writes` times.
  void elementwise(const char* name, double values, double reads, double writes) {
    Operator op;
    op.kind = OperatorKind::elementwise;
    op.name = name;
    op.m = values;
    op.activations = pass.activations;
    op.data_bytes = values * act() * (reads + writes);
    op.flops = values * 4;
    out.push_back(op);
  }

  // Sums the row-parallel outputs over the tensor group.
  void reduce_hidden(const char* name) {
    if (pass.tensor <= 1) return;
    Operator op;
    op.name = name;
    op.payload_bytes = tokens() * static_cast<double>(stack.hidden) * act();
    op.ranks = pass.tensor;
    if (pass.sequence_parallel) {
      op.kind = OperatorKind::reduce_scatter;
      out.push_back(op);
      op.kind = OperatorKind::all_gather;
      out.push_back(op);
    } else {
      op.kind = OperatorKind::all_reduce;
      out.push_back(op);
    }
  }

  void norm(const Norm& n, const char* name) {
    // Fused with the residual addition: reads x and residual, writes both.
    double ranks = pass.sequence_parallel ? tensor() : 1;
    double passes = pass.fused_elementwise ? 1 : 2.5;
    elementwise(name, tokens() * static_cast<double>(n.width) / ranks, 2 * passes, 2 * passes);
  }

  void attention(const Attention& a) {
    double t = tensor();
    double kv_ranks =
        std::min<double>(t, static_cast<double>(std::max<std::int64_t>(1, a.kv_heads)));
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
    const double keys = chosen_keys(a.indexer, mean_keys(a, pass));
    scores("attention.scores", heads, kv_heads, qk, v, keys, heads / std::max(1.0, kv_heads),
           kv_heads * (one_cache ? qk : qk + v));
    if (!stack.generates) out.back().weights = pass.activations;  // nothing is cached
    score_positions(a, heads, qk, keys);
    if (a.gate) {
      linear("attention.gate", *a.gate, t, 1, rows);
      elementwise("attention.gate", rows * heads * v, 2, 1);
    }
    linear("attention.o", a.o, 1, t, rows);
    reduce_hidden("attention.reduce");
  }

  // What learnt positions add to the scores.
  void score_positions(const Attention& a, double heads, double qk, double keys) {
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

  void cross(const Attention& a) {
    double t = tensor(), rows = tokens();
    double kv_ranks =
        std::min<double>(t, static_cast<double>(std::max<std::int64_t>(1, a.kv_heads)));
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
  void scores(const char* name, double heads, double kv_heads, double qk, double v, double keys,
              double group, double cache_width) {
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
    out.push_back(op);
  }

  void latent(const LatentAttention& a) {
    double t = tensor(), rows = tokens();
    double heads = static_cast<double>(a.heads) / t;
    if (a.q_down) linear("attention.q_down", *a.q_down, 1, 1, rows);
    linear("attention.q_up", a.q_up, t, 1, rows);
    linear("attention.kv_down", a.kv_down, 1, 1, rows);
    elementwise("attention.rotate", rows * (heads + 1) * static_cast<double>(a.rope_dim), 1, 1);
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
  void index(const SparseIndexer& x, double keys) {
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
  double chosen_keys(const std::optional<SparseIndexer>& x, double keys) {
    if (!x || x->top_k <= 0) return keys;
    index(*x, keys);
    return std::min(keys, keys_within(pass, static_cast<double>(x->top_k)));
  }

  // Old tokens are pooled `ratio` to an entry; a query reads the window and the entries, or the
  // best of them.
  void compressed(const CompressedAttention& a) {
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

  void pool(const char* name, const KeyCompressor& c, double rows) {
    linear(name, c.keys, 1, 1, rows);
    linear(name, c.gate, 1, 1, rows);
    elementwise(name, rows * static_cast<double>(c.keys.out), 2, 1 / static_cast<double>(c.ratio));
  }

  // A recurrence reads and writes its state once a pass when it goes token by token; the matrix
  // form over chunks of Q tokens (Dao and Gu 2024, arXiv:2405.21060, section 6; for the delta
  // rule Yang et al. 2024, arXiv:2412.06464) multiplies Q x Q scores within a chunk and the state
  // between chunks: for a head of P values and N keys, 2 Q (N + P) + 4 N P operations a token,
  // and for the delta rule one product of each more, halved where causal.
  void recurrence(const RecurrentMixer& m) {
    double t = tensor(), rows = tokens();
    for (const MixerLinear& p : m.projections) {
      const bool last = &p == &m.projections.back();
      if (last) {
        if (m.conv_channels > 0)
          elementwise("mixer.convolution", rows * static_cast<double>(m.conv_channels) / t, 1, 1);
        if (m.state > 0) scan(m);
        elementwise("mixer.gate", rows * static_cast<double>(m.inner()) / t, 2, 1);
      }
      if (p.linear.split == Split::row)
        linear(p.role, p.linear, 1, t, rows);
      else
        linear(p.role, p.linear, p.linear.split == Split::column ? t : 1, 1, rows);
      if (p.linear.split == Split::row && !last && pass.tensor > 1) {
        Operator op;
        op.kind = OperatorKind::all_reduce;
        op.name = "mixer.reduce";
        op.payload_bytes = rows * static_cast<double>(p.linear.out) * act();
        op.ranks = pass.tensor;
        out.push_back(op);
      }
    }
    reduce_hidden("mixer.reduce");
  }

  void scan(const RecurrentMixer& m) {
    double t = tensor(), rows = tokens();
    double heads = static_cast<double>(m.heads) / t;
    double p = static_cast<double>(m.head_dim), n = static_cast<double>(m.state);
    double key_heads = std::max(1.0, static_cast<double>(m.groups) / t);
    Operator op;
    op.kind = OperatorKind::scan;
    op.name = "mixer.scan";
    op.sequences = pass.sequences;
    op.query_tokens = pass.new_tokens / pass.context;
    op.m = heads;
    op.n = p;
    op.k = n;
    op.activations = pass.activations;
    op.weights = m.state_format;
    const bool delta = m.kind == MixerKind::gated_delta;
    op.matrix_form = m.chunk > 0 && pass.new_tokens > 1;
    double state = heads * p * n * element_bytes(m.state_format);
    double moved = rows * (2 * heads * p + 2 * key_heads * n) * act();
    if (op.matrix_form) {
      double q = std::min(static_cast<double>(m.chunk), op.query_tokens);
      op.flops = rows * heads * ((delta ? 2 : 1) * q * (n + p) + (delta ? 6 : 4) * n * p);
      // The state at each chunk's start is written by one kernel and read by the next.
      double chunks = std::ceil(op.query_tokens / q) * pass.sequences;
      op.data_bytes = moved + 2 * chunks * state;
    } else {
      // Decay, outer product and read-out; the delta rule reads the state once more.
      op.flops = rows * heads * (delta ? 7 : 5) * n * p;
      op.data_bytes = moved + 2 * pass.sequences * state;
    }
    out.push_back(op);
  }

  void streams(const StreamMixer& m) {
    double rows = tokens();
    linear("streams.mix", m.mix, 1, 1, rows);
    elementwise("streams", rows * static_cast<double>(m.streams * stack.hidden), 2, 1);
  }

  void mlp(const Mlp& m, const char* reduce) {
    double t = tensor(), rows = tokens();
    linear("mlp.up", m.up, t, 1, rows);
    if (m.gate) linear("mlp.gate", *m.gate, t, 1, rows);
    elementwise("mlp.activation", rows * static_cast<double>(m.width) / t,
                (m.gated ? 2 : 1) * (pass.fused_elementwise ? 1 : 2),
                pass.fused_elementwise ? 1 : 2);
    linear("mlp.down", m.down, 1, t, rows);
    if (reduce) reduce_hidden(reduce);
  }

  void expert_linear(const char* name, const Linear& l, double rows, double groups, double split,
                     bool column) {
    Operator op;
    op.kind = OperatorKind::grouped_gemm;
    op.name = name;
    op.m = rows;
    op.n = static_cast<double>(l.out) / (column ? split : 1);
    op.k = static_cast<double>(l.in) / (column ? 1 : split);
    op.groups = std::max(groups, 1.0);
    op.weights = l.format;
    if (pass.replace_weights && is_sixteen_or_wider(l.format)) op.weights = *pass.replace_weights;
    op.activations = pass.activations;
    op.flops = 2 * rows * op.n * op.k;
    op.weight_bytes = groups * op.n * op.k * element_bytes(op.weights);
    op.data_bytes = rows * (op.n + op.k) * act();
    out.push_back(op);
  }

  void experts(const MixtureOfExperts& m) {
    double rows = tokens(), t = tensor();
    linear("moe.router", m.router, 1, 1, rows);
    double e = static_cast<double>(m.experts), active = static_cast<double>(m.active);
    // Serving shares the tensor group between experts (ep) and slices of each expert (t / ep);
    // every rank sees all tokens. Training exchanges tokens over the expert group instead.
    double ep = std::max(1, pass.expert);
    double slice = pass.expert_inside_tensor ? t / ep : t;
    double seen = pass.expert_inside_tensor ? rows : rows * ep;
    double hit = experts_hit(e, active, seen) / ep;
    double pairs = pass.expert_inside_tensor ? rows * active / ep : rows * active;
    if (m.latent_in) linear("moe.latent_in", *m.latent_in, 1, 1, rows);
    const double width = static_cast<double>(m.up.in);
    if (!pass.expert_inside_tensor && ep > 1) dispatch("moe.dispatch", rows * active, width);
    expert_linear("moe.up", m.up, pairs, hit, slice, true);
    if (m.gate) expert_linear("moe.gate", *m.gate, pairs, hit, slice, true);
    elementwise("moe.activation", pairs * static_cast<double>(m.width) / slice, m.gated ? 2 : 1, 1);
    expert_linear("moe.down", m.down, pairs, hit, slice, false);
    // Permutation to expert order and the weighted sum back.
    elementwise("moe.permute", pairs * static_cast<double>(m.up.in), 2, 2);
    if (!pass.expert_inside_tensor && ep > 1) dispatch("moe.combine", rows * active, width);
    if (m.latent_out) linear("moe.latent_out", *m.latent_out, 1, 1, rows);
    if (m.shared) {
      mlp(*m.shared, nullptr);
      if (m.shared_gate) linear("moe.shared_gate", *m.shared_gate, 1, 1, rows);
    }
    reduce_hidden("moe.reduce");
  }

  void dispatch(const char* name, double pairs, double width) {
    Operator op;
    op.kind = OperatorKind::all_to_all;
    op.name = name;
    op.payload_bytes = pairs * width * act();
    op.ranks = pass.expert;
    op.stride = pass.tensor;
    out.push_back(op);
  }
};

}  // namespace

double experts_hit(double experts, double active, double tokens) {
  if (experts <= 0) return 0;
  return experts * (1 - std::pow(1 - std::min(1.0, active / experts), tokens));
}

double mean_keys(const Attention& a, const Pass& pass) {
  double cached = pass.cached_tokens, fresh = pass.new_tokens;
  if (a.chunk) {
    double c = static_cast<double>(*a.chunk);
    // One token somewhere in its chunk sees half of it on average.
    if (fresh < 2) return cached + fresh <= c ? cached + 1 : (c + 1) / 2;
    // Keys that the first n queries of a sequence see in all.
    auto seen = [c](double n) {
      double rest = std::fmod(n, c);
      return std::floor(n / c) * c * (c + 1) / 2 + rest * (rest + 1) / 2;
    };
    return (seen(cached + fresh) - seen(cached)) / fresh;
  }
  if (!a.causal)
    return std::min(cached + fresh, a.window ? static_cast<double>(*a.window) : kNoWindow);
  return keys_within(pass, a.window ? static_cast<double>(*a.window) : kNoWindow);
}

void lower_layer(const Stack& stack, const Layer& layer, const Pass& pass, OperatorList& out) {
  LayerWriter w{stack, pass, out};
  for (const SubLayer& part : layer.parts) {
    if (auto n = std::get_if<Norm>(&part)) w.norm(*n, "norm");
    if (auto a = std::get_if<Attention>(&part)) w.attention(*a);
    if (auto a = std::get_if<LatentAttention>(&part)) w.latent(*a);
    if (auto c = std::get_if<CrossAttention>(&part)) w.cross(c->attention);
    if (auto a = std::get_if<CompressedAttention>(&part)) w.compressed(*a);
    if (auto m = std::get_if<RecurrentMixer>(&part)) w.recurrence(*m);
    if (auto m = std::get_if<StreamMixer>(&part)) w.streams(*m);
    if (auto m = std::get_if<Mlp>(&part)) w.mlp(*m, "mlp.reduce");
    if (auto m = std::get_if<MixtureOfExperts>(&part)) w.experts(*m);
  }
}

void lower_embedding(const Stack& stack, const Pass& pass, OperatorList& out) {
  LayerWriter w{stack, pass, out};
  Operator op;
  op.kind = OperatorKind::gather;
  op.name = "embedding";
  op.data_bytes = w.tokens() * static_cast<double>(stack.hidden) * w.act() * 2;
  op.activations = pass.activations;
  out.push_back(op);
  w.reduce_hidden("embedding.reduce");
  for (const FrontEnd& f : stack.front) {
    const double rows = w.tokens() * f.rows;
    w.linear("front", f.linear, 1, 1, rows);
    const double passes = pass.fused_elementwise ? 1 : 2;
    w.elementwise("front.activation", rows * static_cast<double>(f.linear.out), passes, passes);
    if (f.norm)
      w.elementwise("front.norm", rows * static_cast<double>(f.linear.out), passes, passes);
  }
  if (!stack.projections.empty())
    w.linear("embedding.projection", stack.projections.front(), 1, 1, w.tokens());
}

void lower_head(const Stack& stack, const Pass& pass, OperatorList& out) {
  LayerWriter w{stack, pass, out};
  for (const Norm& n : stack.final_norms) w.norm(n, "final_norm");
  const double rows = pass.sequences * std::min(pass.logits_rows, pass.new_tokens) / pass.context;
  for (const Tail& t : stack.tail) {
    const double tail_rows = t.pooled ? pass.sequences : rows;
    if (tail_rows <= 0) continue;
    w.linear("tail", t.linear, 1, 1, tail_rows);
    w.elementwise("tail.activation", tail_rows * static_cast<double>(t.linear.out), 1, 1);
    if (t.norm) w.elementwise("tail.norm", tail_rows * static_cast<double>(t.linear.out), 1, 1);
  }
  if (rows <= 0) return;
  Linear head;
  if (stack.head)
    head = *stack.head;
  else if (stack.tied && stack.embedding)
    head = {stack.embedding->out,    stack.vocabulary,  1,
            stack.embedding->format, Split::vocabulary, false};
  else
    return;
  if (stack.projections.size() > 1) w.linear("head.projection", stack.projections[1], 1, 1, rows);
  w.linear("head", head, pass.tensor, 1, rows);
  if (pass.tensor > 1) {
    Operator op;
    op.kind = OperatorKind::all_gather;
    op.name = "head.gather";
    op.payload_bytes = rows * static_cast<double>(stack.vocabulary) * w.act();
    op.ranks = pass.tensor;
    out.push_back(op);
  }
}

}  // namespace trigon
