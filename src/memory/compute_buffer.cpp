#include "memory/compute_buffer.hpp"

#include <algorithm>
#include <variant>

namespace trigon {
namespace {
double d(std::int64_t v) { return static_cast<double>(v); }
}  // namespace

double compute_buffer_layer(const Layer& layer, std::int64_t hidden, const ComputeBuffer& b) {
  const double h = d(hidden), n = b.micro_batch;
  double widest = 0;  // bytes
  for (const SubLayer& part : layer.parts) {
    double floats = 0;         // a token
    double whole_context = 0;  // bytes, whatever the micro-batch
    if (auto a = std::get_if<Attention>(&part)) {
      const double q = d(a->heads * a->head_dim);
      const double kv = d(a->kv_heads * (a->head_dim + a->value_dim));
      const double keys = a->window ? std::min(b.keys, d(*a->window) + b.micro_batch) : b.keys;
      // Scores of all heads against all keys, beside the queries; softmax runs in place.
      floats =
          b.flash_attention ? q + kv + d(a->heads * a->value_dim) : d(a->heads) * keys + q + 2 * h;
    } else if (auto c = std::get_if<CrossAttention>(&part)) {
      const Attention& x = c->attention;
      const double q = d(x.heads * x.head_dim);
      floats = b.flash_attention ? 2 * q : d(x.heads) * b.keys + q + 2 * h;
    } else if (auto l = std::get_if<LatentAttention>(&part)) {
      const double q = d(l->heads * (l->kv_lora_rank + l->rope_dim));
      floats = b.flash_attention ? 2 * q : d(l->heads) * b.keys + q;
      if (b.flash_attention && b.latent_expanded) {
        // 16-bit keys and values of every head; the product with the latent vectors is 32-bit and
        // made in chunks. A second mask is padded beside the first.
        const double keys = b.keys * d(l->heads);
        const double product = keys * d(l->nope_dim + l->value_dim) * 4;
        whole_context = keys * d(l->nope_dim + l->rope_dim + l->value_dim) * 2 + n * b.keys * 2 +
                        (b.attention_chunk > 0 ? std::min(b.attention_chunk, product) : product);
        floats = d(l->heads * (l->nope_dim + l->rope_dim));
      }
    } else if (auto z = std::get_if<CompressedAttention>(&part)) {
      floats = 2 * d(z->heads * z->head_dim) + d(z->o_down.out);
    } else if (auto r = std::get_if<RecurrentMixer>(&part)) {
      // The projections' outputs, the convolution's input and output, the result.
      for (const MixerLinear& p : r->projections)
        if (p.linear.split != Split::row) floats += d(p.linear.out);
      floats += 2 * d(r->conv_channels) + d(r->inner());
    } else if (auto m = std::get_if<Mlp>(&part)) {
      floats = d(m->width) * (m->gated ? 2 : 1) + h;
    } else if (auto x = std::get_if<MixtureOfExperts>(&part)) {
      // The outputs of all active experts, then weighted; or what is inside the experts.
      floats = d(x->active) * std::max(2 * h, 2 * d(x->width) + h);
    }
    widest = std::max(widest, floats * n * 4 + whole_context);
  }
  return widest;
}

double compute_buffer_head(std::int64_t hidden, std::int64_t vocabulary, const ComputeBuffer& b) {
  return b.micro_batch * (d(vocabulary) + d(hidden)) * 4;
}

double compute_buffer_bytes(double widest_layer, double head, std::int64_t hidden,
                            const ComputeBuffer& b) {
  const double embeddings = b.micro_batch * d(hidden) * 4;
  // Masks are 16-bit for flash attention, else 32-bit.
  const double mask = b.masks * b.micro_batch * b.keys * (b.flash_attention ? 2 : 4);
  if (b.input_copies > 1)
    return b.input_copies * (embeddings + mask) + std::max(widest_layer, head);
  return embeddings + std::max(widest_layer + mask, head);
}

}  // namespace trigon
