#include "memory/layer_share.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace trigon {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

std::int64_t up(std::int64_t v, std::int64_t by) { return (v + by - 1) / by; }

// Biases and other vectors stay in 16 bit, in GGUF and 32-bit checkpoints in 32.
double vector_bytes(Format matrix) { return matrix == Format::f32 || info(matrix).gguf ? 4 : 2; }

double exact_bytes(Format f, std::int64_t rows, std::int64_t row) {
  if (auto b = bytes_of(f, rows, row)) return d(b->value());
  return d(rows) * d(row) * bits_per_element(f) / 8;
}

// A matrix of `rows` outputs by `row` inputs on the rank.
WeightShare matrix(const Linear& l, std::int64_t rows, std::int64_t row, const ShareRules& r) {
  WeightShare w;
  double bytes = exact_bytes(l.format, rows, row) * d(l.count);
  double parameters = d(rows) * d(row) * d(l.count);
  if (l.format == r.main_format) {
    w.matrix_bytes = bytes;
    w.matrix_parameters = parameters;
  } else if (info(l.format).gguf == info(r.main_format).gguf && info(l.format).weight_only) {
    // Mixed quantisations: every quantised matrix is converted with the others.
    w.matrix_bytes = bytes;
    w.matrix_parameters = parameters;
  } else {
    w.kept_bytes = bytes;
    w.kept_parameters = parameters;
  }
  w.edges = d(rows + row) * d(l.count);
  if (l.bias) {
    w.kept_bytes += d(rows * l.count) * vector_bytes(l.format);
    w.kept_parameters += d(rows * l.count);
    w.vectors += d(rows * l.count);
  }
  return w;
}

// Key and value projections: heads are divided while there are any, then repeated.
WeightShare key_value(const Linear& l, std::int64_t heads, int t, const ShareRules& r) {
  if (l.out == 0 || heads == 0) return {};
  return matrix(l, l.out / heads * up(heads, t), l.in, r);
}

WeightShare vector_share(double width, double element_bytes) {
  WeightShare w;
  w.kept_bytes = width * element_bytes;
  w.kept_parameters = w.vectors = width;
  return w;
}

template <class... F>
struct Visitor : F... {
  using F::operator()...;
};
template <class... F>
Visitor(F...) -> Visitor<F...>;

void add_mlp(LayerShare& s, const Mlp& m, int t, const ShareRules& r) {
  s.dense += share_of(m.up, t, r);
  s.dense += share_of(m.down, t, r);
  if (m.gate) s.dense += share_of(*m.gate, t, r);
  s.largest_matrix = std::max(s.largest_matrix, d(m.up.in) * d(m.up.out) / t);
  if (!r.adapters) return;
  const double shard = d(m.width) / t;
  if (r.targets.has(AdapterTarget::up)) s.adapt(d(m.up.in), shard);
  if (m.gate && r.targets.has(AdapterTarget::gate)) s.adapt(d(m.gate->in), shard);
  if (r.targets.has(AdapterTarget::down)) s.adapt(shard, d(m.down.out));
}

WeightShare indexer_share(const SparseIndexer& i, int t, const ShareRules& r) {
  WeightShare w = share_of(i.q, t, r);
  w += share_of(i.k, t, r);
  w += share_of(i.weights, t, r);
  w += share_of(i.k_norm);
  return w;
}

void add_attention(LayerShare& s, const Attention& a, int t, const ShareRules& r) {
  s.dense += share_of(a.q, t, r);
  s.dense += key_value(a.k, a.kv_heads, t, r);
  if (!a.keys_are_values) s.dense += key_value(a.v, a.kv_heads, t, r);
  s.dense += share_of(a.o, t, r);
  if (a.q_norm) s.dense += share_of(*a.q_norm);
  if (a.k_norm) s.dense += share_of(*a.k_norm);
  if (a.sinks) s.dense += vector_share(d(a.heads) / t, vector_bytes(a.q.format));
  if (a.gate) s.dense += share_of(*a.gate, t, r);
  if (a.indexer) s.dense += indexer_share(*a.indexer, t, r);
  s.largest_matrix = std::max(s.largest_matrix, d(a.q.in) * d(a.q.out) / t);
  if (!r.adapters) return;
  double kv = d(up(a.kv_heads, t));
  const AdapterTargets& on = r.targets;
  if (on.has(AdapterTarget::query)) s.adapt(d(a.q.in), d(a.q.out) / t);
  if (on.has(AdapterTarget::key)) s.adapt(d(a.k.in), kv * d(a.head_dim));
  if (on.has(AdapterTarget::value)) s.adapt(d(a.v.in), kv * d(a.value_dim));
  if (on.has(AdapterTarget::output)) s.adapt(d(a.o.in) / t, d(a.o.out));
}

WeightShare compressor_share(const KeyCompressor& c, int t, const ShareRules& r) {
  WeightShare w = share_of(c.keys, t, r);
  w += share_of(c.gate, t, r);
  w += share_of(c.norm);
  w += vector_share(d(c.position_parameters), 4);
  return w;
}

void add_compressed(LayerShare& s, const CompressedAttention& a, int t, const ShareRules& r) {
  using T = AdapterTarget;
  const std::pair<const Linear*, T> parts[] = {{&a.q_down, T::query},
                                               {&a.q_up, T::query},
                                               {&a.kv, T::value},
                                               {&a.o_down, T::output},
                                               {&a.o_up, T::output}};
  for (const auto& [l, part] : parts) {
    s.dense += share_of(*l, t, r);
    if (r.adapters && r.targets.has(part))
      s.adapt(l->split == Split::row ? d(l->in) / t : d(l->in),
              l->split == Split::column ? d(l->out) / t : d(l->out));
  }
  s.dense += share_of(a.q_norm);
  s.dense += share_of(a.kv_norm);
  if (a.sinks) s.dense += vector_share(d(a.heads) / t, 4);
  if (a.compressor) s.dense += compressor_share(*a.compressor, t, r);
  if (a.indexer) {
    s.dense += share_of(a.indexer->q, t, r);
    s.dense += share_of(a.indexer->weights, t, r);
    s.dense += compressor_share(a.indexer->compressor, t, r);
  }
  s.largest_matrix = std::max(s.largest_matrix, d(a.q_up.in) * d(a.q_up.out) / t);
}

// Everything but the input of the first and the output of the last projection divides with heads.
void add_mixer(LayerShare& s, const RecurrentMixer& m, int t, const ShareRules& r) {
  for (const MixerLinear& p : m.projections) {
    const Linear& l = p.linear;
    s.dense += share_of(l, t, r);
    s.largest_matrix = std::max(s.largest_matrix, d(l.in) * d(l.out) / t);
    if (r.adapters && r.targets.has(AdapterTarget::mixer))
      s.adapt(l.split == Split::row ? d(l.in) / t : d(l.in),
              l.split == Split::column ? d(l.out) / t : d(l.out));
  }
  const double bytes = exact_bytes(m.vector_format, 1, m.vectors);
  WeightShare vectors;
  vectors.kept_bytes = bytes / t;
  vectors.kept_parameters = vectors.vectors = d(m.vectors) / t;
  s.dense += vectors;
}

bool same(const SparseIndexer& a, const SparseIndexer& b);
bool same(const KeyCompressor& a, const KeyCompressor& b);
bool same(const CompressedAttention::Indexer& a, const CompressedAttention::Indexer& b);
bool same(const Mlp& a, const Mlp& b);
bool same(const Linear& a, const Linear& b) { return a == b; }
bool same(const Norm& a, const Norm& b) {
  return a.width == b.width && a.bias == b.bias && a.format == b.format;
}
template <class T>
bool same(const std::optional<T>& a, const std::optional<T>& b) {
  return a.has_value() == b.has_value() && (!a || same(*a, *b));
}
bool same(const Attention& a, const Attention& b) {
  return a.heads == b.heads && a.kv_heads == b.kv_heads && a.head_dim == b.head_dim &&
         a.value_dim == b.value_dim && a.window == b.window && a.chunk == b.chunk &&
         a.sinks == b.sinks && a.keys_are_values == b.keys_are_values && a.causal == b.causal &&
         a.score_bias == b.score_bias && a.position_terms == b.position_terms &&
         a.shares_cache_of.has_value() == b.shares_cache_of.has_value() && same(a.q, b.q) &&
         same(a.k, b.k) && same(a.v, b.v) && same(a.o, b.o) && same(a.q_norm, b.q_norm) &&
         same(a.k_norm, b.k_norm) && same(a.gate, b.gate) && same(a.indexer, b.indexer);
}
bool same(const CrossAttention& a, const CrossAttention& b) {
  return same(a.attention, b.attention);
}
bool same(const SparseIndexer& a, const SparseIndexer& b) {
  return a.heads == b.heads && a.head_dim == b.head_dim && a.top_k == b.top_k &&
         a.eight_bit == b.eight_bit && same(a.q, b.q) && same(a.k, b.k) &&
         same(a.weights, b.weights);
}
bool same(const KeyCompressor& a, const KeyCompressor& b) {
  return a.ratio == b.ratio && a.overlapping == b.overlapping && same(a.keys, b.keys) &&
         same(a.gate, b.gate);
}
bool same(const CompressedAttention::Indexer& a, const CompressedAttention::Indexer& b) {
  return a.heads == b.heads && a.head_dim == b.head_dim && a.top_k == b.top_k && same(a.q, b.q) &&
         same(a.weights, b.weights) && same(a.compressor, b.compressor);
}
bool same(const CompressedAttention& a, const CompressedAttention& b) {
  return a.heads == b.heads && a.head_dim == b.head_dim && a.window == b.window &&
         a.sinks == b.sinks && same(a.q_down, b.q_down) && same(a.q_up, b.q_up) &&
         same(a.kv, b.kv) && same(a.o_down, b.o_down) && same(a.o_up, b.o_up) &&
         same(a.compressor, b.compressor) && same(a.indexer, b.indexer);
}
bool same(const RecurrentMixer& a, const RecurrentMixer& b) { return a == b; }
bool same(const StreamMixer& a, const StreamMixer& b) {
  return a.streams == b.streams && same(a.mix, b.mix) && a.vectors == b.vectors;
}
bool same(const LatentAttention& a, const LatentAttention& b) {
  return a.heads == b.heads && a.kv_lora_rank == b.kv_lora_rank && a.rope_dim == b.rope_dim &&
         a.value_dim == b.value_dim && a.nope_dim == b.nope_dim && same(a.q_down, b.q_down) &&
         same(a.q_up, b.q_up) && same(a.kv_down, b.kv_down) && same(a.kv_up, b.kv_up) &&
         same(a.o, b.o) && same(a.indexer, b.indexer);
}
bool same(const Mlp& a, const Mlp& b) {
  return a.width == b.width && a.gated == b.gated && same(a.up, b.up) && same(a.down, b.down) &&
         same(a.gate, b.gate);
}
bool same(const MixtureOfExperts& a, const MixtureOfExperts& b) {
  return a.experts == b.experts && a.active == b.active && a.width == b.width &&
         a.gated == b.gated && a.router_bias == b.router_bias && same(a.router, b.router) &&
         same(a.up, b.up) && same(a.down, b.down) && same(a.gate, b.gate) &&
         same(a.shared, b.shared) && same(a.shared_gate, b.shared_gate) &&
         same(a.latent_in, b.latent_in);
}

}  // namespace

namespace {
// Rows of GGUF formats are whole blocks.
double head_bytes(double elements, Format f) {
  const double bits = bits_per_element(f);
  if (!info(f).gguf) return elements * bits / 8;
  const double block_elements = d(info(f).block_elements);
  double blocks = elements / block_elements;
  double whole = static_cast<double>(static_cast<std::int64_t>(blocks));
  if (whole < blocks) whole += 1;
  return whole * block_elements * bits / 8;
}
}  // namespace

double CacheShare::bytes_per_token(Format keys, Format values) const {
  return (heads * (head_bytes(key_head, keys) + head_bytes(value_head, values)) + side_bytes) /
         ratio;
}

double CacheShare::source_bytes_per_token(Format keys, Format values) const {
  return source_heads * (head_bytes(source_key_head, keys) + head_bytes(source_value_head, values));
}

WeightShare share_of(const Linear& l, int t, const ShareRules& r) {
  switch (l.split) {
    case Split::column:
    case Split::vocabulary:
      return matrix(l, up(l.out, t), l.in, r);
    case Split::row:
      return matrix(l, l.out, up(l.in, t), r);
    case Split::replicated:
    case Split::expert:
      break;
  }
  return matrix(l, l.out, l.in, r);
}

WeightShare share_of(const Norm& n) {
  double parameters = d(n.width * (n.bias ? 2 : 1));
  WeightShare w;
  w.kept_bytes = exact_bytes(n.format, 1, n.width * (n.bias ? 2 : 1));
  w.kept_parameters = w.vectors = parameters;
  return w;
}

LayerShare share_of(const Layer& l, int t, const ShareRules& r) {
  LayerShare s;
  for (const SubLayer& part : l.parts)
    std::visit(Visitor{
                   [&](const Norm& n) { s.dense += share_of(n); },
                   [&](const Attention& a) { add_attention(s, a, t, r); },
                   [&](const CrossAttention& c) { add_attention(s, c.attention, t, r); },
                   [&](const LatentAttention& a) {
                     if (a.q_down) s.dense += share_of(*a.q_down, t, r);
                     if (a.q_norm) s.dense += share_of(*a.q_norm);
                     s.dense += share_of(a.q_up, t, r);
                     s.dense += share_of(a.kv_down, t, r);
                     s.dense += share_of(a.kv_norm);
                     s.dense += share_of(a.kv_up, t, r);
                     s.dense += share_of(a.o, t, r);
                     if (a.indexer) s.dense += indexer_share(*a.indexer, t, r);
                     s.largest_matrix = std::max(s.largest_matrix, d(a.o.in) * d(a.o.out) / t);
                     if (r.adapters) {
                       if (r.targets.has(AdapterTarget::query)) {
                         s.adapt(d(a.q_up.in), d(a.q_up.out) / t);
                         if (a.q_down) s.adapt(d(a.q_down->in), d(a.q_down->out));
                       }
                       if (r.targets.any({AdapterTarget::key, AdapterTarget::value})) {
                         s.adapt(d(a.kv_up.in), d(a.kv_up.out) / t);
                         s.adapt(d(a.kv_down.in), d(a.kv_down.out));
                       }
                       if (r.targets.has(AdapterTarget::output)) s.adapt(d(a.o.in) / t, d(a.o.out));
                     }
                   },
                   [&](const CompressedAttention& a) { add_compressed(s, a, t, r); },
                   [&](const RecurrentMixer& m) { add_mixer(s, m, t, r); },
                   [&](const StreamMixer& m) {
                     s.dense += share_of(m.mix, t, r);
                     s.dense += vector_share(d(m.vectors), 4);
                   },
                   [&](const Mlp& m) { add_mlp(s, m, t, r); },
                   [&](const MixtureOfExperts& m) {
                     ShareRules whole = r;
                     s.experts += matrix(m.up, m.up.out, m.up.in, whole);
                     s.experts += matrix(m.down, m.down.out, m.down.in, whole);
                     if (m.gate) s.experts += matrix(*m.gate, m.gate->out, m.gate->in, whole);
                     s.expert_count += d(m.experts);
                     if (r.adapters && r.targets.has(AdapterTarget::experts)) {
                       const double n = d(m.experts), first = m.gate ? 2 : 1;
                       s.expert_adapted += n * (first + 1);
                       s.expert_out += n * (first * d(m.up.out) + d(m.down.out));
                       s.expert_in_out +=
                           n * (first * d(m.up.in + m.up.out) + d(m.down.in + m.down.out));
                     }
                     s.largest_matrix = std::max(s.largest_matrix, d(m.up.in) * d(m.up.out));
                     WeightShare router = matrix(m.router, m.router.out, m.router.in, r);
                     // Routers are never quantised nor divided.
                     router.kept_bytes += router.matrix_bytes;
                     router.kept_parameters += router.matrix_parameters;
                     router.matrix_bytes = router.matrix_parameters = 0;
                     s.dense += router;
                     if (m.router_bias) s.dense += vector_share(d(m.experts), 4);
                     if (m.shared) add_mlp(s, *m.shared, t, r);
                     if (m.shared_gate) s.dense += share_of(*m.shared_gate, 1, r);
                     if (m.latent_in) s.dense += share_of(*m.latent_in, t, r);
                     if (m.latent_out) s.dense += share_of(*m.latent_out, t, r);
                   },
               },
               part);
  return s;
}

CacheShare cache_share(const Layer& l, const CacheRun& cache, int t, const ShareRules& r) {
  CacheShare c;
  if (cache.source_heads > 0) {
    c.source_heads = d(up(cache.source_heads, t));
    c.source_key_head = d(cache.source_key_elements) / d(cache.source_heads);
    c.source_value_head = d(cache.source_value_elements) / d(cache.source_heads);
  }
  c.state_bytes = cache.state_bytes / t;
  if (cache.kind == CacheKind::none || cache.kind == CacheKind::fixed) return c;
  if (cache.reach) c.reach = d(*cache.reach);
  c.side_bytes = index_bytes(cache.index_elements, cache.index_eight_bit);
  c.ratio = d(cache.ratio);
  c.sequence_elements = d(cache.sequence_elements);
  if (cache.kind == CacheKind::latent && !r.latent_absorbed) {
    for (const SubLayer& part : l.parts)
      if (auto a = std::get_if<LatentAttention>(&part)) {
        c.heads = d(up(a->heads, t));
        c.key_head = d(a->nope_dim + a->rope_dim);
        c.value_head = d(a->value_dim);
      }
    return c;
  }
  // What cannot be divided lies whole on each rank.
  const std::int64_t heads = std::max<std::int64_t>(cache.kv_heads, 1);
  c.heads = cache.kv_heads > 0 ? d(up(cache.kv_heads, t)) : 1;
  c.key_head = d(cache.key_elements) / d(heads);
  c.value_head = d(cache.value_elements) / d(heads);
  if (cache.kind == CacheKind::latent && r.latent_values)
    for (const SubLayer& part : l.parts)
      if (auto a = std::get_if<LatentAttention>(&part)) c.value_head = d(a->kv_lora_rank);
  return c;
}

double vocabulary_rows(std::int64_t rows, int t, std::int64_t padding) {
  std::int64_t multiple = std::max<std::int64_t>(padding, 1);
  return d(up(up(rows, multiple) * multiple, t));
}

WeightShare embedding_share(const Linear& l, int t, std::int64_t padding) {
  double rows = vocabulary_rows(l.in, l.split == Split::replicated ? 1 : t, padding);
  double bytes = exact_bytes(l.format, static_cast<std::int64_t>(rows), l.out);
  WeightShare w;
  w.kept_bytes = bytes;
  w.kept_parameters = w.tables = rows * d(l.out);
  w.edges = rows + d(l.out);
  return w;
}

WeightShare head_share(const Linear& l, int t, std::int64_t padding) {
  double rows = vocabulary_rows(l.out, l.split == Split::replicated ? 1 : t, padding);
  double bytes = exact_bytes(l.format, static_cast<std::int64_t>(rows), l.in);
  WeightShare w;
  w.kept_bytes = bytes;
  w.kept_parameters = w.heads = rows * d(l.in);
  w.edges = rows + d(l.in);
  if (l.bias) w += vector_share(rows, vector_bytes(l.format));
  return w;
}

bool same_layer(const Layer& a, const Layer& b) {
  if (a.parts.size() != b.parts.size() || a.parallel_residual != b.parallel_residual) return false;
  for (std::size_t i = 0; i < a.parts.size(); ++i) {
    if (a.parts[i].index() != b.parts[i].index()) return false;
    bool equal = std::visit(
        [&](const auto& x) { return same(x, std::get<std::decay_t<decltype(x)>>(b.parts[i])); },
        a.parts[i]);
    if (!equal) return false;
  }
  return true;
}

}  // namespace trigon
