#include "memory/compute_buffer.hpp"

#include <algorithm>
#include <variant>

namespace trigon {
namespace {
double d(std::int64_t v) { return static_cast<double>(v); }
}  // namespace

double compute_buffer_layer(const Layer& layer, std::int64_t hidden, const ComputeBuffer& b) {
  const double h = d(hidden), n = b.micro_batch;
  // The mask is a graph input and lives through all layers: 16 bit for flash attention, else 32.
  const double mask = n * b.keys * (b.flash_attention ? 2 : 4);
  double widest = 0;
  for (const SubLayer& part : layer.parts) {
    double floats = 0;  // per token, beside the mask
    if (auto a = std::get_if<Attention>(&part)) {
      double qkv = d(a->heads * a->head_dim) + d(a->kv_heads * (a->head_dim + a->value_dim));
      floats = b.flash_attention ? qkv + d(a->heads * a->value_dim)
                                 : d(a->heads) * b.keys + d(a->heads * a->head_dim) + h;
    } else if (auto l = std::get_if<LatentAttention>(&part)) {
      double q = d(l->heads * (l->kv_lora_rank + l->rope_dim));
      floats = b.flash_attention ? 2 * q : d(l->heads) * b.keys + q;
    } else if (auto m = std::get_if<Mlp>(&part)) {
      floats = d(m->width) * (m->gated ? 2 : 1);
    } else if (auto x = std::get_if<MixtureOfExperts>(&part)) {
      // The outputs of all active experts, then weighted.
      floats = std::max(2 * d(x->active) * h, d(x->active) * (2 * d(x->width) + h));
    }
    // Layer input and the running residual.
    widest = std::max(widest, floats + 2 * h);
  }
  return mask + widest * n * 4;
}

double compute_buffer_head(std::int64_t hidden, std::int64_t vocabulary, const ComputeBuffer& b) {
  return b.micro_batch * (d(vocabulary) + d(hidden)) * 4;
}

}  // namespace trigon
