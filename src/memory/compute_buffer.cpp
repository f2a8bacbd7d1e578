#include "memory/compute_buffer.hpp"

#include <algorithm>
#include <variant>

#include "memory/ggml_graph.hpp"

namespace trigon {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

// Builds the graph of a run of layers (llama-graph.cpp, src/models of llama.cpp; src/graphs of
// ik_llama.cpp) in the order in which those fix their nodes.
class PassGraph {
 public:
  PassGraph(const Stack& stack, const BufferRun& run, const ComputeBuffer& b)
      : stack_(stack),
        run_(run),
        b_(b),
        n_(b.micro_batch),
        // The card, another card before it, the CPU.
        g_(run.on_cpu ? std::int8_t{1} : std::int8_t{3}),
        here_(0),
        weight_(g_.outside(here_)),
        host_weight_(g_.outside(g_.cpu())) {}

  DeviceBuffers bytes() {
    positions_ = g_.input({n_});
    GgmlId x = run_.first
                   ? g_.node({stack_.hidden, n_}, {host_weight_, g_.input({n_})}, false, g_.cpu())
                   : g_.arrives({stack_.hidden, n_}, 1);
    for (std::size_t i = 0; i < run_.layers.size(); ++i)
      x = layer(run_.layers[i], x, run_.head && i + 1 == run_.layers.size());
    if (run_.head) {
      x = norm(x);
      x = multiply(x, stack_.vocabulary, run_.copied_head_bits);
    }
    g_.expand(x);
    const std::vector<double> all = g_.buffers(b_.input_copies);
    return {all.front(), all.back()};
  }

 private:
  GgmlId multiply(GgmlId x, std::int64_t out, double bits = 0) {
    GgmlShape s = g_.shape(x);
    const double copied = bits > 0 ? bits : run_.copied_bits;
    const GgmlId w =
        copied > 0 ? g_.copied_weight({s.columns, out, 1, copied / 8}, g_.cpu()) : weight_;
    s.columns = out;
    s.element = 4;
    return g_.node(s, {w, x}, false, here_);
  }
  GgmlId product(const Linear& l, GgmlId x) {
    const GgmlId y = multiply(x, l.out);
    return l.bias ? g_.node(g_.shape(y), {y, weight_}, true) : y;
  }
  GgmlId norm(GgmlId x) {
    if (b_.fused_norms) return g_.node(g_.shape(x), {x, weight_}, false, here_);
    const GgmlId plain = g_.node(g_.shape(x), {x}, true, here_);
    return g_.node(g_.shape(x), {plain, weight_}, true, here_);
  }
  GgmlId add(GgmlId a, GgmlId b) { return g_.node(g_.shape(a), {a, b}, true); }

  GgmlId mask(bool windowed) {
    GgmlId& made = windowed ? window_mask_ : mask_;
    if (made != kNoTensor) return made;
    const std::int64_t keys = windowed ? b_.window_keys : b_.keys;
    const bool wide = !b_.flash_attention || b_.masks_converted;
    made = g_.input({keys, n_, 1, wide ? 4.0 : 2.0});
    if (b_.flash_attention && b_.masks_converted) made = g_.node({keys, n_, 1, 2}, {made});
    return made;
  }

  // Rows of the last layer whose logits are wanted: all of them, when the graph is reserved.
  GgmlId wanted_rows(GgmlId x) {
    if (rows_ == kNoTensor) rows_ = g_.input({n_});
    return g_.node(g_.shape(x), {x, rows_});
  }

  GgmlId layer(const BufferLayer& l, GgmlId x, bool last) {
    const auto& parts = l.layer->parts;
    auto is_norm = [&](std::size_t i) {
      return i < parts.size() && std::holds_alternative<Norm>(parts[i]);
    };
    GgmlId normed = kNoTensor, beside = kNoTensor;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (std::holds_alternative<StreamMixer>(parts[i])) continue;
      if (is_norm(i)) {
        normed = norm(x);
        continue;
      }
      const bool mixes = !std::holds_alternative<Mlp>(parts[i]) &&
                         !std::holds_alternative<MixtureOfExperts>(parts[i]);
      GgmlId y = part(parts[i], l, normed == kNoTensor ? x : normed);
      if (l.layer->parallel_residual && mixes) {
        beside = y;
        continue;
      }
      // A norm behind a part that another norm or nothing follows is the part's own.
      if (is_norm(i + 1) && (i + 2 == parts.size() || is_norm(i + 2))) {
        y = norm(y);
        ++i;
      }
      if (last && mixes) {
        y = wanted_rows(y);
        x = wanted_rows(x);
      }
      if (beside != kNoTensor) y = add(y, beside);
      x = add(y, x);
      normed = beside = kNoTensor;
    }
    return x;
  }

  GgmlId part(const SubLayer& p, const BufferLayer& l, GgmlId x) {
    if (auto a = std::get_if<Attention>(&p)) return attention(*a, x, l, true);
    if (auto c = std::get_if<CrossAttention>(&p)) return attention(c->attention, x, l, false);
    if (auto m = std::get_if<LatentAttention>(&p)) return latent(*m, x, l);
    if (auto z = std::get_if<CompressedAttention>(&p)) return compressed(*z, x, l);
    if (auto r = std::get_if<RecurrentMixer>(&p)) return mixer(*r, x);
    if (auto m = std::get_if<Mlp>(&p)) return mlp(*m, x);
    return experts(std::get<MixtureOfExperts>(p), x, l);
  }

  void write_cache(GgmlId values) {
    GgmlShape s = g_.shape(values);
    s.element = b_.key_bytes;
    g_.expand(g_.view(s, weight_, values));
  }

  // Keys or values of the cache.
  GgmlId cached(std::int64_t keys, std::int64_t heads, std::int64_t width) {
    if (run_.copied_bits <= 0) return weight_;
    return g_.copied_weight({heads * width, keys, 1, b_.key_bytes}, g_.cpu());
  }

  // Attention of `heads` queries over the cache; `q` has heads as planes or rows.
  GgmlId attend(GgmlId q, std::int64_t heads, std::int64_t width, std::int64_t cache_heads,
                const BufferLayer& l, bool masked = true) {
    const std::int64_t keys = l.windowed ? b_.window_keys : b_.keys;
    const GgmlId m = masked ? mask(l.windowed) : kNoTensor;
    const GgmlId rows = g_.view({g_.shape(q).columns, n_, heads}, q);
    if (b_.flash_attention) {
      const GgmlId out =
          g_.node({width, heads, n_}, {rows, cached(keys, cache_heads, g_.shape(q).columns),
                                       cached(keys, cache_heads, width), m});
      return g_.view({width * heads, n_}, out);
    }
    const GgmlId scores =
        g_.node({keys, n_, heads}, {cached(keys, cache_heads, g_.shape(q).columns), rows});
    const GgmlId shares = g_.node({keys, n_, heads}, {scores, m}, true);
    const GgmlId out = g_.node({width, n_, heads}, {cached(keys, cache_heads, width), shares});
    return g_.node({width * heads, n_}, {g_.view({width, heads, n_}, out)});
  }

  GgmlId attention(const Attention& a, GgmlId x, const BufferLayer& l, bool own_keys) {
    GgmlId q = g_.view({a.head_dim, a.heads, n_}, product(a.q, x));
    const GgmlId gate = a.gate ? multiply(x, a.gate->out) : kNoTensor;
    if (a.q_norm) q = norm(q);
    q = g_.node(g_.shape(q), {q, positions_}, true);
    if (own_keys && !a.shares_cache_of) {
      GgmlId k = g_.view({a.head_dim, a.kv_heads, n_}, product(a.k, x));
      const GgmlId v = a.keys_are_values ? kNoTensor : product(a.v, x);
      if (a.k_norm) k = norm(k);
      k = g_.node(g_.shape(k), {k, positions_}, true);
      g_.expand(q);
      g_.expand(k);
      g_.expand(v);
      write_cache(k);
      if (v != kNoTensor) write_cache(v);
    }
    GgmlId out = attend(q, a.heads, a.value_dim, a.kv_heads, l, own_keys);
    if (gate != kNoTensor) out = g_.node(g_.shape(out), {out, gate}, true);
    g_.expand(out);
    return product(a.o, out);
  }

  // Heads at once so that so many 32-bit bytes of `all` are within the chunk.
  std::int64_t heads_at_once(double all, std::int64_t heads) const {
    if (b_.attention_chunk <= 0 || all <= b_.attention_chunk) return heads;
    for (std::int64_t parts = 2; parts < heads; ++parts)
      if (heads % parts == 0 && all / d(parts) <= b_.attention_chunk) return heads / parts;
    return 1;
  }

  GgmlId latent(const LatentAttention& a, GgmlId x, const BufferLayer& l) {
    const std::int64_t head = a.nope_dim + a.rope_dim;
    GgmlId q = multiply(x, a.q_down ? a.q_down->out : a.heads * head);
    GgmlId kv = multiply(x, a.kv_lora_rank + a.rope_dim);
    g_.expand(q);
    g_.expand(kv);
    if (a.q_down) {
      if (a.q_norm) q = norm(q);
      q = multiply(q, a.heads * head);
    }
    const GgmlId q_nope = g_.view({a.nope_dim, a.heads, n_}, q);
    const GgmlId q_rope_in = g_.view({a.rope_dim, a.heads, n_}, q);
    const GgmlId k_rope_in = g_.view({a.rope_dim, 1, n_}, kv);
    const GgmlId vector_in = g_.view({a.kv_lora_rank, n_}, kv);
    g_.expand(q_rope_in);
    g_.expand(k_rope_in);
    const GgmlId q_rope = g_.node({a.rope_dim, a.heads, n_}, {q_rope_in, positions_}, true);
    const GgmlId k_rope = g_.node({a.rope_dim, 1, n_}, {k_rope_in, positions_}, true);
    g_.expand(q_rope);
    g_.expand(k_rope);
    const GgmlId vector = norm(vector_in);
    if (!b_.latent_cached) return whole_heads(a, q_nope, q_rope, k_rope, vector, l);
    write_cache(g_.node({a.kv_lora_rank + a.rope_dim, n_}, {k_rope, vector}));
    const bool expands = b_.latent_expanded && b_.latent_mode > 1 && b_.flash_attention;
    const GgmlId out = expands ? expanded(a, q_nope, q_rope) : absorbed(a, q_nope, q_rope, l);
    g_.expand(out);
    return product(a.o, out);
  }

  // Keys and values of every head are made and cached.
  GgmlId whole_heads(const LatentAttention& a, GgmlId q_nope, GgmlId q_rope, GgmlId k_rope,
                     GgmlId vector, const BufferLayer& l) {
    const std::int64_t head = a.nope_dim + a.rope_dim;
    const GgmlId kv = multiply(vector, a.heads * (a.nope_dim + a.value_dim));
    const GgmlId v = g_.node({a.value_dim, a.heads, n_}, {g_.view({a.value_dim, a.heads, n_}, kv)});
    const GgmlId q = g_.node({head, a.heads, n_}, {q_nope, q_rope});
    const GgmlId spread = g_.node({a.rope_dim, a.heads, n_}, {k_rope});
    const GgmlId k = g_.node({head, a.heads, n_}, {g_.view({a.nope_dim, a.heads, n_}, kv), spread});
    g_.expand(q);
    g_.expand(k);
    g_.expand(v);
    write_cache(k);
    write_cache(v);
    const GgmlId out = attend(q, a.heads, a.value_dim, a.heads, l);
    g_.expand(out);
    return product(a.o, out);
  }

  // Attention on the latent itself: queries are brought into its space and results out of it.
  GgmlId absorbed(const LatentAttention& a, GgmlId q_nope, GgmlId q_rope, const BufferLayer& l) {
    const std::int64_t width = a.kv_lora_rank + a.rope_dim;
    const GgmlId inside = multiply(g_.view({a.nope_dim, n_, a.heads}, q_nope), a.kv_lora_rank);
    const GgmlId q =
        g_.node({width, n_, a.heads}, {g_.view({a.rope_dim, n_, a.heads}, q_rope), inside});
    GgmlId out = kNoTensor;
    if (b_.flash_attention) {
      out = g_.node({a.kv_lora_rank, a.heads, n_}, {q, weight_, mask(l.windowed)});
      out = g_.view({a.kv_lora_rank, n_, a.heads}, out);
    } else {
      // Modes 2 and 3 keep no transposed copy: it is made here.
      GgmlId turned = weight_;
      if (b_.latent_expanded && b_.latent_mode > 1)
        turned = g_.node({b_.keys, a.kv_lora_rank, 1, b_.key_bytes}, {weight_}, false, here_);
      const double all = d(b_.keys) * d(n_) * d(a.heads) * 4;
      std::int64_t step = a.heads;
      if (b_.attention_chunk > 0 && all > b_.attention_chunk) {
        const auto steps =
            std::min(static_cast<std::int64_t>((all + b_.attention_chunk - 1) / b_.attention_chunk),
                     a.heads);
        step = (a.heads + steps - 1) / steps;
      }
      for (std::int64_t from = 0; from < a.heads; from += step) {
        const std::int64_t heads = std::min(step, a.heads - from);
        const GgmlId rows = step == a.heads ? q : g_.view({width, n_, heads}, q);
        const GgmlId scores = g_.node({b_.keys, n_, heads}, {weight_, rows}, false, here_);
        const GgmlId shares = g_.node({b_.keys, n_, heads}, {scores, mask(l.windowed)}, true);
        const GgmlId some = g_.node({a.kv_lora_rank, n_, heads}, {turned, shares});
        out = out == kNoTensor ? some : g_.node({a.kv_lora_rank, n_, from + heads}, {out, some});
        if (step < a.heads) g_.expand(out);
      }
    }
    const GgmlId values = multiply(out, a.value_dim);
    return g_.node({a.value_dim * a.heads, n_}, {g_.view({a.value_dim, a.heads, n_}, values)});
  }

  // Keys and values of the whole context, in 16 bit (on the CPU as the cache is), some heads at a
  // time.
  GgmlId expanded(const LatentAttention& a, GgmlId q_nope, GgmlId q_rope) {
    const std::int64_t head = a.nope_dim + a.rope_dim, both = a.nope_dim + a.value_dim;
    const std::int64_t heads = heads_at_once(d(b_.keys) * d(a.heads * both) * 4, a.heads);
    const double element = run_.on_cpu ? b_.key_bytes : 2;
    GgmlId rope = weight_;
    if (element != b_.key_bytes) rope = g_.node({a.rope_dim, b_.keys, 1, 2}, {weight_});
    rope = g_.node({a.rope_dim, b_.keys, heads, element}, {rope});
    const GgmlId q = g_.view({head, n_, a.heads}, g_.node({head, a.heads, n_}, {q_rope, q_nope}));
    g_.expand(q);
    GgmlId out = kNoTensor;
    for (std::int64_t from = 0; from < a.heads; from += heads) {
      const GgmlId kv = g_.node({heads * both, b_.keys}, {weight_}, false, here_);
      const GgmlId v = g_.node({a.value_dim, b_.keys, heads, element},
                               {g_.view({a.value_dim, b_.keys, heads}, kv)});
      const GgmlId nope = g_.node({a.nope_dim, b_.keys, heads, element},
                                  {g_.view({a.nope_dim, b_.keys, heads}, kv)});
      g_.expand(nope);
      g_.expand(v);
      const GgmlId k = g_.node({head, b_.keys, heads, element}, {rope, nope});
      g_.expand(k);
      const GgmlId some =
          g_.node({a.value_dim, heads, n_}, {g_.view({head, n_, heads}, q), k, v, mask(false)});
      const GgmlId flat = g_.view({a.value_dim * heads, n_}, some);
      out = out == kNoTensor ? flat : g_.node({a.value_dim * (from + heads), n_}, {out, flat});
      if (!b_.heads_together) g_.expand(out);
    }
    return out;
  }

  GgmlId compressed(const CompressedAttention& a, GgmlId x, const BufferLayer& l) {
    GgmlId q = multiply(norm(multiply(x, a.q_down.out)), a.q_up.out);
    q = g_.node({a.head_dim, a.heads, n_}, {g_.view({a.head_dim, a.heads, n_}, q), positions_},
                true);
    const GgmlId kv = norm(multiply(x, a.kv.out));
    g_.expand(q);
    g_.expand(kv);
    write_cache(kv);
    const GgmlId out = attend(q, a.heads, a.head_dim, 1, l);
    g_.expand(out);
    return product(a.o_up, multiply(out, a.o_down.out));
  }

  // The projections' outputs, the convolution, the recurrence, the output.
  GgmlId mixer(const RecurrentMixer& m, GgmlId x) {
    std::vector<GgmlId> made;
    const MixerLinear* last = nullptr;
    for (const MixerLinear& p : m.projections) {
      if (p.linear.split == Split::row) {
        last = &p;
        continue;
      }
      made.push_back(multiply(x, p.linear.out));
      g_.expand(made.back());
    }
    const GgmlId first = made.empty() ? x : made.front();
    GgmlId y = first;
    if (m.conv_kernel > 1) y = g_.node({m.conv_channels, n_}, {y, weight_});
    y = g_.node({std::max<std::int64_t>(m.inner(), 1), n_},
                {y, weight_, made.empty() ? x : made.back()});
    for (const GgmlId gate : made) y = g_.node(g_.shape(y), {y, gate}, true);
    g_.expand(y);
    return last ? multiply(y, last->linear.out) : multiply(y, stack_.hidden);
  }

  GgmlId mlp(const Mlp& m, GgmlId x) {
    if (!m.gated) {
      const GgmlId up = product(m.up, x);
      return product(m.down, g_.node(g_.shape(up), {up}, true));
    }
    const GgmlId gate = multiply(x, m.width), up = multiply(x, m.width);
    GgmlId inner = kNoTensor;
    if (b_.fused_gates) {
      inner = g_.node(g_.shape(up), {gate, up});
    } else {
      const GgmlId active = g_.node(g_.shape(up), {gate}, true);
      inner = g_.node(g_.shape(up), {active, up}, true);
    }
    return product(m.down, inner);
  }

  bool copies_experts(const MixtureOfExperts& x) const {
    if (b_.expert_copies == ExpertCopies::never || run_.on_cpu) return false;
    const std::int64_t least = 32;  // ggml_backend_cuda_offload_op
    if (b_.expert_copies == ExpertCopies::by_batch) return n_ >= least;
    return n_ * x.active >= least * x.experts;
  }

  GgmlId experts(const MixtureOfExperts& m, GgmlId x, const BufferLayer& l) {
    const std::int64_t hidden = m.latent_in ? m.latent_in->out : g_.shape(x).columns;
    const GgmlId in = m.latent_in ? multiply(x, hidden) : x;
    GgmlId scores = multiply(x, m.experts);
    scores = g_.node(g_.shape(scores), {scores}, true);
    GgmlId chosen_by = scores;
    if (m.router_bias) chosen_by = g_.node(g_.shape(scores), {scores, weight_}, true);
    const GgmlId sorted = g_.node({m.experts, n_}, {chosen_by});
    const GgmlId chosen = g_.view({m.active, n_}, sorted);
    GgmlId shares = g_.node({1, m.active, n_}, {g_.view({1, m.experts, n_}, scores), chosen});
    const GgmlId flat = g_.view({m.active, n_}, shares);
    shares = g_.node({m.active, n_}, {flat, g_.node({1, n_}, {flat})});
    shares = g_.view({1, m.active, n_}, shares);

    const bool copied = l.experts_on_host && copies_experts(m);
    const std::int8_t where = l.experts_on_host && !copied ? g_.cpu() : here_;
    auto matrices = [&](const Linear& w) {
      if (!copied) return where == here_ ? weight_ : host_weight_;
      return g_.copied_weight({w.in, w.out, w.count, l.expert_bits / 8}, g_.cpu());
    };
    const GgmlId each = g_.view({hidden, 1, n_}, in);
    const GgmlShape wide{m.width, m.active, n_};
    GgmlId inner = kNoTensor;
    if (!m.gate) {
      inner = g_.node(wide, {matrices(m.up), each, chosen}, false, where);
      inner = g_.node(wide, {inner}, true);
    } else if (b_.fused_experts) {
      const GgmlId up = matrices(m.up);
      inner = g_.node(wide, {up, matrices(*m.gate), each, chosen}, false, where);
    } else {
      const GgmlId up = g_.node(wide, {matrices(m.up), each, chosen}, false, where);
      const GgmlId gate = g_.node(wide, {matrices(*m.gate), each, chosen}, false, where);
      if (b_.fused_gates) {
        inner = g_.node(wide, {gate, up});
      } else {
        const GgmlId active = g_.node(wide, {gate}, true);
        inner = g_.node(wide, {active, up}, true);
      }
    }
    const GgmlShape full{hidden, m.active, n_};
    GgmlId out = g_.node(full, {matrices(m.down), inner, chosen}, false, where);
    out = g_.node(full, {out, shares}, true);
    GgmlId sum = g_.view({hidden, n_}, out);
    for (std::int64_t i = 1; i < m.active; ++i)
      sum = g_.node({hidden, n_}, {sum, g_.view({hidden, n_}, out)}, true);
    if (m.active == 1) sum = g_.node({hidden, n_}, {sum});
    if (m.latent_out) sum = multiply(sum, m.latent_out->out);
    return m.shared ? add(sum, mlp(*m.shared, x)) : sum;
  }

  const Stack& stack_;
  const BufferRun& run_;
  const ComputeBuffer& b_;
  std::int64_t n_;
  GgmlGraph g_;
  std::int8_t here_;
  GgmlId weight_, host_weight_;
  GgmlId positions_ = kNoTensor, mask_ = kNoTensor, window_mask_ = kNoTensor, rows_ = kNoTensor;
};

}  // namespace

DeviceBuffers compute_buffers(const Stack& stack, const BufferRun& run, const ComputeBuffer& b) {
  return PassGraph(stack, run, b).bytes();
}

}  // namespace trigon
