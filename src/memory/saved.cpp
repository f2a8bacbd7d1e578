#include "memory/saved.hpp"

#include <algorithm>
#include <variant>

#include "memory/saved_eager.hpp"

namespace trigon {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }
double over(std::int64_t v, int t) { return static_cast<double>(v) / t; }

// Key and value heads on one rank: divided while there are any, then repeated.
double kv_heads_on_rank(std::int64_t heads, int t) {
  const std::int64_t on_rank = (heads + t - 1) / t;
  return static_cast<double>(on_rank);
}

// What a norm keeps. Fused: its input.
double norm_bytes(const Norm& n, double width, const ActivationRules& r) {
  return r.autograd == Autograd::eager ? eager_norm(n, width, r) : width * r.element_bytes;
}

// The linears that read one tensor, by what adapters stand on.
using Readers = std::initializer_list<AdapterTarget>;
constexpr Readers kOfAttention = {AdapterTarget::query, AdapterTarget::key, AdapterTarget::value};
constexpr Readers kOfMlp = {AdapterTarget::gate, AdapterTarget::up};
constexpr Readers kOfDown = {AdapterTarget::down};
constexpr Readers kOfMixer = {AdapterTarget::mixer};
constexpr Readers kOfExperts = {AdapterTarget::experts};

bool input_needed(const ActivationRules& r, Readers readers) {
  return !r.frozen || r.targets.any(readers);
}

// Compilers keep the input of a norm or of an element-wise product and recompute its result in
// the backward pass (torch's min-cut partitioner), so a linear after one keeps nothing itself.
bool kept_before_linear(const ActivationRules& r, Readers readers) {
  return r.autograd != Autograd::compiled && input_needed(r, readers);
}

struct Core {
  double q = 0, k = 0, v = 0, out = 0, heads = 0;  // elements per token on the rank
};

Core core_of(const Attention& a, const ActivationRules& r) {
  const int t = r.tensor;
  Core c;
  c.heads = over(a.heads, t);
  c.q = over(a.heads * a.head_dim, t);
  double kv = kv_heads_on_rank(a.kv_heads, t);
  c.k = kv * d(a.head_dim);
  c.v = kv * d(a.value_dim);
  c.out = over(a.heads * a.value_dim, t);
  return c;
}

Core core_of(const LatentAttention& a, const ActivationRules& r) {
  const int t = r.tensor;
  Core c;
  c.heads = over(a.heads, t);
  c.q = over(a.heads * (a.nope_dim + a.rope_dim), t);
  c.k = c.q;
  c.v = over(a.heads * a.value_dim, t);
  c.out = c.v;
  return c;
}

// What is dropped and made again in the backward pass.
struct Dropped {
  bool core = false, norms = false, mlp = false, expert_activation = false, experts = false,
       latent_up = false;
};

Dropped dropped_by(const RecomputeModules& m) {
  return {m.attention, m.norms, m.mlp, m.expert_activation, m.experts, m.latent_up};
}

// Scores and their softmax: 5 bytes per head, token and key with dropout (softmax output, mask,
// dropout output), 2 without. Flash attention keeps one 32-bit log-sum-exp per head instead.
ActivationBytes core_saved(const Core& c, const ActivationRules& r, bool dropped) {
  double e = r.element_bytes;
  ActivationBytes b;
  b.per_token = e * (c.q + c.k + c.v + c.out);
  if (r.flash_attention && r.attention_output_copy) b.per_token += e * c.out;
  if (r.flash_attention || dropped)
    b.per_token += 4 * c.heads;
  else
    b.per_token_and_key =
        c.heads * (e + (r.dropout ? 1 + e : 0) + (r.autograd == Autograd::eager ? 4 : 0));
  return b;
}

ActivationBytes attention_saved(double x, const Core& c, double latent, const ActivationRules& r,
                                double hidden, const Dropped& drop) {
  ActivationBytes b;
  double scattered = r.sequence_parallel ? x / r.tensor : x;
  if (!drop.norms && kept_before_linear(r, kOfAttention))
    b.per_token += scattered * r.element_bytes;
  b.per_token += latent * r.element_bytes;
  b += core_saved(c, r, drop.core);
  if (r.dropout) b.per_token += r.sequence_parallel ? hidden / r.tensor : hidden;
  return b;
}

ActivationBytes mlp_saved(double x, double width, bool gated, const ActivationRules& r,
                          double hidden, const Dropped& drop = {}) {
  const double e = r.element_bytes;
  ActivationBytes b;
  if ((!drop.norms || drop.mlp) && kept_before_linear(r, kOfMlp))
    b.per_token += (r.sequence_parallel ? x / r.tensor : x) * e;
  if (drop.mlp) return b;
  double w = width / r.tensor;
  // Inputs of the activation and of the product; then the input of the down projection.
  b.per_token += e * w * (gated ? 2 : 1);
  if (gated && r.autograd == Autograd::eager) b.per_token += e * w;
  if (kept_before_linear(r, kOfDown)) b.per_token += e * w;
  if (r.dropout) b.per_token += r.sequence_parallel ? hidden / r.tensor : hidden;
  return b;
}

// Of a layer of experts beside what is routed: the input, the router, the shared expert.
ActivationBytes router_saved(const MixtureOfExperts& m, std::int64_t hidden,
                             const ActivationRules& r, const Dropped& drop) {
  const double e = r.element_bytes, h = d(hidden);
  ActivationBytes b;
  double scatter = r.sequence_parallel ? r.tensor : 1;
  b.per_token += e * h / scatter;  // router input
  if (drop.experts) return b;
  b.per_token += 2 * 4 * d(m.experts) / scatter;  // 32-bit logits and probabilities
  if (m.shared) b += mlp_saved(0, d(m.shared->width), m.shared->gated, r, h);
  return b;
}

// Routed tokens: the permuted copies, what the first products and the activation give. Fused
// kernels weight what the activation gives: without a gate the weighted copy is the next input
// beside it (megatron/core/transformer/mlp.py, per_token_scale); others weight the outputs.
ExpertBytes routed_saved(const MixtureOfExperts& m, double h, const ActivationRules& r,
                         const Dropped& drop) {
  if (drop.experts) return {};
  const double e = r.element_bytes, k = d(m.active), w = d(m.width) * k;
  const bool fused = r.autograd == Autograd::fused;
  ExpertBytes b;
  if (input_needed(r, kOfExperts)) b.hidden += e * h * k;
  if (!fused) b.hidden += e * h * k;
  b.width += e * w * (m.gated ? 2 : 1);
  if (m.gated && r.autograd == Autograd::eager) b.width += e * w;
  if (fused && !m.gated && !drop.expert_activation) b.width += e * w;
  if (!drop.expert_activation && kept_before_linear(r, kOfExperts)) b.width += e * w;
  return b;
}

ExpertBytes routed_of(const Layer& layer, std::int64_t hidden, const ActivationRules& r,
                      const Dropped& drop) {
  for (const SubLayer& part : layer.parts)
    if (auto m = std::get_if<MixtureOfExperts>(&part)) return routed_saved(*m, d(hidden), r, drop);
  return {};
}

// Elements a token that a mixer's projections make on the rank before its recurrence runs.
double mixer_width(const RecurrentMixer& m, int t) {
  double n = 0;
  for (const MixerLinear& p : m.projections)
    if (p.linear.split == Split::column)
      n += over(p.linear.out, t);
    else if (p.linear.split == Split::replicated || &p != &m.projections.back())
      n += d(p.linear.out);
  return n;
}

// The projections' outputs, the convolution's, the recurrence's and the gated output; chunked forms
// keep the 32-bit state at each chunk's start (Mamba-2, flash-linear-attention).
ActivationBytes mixer_saved(double x, const RecurrentMixer& m, const ActivationRules& r) {
  const double e = r.element_bytes;
  ActivationBytes b;
  if (kept_before_linear(r, kOfMixer)) b.per_token += (r.sequence_parallel ? x / r.tensor : x) * e;
  b.per_token += e * mixer_width(m, r.tensor);
  if (m.conv_channels > 0) b.per_token += e * over(m.conv_channels, r.tensor);
  b.per_token += 2 * e * over(m.inner(), r.tensor);
  if (m.chunk > 0) b.per_token += 4 * over(m.state_elements(), r.tensor) / d(m.chunk);
  return b;
}

Core core_of(const CompressedAttention& a, const ActivationRules& r) {
  Core c;
  c.heads = over(a.heads, r.tensor);
  c.q = c.out = over(a.heads * a.head_dim, r.tensor);
  c.k = d(a.head_dim);  // keys are values
  return c;
}

// What a compressed attention keeps beside queries, keys and outputs.
double compressed_width(const CompressedAttention& a, const ActivationRules& r) {
  double n = 2 * d(a.q_down.out) + over(a.o_down.out, r.tensor);
  if (a.compressor) n += d(a.compressor->keys.out + a.compressor->gate.out);
  return n;
}

double latent_width(const LatentAttention& a) {
  // Compressed queries and keys, before and after their norms: inputs of the up projections.
  return 2 * d(a.q_lora_rank + a.kv_lora_rank);
}

// Queries, keys and values expanded from latents may be made again from them.
Core without_expanded(Core c, const Dropped& drop) {
  if (drop.latent_up) c.q = c.k = c.v = 0;
  return c;
}

ActivationBytes kept(const Layer& layer, std::int64_t hidden, const ActivationRules& r,
                     const Dropped& drop) {
  ActivationBytes total;
  const double h = d(hidden);
  const bool eager = r.autograd == Autograd::eager;
  for (const SubLayer& part : layer.parts) {
    if (auto n = std::get_if<Norm>(&part))
      total.per_token += norm_bytes(*n, r.sequence_parallel ? h / r.tensor : h, r);
    else if (auto a = std::get_if<Attention>(&part)) {
      Core c = core_of(*a, r);
      total += eager ? eager_attention(h, *a, r) : attention_saved(h, c, 0, r, h, drop);
      if (a->q_norm) total.per_token += norm_bytes(*a->q_norm, c.q, r);
      if (a->k_norm) total.per_token += norm_bytes(*a->k_norm, c.k, r);
      if (a->gate) total.per_token += r.element_bytes * (over(a->gate->out, r.tensor) + c.out);
    } else if (auto c = std::get_if<CrossAttention>(&part))
      total += eager ? eager_attention(h, c->attention, r)
                     : attention_saved(h, core_of(c->attention, r), 0, r, h, drop);
    else if (auto l = std::get_if<LatentAttention>(&part))
      total +=
          attention_saved(h, without_expanded(core_of(*l, r), drop), latent_width(*l), r, h, drop);
    else if (auto z = std::get_if<CompressedAttention>(&part))
      total += attention_saved(h, core_of(*z, r), compressed_width(*z, r), r, h, drop);
    else if (auto s = std::get_if<RecurrentMixer>(&part))
      total += mixer_saved(h, *s, r);
    else if (auto y = std::get_if<StreamMixer>(&part))
      total.per_token += r.element_bytes * d(y->streams) * h;
    else if (auto m = std::get_if<Mlp>(&part))
      total += eager ? eager_mlp(h, d(m->width), m->gated, r.one_input, r)
                     : mlp_saved(h, d(m->width), m->gated, r, h, drop);
    else if (auto x = std::get_if<MixtureOfExperts>(&part))
      total += router_saved(*x, hidden, r, drop);
  }
  return total;
}

}  // namespace

ActivationBytes saved_for_backward(const Layer& layer, std::int64_t hidden,
                                   const ActivationRules& r) {
  return kept(layer, hidden, r, {});
}

ActivationBytes saved_selective(const Layer& layer, std::int64_t hidden, const ActivationRules& r) {
  return kept(layer, hidden, r, dropped_by(r.selective));
}

ExpertBytes experts_saved(const Layer& layer, std::int64_t hidden, const ActivationRules& r) {
  return routed_of(layer, hidden, r, {});
}

ExpertBytes experts_saved_selective(const Layer& layer, std::int64_t hidden,
                                    const ActivationRules& r) {
  return routed_of(layer, hidden, r, dropped_by(r.selective));
}

ActivationBytes saved_full_recompute(std::int64_t hidden, const ActivationRules& r) {
  double h = d(hidden);
  return {r.element_bytes * (r.sequence_parallel ? h / r.tensor : h), 0};
}

ActivationBytes forward_peak(const Layer& layer, std::int64_t hidden, const ActivationRules& r) {
  const double e = r.element_bytes, h = d(hidden);
  // The residual and the normalised input live through every sub-layer; its output joins them.
  const double around = 3 * h * e;
  ActivationBytes peak{around, 0};
  auto raise = [&](ActivationBytes b) {
    peak.per_token = std::max(peak.per_token, b.per_token);
    peak.per_token_and_key = std::max(peak.per_token_and_key, b.per_token_and_key);
  };
  for (const SubLayer& part : layer.parts) {
    if (std::holds_alternative<Norm>(part)) {
      if (r.autograd == Autograd::eager) raise({(2 * e + 2 * 4) * h, 0});
    } else if (auto a = std::get_if<Attention>(&part)) {
      Core c = core_of(*a, r);
      // Scores and what the softmax makes of them.
      double scores =
          r.flash_attention ? 0 : c.heads * (r.autograd == Autograd::eager ? 4 + e : 2 * e);
      raise({around + e * (c.q + c.k + c.v + c.out), scores});
    } else if (auto cross = std::get_if<CrossAttention>(&part)) {
      Core c = core_of(cross->attention, r);
      double scores = r.flash_attention ? 0 : c.heads * (r.autograd == Autograd::eager ? 4 + e : e);
      raise({around + e * (c.q + c.k + c.v + c.out), scores});
    } else if (auto l = std::get_if<LatentAttention>(&part)) {
      Core c = core_of(*l, r);
      raise({around + e * (c.q + c.k + c.v + c.out + latent_width(*l) / 2), 0});
    } else if (auto x4 = std::get_if<CompressedAttention>(&part)) {
      Core c = core_of(*x4, r);
      raise({around + e * (c.q + c.k + c.out + compressed_width(*x4, r)), 0});
    } else if (auto s = std::get_if<RecurrentMixer>(&part)) {
      double states = s->chunk > 0 ? 4 * over(s->state_elements(), r.tensor) / d(s->chunk) : 0;
      raise({around +
                 e * (mixer_width(*s, r.tensor) + over(s->conv_channels + s->inner(), r.tensor)) +
                 states,
             0});
    } else if (auto y = std::get_if<StreamMixer>(&part)) {
      raise({around + e * 2 * d(y->streams) * h, 0});
    } else if (auto m = std::get_if<Mlp>(&part)) {
      raise({around + e * d(m->width) / r.tensor * (m->gated ? 3 : 2), 0});
    } else if (auto x = std::get_if<MixtureOfExperts>(&part)) {
      // Fused kernels: gate-up of every active expert, its activation, and the outputs to be
      // summed, which reuse the first.
      double w = d(x->width) / r.tensor * d(x->active);
      double first = std::max(w * (x->gated ? 2 : 1), h * d(x->active));
      double shared = x->shared ? d(x->shared->width) / r.tensor * (x->shared->gated ? 3 : 2) : 0;
      raise({around + e * (first + w) + e * shared + 4 * d(x->experts), 0});
    }
  }
  return peak;
}

}  // namespace trigon
