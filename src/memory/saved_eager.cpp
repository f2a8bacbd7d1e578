// What eager torch keeps for the backward pass, operator by operator. Autograd keeps what a
// gradient formula names (pytorch tools/autograd/derivatives.yaml): a product its other factor, a
// matrix product the input only if the matrix trains, silu and gelu their input, a fused attention
// its queries, keys, values, output and log-sum-exp; casts, sums, views and copies keep nothing.

#include "memory/saved_eager.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace trigon {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }
double over(std::int64_t v, int t) { return d(v) / t; }

using T = AdapterTarget;

// Adapters on linears that read one tensor of `width` elements. `own`: bytes of their copies.
struct Readers {
  double copies = 0;    // bytes that adapters keep of the input for themselves
  bool shared = false;  // the tensor itself is kept
};

struct Reader {
  AdapterTarget target;
  double out = 0;  // elements a token
};

template <std::size_t N>
Readers read(double width, const std::array<Reader, N>& readers, bool fused,
             const ActivationRules& r) {
  Readers k;
  double copies = 0;
  for (const Reader& l : readers)
    if (r.targets.has(l.target)) copies += 1;
  if (!r.frozen || (r.quantised && r.eager.quantised_input)) k.shared = true;
  if (!r.frozen || copies == 0 || !r.form.input) return k;
  if (r.eager.adapter_input_bytes > 0)
    k.copies = width * r.eager.adapter_input_bytes * (fused ? 1 : copies);
  else
    k.shared = true;
  return k;
}

// Beside inputs: the narrow tensor between an adapter's two matrices; outputs that are scaled;
// DoRA's (the base's result and the adapter's, which its magnitudes multiply: peft
// tuners/lora/dora.py).
template <std::size_t N>
double of_outputs(const std::array<Reader, N>& readers, const ActivationRules& r) {
  if (!r.frozen) return 0;
  double bytes = 0;
  const double own = std::max(r.element_bytes, r.eager.adapter_input_bytes);
  for (const Reader& l : readers)
    if (r.targets.has(l.target))
      bytes += r.adapter_rank * own + l.out * ((r.form.output ? r.element_bytes : 0) +
                                               (r.dora ? r.element_bytes + own : 0));
  return bytes;
}

// The graph of the step before still holds the inputs of quantised linears.
double outliving(double elements, const ActivationRules& r) {
  const bool kept = r.frozen && r.quantised && r.eager.quantised_input;
  return kept && r.eager.graph_outlives_step ? elements * r.element_bytes : 0;
}

}  // namespace

double eager_norm(const Norm& n, double width, const ActivationRules& r) {
  // LayerNorm is one operator. RMSNorm is written out: its input in 32 bit feeds the square and the
  // product with the root; the normalised tensor feeds the product with a weight that trains.
  if (n.bias) return width * r.element_bytes;
  const bool trained = !r.frozen;
  return width * (4 + (trained ? r.eager.trained_norm_bytes * r.element_bytes / 2 : 0));
}

ActivationBytes eager_attention(double x, const Attention& a, const ActivationRules& r) {
  const double e = r.element_bytes, heads = over(a.heads, r.tensor);
  const double q = heads * d(a.head_dim), out = heads * d(a.value_dim);
  const double kv = d((a.kv_heads + r.tensor - 1) / r.tensor);
  double k = kv * d(a.head_dim), v = kv * d(a.value_dim);
  const std::array<Reader, 3> inputs = {{{T::query, q}, {T::key, k}, {T::value, v}}};
  const std::array<Reader, 1> last = {{{T::output, x}}};
  ActivationBytes b;
  const Readers first = read(x, inputs, r.eager.adapter_shared_qkv, r);
  const Readers second = read(out, last, false, r);
  b.per_token += first.copies + (first.shared ? e * x : 0);
  b.per_token += second.copies;  // the output itself is kept by the core
  b.per_token += of_outputs(inputs, r) + of_outputs(last, r);
  b.per_token += outliving(x + out, r);
  if (r.frozen && r.eager.adapter_padding && r.form.input) {
    double adapted = 0, all = 0;
    for (const Reader& l : inputs) {
      all += l.out;
      if (r.targets.has(l.target)) adapted += l.out;
    }
    if (adapted < all) b.per_token += e * adapted;
  }
  // The core. Rotated queries and keys are new tensors; values are views of the projection.
  const double projection = q + k + v;
  const bool expanded = r.eager.expanded_kv && kv < heads;
  if (expanded) {
    k = q;
    v = out;
  }
  b.per_token += e * (q + k + out);
  b.per_token += e * (r.eager.fused_qkv && !expanded ? projection : v);
  if (r.flash_attention && !a.score_bias)
    b.per_token += 4 * heads;
  else  // softmax in 32 bit and its copy in the format of the values
    b.per_token_and_key = heads * (e + 4 + (r.dropout ? 1 + e : 0));
  return b;
}

ActivationBytes eager_mlp(double x, double width, bool gated, bool input_counted,
                          const ActivationRules& r) {
  const double e = r.element_bytes, w = width / r.tensor;
  const std::array<Reader, 2> inputs = {{{T::up, w}, {gated ? T::gate : T::up, gated ? w : 0}}};
  const std::array<Reader, 1> one = {{{T::up, w}}};
  const std::array<Reader, 1> last = {{{T::down, x}}};
  const Readers first = gated ? read(x, inputs, false, r) : read(x, one, false, r);
  const Readers second = read(w, last, false, r);
  ActivationBytes b;
  b.per_token += first.copies + (first.shared && !input_counted ? e * x : 0);
  b.per_token += second.copies + (second.shared ? e * w : 0);
  b.per_token += (gated ? of_outputs(inputs, r) : of_outputs(one, r)) + of_outputs(last, r);
  b.per_token += outliving((input_counted ? 0 : x) + w, r);
  // Input of the activation; with a gate its output and the other factor.
  b.per_token += e * w * (gated ? 3 : 1);
  return b;
}

// The MLP comes first: the gradient of the layer's output, of the down projection's input, and of
// both factors of the product; without a gate of the activation's input. Where scores are kept, the
// softmax's backward is fuller: its gradient and its result, both in 32 bit.
ActivationBytes eager_backward(const Layer& layer, std::int64_t hidden, const ActivationRules& r) {
  double most = 0, scores = 0;
  for (const SubLayer& part : layer.parts) {
    double width = 0;
    bool gated = false;
    if (auto a = std::get_if<Attention>(&part); a && (!r.flash_attention || a->score_bias))
      scores = std::max(scores, 8 * over(a->heads, r.tensor));
    if (auto m = std::get_if<Mlp>(&part)) {
      width = over(m->width, r.tensor);
      gated = m->gated;
    } else if (auto x = std::get_if<MixtureOfExperts>(&part)) {
      width = d(x->width * x->active) / r.tensor;
      gated = x->gated;
    }
    if (width > 0) most = std::max(most, d(hidden) + width * (gated ? 3 : 2));
  }
  return {most * r.element_bytes, scores};
}

}  // namespace trigon
