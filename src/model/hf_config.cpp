#include "model/hf_config.hpp"

#include <algorithm>

#include "model/architectures.hpp"
#include "model/config_reader.hpp"
#include "model/encoder_config.hpp"
#include "model/messages.hpp"
#include "model/quantization_config.hpp"
#include "model/vision_config.hpp"

namespace trigon {
namespace {

constexpr std::int64_t kMaxLayers = 8192;
// Where multi-modal configs keep the language model's fields.
constexpr std::string_view kNests[] = {"text_config", "language_config", "llm_config"};

bool rule(BiasRule r, std::optional<bool> field) {
  switch (r) {
    case BiasRule::no:
      return false;
    case BiasRule::yes:
      return true;
    case BiasRule::field_else_no:
      return field.value_or(false);
    case BiasRule::field_else_yes:
      return field.value_or(true);
  }
  return false;
}

void read_attention(ConfigReader& c, const ArchitectureRow& a, DecoderSpec& spec) {
  if (!a.attends) {
    for (LayerSpec& l : spec.layers) l.attention = AttentionKind::none;
    return;
  }
  const auto n = static_cast<std::int64_t>(spec.layers.size());
  const FieldNames heads_names = {"num_attention_heads", "n_head", "n_heads", "num_heads"};
  auto heads = c.integers(heads_names, n);
  if (!heads && !c.has(heads_names)) {
    if (a.default_heads > 0)
      heads = std::vector<std::int64_t>(spec.layers.size(), a.default_heads);
    else
      c.missing("num_attention_heads");
  }
  auto kv = c.integers(
      {"num_key_value_heads", "num_kv_heads", "n_head_kv", "num_key_value_heads_per_layer"}, n);
  // A scalar head_dim; a list of them would differ by layer, which no known config does.
  auto head_dim = c.integer({"head_dim", "kv_channels", "d_head"});
  auto value_dim = c.integer({"v_head_dim"});
  const auto attention_bias = c.flag({"attention_bias", "use_qkv_bias", "qkv_bias", "add_qkv_bias",
                                      "enable_bias", "use_bias", "bias"});
  const auto out_bias =
      c.flag({"attention_out_bias", "attention_bias", "enable_bias", "use_bias", "bias"});
  const bool qk_norm = a.qk_norm != QkNorm::none &&
                       (a.qk_norm_field.empty() || c.flag({a.qk_norm_field}).value_or(false));
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& l = spec.layers[i];
    l.heads = heads ? (*heads)[i] : 0;
    l.kv_heads = kv ? (*kv)[i] : a.default_kv_heads > 0 ? a.default_kv_heads : l.heads;
    if (head_dim)
      l.head_dim = *head_dim;
    else if (a.default_head_dim > 0)
      l.head_dim = a.default_head_dim;
    else if (l.heads > 0 && spec.hidden % l.heads == 0)
      l.head_dim = spec.hidden / l.heads;
    else if (l.heads > 0 && !a.latent)
      c.missing("head_dim");
    l.value_dim = a.latent ? value_dim.value_or(0) : value_dim.value_or(l.head_dim);
    l.q_bias = l.k_bias = l.v_bias = rule(a.qkv_bias, attention_bias);
    l.o_bias = rule(a.out_bias, out_bias);
    if (qk_norm) {
      l.qk_norm = a.qk_norm;
      l.qk_norm_bias = a.qk_norm_bias;
    }
    l.sinks = a.sinks;
    if (heads && l.heads == 0) l.attention = AttentionKind::none;
  }
  if (!a.latent) return;
  auto kv_rank = c.required({"kv_lora_rank"});
  auto q_rank = c.integer({"q_lora_rank"}).value_or(0);
  auto nope = c.required({"qk_nope_head_dim"});
  auto rope = c.required({"qk_rope_head_dim"});
  if (!value_dim) c.missing("v_head_dim");
  for (LayerSpec& l : spec.layers) {
    l.attention = AttentionKind::latent;
    l.kv_lora_rank = kv_rank;
    l.q_lora_rank = q_rank;
    l.nope_dim = nope;
    l.rope_dim = rope;
    l.head_dim = nope + rope;
    l.kv_heads = l.heads;
  }
}

void read_windows(ConfigReader& c, const ArchitectureRow& a, DecoderSpec& spec) {
  auto window = c.integer({"sliding_window", "attention_window", "window_size"});
  if (auto types = c.texts({"layer_types"})) {
    auto chunk = c.integer({"attention_chunk_size"});
    for (std::size_t i = 0; i < spec.layers.size() && i < types->size(); ++i) {
      if ((*types)[i] == "sliding_attention") spec.layers[i].window = window;
      if ((*types)[i] == "chunked_attention") spec.layers[i].chunk = chunk;
      if ((*types)[i] == "sliding_attention" && !window) c.missing("sliding_window");
    }
    return;
  }
  if (!window || *window <= 0) return;
  const auto n = spec.layers.size();
  switch (a.window) {
    case WindowRule::none:
      return;
    case WindowRule::all_layers:
      for (LayerSpec& l : spec.layers) l.window = window;
      return;
    case WindowRule::upper_layers: {
      if (!c.flag({"use_sliding_window"}).value_or(false)) return;
      auto first = c.integer({"max_window_layers"}).value_or(0);
      for (std::size_t i = 0; i < n; ++i)
        if (static_cast<std::int64_t>(i) >= first) spec.layers[i].window = window;
      return;
    }
    case WindowRule::alternate:
      for (std::size_t i = 0; i < n; i += 2) spec.layers[i].window = window;
      return;
    case WindowRule::all_but_every_nth: {
      auto every = c.integer({"sliding_window_pattern", "_sliding_window_pattern"});
      // Gemma 3 and Command R7B leave the pattern to their code: 6 and 4.
      std::int64_t nth = every.value_or(a.name.substr(0, 5) == "Gemma" ? 6 : 4);
      if (nth < 1) return;
      for (std::size_t i = 0; i < n; ++i)
        if ((static_cast<std::int64_t>(i) + 1) % nth != 0) spec.layers[i].window = window;
      return;
    }
  }
}

std::vector<bool> expert_layers(ConfigReader& c, ExpertRule rule_, std::int64_t n) {
  std::vector<bool> out(static_cast<std::size_t>(n), true);
  if (rule_ == ExpertRule::sparse_step) {
    auto step = std::max<std::int64_t>(c.integer({"decoder_sparse_step"}).value_or(1), 1);
    for (std::int64_t i = 0; i < n; ++i) out[static_cast<std::size_t>(i)] = (i + 1) % step == 0;
    if (const Json* only = c.any({"mlp_only_layers"}); only && only->array())
      for (const Json& e : *only->array())
        if (auto i = e.integer(); i && *i >= 0 && *i < n) out[static_cast<std::size_t>(*i)] = false;
  } else if (rule_ == ExpertRule::dense_first) {
    auto first = c.integer({"first_k_dense_replace"}).value_or(0);
    auto every = c.integers({"moe_layer_freq"}, n);
    const Json* listed = c.any({"moe_layer_freq"});
    for (std::int64_t i = 0; i < n; ++i) {
      auto at = static_cast<std::size_t>(i);
      bool on = i >= first;
      if (every && listed && listed->array()) on = on && (*every)[at] != 0;
      if (every && listed && !listed->array() && (*every)[at] > 1) on = on && i % (*every)[at] == 0;
      out[at] = on;
    }
  } else if (rule_ == ExpertRule::interleaved) {
    auto step = std::max<std::int64_t>(c.integer({"interleave_moe_layer_step"}).value_or(1), 1);
    for (std::int64_t i = 0; i < n; ++i) out[static_cast<std::size_t>(i)] = (i + 1) % step == 0;
    if (const Json* list = c.any({"moe_layers"});
        list && list->array() && !list->array()->empty()) {
      std::fill(out.begin(), out.end(), false);
      for (const Json& e : *list->array())
        if (auto i = e.integer(); i && *i >= 0 && *i < n) out[static_cast<std::size_t>(*i)] = true;
    }
  }
  return out;
}

void read_mlp(ConfigReader& c, const ArchitectureRow& a, DecoderSpec& spec) {
  const auto n = static_cast<std::int64_t>(spec.layers.size());
  const FieldNames ffn_names = {"intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim",
                                "d_ff"};
  auto ffn = c.integers(ffn_names, n);
  const auto mlp_bias = c.flag({"mlp_bias", "use_bias", "enable_bias", "bias"});
  const FieldNames expert_names = {"num_local_experts", "num_experts", "n_routed_experts",
                                   "moe_num_experts"};
  std::int64_t experts = 0;
  if (a.experts != ExpertRule::none) experts = c.integer(expert_names).value_or(0);
  auto moe = expert_layers(c, a.experts, n);
  auto width = c.integers({"moe_intermediate_size", "moe_ffn_hidden_size"}, n);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& l = spec.layers[i];
    l.gated = a.gated;
    l.mlp_bias = rule(a.mlp_bias, mlp_bias);
    l.mlp = MlpKind::dense;
    if (ffn) l.ffn = a.ffn == FfnRule::half_the_field ? (*ffn)[i] / 2 : (*ffn)[i];
    if (!ffn && a.ffn == FfnRule::four_times_hidden) l.ffn = 4 * spec.hidden;
    if (ffn && l.ffn == 0) l.mlp = MlpKind::none;
    if (experts > 0 && moe[i]) {
      l.mlp = MlpKind::experts;
      l.experts = experts;
      l.active = c.required({"num_experts_per_tok", "num_experts_per_token", "experts_per_token",
                             "top_k_experts", "moe_topk", "moe_k"});
      l.expert_width = width ? (*width)[i] : l.ffn;
      l.expert_bias = a.expert_bias;
      l.router_bias = a.router_bias;
      l.router_correction = a.router_correction;
      l.shared_width =
          c.integer({"shared_expert_intermediate_size", "shared_intermediate_size"}).value_or(0);
      auto shared = c.integer({"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"});
      if (l.shared_width == 0 && shared && *shared > 0 && *shared < kMaxLayers &&
          l.expert_width < (std::int64_t{1} << 40))
        l.shared_width = *shared * l.expert_width;
      l.shared_gate = a.shared_gate && l.shared_width > 0;
      l.ffn = 0;
    }
  }
}

void read_norms(ConfigReader& c, const ArchitectureRow& a, DecoderSpec& spec) {
  Residual residual = a.residual;
  if (residual == Residual::field_one_norm || residual == Residual::field_two_norms) {
    const bool parallel = c.flag({"use_parallel_residual"}).value_or(false);
    const bool two = residual == Residual::field_two_norms;
    residual = !parallel ? Residual::sequential
               : two     ? Residual::parallel_two_norms
                         : Residual::parallel_one_norm;
  }
  for (LayerSpec& l : spec.layers) {
    l.norm_before_attention = l.norm_before_mlp = a.norm_places != NormPlaces::after;
    l.norm_after_attention = l.norm_after_mlp = a.norm_places != NormPlaces::before;
    l.parallel_residual = residual != Residual::sequential;
    if (residual == Residual::parallel_one_norm) l.norm_before_mlp = false;
  }
}

Format checkpoint_format(ConfigReader& c, const ConfigReader& outer, DecoderSpec& spec) {
  for (const ConfigReader* r : {static_cast<const ConfigReader*>(&c), &outer})
    if (const Json* v = r->any({"torch_dtype", "dtype"}))
      if (auto s = v->text()) {
        std::string_view name = *s;
        if (name.substr(0, 6) == "torch.") name.remove_prefix(6);
        if (auto f = format_by_name(name); f && info(*f).floating) return *f;
      }
  spec.notes.push_back(message(ModelMessage::note_assumed_format, "bf16"));
  return Format::bf16;
}

std::string class_of(const Json& config) {
  if (const Json* list = config.find("architectures"))
    if (auto a = list->array())
      for (const Json& e : *a)
        if (auto s = e.text()) return *s;
  if (const Json* type = config.find("model_type"))
    if (auto s = type->text()) return *s;
  return {};
}

// The class, else the type; the first release of BERT wrote configs with neither, which only its
// segments tell.
std::string encoder_class_of(const Json& config) {
  std::string name = class_of(config);
  if (name.empty() && config.find("type_vocab_size") && config.find("attention_probs_dropout_prob"))
    return "bert";
  return name;
}

// Formats of what only encoders have, as stored.
void store_in(Format f, DecoderSpec& spec) {
  for (FrontEnd& e : spec.front) {
    e.linear.format = f;
    if (e.norm) e.norm->format = f;
  }
  for (Tail& t : spec.tail) {
    t.linear.format = f;
    if (t.norm) t.norm->format = f;
  }
}

Result<DecoderSpec> read_encoder_config(const EncoderRow& row, const Json& config,
                                        const std::string& where, const Json* quantization) {
  ConfigReader c(config, where);
  DecoderSpec spec;
  spec.architecture = row.name;
  row.read(c, row.head, spec);
  spec.architecture = row.name;
  if (auto e = c.error(row.name)) return tl::unexpected(std::move(*e));
  const Format stored = checkpoint_format(c, c, spec);
  const Json* method = c.object({"quantization_config"});
  if (auto e = c.error(row.name)) return tl::unexpected(std::move(*e));
  for (DecoderSpec* s : {&spec, spec.encoder.empty() ? nullptr : &spec.encoder.front()}) {
    if (!s) continue;
    store_in(stored, *s);
    auto applied = apply_quantization(method, quantization, stored, where, *s);
    if (!applied) return tl::unexpected(applied.error());
  }
  return spec;
}

void read_tower(ConfigReader& outer, DecoderSpec& spec) {
  if (!outer.has({"vision_config", "vision_tower", "visual"})) return;
  const Json* config = outer.any({"vision_config"});
  if (config && config->object()) spec.vision = read_vision(outer, spec.hidden);
  if (!spec.vision) {
    spec.notes.push_back(message(ModelMessage::note_vision_left_out, "the vision tower"));
    return;
  }
  const VisionSpec& v = *spec.vision;
  if (!v.recognised)
    spec.notes.push_back(message(ModelMessage::note_vision_estimated, printable(v.type)));
  if (v.image_tokens)
    spec.notes.push_back(message(ModelMessage::note_image_tokens, *v.image_tokens));
  else
    spec.notes.push_back(message(ModelMessage::note_image_squares, v.patch_pixels));
}

// Draft layers are as the last layer that attends, without a view of compressed tokens.
void add_drafts(ConfigReader& c, DecoderSpec& spec) {
  const auto asked =
      c.integer({"num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers"});
  if (!asked || *asked <= 0) return;
  const auto count = static_cast<std::size_t>(std::min<std::int64_t>(*asked, 64));
  auto last = [&](auto&& fits) {
    auto it = std::find_if(spec.layers.rbegin(), spec.layers.rend(), fits);
    return it == spec.layers.rend() ? spec.layers.back() : *it;
  };
  auto attends = [](const LayerSpec& l) { return l.attention != AttentionKind::none; };
  std::vector<LayerSpec> one;
  for (const char kind : c.text({"mtp_hybrid_override_pattern"}).value_or("").substr(0, 64)) {
    if (kind == '*') one.push_back(last(attends));
    if (kind == 'E')
      one.push_back(last([](const LayerSpec& l) { return l.mlp == MlpKind::experts; }));
  }
  if (one.empty()) {
    one.push_back(last(attends));
    one.back().compress_ratio = 0;
    if (one.back().attention == AttentionKind::compressed) one.back().index_heads = 0;
  }
  for (std::size_t i = 0; i < count; ++i)
    spec.drafts.insert(spec.drafts.end(), one.begin(), one.end());
  spec.notes.push_back(message(ModelMessage::note_draft, *asked));
}

Result<const ArchitectureRow*> architecture_of(const Json& config, const std::string& where) {
  const std::string name = class_of(config);
  if (name.empty())
    return fail(ErrorCode::malformed, message(ModelMessage::no_architecture),
                where + "#/architectures",
                message(ModelMessage::describe_architecture_fields, decoder_fields()));
  if (const ArchitectureRow* a = find_architecture(name)) return a;
  // A multi-modal class we do not know may hold a language model that we do.
  for (std::string_view nest : kNests)
    if (const Json* inner = config.find(nest))
      if (const ArchitectureRow* a = find_architecture(class_of(*inner))) return a;
  if (auto why = why_unsupported(name); !why.empty())
    return fail(ErrorCode::unsupported,
                message(ModelMessage::unsupported_architecture, printable(name), why),
                where + "#/architectures");
  return fail(ErrorCode::unsupported, message(ModelMessage::unknown_architecture, printable(name)),
              where + "#/architectures",
              message(ModelMessage::describe_architecture_fields, decoder_fields()));
}

}  // namespace

std::string_view decoder_fields() {
  return "num_hidden_layers, hidden_size, num_attention_heads, num_key_value_heads, head_dim, "
         "intermediate_size, vocab_size, tie_word_embeddings, max_position_embeddings";
}

namespace {

// The length that YaRN reaches by its factor from the length of training, where a config states it
// (arXiv:2309.00071; vLLM derives its longest length alike, vllm/config/model.py). Other kinds
// leave max_position_embeddings as it stands: it counts the scaling already, or may.
std::int64_t scaled_context(const ConfigReader& c, std::int64_t stated) {
  const Json* rope = c.any({"rope_scaling", "rope_parameters"});
  if (!rope || !rope->object()) return stated;
  ConfigReader r(*rope, "");
  if (r.text({"rope_type", "type"}).value_or("") != "yarn") return stated;
  const double trained =
      static_cast<double>(r.integer({"original_max_position_embeddings"}).value_or(stated));
  const double reached = trained * r.real({"factor"}).value_or(1);
  if (!(reached > static_cast<double>(stated)) || reached > 1e9) return stated;
  return static_cast<std::int64_t>(reached);
}

}  // namespace

Result<DecoderSpec> read_hf_config(const Json& config, const std::string& where,
                                   const Json* quantization) {
  if (!config.object())
    return fail(ErrorCode::malformed, message(BaseMessage::wrong_type, "the config", "an object"),
                where + "#/");
  if (const EncoderRow* e = find_encoder(encoder_class_of(config)))
    return read_encoder_config(*e, config, where, quantization);
  auto found = architecture_of(config, where);
  if (!found) return tl::unexpected(found.error());
  const ArchitectureRow& a = **found;
  DecoderSpec spec;
  spec.architecture = a.name;

  // Multi-modal configs keep the language model's fields in an object of their own.
  ConfigReader outer(config, where);
  ConfigReader c = outer;
  for (std::string_view nest : kNests)
    if (const Json* o = outer.object({nest})) {
      c = ConfigReader(*o, where, "/" + std::string(nest));
      break;
    }
  if (outer.has({"audio_config"}))
    spec.notes.push_back(message(ModelMessage::note_vision_left_out, "the audio tower"));

  std::int64_t layers = c.required({"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
  spec.hidden = c.required({"hidden_size", "n_embd", "d_model", "n_embed", "model_dim"});
  spec.vocabulary = c.integer({"padded_vocab_size", "vocab_size"}).value_or(a.default_vocabulary);
  if (spec.vocabulary == 0) c.missing("vocab_size");
  if (auto e = c.error(a.name)) return tl::unexpected(std::move(*e));
  if (layers < 1 || layers > kMaxLayers)
    return fail(
        ErrorCode::malformed,
        message(ModelMessage::field_out_of_range, "num_hidden_layers", layers, 1, kMaxLayers),
        c.where("num_hidden_layers"));
  if (spec.hidden < 1 || spec.hidden > (std::int64_t{1} << 26))
    return fail(ErrorCode::malformed,
                message(ModelMessage::field_out_of_range, "hidden_size", spec.hidden, 1, 1 << 26),
                c.where("hidden_size"));
  read_tower(outer, spec);
  spec.layers.resize(static_cast<std::size_t>(layers));
  spec.norm = a.norm;
  spec.tied = c.flag({"tie_word_embeddings"})
                  .value_or(outer.flag({"tie_word_embeddings"}).value_or(a.tied));
  spec.head_bias = a.head_bias;
  spec.embedding_norm = a.embedding_norm;
  spec.max_context = c.integer({"max_position_embeddings", "n_positions", "max_seq_len",
                                "seq_length", "n_ctx", "max_sequence_length"});
  if (a.positions == PositionRule::rotary && spec.max_context)
    spec.max_context = scaled_context(c, *spec.max_context);
  if (a.positions != PositionRule::rotary) {
    if (!spec.max_context) c.missing("max_position_embeddings");
    spec.positions = spec.max_context.value_or(0);
    if (a.positions == PositionRule::learned_plus_two && spec.positions < (1 << 30))
      spec.positions += 2;
  }
  read_attention(c, a, spec);
  read_windows(c, a, spec);
  read_mlp(c, a, spec);
  read_norms(c, a, spec);
  if (a.adjust) a.adjust(c, spec);
  for (const LayerSpec& l : spec.layers) {
    if (l.mlp == MlpKind::dense && l.ffn == 0) c.missing("intermediate_size");
    if (l.mlp == MlpKind::experts && l.expert_width == 0) c.missing("moe_intermediate_size");
  }
  Format stored = checkpoint_format(c, outer, spec);
  if (spec.vision) spec.vision->format = stored;
  const Json* method = c.object({"quantization_config"});
  if (!method) method = outer.object({"quantization_config"});
  if (!method) method = outer.object({"compression_config"});
  if (auto e = c.error(a.name)) return tl::unexpected(std::move(*e));
  if (auto e = outer.error(a.name)) return tl::unexpected(std::move(*e));
  auto applied = apply_quantization(method, quantization, stored, where, spec);
  if (!applied) return tl::unexpected(applied.error());
  // DeepSeek-V4 keeps its experts in four bits beside FP8 for the rest.
  if (method && c.text({"expert_dtype"}).value_or("") == "fp4") {
    for (LayerSpec& l : spec.layers)
      l.formats.expert_gate = l.formats.expert_up = l.formats.expert_down = Format::mxfp4;
    spec.weight_format = Format::mxfp4;
  }
  add_drafts(c, spec);
  return spec;
}

Result<DecoderSpec> read_hf_config(std::string_view text, const std::string& where,
                                   const Json* quantization) {
  auto json = parse_json(text, where);
  if (!json) return tl::unexpected(json.error());
  return read_hf_config(*json, where, quantization);
}

}  // namespace trigon
