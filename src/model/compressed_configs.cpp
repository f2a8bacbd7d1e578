// Layers of models that attend to a chosen or compressed part of the past. Sources: the modelling
// code published with DeepSeek-V4 and MiniMax-M3 (transformers).

#include <algorithm>
#include <string>

#include "model/architectures.hpp"

namespace trigon {

void adjust_deepseek_v4(ConfigReader& c, DecoderSpec& spec) {
  const auto q_rank = c.required({"q_lora_rank"});
  const auto groups = c.required({"o_groups"});
  const auto o_rank = c.required({"o_lora_rank"});
  const auto rope = c.required({"qk_rope_head_dim"});
  const auto window = c.required({"sliding_window"});
  const auto index_heads = c.required({"index_n_heads"});
  const auto index_dim = c.required({"index_head_dim"});
  const auto top_k = c.required({"index_topk"});
  const auto streams = c.integer({"hc_mult"}).value_or(4);
  const auto hashed = c.integer({"num_hash_layers"}).value_or(0);
  // One entry for each layer and then those of the draft layers. 4: overlapping windows and an
  // indexer; larger: all entries are read; 0: the window alone.
  const Json* listed = c.any({"compress_ratios"});
  const JsonArray* ratios = listed ? listed->array() : nullptr;
  if (!ratios || ratios->size() < spec.layers.size()) {
    c.missing("compress_ratios");
    return;
  }
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& l = spec.layers[i];
    l.attention = AttentionKind::compressed;
    l.q_lora_rank = q_rank;
    l.output_groups = groups;
    l.output_rank = o_rank;
    l.rope_dim = rope;
    l.window = window;
    l.streams = streams;
    if (auto ratio = (*ratios)[i].integer()) l.compress_ratio = *ratio;
    l.compress_overlapping = l.compress_ratio == 4;
    if (l.compress_overlapping) {
      l.index_heads = index_heads;
      l.index_head_dim = index_dim;
      l.index_top_k = top_k;
    }
    // The first layers look experts up by token instead of choosing them.
    if (static_cast<std::int64_t>(i) < hashed) l.router_correction = false;
  }
}

void adjust_minimax_m3(ConfigReader& c, DecoderSpec& spec) {
  // Published configs nest the sparse attention's numbers, later ones do not.
  ConfigReader sparse = c.nested({"sparse_attention_config"});
  auto number = [&](std::string_view flat, std::string_view nested, std::int64_t otherwise) {
    if (auto v = c.integer({flat})) return *v;
    return sparse.integer({nested}).value_or(otherwise);
  };
  const auto heads = number("index_n_heads", "sparse_num_index_heads", 4);
  const auto dim = number("index_head_dim", "sparse_index_dim", 128);
  const auto block = number("index_block_size", "sparse_block_size", 128);
  const auto blocks = number("index_topk_blocks", "sparse_topk_blocks", 16);
  const auto n = static_cast<std::int64_t>(spec.layers.size());
  auto chosen = sparse.integers({"sparse_attention_freq"}, n);
  if (auto types = c.texts({"layer_types"})) {
    chosen = std::vector<std::int64_t>(spec.layers.size(), 0);
    for (std::size_t i = 0; i < spec.layers.size() && i < types->size(); ++i)
      (*chosen)[i] = (*types)[i] == "minimax_m3_sparse" ? 1 : 0;
  }
  const auto dense = c.integer({"dense_intermediate_size"});
  c.merge(sparse);
  constexpr std::int64_t most = 1 << 20;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& l = spec.layers[i];
    if (l.mlp == MlpKind::dense && dense) l.ffn = *dense;
    if (!chosen || (*chosen)[i] == 0) continue;
    l.index_heads = heads;
    l.index_head_dim = dim;
    l.index_top_k =
        std::clamp<std::int64_t>(block, 0, most) * std::clamp<std::int64_t>(blocks, 0, most);
    l.index_eight_bit = false;
  }
}

}  // namespace trigon
