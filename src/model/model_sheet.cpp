// A fact sheet of data/models/ in the words of a config, so that both take one path.

#include <string>
#include <variant>

#include "model/hf_config.hpp"
#include "model/model_catalog.hpp"

namespace trigon {
namespace {

struct Word {
  std::string_view ours, theirs;
};

constexpr Word kWords[] = {
    {"layers", "num_hidden_layers"},
    {"hidden", "hidden_size"},
    {"heads", "num_attention_heads"},
    {"kv_heads", "num_key_value_heads"},
    {"head_dim", "head_dim"},
    {"ffn", "intermediate_size"},
    {"vocabulary", "vocab_size"},
    {"context_tokens", "max_position_embeddings"},
    {"tied", "tie_word_embeddings"},
    {"dtype", "torch_dtype"},
    {"attention_bias", "attention_bias"},
    {"mlp_bias", "mlp_bias"},
    {"qk_norm", "use_qk_norm"},
    {"parallel_residual", "use_parallel_residual"},
    {"learned_positions", "learned_pos_emb"},
    {"new_decoder", "new_decoder_architecture"},
    {"multi_query", "multi_query"},
    {"window_tokens", "sliding_window"},
    {"full_attention_every", "sliding_window_pattern"},
    {"chunk_tokens", "attention_chunk_size"},
    {"keys_are_values", "attention_k_eq_v"},
    {"global.head_dim", "global_head_dim"},
    {"global.kv_heads", "num_global_key_value_heads"},
    {"embedding_width", "word_embed_proj_dim"},
    {"embedding_width", "embedding_size"},
    {"norm_before", "do_layer_norm_before"},
    {"norm_before", "do_stable_layer_norm"},
    {"decoder_layers", "decoder_layers"},
    {"decoder_layers", "num_decoder_layers"},
    {"token_types", "type_vocab_size"},
    {"window_tokens", "attention_window"},
    {"context_tokens", "max_target_positions"},
    {"context_tokens", "n_positions"},
    {"source_positions", "max_source_positions"},
    {"mel_bins", "num_mel_bins"},
    {"audio_frames", "max_length"},
    {"labels", "num_labels"},
    {"gated", "is_gated_act"},
    {"gated_activation", "activation_function"},
    {"embedding_norm", "emb_layer_norm_before"},
    {"feature_norm", "feat_extract_norm"},
    {"feature_bias", "conv_bias"},
    {"positions_in_input", "position_biased_input"},
    {"relative.buckets", "relative_attention_num_buckets"},
    {"relative.buckets", "position_buckets"},
    {"relative.attention", "relative_attention"},
    {"relative.norm", "norm_rel_ebd"},
    {"relative.shared_keys", "share_att_key"},
    {"experts", "num_local_experts"},
    {"active_experts", "num_experts_per_tok"},
    {"expert_ffn", "moe_intermediate_size"},
    {"shared_experts", "n_shared_experts"},
    {"shared_ffn", "shared_expert_intermediate_size"},
    {"dense_layers_first", "first_k_dense_replace"},
    {"expert_layer_step", "interleave_moe_layer_step"},
    {"dense_ffn", "intermediate_size_mlp"},
    {"latent.kv_rank", "kv_lora_rank"},
    {"latent.q_rank", "q_lora_rank"},
    {"latent.nope_dim", "qk_nope_head_dim"},
    {"latent.rope_dim", "qk_rope_head_dim"},
    {"latent.value_dim", "v_head_dim"},
    {"index.heads", "index_n_heads"},
    {"index.head_dim", "index_head_dim"},
    {"index.top_k", "index_topk"},
};

constexpr Word kQuantisationWords[] = {
    {"weights.method", "quant_method"},
    {"weights.algorithm", "quant_algo"},
    {"weights.bits", "bits"},
    {"weights.group", "group_size"},
    {"weights.block", "weight_block_size"},
    {"weights.kv_algorithm", "kv_cache_quant_algo"},
    {"weights.skipped", "exclude_modules"},
};

Json number(double v) {
  const auto whole = static_cast<std::int64_t>(v);
  return static_cast<double>(whole) == v ? Json{{whole}} : Json{{v}};
}

Json json_of(const FactValue& value) {
  if (auto b = std::get_if<bool>(&value)) return Json{{*b}};
  if (auto n = std::get_if<double>(&value)) return number(*n);
  if (auto t = std::get_if<std::string>(&value)) return Json{{*t}};
  JsonArray list;
  if (auto l = std::get_if<std::vector<double>>(&value))
    for (double v : *l) list.push_back(number(v));
  if (auto l = std::get_if<std::vector<std::string>>(&value))
    for (const std::string& s : *l) list.push_back(Json{{s}});
  return Json{{std::move(list)}};
}

template <std::size_t N>
void translate(const FactSheet& sheet, const Word (&words)[N], JsonObject& out) {
  for (const Word& w : words)
    if (const Fact* f = sheet.find(w.ours))
      out.push_back({std::string(w.theirs), json_of(f->value)});
}

}  // namespace

Result<DecoderSpec> read_model_sheet(const FactSheet& sheet) {
  JsonObject config;
  auto architecture = sheet.text("architecture");
  if (!architecture) return tl::unexpected(sheet.missing("architecture"));
  config.push_back({"architectures", Json{{JsonArray{Json{{*architecture}}}}}});
  translate(sheet, kWords, config);
  // Fields that one architecture alone has keep their published name.
  constexpr std::string_view own = "config.", seen = "vision.";
  JsonObject tower;
  for (const Fact& f : sheet.facts) {
    if (f.key.rfind(own, 0) == 0) config.push_back({f.key.substr(own.size()), json_of(f.value)});
    if (f.key.rfind(seen, 0) == 0) tower.push_back({f.key.substr(seen.size()), json_of(f.value)});
  }
  if (!tower.empty()) config.push_back({"vision_config", Json{{std::move(tower)}}});
  JsonObject method;
  translate(sheet, kQuantisationWords, method);
  if (!method.empty()) config.push_back({"quantization_config", Json{{std::move(method)}}});
  auto spec = read_hf_config(Json{{std::move(config)}}, sheet.kind + "/" + sheet.id);
  if (!spec) return spec;
  spec->id = sheet.id;
  return spec;
}

Result<Model> build_model(const FactSheet& sheet) {
  auto spec = read_model_sheet(sheet);
  if (!spec) return tl::unexpected(spec.error());
  auto model = build_decoder(*spec, sheet.kind + "/" + sheet.id);
  if (!model) return model;
  model->source = sheet.source;
  model->date = sheet.date;
  return model;
}

}  // namespace trigon
