#include "model/quantization_config.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "model/config_reader.hpp"
#include "model/messages.hpp"
#include "model/module_patterns.hpp"

namespace trigon {
namespace {

struct Role {
  Format LayerFormats::*format;
  std::array<std::string_view, 6> paths;  // module names within a layer
  bool expert;                            // routed experts
};

constexpr Role kRoles[] = {
    {&LayerFormats::q,
     {"self_attn.q_proj", "self_attn.q_b_proj", "self_attn.qkv_proj", "attn.q_proj", "mixer.q_proj",
      "attn.wq_b"},
     false},
    {&LayerFormats::q_down,
     {"self_attn.q_a_proj", "self_attn.fused_qkv_a_proj", "attn.wq_a", ""},
     false},
    {&LayerFormats::k,
     {"self_attn.k_proj", "self_attn.qkv_proj", "attn.k_proj", "mixer.k_proj"},
     false},
    {&LayerFormats::v,
     {"self_attn.v_proj", "self_attn.qkv_proj", "attn.v_proj", "mixer.v_proj"},
     false},
    {&LayerFormats::kv_down, {"self_attn.kv_a_proj_with_mqa", "attn.wkv", "", ""}, false},
    {&LayerFormats::kv_up, {"self_attn.kv_b_proj", "", "", ""}, false},
    {&LayerFormats::o, {"self_attn.o_proj", "attn.o_proj", "mixer.o_proj", "attn.wo_b"}, false},
    {&LayerFormats::indexer, {"self_attn.indexer.wq_b", "attn.indexer.wq_b", "", ""}, false},
    {&LayerFormats::gate,
     {"mlp.gate_proj", "feed_forward.gate_proj", "mlp.gate_up_proj", ""},
     false},
    {&LayerFormats::up,
     {"mlp.up_proj", "feed_forward.up_proj", "mlp.gate_up_proj", "mixer.up_proj"},
     false},
    {&LayerFormats::down,
     {"mlp.down_proj", "feed_forward.down_proj", "mixer.down_proj", ""},
     false},
    {&LayerFormats::expert_gate,
     {"mlp.experts.0.gate_proj", "block_sparse_moe.experts.0.w1",
      "feed_forward.experts.gate_up_proj", "mlp.experts.gate_up_proj"},
     true},
    {&LayerFormats::expert_up,
     {"mlp.experts.0.up_proj", "block_sparse_moe.experts.0.w3", "feed_forward.experts.gate_up_proj",
      "mlp.experts.gate_up_proj", "mixer.experts.0.up_proj"},
     true},
    {&LayerFormats::expert_down,
     {"mlp.experts.0.down_proj", "block_sparse_moe.experts.0.w2", "feed_forward.experts.down_proj",
      "mlp.experts.down_proj", "mixer.experts.0.down_proj"},
     true},
    {&LayerFormats::shared_gate,
     {"mlp.shared_experts.gate_proj", "mlp.shared_expert.gate_proj",
      "feed_forward.shared_expert.gate_proj", ""},
     false},
    {&LayerFormats::shared_up,
     {"mlp.shared_experts.up_proj", "mlp.shared_expert.up_proj",
      "feed_forward.shared_expert.up_proj", "mixer.shared_experts.up_proj"},
     false},
    {&LayerFormats::shared_down,
     {"mlp.shared_experts.down_proj", "mlp.shared_expert.down_proj",
      "feed_forward.shared_expert.down_proj", "mixer.shared_experts.down_proj"},
     false},
};

// Module names of a recurrent mixer's matrices by the role they are described with.
struct MixerRole {
  std::string_view role;
  std::array<std::string_view, 4> paths;
};
constexpr MixerRole kMixerRoles[] = {
    {"mixer.in", {"mamba.in_proj", "mixer.in_proj", "conv.in_proj", ""}},
    {"mixer.x", {"mamba.x_proj", "mixer.x_proj", "mixer.bcdt_proj", ""}},
    {"mixer.dt", {"mamba.dt_proj", "mixer.dt_proj", "", ""}},
    {"mixer.qkvz", {"linear_attn.in_proj_qkvz", "linear_attn.in_proj_qkv", "", ""}},
    {"mixer.ba", {"linear_attn.in_proj_ba", "linear_attn.in_proj_a", "", ""}},
    {"mixer.qkv", {"self_attn.qkv_proj", "self_attn.q_proj", "", ""}},
    {"mixer.gate", {"self_attn.output_gate", "", "", ""}},
    {"mixer.out", {"mamba.out_proj", "mixer.out_proj", "linear_attn.out_proj", "conv.out_proj"}},
};

struct Scheme {
  Format format = Format::bf16;
  ModulePatterns skipped;
  ModulePatterns targets;  // empty: every linear
  bool only_experts = false;
  bool head = false;  // the head as well, unless skipped
};

template <class R>
bool named(const ModulePatterns& patterns, std::int64_t layer, const R& role) {
  for (std::string_view path : role.paths)
    if (!path.empty() && patterns.in_layer(layer, path)) return true;
  return false;
}

void apply_to_mixer(const Scheme& s, std::int64_t layer, RecurrentMixer& m) {
  if (s.only_experts) return;
  for (MixerLinear& p : m.projections)
    for (const MixerRole& role : kMixerRoles)
      if (role.role == p.role && (s.targets.empty() || named(s.targets, layer, role)) &&
          !named(s.skipped, layer, role))
        p.linear.format = s.format;
}

void apply(const Scheme& s, DecoderSpec& spec) {
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    if (spec.layers[i].mixer)
      apply_to_mixer(s, static_cast<std::int64_t>(i), *spec.layers[i].mixer);
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    for (const Role& role : kRoles) {
      const auto layer = static_cast<std::int64_t>(i);
      if (s.only_experts && !role.expert) continue;
      if (!s.targets.empty() && !named(s.targets, layer, role)) continue;
      if (named(s.skipped, layer, role)) continue;
      spec.layers[i].formats.*(role.format) = s.format;
    }
  if (s.head && !spec.tied && !s.skipped.outside("lm_head") &&
      (s.targets.empty() || s.targets.outside("lm_head")))
    spec.head_format = s.format;
}

Format integer_format(std::int64_t bits, std::int64_t group) {
  if (bits == 8) return group > 0 ? Format::int8_g128 : Format::int8;
  if (bits == 3) return Format::int3_g128;
  if (bits == 2) return Format::int2_g128;
  if (group == 64) return Format::int4_g64;
  if (group > 0 && group <= 32) return Format::int4_g32;
  return Format::int4_g128;
}

void add_patterns(ConfigReader& c, FieldNames names, ModulePatterns& out) {
  if (auto list = c.texts(names))
    for (const std::string& p : *list) out.add(p);
}

std::optional<Format> algorithm_format(std::string_view algorithm, std::int64_t group) {
  if (algorithm == "FP8") return Format::fp8_tensor;
  if (algorithm == "FP8_PB_WO" || algorithm == "FP8_BLOCK_SCALES" || algorithm == "FP8_PB_REAL")
    return Format::fp8_block;
  if (algorithm == "NVFP4" || algorithm == "NVFP4_AWQ" || algorithm == "W4A8_NVFP4_FP8" ||
      algorithm == "NVFP4_SVD")
    return Format::nvfp4;
  if (algorithm == "MXFP4" || algorithm == "W4A8_MXFP4_FP8") return Format::mxfp4;
  if (algorithm == "MXFP8") return Format::mxfp8;
  if (algorithm == "W4A16_AWQ" || algorithm == "W4A8_AWQ" || algorithm == "INT4_AWQ")
    return integer_format(4, group == 0 ? 128 : group);
  if (algorithm == "W8A16" || algorithm == "W8A8_SQ_PER_CHANNEL" || algorithm == "INT8_SQ")
    return Format::int8;
  return std::nullopt;
}

tl::unexpected<Error> unknown_method(const ConfigReader& c, const char* field,
                                     const std::string& value) {
  return fail(ErrorCode::unsupported, message(ModelMessage::unknown_quantization, printable(value)),
              c.where(field));
}

void read_kv_algorithm(ConfigReader& c, DecoderSpec& spec) {
  if (const Json* v = c.any({"kv_cache_quant_algo"}))
    if (auto s = v->text()) {
      if (*s == "FP8") spec.kv_format = Format::f8_e4m3;
      if (*s == "NVFP4") spec.kv_format = Format::nvfp4;
      if (*s == "INT8") spec.kv_format = Format::i8;
    }
  ConfigReader scheme = c.nested({"kv_cache_scheme"});
  if (scheme.integer({"num_bits"}).value_or(0) == 8)
    spec.kv_format =
        scheme.text({"type"}).value_or("float") == "int" ? Format::i8 : Format::f8_e4m3;
  c.merge(scheme);
}

// ModelOpt: {"quant_algo": ..., "exclude_modules": [...]}; mixed precision lists each layer.
Result<void> read_model_opt(ConfigReader& c, DecoderSpec& spec) {
  read_kv_algorithm(c, spec);
  auto algorithm = c.text({"quant_algo"});
  auto group = c.integer({"group_size"}).value_or(0);
  Scheme s;
  s.head = true;
  add_patterns(c, {"exclude_modules", "ignore"}, s.skipped);
  if (!algorithm) return {};
  if (*algorithm == "MIXED_PRECISION") {
    std::vector<std::pair<Format, ModulePatterns>> by_format;
    const Json* layers = c.object({"quantized_layers"});
    if (!layers) return {};
    for (const auto& [module, how] : *layers->object()) {
      ConfigReader one(how, c.where("quantized_layers"));
      auto f = algorithm_format(one.text({"quant_algo"}).value_or(""),
                                one.integer({"group_size"}).value_or(0));
      if (!f) continue;
      auto it = std::find_if(by_format.begin(), by_format.end(),
                             [&](const auto& e) { return e.first == *f; });
      if (it == by_format.end()) it = by_format.insert(it, {*f, {}});
      it->second.add(module);
    }
    for (auto& [format, targets] : by_format) {
      Scheme part = s;
      part.format = format;
      part.targets = std::move(targets);
      apply(part, spec);
    }
    return {};
  }
  auto f = algorithm_format(*algorithm, group);
  if (!f) return unknown_method(c, "quant_algo", *algorithm);
  s.format = *f;
  apply(s, spec);
  return {};
}

Result<void> read_compressed_tensors(ConfigReader& c, DecoderSpec& spec) {
  read_kv_algorithm(c, spec);
  ModulePatterns skipped;
  add_patterns(c, {"ignore"}, skipped);
  const std::string packing = c.text({"format"}).value_or("");
  const Json* groups = c.object({"config_groups"});
  if (!groups) return {};
  std::size_t read = 0;
  for (const auto& [name, group] : *groups->object()) {
    if (++read > 64) break;
    ConfigReader g(group, c.where("config_groups"), "/" + printable(name));
    ConfigReader w = g.nested({"weights"});
    auto bits = w.integer({"num_bits"}).value_or(16);
    auto size = w.integer({"group_size"}).value_or(-1);
    const bool floating = w.text({"type"}).value_or("int") == "float";
    const std::string strategy = w.text({"strategy"}).value_or("");
    g.merge(w);
    Scheme s;
    s.head = true;
    s.skipped = skipped;
    bool all = true;
    if (auto targets = g.texts({"targets"}))
      for (const std::string& t : *targets) {
        // Class names stand for every linear.
        const bool a_class = t == "Linear" || t == "Conv1D";
        all = all && a_class;
        if (!a_class) s.targets.add(t);
      }
    if (all) s.targets = {};
    c.merge(g);
    if (bits >= 16) continue;
    if (floating && bits == 8)
      s.format = strategy == "block" ? Format::fp8_block : Format::fp8_tensor;
    else if (floating && bits == 4)
      s.format = size == 32 || packing.rfind("mxfp4", 0) == 0 ? Format::mxfp4 : Format::nvfp4;
    else
      s.format = integer_format(bits, size);
    apply(s, spec);
  }
  return {};
}

Result<void> read_bitsandbytes(ConfigReader& c, DecoderSpec& spec) {
  Scheme s;
  add_patterns(c, {"llm_int8_skip_modules"}, s.skipped);
  if (c.flag({"load_in_4bit", "_load_in_4bit"}).value_or(false)) {
    // Its fp4 and nf4 take the same space.
    s.format =
        c.flag({"bnb_4bit_use_double_quant"}).value_or(false) ? Format::nf4_double : Format::nf4;
    apply(s, spec);
  } else if (c.flag({"load_in_8bit", "_load_in_8bit"}).value_or(false)) {
    s.format = Format::int8;
    apply(s, spec);
  }
  return {};
}

Result<void> read_quark(ConfigReader& c, DecoderSpec& spec) {
  ConfigReader global = c.nested({"global_quant_config"});
  ConfigReader weight = global.nested({"weight"});
  auto type = weight.text({"dtype"}).value_or("");
  auto group = weight.integer({"group_size"}).value_or(0);
  Scheme s;
  s.head = true;
  add_patterns(c, {"exclude"}, s.skipped);
  global.merge(weight);
  c.merge(global);
  if (type == "fp8_e4m3")
    s.format = Format::fp8_tensor;
  else if (type == "fp4" || type == "mx" || type == "mxfp4")
    s.format = Format::mxfp4;
  else if (type == "int4" || type == "uint4")
    s.format = integer_format(4, group);
  else if (type == "int8")
    s.format = Format::int8;
  else
    return unknown_method(c, "global_quant_config", type);
  apply(s, spec);
  ConfigReader kv = c.nested({"kv_cache_quant_config"});
  if (kv.json().object() && !kv.json().object()->empty()) spec.kv_format = Format::f8_e4m3;
  return {};
}

Result<void> read_method(ConfigReader& c, DecoderSpec& spec) {
  std::string method = c.text({"quant_method"}).value_or("");
  if (method.empty() && c.has({"load_in_4bit", "load_in_8bit"})) method = "bitsandbytes";
  if (method.empty() && c.has({"quant_algo"})) method = "modelopt";
  if (method.empty() && c.has({"config_groups"})) method = "compressed-tensors";
  if (method == "modelopt" || method == "modelopt_fp4")
    return c.has({"config_groups"}) && !c.has({"quant_algo"}) ? read_compressed_tensors(c, spec)
                                                              : read_model_opt(c, spec);
  if (method == "compressed-tensors" || method == "compressed_tensors")
    return read_compressed_tensors(c, spec);
  if (method == "bitsandbytes") return read_bitsandbytes(c, spec);
  if (method == "quark") return read_quark(c, spec);
  Scheme s;
  add_patterns(c, {"modules_to_not_convert", "ignored_layers", "exclude_modules"}, s.skipped);
  auto bits = c.integer({"bits", "w_bit", "num_bits"}).value_or(4);
  auto group = c.integer({"group_size", "q_group_size"}).value_or(128);
  if (method == "gptq" || method == "awq" || method == "gptq_marlin" || method == "awq_marlin" ||
      method == "grouped-integers" || method == "auto-round" || method == "intel/auto-round") {
    s.head = c.flag({"lm_head", "quant_lm_head"}).value_or(false);
    s.format = integer_format(bits, group);
  } else if (method == "fp8") {
    const Json* block = c.any({"weight_block_size"});
    s.format = block && block->array() ? Format::fp8_block : Format::fp8_tensor;
  } else if (method == "fbgemm_fp8" || method == "ptpc_fp8") {
    s.format = Format::fp8_tensor;
  } else if (method == "mxfp4") {
    // The method of gpt-oss packs the experts alone.
    s.format = Format::mxfp4;
    s.only_experts = true;
  } else if (method == "eetq") {
    s.format = Format::int8;
  } else if (method == "hqq") {
    ConfigReader inner = c.nested({"quant_config"});
    ConfigReader weights = inner.nested({"weight_quant_params"});
    s.format = integer_format(weights.integer({"nbits"}).value_or(bits),
                              weights.integer({"group_size"}).value_or(64));
    inner.merge(weights);
    c.merge(inner);
  } else {
    return unknown_method(c, "quant_method", method);
  }
  apply(s, spec);
  return {};
}

Format format_of_most(const DecoderSpec& spec) {
  for (const LayerSpec& l : spec.layers)
    if (l.mlp == MlpKind::experts) return l.formats.expert_up;
  const LayerSpec& last = spec.layers.back();
  if (last.mixer) return last.mixer->projections.front().linear.format;
  if (last.mlp == MlpKind::experts) return last.formats.expert_up;
  return last.mlp == MlpKind::dense ? last.formats.up : last.formats.q;
}

}  // namespace

Result<void> apply_quantization(const Json* method, const Json* model_opt, Format stored,
                                const std::string& where, DecoderSpec& spec) {
  spec.embedding_format = spec.head_format = spec.norm_format = stored;
  for (LayerSpec& l : spec.layers) {
    for (const Role& role : kRoles) l.formats.*(role.format) = stored;
    l.formats.router = l.formats.norm = stored;
    if (l.mixer) {
      for (MixerLinear& p : l.mixer->projections) p.linear.format = stored;
      l.mixer->conv_format = stored;
    }
  }
  if (method) {
    ConfigReader c(*method, where, "/quantization_config");
    auto r = read_method(c, spec);
    if (auto e = c.error("quantization_config")) return tl::unexpected(std::move(*e));
    if (!r) return r;
  } else if (model_opt) {
    ConfigReader file(*model_opt, "hf_quant_config.json");
    ConfigReader c = file.nested({"quantization"});
    auto r = read_model_opt(c, spec);
    file.merge(c);
    if (auto e = file.error("quantization")) return tl::unexpected(std::move(*e));
    if (!r) return r;
  }
  if (!spec.layers.empty()) spec.weight_format = format_of_most(spec);
  return {};
}

}  // namespace trigon
