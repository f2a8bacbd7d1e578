// What single architectures do that no row of the table can say.

#include <algorithm>
#include <string>

#include "model/architectures.hpp"

namespace trigon {

void adjust_falcon(ConfigReader& c, DecoderSpec& spec) {
  const bool new_decoder = c.flag({"new_decoder_architecture"})
                               .value_or(c.has({"num_kv_heads", "n_head_kv"}) &&
                                         !c.flag({"multi_query"}).value_or(false));
  const bool multi_query = c.flag({"multi_query"}).value_or(true);
  const bool parallel = c.flag({"parallel_attn"}).value_or(true);
  for (LayerSpec& l : spec.layers) {
    // Only the newer decoder reads the number of KV heads.
    if (!new_decoder) l.kv_heads = multi_query ? 1 : l.heads;
    l.parallel_residual = parallel || new_decoder;
    l.norm_before_mlp = new_decoder || !parallel;
    if (new_decoder && c.integer({"num_ln_in_parallel_attn"}).value_or(2) == 1)
      l.norm_before_mlp = false;
  }
}

void adjust_mpt(ConfigReader& c, DecoderSpec& spec) {
  ConfigReader attn = c.nested({"attn_config"});
  auto kv = attn.integer({"kv_n_heads"});
  const std::string type = attn.text({"attn_type"}).value_or("multihead_attention");
  const bool alibi = attn.flag({"alibi"}).value_or(false);
  const bool rope = attn.flag({"rope"}).value_or(false);
  const bool qk_norm = attn.flag({"qk_ln"}).value_or(false);
  c.merge(attn);
  const bool biases = !c.flag({"no_bias"}).value_or(true);
  if (biases) spec.norm = NormKind::layer_norm;
  const bool learned = c.flag({"learned_pos_emb"}).value_or(!alibi && !rope);
  if (learned && !alibi && !rope) spec.positions = spec.max_context.value_or(0);
  auto ratio = c.real({"expansion_ratio"});
  const bool ratio_known = ratio && *ratio > 0 && *ratio < 1024;
  for (LayerSpec& l : spec.layers) {
    if (type == "multiquery_attention") l.kv_heads = 1;
    if (kv) l.kv_heads = *kv;
    if (qk_norm) l.qk_norm = QkNorm::per_head;
    l.q_bias = l.k_bias = l.v_bias = l.o_bias = l.mlp_bias = biases;
    if (ratio_known) l.ffn = static_cast<std::int64_t>(*ratio * static_cast<double>(spec.hidden));
  }
}

void adjust_dbrx(ConfigReader& c, DecoderSpec& spec) {
  if (!c.has({"ffn_config"})) return;
  ConfigReader attn = c.nested({"attn_config"});
  ConfigReader ffn = c.nested({"ffn_config"});
  auto kv = attn.integer({"kv_n_heads"});
  auto width = ffn.required({"ffn_hidden_size"});
  auto experts = ffn.required({"moe_num_experts"});
  auto active = ffn.required({"moe_top_k"});
  c.merge(attn);
  c.merge(ffn);
  for (LayerSpec& l : spec.layers) {
    if (kv) l.kv_heads = *kv;
    l.mlp = MlpKind::experts;
    l.ffn = 0;
    l.experts = experts;
    l.active = active;
    l.expert_width = width;
  }
}

void adjust_opt(ConfigReader& c, DecoderSpec& spec) {
  if (auto width = c.integer({"word_embed_proj_dim"}); width && *width != spec.hidden)
    spec.embedding_width = *width;
  // OPT-350M normalises after each sub-layer and not at the end.
  if (!c.flag({"do_layer_norm_before"}).value_or(true)) {
    spec.final_norm = false;
    for (LayerSpec& l : spec.layers) {
      l.norm_before_attention = l.norm_before_mlp = false;
      l.norm_after_attention = l.norm_after_mlp = true;
    }
  }
}

void adjust_gpt_neo(ConfigReader& c, DecoderSpec& spec) {
  // attention_types: [[["global", "local"], 12]]: every second layer is local.
  auto window = c.integer({"window_size"}).value_or(256);
  const Json* types = c.any({"attention_types"});
  std::vector<std::string> cycle;
  if (types && types->array() && !types->array()->empty()) {
    const Json& first = types->array()->front();
    if (first.array() && !first.array()->empty() && first.array()->front().array())
      for (const Json& e : *first.array()->front().array())
        if (auto s = e.text()) cycle.push_back(*s);
  }
  if (cycle.empty()) cycle = {"global", "local"};
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    spec.layers[i].window =
        cycle[i % cycle.size()] == "local" ? std::optional<std::int64_t>(window) : std::nullopt;
}

void adjust_gpt_bigcode(ConfigReader& c, DecoderSpec& spec) {
  if (c.flag({"multi_query"}).value_or(true))
    for (LayerSpec& l : spec.layers) l.kv_heads = std::min<std::int64_t>(l.heads, 1);
}

void adjust_chatglm(ConfigReader& c, DecoderSpec& spec) {
  const bool shared = c.flag({"multi_query_attention"}).value_or(false);
  auto groups = c.integer({"multi_query_group_num"});
  const bool qkv_bias = c.flag({"add_qkv_bias", "add_bias_linear"}).value_or(false);
  const bool biases = c.flag({"add_bias_linear"}).value_or(false);
  for (LayerSpec& l : spec.layers) {
    if (shared && groups) l.kv_heads = *groups;
    l.q_bias = l.k_bias = l.v_bias = qkv_bias;
    l.o_bias = l.mlp_bias = biases;
  }
}

void adjust_deci(ConfigReader& c, DecoderSpec& spec) {
  const Json* blocks = c.any({"block_configs"});
  if (!blocks || !blocks->array()) return;
  if (blocks->array()->size() != spec.layers.size()) {
    c.missing("block_configs");
    return;
  }
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& l = spec.layers[i];
    const Json& block = (*blocks->array())[i];
    ConfigReader b(block, "", "");
    ConfigReader attn = b.nested({"attention"}), ffn = b.nested({"ffn"});
    auto group = attn.integer({"n_heads_in_group"});
    const bool no_attention = attn.flag({"no_op"}).value_or(false);
    if (no_attention || attn.flag({"replace_with_linear"}).value_or(false))
      l.attention = AttentionKind::none;
    if (group && *group > 0 && l.heads % *group == 0) l.kv_heads = l.heads / *group;
    if (auto window = attn.integer({"window_length"})) l.window = *window;
    auto multiple = ffn.real({"ffn_mult"});
    if (multiple && *multiple > 0 && *multiple < 1024) {
      // Rounded up to 256 from two thirds of the multiple, as Llama's was.
      auto raw = static_cast<std::int64_t>(2.0 * *multiple * static_cast<double>(spec.hidden) / 3);
      l.ffn = (raw + 255) / 256 * 256;
      l.mlp = MlpKind::dense;
    }
    if (ffn.flag({"no_op"}).value_or(false)) l.mlp = MlpKind::none;
  }
}

void adjust_llama4(ConfigReader& c, DecoderSpec& spec) {
  auto dense = c.integer({"intermediate_size_mlp"});
  auto chunk = c.integer({"attention_chunk_size"});
  auto no_rope = c.integers({"no_rope_layers"}, static_cast<std::int64_t>(spec.layers.size()));
  auto interval = std::max<std::int64_t>(c.integer({"no_rope_layer_interval"}).value_or(4), 1);
  const bool typed = c.has({"layer_types"});
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& l = spec.layers[i];
    // Layers with rotary positions attend within a chunk, every fourth to everything.
    bool rotary = (static_cast<std::int64_t>(i) + 1) % interval != 0;
    if (no_rope) rotary = (*no_rope)[i] != 0;
    if (!typed && rotary) l.chunk = chunk;
    if (l.mlp == MlpKind::experts) l.shared_width = l.expert_width;
    if (l.mlp == MlpKind::dense && dense) l.ffn = *dense;
  }
}

void adjust_gemma4(ConfigReader& c, DecoderSpec& spec) {
  auto wide = c.integer({"global_head_dim"});
  auto global_kv = c.integer({"num_global_key_value_heads"});
  const bool same = c.flag({"attention_k_eq_v"}).value_or(false);
  const FieldNames expert_names = {"num_experts", "num_local_experts"};
  const bool moe = c.flag({"enable_moe_block"}).value_or(c.has(expert_names));
  auto experts = moe ? c.required(expert_names) : 0;
  auto active = moe ? c.required({"top_k_experts", "num_experts_per_tok"}) : 0;
  auto width = moe ? c.required({"moe_intermediate_size"}) : 0;
  auto sharing = c.integer({"num_kv_shared_layers"}).value_or(0);
  if (sharing > 0 || c.integer({"hidden_size_per_layer_input"}).value_or(0) > 0)
    c.missing("a config without shared caches and per-layer inputs");
  for (LayerSpec& l : spec.layers) {
    if (!l.window) {
      if (wide) l.head_dim = l.value_dim = *wide;
      if (same && global_kv) l.kv_heads = *global_kv;
      // Keys are scaled and rotated, values are not: the cache holds both.
      l.keys_are_values = l.values_cached_apart = same;
    }
    if (!moe) continue;
    // A dense MLP runs beside the experts, each with norms of its own.
    l.shared_width = l.ffn;
    l.ffn = 0;
    l.mlp = MlpKind::experts;
    l.experts = experts;
    l.active = active;
    l.expert_width = width;
    // Two more norms, the router's scale and one scale for each expert.
    l.extra_norm_parameters = 4 * spec.hidden + experts;
  }
}

void adjust_deepseek_sparse(ConfigReader& c, DecoderSpec& spec) {
  auto heads = c.integer({"index_n_heads"});
  auto dim = c.integer({"index_head_dim"});
  auto top_k = c.integer({"index_topk"});
  if (!heads || !dim) return;
  for (LayerSpec& l : spec.layers) {
    l.index_heads = *heads;
    l.index_head_dim = *dim;
    l.index_top_k = top_k.value_or(0);
  }
}

void adjust_bitnet(ConfigReader&, DecoderSpec& spec) {
  // A norm before the output projection and one before the down projection.
  for (LayerSpec& l : spec.layers) l.extra_norm_parameters = l.heads * l.value_dim + l.ffn;
}

}  // namespace trigon
