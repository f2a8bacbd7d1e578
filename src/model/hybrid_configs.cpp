// Layers of published hybrids and state-space models. Sources: the modelling code published with
// each model (transformers, or the model's own repository).

#include <algorithm>
#include <string>

#include "model/architectures.hpp"
#include "model/recurrent_mixers.hpp"

namespace trigon {
namespace {

// Products of two fit 64 bits; build_decoder checks the result.
std::int64_t product(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  return std::clamp<std::int64_t>(a, 0, most) * std::clamp<std::int64_t>(b, 0, most);
}

// What the state is kept in, where the config says so.
void keep_state(ConfigReader& c, RecurrentMixer& m) {
  auto f = format_by_name(c.text({"mamba_ssm_cache_dtype", "mamba_ssm_dtype"}).value_or("float32"));
  if (f && info(*f).floating) m.state_format = *f;
}

void replace_attention(LayerSpec& l, const RecurrentMixer& m) {
  l.attention = AttentionKind::none;
  l.window.reset();
  l.chunk.reset();
  l.gate_width = 0;
  l.qk_norm = QkNorm::none;
  l.mixer = m;
}

// Which layers are of a kind, by the list that names each.
std::vector<bool> layers_named(ConfigReader& c, FieldNames lists, FieldNames kinds,
                               const DecoderSpec& spec) {
  std::vector<bool> out(spec.layers.size(), false);
  auto types = c.texts(lists);
  if (!types) return out;
  for (std::size_t i = 0; i < out.size() && i < types->size(); ++i)
    out[i] = std::find(kinds.begin(), kinds.end(), (*types)[i]) != kinds.end();
  return out;
}

// Layer numbers in a list; `from` is the number of the first layer.
std::vector<bool> layers_listed(ConfigReader& c, FieldNames lists, std::int64_t from,
                                const DecoderSpec& spec) {
  std::vector<bool> out(spec.layers.size(), false);
  const Json* list = c.any(lists);
  if (!list || !list->array()) return out;
  for (const Json& e : *list->array())
    if (auto i = e.integer(); i && *i >= from && *i - from < static_cast<std::int64_t>(out.size()))
      out[static_cast<std::size_t>(*i - from)] = true;
  return out;
}

void no_mlp(LayerSpec& l) {
  l.mlp = MlpKind::none;
  l.ffn = l.experts = l.active = l.expert_width = l.shared_width = 0;
  l.shared_gate = false;
}

Mamba2Shape mamba2_shape(ConfigReader& c, std::int64_t hidden) {
  Mamba2Shape s;
  s.heads = c.required({"mamba_n_heads", "mamba_num_heads", "num_heads"});
  const std::int64_t expand = c.integer({"mamba_expand", "expand"}).value_or(2);
  const Json* head = c.any({"mamba_d_head", "mamba_head_dim", "head_dim"});
  if (head && head->integer())
    s.head_dim = c.integer({"mamba_d_head", "mamba_head_dim", "head_dim"}).value_or(0);
  else if (s.heads > 0)
    s.head_dim = product(expand, hidden) / s.heads;
  s.groups = c.integer({"mamba_n_groups", "n_groups"}).value_or(1);
  s.state = c.required({"mamba_d_state", "ssm_state_size", "state_size"});
  s.kernel = c.integer({"mamba_d_conv", "conv_kernel"}).value_or(4);
  s.chunk = c.integer({"mamba_chunk_size", "chunk_size"}).value_or(256);
  s.conv_bias = c.flag({"mamba_conv_bias", "use_conv_bias"}).value_or(true);
  s.bias = c.flag({"mamba_proj_bias", "use_bias"}).value_or(false);
  const std::int64_t most = 1 << 16;
  for (std::int64_t* v : {&s.heads, &s.head_dim, &s.groups, &s.state, &s.kernel})
    *v = std::clamp<std::int64_t>(*v, 0, most);
  return s;
}

}  // namespace

void adjust_qwen3_next(ConfigReader& c, DecoderSpec& spec) {
  DeltaShape s;
  s.key_heads = c.required({"linear_num_key_heads"});
  s.key_dim = c.required({"linear_key_head_dim"});
  s.value_heads = c.required({"linear_num_value_heads"});
  s.value_dim = c.required({"linear_value_head_dim"});
  s.kernel = c.integer({"linear_conv_kernel_dim"}).value_or(4);
  for (std::int64_t* v : {&s.key_heads, &s.key_dim, &s.value_heads, &s.value_dim, &s.kernel})
    *v = std::clamp<std::int64_t>(*v, 0, 1 << 15);
  RecurrentMixer m = gated_delta(spec.hidden, s);
  keep_state(c, m);
  auto linear = layers_named(c, {"layer_types"}, {"linear_attention"}, spec);
  if (!c.has({"layer_types"})) {
    const auto every =
        std::max<std::int64_t>(c.integer({"full_attention_interval"}).value_or(4), 1);
    for (std::size_t i = 0; i < linear.size(); ++i)
      linear[i] = (static_cast<std::int64_t>(i) + 1) % every != 0;
  }
  const bool gated = c.flag({"attn_output_gate"}).value_or(true);
  for (std::size_t i = 0; i < linear.size(); ++i) {
    LayerSpec& l = spec.layers[i];
    if (gated) l.gate_width = product(l.heads, l.head_dim);
    if (linear[i]) replace_attention(l, m);
  }
}

void adjust_nemotron_h(ConfigReader& c, DecoderSpec& spec) {
  const Mamba2Shape shape = mamba2_shape(c, spec.hidden);
  RecurrentMixer m = mamba2(spec.hidden, shape);
  keep_state(c, m);
  // One sub-layer a layer: M Mamba-2, * attention, - MLP, E experts.
  const std::string pattern = c.text({"hybrid_override_pattern"}).value_or("");
  if (pattern.size() != spec.layers.size()) {
    c.missing("hybrid_override_pattern");
    return;
  }
  const bool routes = pattern.find('E') != pattern.npos;
  const auto experts = routes ? c.required({"n_routed_experts"}) : 0;
  const auto active = routes ? c.required({"num_experts_per_tok"}) : 0;
  const auto width = routes ? c.required({"moe_intermediate_size"}) : 0;
  const auto shared = c.integer({"n_shared_experts"}).value_or(1);
  const auto shared_width = c.integer({"moe_shared_expert_intermediate_size"}).value_or(0);
  const auto latent = c.integer({"moe_latent_size"}).value_or(0);
  if (auto head = c.integer({"attention_head_dim"}))
    for (LayerSpec& l : spec.layers) l.head_dim = l.value_dim = *head;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    LayerSpec& l = spec.layers[i];
    const std::int64_t ffn = l.ffn;
    no_mlp(l);
    if (pattern[i] == 'M') {
      replace_attention(l, m);
    } else if (pattern[i] == '-') {
      l.attention = AttentionKind::none;
      l.mlp = MlpKind::dense;
      l.ffn = ffn;
    } else if (pattern[i] == 'E') {
      l.attention = AttentionKind::none;
      l.mlp = MlpKind::experts;
      l.experts = experts;
      l.active = active;
      l.expert_width = width;
      l.expert_hidden = latent;
      l.shared_width = product(shared, shared_width > 0 ? shared_width : width);
      if (shared_width > 0) l.shared_width = shared_width;
      l.router_correction = true;
    } else if (pattern[i] != '*') {
      c.missing("hybrid_override_pattern");
      return;
    }
  }
}

void adjust_jamba(ConfigReader& c, DecoderSpec& spec) {
  MambaShape s;
  s.inner = product(c.integer({"mamba_expand"}).value_or(2), spec.hidden);
  s.state = c.integer({"mamba_d_state"}).value_or(16);
  s.kernel = c.integer({"mamba_d_conv"}).value_or(4);
  s.step_rank = (spec.hidden + 15) / 16;
  if (const Json* rank = c.any({"mamba_dt_rank"}); rank && rank->integer())
    s.step_rank = c.integer({"mamba_dt_rank"}).value_or(s.step_rank);
  s.conv_bias = c.flag({"mamba_conv_bias"}).value_or(true);
  s.bias = c.flag({"mamba_proj_bias"}).value_or(false);
  s.norms = true;
  for (std::int64_t* v : {&s.inner, &s.state, &s.kernel, &s.step_rank})
    *v = std::clamp<std::int64_t>(*v, 0, 1 << 20);
  RecurrentMixer m = mamba(spec.hidden, s);
  keep_state(c, m);
  auto at = [&](std::size_t i, std::int64_t period, std::int64_t offset) {
    return period > 0 && static_cast<std::int64_t>(i) % period == offset;
  };
  const auto attends = c.integer({"attn_layer_period"}).value_or(8),
             attends_at = c.integer({"attn_layer_offset"}).value_or(4),
             routes = c.integer({"expert_layer_period"}).value_or(2),
             routes_at = c.integer({"expert_layer_offset"}).value_or(1);
  const auto ffn = c.required({"intermediate_size"});
  const bool moe = c.integer({"num_experts"}).value_or(0) > 1;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& l = spec.layers[i];
    if (!at(i, attends, attends_at)) replace_attention(l, m);
    if (moe && at(i, routes, routes_at)) continue;
    no_mlp(l);
    l.mlp = MlpKind::dense;
    l.ffn = ffn;
  }
}

void adjust_bamba(ConfigReader& c, DecoderSpec& spec) {
  RecurrentMixer m = mamba2(spec.hidden, mamba2_shape(c, spec.hidden));
  keep_state(c, m);
  const auto attends = layers_listed(c, {"attn_layer_indices"}, 0, spec);
  for (std::size_t i = 0; i < attends.size(); ++i)
    if (!attends[i]) replace_attention(spec.layers[i], m);
}

void adjust_falcon_h1(ConfigReader& c, DecoderSpec& spec) {
  Mamba2Shape s = mamba2_shape(c, spec.hidden);
  s.norm = c.flag({"mamba_rms_norm"}).value_or(false);
  if (auto inner = c.integer({"mamba_d_ssm"}); inner && s.heads > 0) s.head_dim = *inner / s.heads;
  RecurrentMixer m = mamba2(spec.hidden, s);
  keep_state(c, m);
  // Attention and the state-space mixer read the same input; their outputs are added.
  for (LayerSpec& l : spec.layers) l.mixer = m;
}

void adjust_granite_hybrid(ConfigReader& c, DecoderSpec& spec) {
  RecurrentMixer m = mamba2(spec.hidden, mamba2_shape(c, spec.hidden));
  keep_state(c, m);
  const auto recurrent = layers_named(c, {"layer_types", "layers_block_type"}, {"mamba"}, spec);
  const bool moe = c.integer({"num_local_experts"}).value_or(0) > 0;
  const auto shared = c.integer({"shared_intermediate_size"}).value_or(0);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& l = spec.layers[i];
    if (recurrent[i]) replace_attention(l, m);
    // Without experts the shared one is all there is.
    if (!moe && shared > 0) l.ffn = shared;
  }
}

void adjust_plamo2(ConfigReader& c, DecoderSpec& spec) {
  Mamba2Shape s = mamba2_shape(c, spec.hidden);
  if (auto head = c.integer({"hidden_size_per_head"}))
    s.head_dim = std::clamp<std::int64_t>(*head, 0, 1 << 16);
  RecurrentMixer m = plamo_mamba(spec.hidden, s);
  keep_state(c, m);
  const auto step = std::max<std::int64_t>(c.integer({"mamba_step"}).value_or(2), 1);
  const auto n = static_cast<std::int64_t>(spec.layers.size());
  for (std::int64_t i = 0; i < n; ++i) {
    LayerSpec& l = spec.layers[static_cast<std::size_t>(i)];
    l.head_dim = l.value_dim = s.head_dim;
    const bool recurrent = n <= step / 2 ? i != n - 1 : i % step != step / 2;
    if (recurrent) replace_attention(l, m);
  }
}

void adjust_lfm2(ConfigReader& c, DecoderSpec& spec) {
  const RecurrentMixer m = short_convolution(
      spec.hidden, std::clamp<std::int64_t>(c.integer({"conv_L_cache"}).value_or(3), 0, 1 << 16),
      c.flag({"conv_bias"}).value_or(false));
  auto attends = c.has({"full_attn_idxs"})
                     ? layers_listed(c, {"full_attn_idxs"}, 0, spec)
                     : layers_named(c, {"layer_types"}, {"full_attention"}, spec);
  const auto dense_first = c.integer({"num_dense_layers"}).value_or(0);
  const auto ffn = c.integer({"block_ff_dim", "intermediate_size"}).value_or(0);
  const bool adjusts = c.flag({"block_auto_adjust_ff_dim"}).value_or(!c.has({"num_experts"}));
  const auto multiple = std::max<std::int64_t>(c.integer({"block_multiple_of"}).value_or(256), 1);
  const double factor = c.real({"block_ffn_dim_multiplier"}).value_or(1);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& l = spec.layers[i];
    if (!attends[i]) replace_attention(l, m);
    if (l.mlp == MlpKind::experts && static_cast<std::int64_t>(i) < dense_first) {
      no_mlp(l);
      l.mlp = MlpKind::dense;
      l.ffn = ffn;
    }
    if (l.mlp == MlpKind::dense && adjusts && factor > 0 && factor < 1024) {
      const std::int64_t two_thirds = 2 * ffn / 3;
      auto width = static_cast<std::int64_t>(factor * static_cast<double>(two_thirds));
      l.ffn = (width + multiple - 1) / multiple * multiple;
    }
  }
}

void adjust_recurrent_gemma(ConfigReader& c, DecoderSpec& spec) {
  const auto width =
      std::clamp<std::int64_t>(c.integer({"lru_width"}).value_or(spec.hidden), 0, 1 << 20);
  const std::int64_t heads = spec.layers.front().heads;
  const RecurrentMixer m =
      rg_lru(spec.hidden, width, heads,
             std::clamp<std::int64_t>(c.integer({"conv1d_width"}).value_or(4), 0, 1 << 16));
  auto window = c.integer({"attention_window_size"});
  auto cycle = c.texts({"block_types", "_block_types"})
                   .value_or(std::vector<std::string>{"recurrent", "recurrent", "attention"});
  if (cycle.empty()) c.missing("block_types");
  for (std::size_t i = 0; i < spec.layers.size() && !cycle.empty(); ++i) {
    LayerSpec& l = spec.layers[i];
    l.window = window;
    if (cycle[i % cycle.size()] == "recurrent") replace_attention(l, m);
  }
}

void adjust_kimi_linear(ConfigReader& c, DecoderSpec& spec) {
  ConfigReader linear = c.nested({"linear_attn_config"});
  auto heads = linear.required({"num_heads"});
  auto dim = linear.required({"head_dim"});
  auto kernel = linear.integer({"short_conv_kernel_size"}).value_or(4);
  const auto recurrent = layers_listed(linear, {"kda_layers"}, 1, spec);
  c.merge(linear);
  for (std::int64_t* v : {&heads, &dim, &kernel}) *v = std::clamp<std::int64_t>(*v, 0, 1 << 15);
  RecurrentMixer m = kimi_delta(spec.hidden, heads, dim, kernel);
  keep_state(c, m);
  for (std::size_t i = 0; i < recurrent.size(); ++i)
    if (recurrent[i]) replace_attention(spec.layers[i], m);
}

void adjust_minimax_linear(ConfigReader& c, DecoderSpec& spec) {
  const LayerSpec& any = spec.layers.front();
  RecurrentMixer m = lightning(spec.hidden, std::clamp<std::int64_t>(any.heads, 0, 1 << 15),
                               std::clamp<std::int64_t>(any.head_dim, 0, 1 << 15),
                               c.integer({"block_size"}).value_or(256));
  keep_state(c, m);
  auto recurrent = layers_named(c, {"layer_types"}, {"linear_attention"}, spec);
  if (auto kinds = c.integers({"attn_type_list"}, static_cast<std::int64_t>(spec.layers.size())))
    for (std::size_t i = 0; i < recurrent.size(); ++i) recurrent[i] = (*kinds)[i] == 0;
  for (std::size_t i = 0; i < recurrent.size(); ++i)
    if (recurrent[i]) replace_attention(spec.layers[i], m);
}

void adjust_mamba(ConfigReader& c, DecoderSpec& spec) {
  MambaShape s;
  s.inner = c.integer({"intermediate_size", "d_inner"})
                .value_or(product(c.integer({"expand"}).value_or(2), spec.hidden));
  s.state = c.integer({"state_size"}).value_or(16);
  s.kernel = c.integer({"conv_kernel"}).value_or(4);
  s.step_rank = (spec.hidden + 15) / 16;
  if (const Json* rank = c.any({"time_step_rank"}); rank && rank->integer())
    s.step_rank = c.integer({"time_step_rank"}).value_or(s.step_rank);
  s.conv_bias = c.flag({"use_conv_bias"}).value_or(true);
  s.bias = c.flag({"use_bias"}).value_or(false);
  for (std::int64_t* v : {&s.inner, &s.state, &s.kernel, &s.step_rank})
    *v = std::clamp<std::int64_t>(*v, 0, 1 << 20);
  RecurrentMixer m = mamba(spec.hidden, s);
  keep_state(c, m);
  for (LayerSpec& l : spec.layers) {
    replace_attention(l, m);
    no_mlp(l);
  }
}

void adjust_mamba2(ConfigReader& c, DecoderSpec& spec) {
  RecurrentMixer m = mamba2(spec.hidden, mamba2_shape(c, spec.hidden));
  keep_state(c, m);
  for (LayerSpec& l : spec.layers) {
    replace_attention(l, m);
    no_mlp(l);
  }
}

}  // namespace trigon
