// Encoder-decoders: T5, BART and those that follow them, Whisper.

#include <algorithm>

#include "model/encoder_config.hpp"

namespace trigon {
namespace {

std::size_t layer_count(std::int64_t n) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(n, 0, 8193));
}

// The encoder beside a decoder: no head, and the decoder's table of tokens.
DecoderSpec encoder_beside(const DecoderSpec& s) {
  DecoderSpec e;
  e.id = s.id;
  e.architecture = s.architecture;
  e.generates = e.embeds = e.has_head = false;
  e.hidden = s.hidden;
  e.norm = s.norm;
  return e;
}

// Raffel et al. 2020 (arXiv:1910.10683) and its version 1.1 (arXiv:2002.05202): no biases, RMS
// norms, scores biased by distance. `everywhere`: each layer has its own table (UMT5,
// arXiv:2304.09151), else the first of a stack holds it for all.
void read_t5_stacks(ConfigReader& c, bool everywhere, DecoderSpec& s) {
  s.hidden = dimension(c.required({"d_model", "hidden_size"}));
  s.vocabulary = dimension(c.required({"vocab_size"}));
  s.tied = c.flag({"tie_word_embeddings"}).value_or(true);
  s.norm = NormKind::rms;
  LayerSpec l;
  l.heads = l.kv_heads = dimension(c.required({"num_heads", "num_attention_heads"}));
  l.head_dim = l.value_dim = dimension(c.required({"d_kv", "head_dim"}));
  l.ffn = dimension(c.required({"d_ff", "intermediate_size"}));
  const auto activation = c.text({"feed_forward_proj"}).value_or("relu");
  l.gated = activation.substr(0, 6) == "gated-" || c.flag({"is_gated_act"}).value_or(false);
  l.score_bias = true;
  const auto buckets = dimension(c.integer({"relative_attention_num_buckets"}).value_or(32));
  if (everywhere)
    l.extra_norm_parameters = buckets * l.heads;
  else
    s.relative_positions = buckets, s.relative_width = l.heads;
  const std::int64_t layers = dimension(c.required({"num_layers", "num_hidden_layers"}));
  DecoderSpec e = encoder_beside(s);
  e.relative_positions = s.relative_positions;
  e.relative_width = s.relative_width;
  l.causal = false;
  e.layers.assign(layer_count(layers), l);
  l.causal = l.cross = true;
  s.layers.assign(layer_count(dimension(c.integer({"num_decoder_layers"}).value_or(layers))), l);
  s.encoder.push_back(std::move(e));
}

struct BartTraits {
  bool norms_before = false;  // and a norm after the last layer
  bool embedding_norm = false;
  bool learned_positions = false;
};

// Layers of both sides, alike but for their heads, widths and cross-attention.
void fill_sides(ConfigReader& c, DecoderSpec& s, DecoderSpec e, LayerSpec l) {
  const auto side = [&](FieldNames heads, FieldNames ffn) {
    l.heads = l.kv_heads = dimension(c.required(heads));
    l.head_dim = l.value_dim = l.heads > 0 ? s.hidden / l.heads : 0;
    l.ffn = dimension(c.required(ffn));
  };
  side({"encoder_attention_heads", "num_attention_heads"},
       {"encoder_ffn_dim", "intermediate_size"});
  l.causal = false;
  const std::int64_t layers = dimension(c.required({"encoder_layers", "num_hidden_layers"}));
  e.layers.assign(layer_count(layers), l);
  side({"decoder_attention_heads", "num_attention_heads"},
       {"decoder_ffn_dim", "intermediate_size"});
  l.causal = l.cross = true;
  s.layers.assign(layer_count(dimension(c.integer({"decoder_layers"}).value_or(layers))), l);
  s.encoder.push_back(std::move(e));
}

// Vaswani et al. 2017 (arXiv:1706.03762) as BART (arXiv:1910.13461) and its kin name the fields.
void read_bart_stacks(ConfigReader& c, BartTraits how, DecoderSpec& s) {
  s.hidden = dimension(c.required({"d_model", "hidden_size"}));
  s.vocabulary = dimension(c.required({"vocab_size"}));
  s.tied = c.flag({"tie_word_embeddings"}).value_or(true);
  s.norm = NormKind::layer_norm;
  s.final_norm = how.norms_before;
  s.embedding_norm = how.embedding_norm;
  s.max_context = c.integer({"max_position_embeddings"});
  // Two rows stand before the first position.
  if (how.learned_positions) s.positions = s.max_context.value_or(0) + 2;
  LayerSpec l;
  l.q_bias = l.k_bias = l.v_bias = l.o_bias = l.mlp_bias = true;
  l.gated = false;
  l.norm_before_attention = l.norm_before_mlp = how.norms_before;
  l.norm_after_attention = l.norm_after_mlp = !how.norms_before;
  DecoderSpec e = encoder_beside(s);
  e.final_norm = s.final_norm;
  e.embedding_norm = s.embedding_norm;
  e.positions = s.positions;
  e.max_context = s.max_context;
  fill_sides(c, s, std::move(e), l);
}

}  // namespace

void read_t5(ConfigReader& c, EncoderHead, DecoderSpec& s) { read_t5_stacks(c, false, s); }
void read_umt5(ConfigReader& c, EncoderHead, DecoderSpec& s) { read_t5_stacks(c, true, s); }

void read_t5_encoder(ConfigReader& c, EncoderHead, DecoderSpec& s) {
  read_t5_stacks(c, false, s);
  DecoderSpec e = s.encoder.front();
  e.embeds = true;
  e.vocabulary = s.vocabulary;
  s = e;
}

void read_bart(ConfigReader& c, EncoderHead, DecoderSpec& s) {
  read_bart_stacks(c, {false, true, true}, s);
}
void read_mbart(ConfigReader& c, EncoderHead, DecoderSpec& s) {
  read_bart_stacks(c, {true, true, true}, s);
}
// Pegasus (arXiv:1912.08777) and M2M-100 / NLLB: sinusoidal positions are not stored.
void read_pegasus(ConfigReader& c, EncoderHead, DecoderSpec& s) {
  read_bart_stacks(c, {true, false, false}, s);
}
void read_marian(ConfigReader& c, EncoderHead, DecoderSpec& s) {
  read_bart_stacks(c, {false, false, false}, s);
}

// Radford et al. 2022 (arXiv:2212.04356): two convolutions over the log-mel spectrogram of 30 s,
// 3,000 frames, the second with stride 2; keys have no bias.
void read_whisper(ConfigReader& c, EncoderHead, DecoderSpec& s) {
  s.hidden = dimension(c.required({"d_model", "hidden_size"}));
  s.vocabulary = dimension(c.required({"vocab_size"}));
  s.tied = c.flag({"tie_word_embeddings"}).value_or(true);
  s.norm = NormKind::layer_norm;
  s.positions = dimension(c.integer({"max_target_positions"}).value_or(448));
  s.max_context = s.positions;
  DecoderSpec e = encoder_beside(s);
  e.positions = dimension(c.integer({"max_source_positions"}).value_or(1500));
  e.max_context = e.fixed_length = e.positions;
  // Two frames of 10 ms for each position.
  e.seconds_of_input = static_cast<double>(e.positions) * 0.02;
  const auto mel = dimension(c.integer({"num_mel_bins"}).value_or(80));
  e.front.push_back(
      FrontEnd{Linear{3 * mel, s.hidden, 1, Format::bf16, Split::replicated, true}, 2, {}});
  e.front.push_back(
      FrontEnd{Linear{3 * s.hidden, s.hidden, 1, Format::bf16, Split::replicated, true}, 1, {}});
  LayerSpec l;
  l.q_bias = l.v_bias = l.o_bias = l.mlp_bias = true;
  l.gated = false;
  fill_sides(c, s, std::move(e), l);
}

}  // namespace trigon
