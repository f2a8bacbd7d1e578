#pragma once
// What each published decoder-only architecture does beyond its config's numbers: one row each.

#include <cstdint>
#include <span>
#include <string_view>

#include "model/config_reader.hpp"
#include "model/decoder_spec.hpp"

namespace trigon {

// Whether linears have biases: never, always, or as a field says (with its default).
enum class BiasRule : std::uint8_t { no, yes, field_else_no, field_else_yes };
enum class FfnRule : std::uint8_t {
  required,
  four_times_hidden,  // when no field gives it
  half_the_field      // Qwen-1 writes both halves of its gated MLP as one number
};
enum class NormPlaces : std::uint8_t { before, before_and_after, after };
enum class Residual : std::uint8_t {
  sequential,
  parallel_one_norm,
  parallel_two_norms,
  field_one_norm,   // use_parallel_residual: parallel over one norm
  field_two_norms,  // the same over two, and sequential otherwise
};
enum class WindowRule : std::uint8_t {
  none,
  all_layers,        // wherever sliding_window is set
  upper_layers,      // use_sliding_window: layers from max_window_layers on
  alternate,         // layers 0, 2, 4 ... slide
  all_but_every_nth  // sliding_window_pattern: every n-th layer sees everything
};
enum class ExpertRule : std::uint8_t {
  none,
  all_layers,
  sparse_step,  // decoder_sparse_step, mlp_only_layers
  dense_first,  // first_k_dense_replace, moe_layer_freq
  interleaved   // interleave_moe_layer_step or a list of layers
};
enum class PositionRule : std::uint8_t { rotary, learned, learned_plus_two };

struct ArchitectureRow {
  std::string_view name;        // class in `architectures`
  std::string_view model_type;  // where `architectures` is absent
  NormKind norm = NormKind::rms;
  NormPlaces norm_places = NormPlaces::before;
  BiasRule qkv_bias = BiasRule::field_else_no;  // attention_bias and its synonyms
  BiasRule out_bias = BiasRule::field_else_no;
  BiasRule mlp_bias = BiasRule::field_else_no;  // mlp_bias and its synonyms
  bool gated = true;
  FfnRule ffn = FfnRule::required;
  bool tied = false;  // when the config does not say
  bool head_bias = false;
  QkNorm qk_norm = QkNorm::none;
  std::string_view qk_norm_field = {};  // only when this field is true
  bool qk_norm_bias = false;
  Residual residual = Residual::sequential;
  WindowRule window = WindowRule::none;
  ExpertRule experts = ExpertRule::none;
  bool expert_bias = false, router_bias = false, router_correction = false, shared_gate = false;
  bool latent = false;
  bool sinks = false;
  bool attends = true;  // has attention heads to read
  PositionRule positions = PositionRule::rotary;
  bool embedding_norm = false;
  // What published configs leave to the class; 0: the field is needed.
  std::int64_t default_heads = 0, default_kv_heads = 0, default_head_dim = 0,
               default_vocabulary = 0;
  // What no row can say.
  void (*adjust)(ConfigReader&, DecoderSpec&) = nullptr;
};

std::span<const ArchitectureRow> architectures();
std::span<const ArchitectureRow> hybrid_architectures();
const ArchitectureRow* find_architecture(std::string_view name);
// Why a known class cannot be read yet ("a hybrid with state-space layers"); empty: unknown.
std::string_view why_unsupported(std::string_view name);

// Adjusters, in config_quirks.cpp.
void adjust_falcon(ConfigReader&, DecoderSpec&);
void adjust_mpt(ConfigReader&, DecoderSpec&);
void adjust_dbrx(ConfigReader&, DecoderSpec&);
void adjust_opt(ConfigReader&, DecoderSpec&);
void adjust_gpt_neo(ConfigReader&, DecoderSpec&);
void adjust_gpt_bigcode(ConfigReader&, DecoderSpec&);
void adjust_chatglm(ConfigReader&, DecoderSpec&);
void adjust_deci(ConfigReader&, DecoderSpec&);
void adjust_llama4(ConfigReader&, DecoderSpec&);
void adjust_gemma4(ConfigReader&, DecoderSpec&);
void adjust_deepseek_sparse(ConfigReader&, DecoderSpec&);
void adjust_bitnet(ConfigReader&, DecoderSpec&);
// In hybrid_configs.cpp.
void adjust_qwen3_next(ConfigReader&, DecoderSpec&);
void adjust_nemotron_h(ConfigReader&, DecoderSpec&);
void adjust_jamba(ConfigReader&, DecoderSpec&);
void adjust_bamba(ConfigReader&, DecoderSpec&);
void adjust_falcon_h1(ConfigReader&, DecoderSpec&);
void adjust_granite_hybrid(ConfigReader&, DecoderSpec&);
void adjust_plamo2(ConfigReader&, DecoderSpec&);
void adjust_lfm2(ConfigReader&, DecoderSpec&);
void adjust_recurrent_gemma(ConfigReader&, DecoderSpec&);
void adjust_kimi_linear(ConfigReader&, DecoderSpec&);
void adjust_minimax_linear(ConfigReader&, DecoderSpec&);
void adjust_mamba(ConfigReader&, DecoderSpec&);
void adjust_mamba2(ConfigReader&, DecoderSpec&);
// In compressed_configs.cpp.
void adjust_deepseek_v4(ConfigReader&, DecoderSpec&);
void adjust_minimax_m3(ConfigReader&, DecoderSpec&);

}  // namespace trigon
