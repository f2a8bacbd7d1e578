#include "model/kv_cache.hpp"

#include <variant>

namespace trigon {
namespace {

CacheRun run_of(const LayerRun& r, bool generates) {
  CacheRun c;
  c.layers = r.count;
  if (!generates) return c;
  for (const SubLayer& part : r.layer.parts) {
    if (auto a = std::get_if<Attention>(&part)) {
      if (a->shares_cache_of) continue;
      c.kind = a->window ? CacheKind::windowed : a->chunk ? CacheKind::chunked : CacheKind::full;
      if (a->window) c.reach = a->window;
      if (a->chunk) c.reach = a->chunk;
      c.kv_heads = a->kv_heads;
      c.key_elements = a->kv_heads * a->head_dim;
      const bool one = a->keys_are_values && !a->values_cached_apart;
      c.value_elements = one ? 0 : a->kv_heads * a->value_dim;
      if (a->indexer) {
        c.index_elements = a->indexer->head_dim;
        c.index_eight_bit = a->indexer->eight_bit;
      }
    } else if (auto l = std::get_if<LatentAttention>(&part)) {
      c.kind = CacheKind::latent;
      c.key_elements = l->kv_lora_rank + l->rope_dim;
      if (l->indexer) c.index_elements = l->indexer->head_dim;
    } else if (auto x = std::get_if<CrossAttention>(&part)) {
      c.source_heads = x->attention.kv_heads;
      c.source_key_elements = x->attention.kv_heads * x->attention.head_dim;
      c.source_value_elements = x->attention.kv_heads * x->attention.value_dim;
    } else if (auto y = std::get_if<CompressedAttention>(&part)) {
      if (!y->compressor) {
        c.kind = CacheKind::windowed;
        c.reach = y->window;
        c.key_elements = y->head_dim;
        continue;
      }
      c.kind = CacheKind::compressed;
      c.ratio = y->compressor->ratio;
      c.key_elements = y->head_dim;
      if (y->indexer) c.index_elements = y->indexer->head_dim;
      c.sequence_elements = y->window * y->head_dim;
    }
  }
  c.state_bytes = recurrent_state_bytes(r.layer);
  if (c.state_bytes > 0 && c.kind == CacheKind::none) c.kind = CacheKind::fixed;
  return c;
}

// Heads are stored one after another, each in whole blocks.
double padded_bytes(std::int64_t elements, std::int64_t kv_heads, Format f) {
  const FormatInfo& i = info(f);
  std::int64_t heads = kv_heads > 0 ? kv_heads : 1;
  std::int64_t one = elements / heads;
  if (!i.gguf || one % i.block_elements == 0)
    return static_cast<double>(elements) * bits_per_element(f) / 8;
  std::int64_t blocks = one / i.block_elements + 1;
  return static_cast<double>(heads * blocks * i.block_bytes);
}

double bytes_per_token_layer(const CacheRun& c, Format f) {
  const double entry = padded_bytes(c.key_elements, c.kv_heads, f) +
                       padded_bytes(c.value_elements, c.kv_heads, f) +
                       index_bytes(c.index_elements, c.index_eight_bit);
  return entry / static_cast<double>(c.ratio);
}

double fixed_bytes(const CacheRun& c, Format f) {
  return c.state_bytes + static_cast<double>(c.sequence_elements) * bits_per_element(f) / 8;
}

}  // namespace

double index_bytes(std::int64_t elements, bool eight_bit) {
  const std::int64_t scales = (elements + 127) / 128;
  return static_cast<double>(eight_bit ? elements + 4 * scales : 2 * elements);
}

double recurrent_state_bytes(const Layer& l) {
  double total = 0;
  for (const SubLayer& part : l.parts)
    if (auto m = std::get_if<RecurrentMixer>(&part))
      total += static_cast<double>(m->state_elements()) * bits_per_element(m->state_format) / 8 +
               static_cast<double>(m->conv_elements()) * bits_per_element(m->conv_format) / 8;
  return total;
}

double fixed_bytes_per_sequence(const Stack& s, Format f) {
  double total = 0;
  for (const CacheRun& c : cache_layout(s).runs)
    total += static_cast<double>(c.layers) * fixed_bytes(c, f);
  return total;
}

std::int64_t CacheRun::elements_on_rank(std::int64_t tensor_parallel) const {
  if (kv_heads <= 0 || tensor_parallel <= 1) return elements();
  std::int64_t heads = (kv_heads + tensor_parallel - 1) / tensor_parallel;
  return elements() / kv_heads * heads;
}

CacheLayout cache_layout(const Stack& s) {
  CacheLayout layout;
  for (const LayerRun& r : s.runs) {
    layout.runs.push_back(run_of(r, s.generates));
    layout.windows = layout.windows || layout.runs.back().reach.has_value();
  }
  return layout;
}

double kv_bytes_per_token(const Stack& s, Format f) {
  double total = 0;
  for (const CacheRun& c : cache_layout(s).runs)
    total += static_cast<double>(c.layers) * bytes_per_token_layer(c, f);
  return total;
}

double source_kv_bytes_per_token(const Stack& s, Format f) {
  double total = 0;
  for (const CacheRun& c : cache_layout(s).runs)
    total +=
        static_cast<double>(c.layers) * (padded_bytes(c.source_key_elements, c.source_heads, f) +
                                         padded_bytes(c.source_value_elements, c.source_heads, f));
  return total;
}

double kv_bytes(const Stack& s, Format f, std::int64_t tokens) {
  double total = 0;
  for (const CacheRun& c : cache_layout(s).runs)
    total +=
        static_cast<double>(c.layers) *
        (bytes_per_token_layer(c, f) * static_cast<double>(c.kept(tokens)) + fixed_bytes(c, f));
  return total;
}

}  // namespace trigon
