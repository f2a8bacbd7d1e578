// Encoders of text: BERT and those that follow it.

#include "model/encoder_config.hpp"

#include <algorithm>

namespace trigon {
namespace {

// Devlin et al. 2019 (arXiv:1810.04805), section 3.1: 15 % of the positions are predicted.
constexpr double kMaskedShare = 0.15;

std::int64_t labels(ConfigReader& c) {
  if (auto n = c.integer({"num_labels"})) return dimension(*n);
  if (const Json* map = c.object({"id2label"}); map && !map->object()->empty())
    return static_cast<std::int64_t>(map->object()->size());
  return 2;  // transformers' PretrainedConfig
}

// The fields that BERT's config has, under the names of its followers too.
LayerSpec bert_layer(ConfigReader& c, std::int64_t hidden) {
  LayerSpec l;
  l.heads = l.kv_heads = dimension(c.required({"num_attention_heads", "n_heads", "n_head"}));
  l.ffn = dimension(c.required({"intermediate_size", "hidden_dim", "n_inner"}));
  l.head_dim = l.value_dim = l.heads > 0 ? hidden / l.heads : 0;
  l.q_bias = l.k_bias = l.v_bias = l.o_bias = l.mlp_bias = true;
  l.gated = false;
  l.causal = false;
  l.norm_before_attention = l.norm_before_mlp = false;
  l.norm_after_attention = l.norm_after_mlp = true;
  return l;
}

void norms_before(LayerSpec& l) {
  l.norm_before_attention = l.norm_before_mlp = true;
  l.norm_after_attention = l.norm_after_mlp = false;
}

// BERT without its head.
void read_body(ConfigReader& c, DecoderSpec& s) {
  s.generates = false;
  s.norm = NormKind::layer_norm;
  s.has_head = s.final_norm = false;
  s.embedding_norm = true;
  s.hidden = dimension(c.required({"hidden_size", "dim", "n_embd"}));
  s.vocabulary = dimension(c.required({"vocab_size"}));
  const std::int64_t layers = dimension(c.required({"num_hidden_layers", "n_layers", "n_layer"}));
  s.positions = dimension(c.integer({"max_position_embeddings"}).value_or(0));
  s.token_types = dimension(c.integer({"type_vocab_size"}).value_or(0));
  if (s.positions > 0) s.max_context = s.positions;
  s.layers.assign(static_cast<std::size_t>(std::clamp<std::int64_t>(layers, 0, 8193)),
                  bert_layer(c, s.hidden));
}

Tail projection(const char* name, std::int64_t in, std::int64_t out, bool pooled) {
  return Tail{name, Linear{in, out, 1, Format::bf16, Split::replicated, true}, {}, pooled};
}

void add_masked_head(DecoderSpec& s, std::int64_t width, bool bias = true, bool norm_bias = true) {
  Tail t = projection("transform", s.hidden, width, false);
  t.linear.bias = bias;
  t.norm = Norm{width, norm_bias, Format::bf16};
  s.tail.push_back(t);
  s.has_head = s.tied = s.tied_bias = true;
  s.projects_out = false;
  s.label_share = kMaskedShare;
}

// `pools`: the classifier reads a projection of the first position.
void add_head(ConfigReader& c, EncoderHead head, bool pools, DecoderSpec& s) {
  const std::int64_t h = s.hidden;
  switch (head) {
    case EncoderHead::none:
      if (pools) s.tail.push_back(projection("pooler", h, h, true));
      break;
    case EncoderHead::pretraining:
      if (pools) s.tail.push_back(projection("pooler", h, h, true));
      s.tail.push_back(projection("second_task", h, 2, true));
      [[fallthrough]];
    case EncoderHead::masked:
      add_masked_head(s, s.embedding_width > 0 ? s.embedding_width : h);
      break;
    case EncoderHead::sequence:
      s.tail.push_back(projection("pooler", h, h, true));
      s.tail.push_back(projection("classifier", h, labels(c), true));
      break;
    case EncoderHead::tokens:
      s.tail.push_back(projection("classifier", h, labels(c), false));
      break;
    case EncoderHead::question:
      s.tail.push_back(projection("span", h, 2, false));
      break;
    case EncoderHead::speech:
      break;
  }
}

}  // namespace

void read_bert(ConfigReader& c, EncoderHead head, DecoderSpec& s) {
  read_body(c, s);
  add_head(c, head, true, s);
}

// Positions begin behind the padding index: two rows are never reached.
void read_roberta(ConfigReader& c, EncoderHead head, DecoderSpec& s) {
  read_body(c, s);
  if (s.positions > 2) s.max_context = s.positions - 2;
  add_head(c, head, true, s);
}

// Beltagy et al. 2020 (arXiv:2004.05150): a window of attention, and projections of their own for
// the few positions that see everything, whose work is not counted.
void read_longformer(ConfigReader& c, EncoderHead head, DecoderSpec& s) {
  read_roberta(c, head, s);
  const auto windows = c.integers({"attention_window"}, static_cast<std::int64_t>(s.layers.size()));
  for (std::size_t i = 0; i < s.layers.size(); ++i) {
    if (windows && i < windows->size()) s.layers[i].window = (*windows)[i];
    s.layers[i].extra_norm_parameters = 3 * (s.hidden * s.hidden + s.hidden);
  }
}

void read_distilbert(ConfigReader& c, EncoderHead head, DecoderSpec& s) {
  read_body(c, s);
  s.token_types = 0;
  add_head(c, head, false, s);
}

// Lan et al. 2020 (arXiv:1909.11942): all layers share one set of weights.
void read_albert(ConfigReader& c, EncoderHead head, DecoderSpec& s) {
  read_body(c, s);
  s.shared_layers = true;
  s.embedding_width = dimension(c.required({"embedding_size"}));
  s.projection_bias = true;
  s.projects_out = false;
  add_head(c, head, true, s);
}

void read_electra(ConfigReader& c, EncoderHead head, DecoderSpec& s) {
  read_body(c, s);
  const auto width = dimension(c.integer({"embedding_size"}).value_or(s.hidden));
  if (width != s.hidden) s.embedding_width = width;
  s.projection_bias = true;
  s.projects_out = false;
  if (head == EncoderHead::pretraining) {
    s.tail.push_back(projection("transform", s.hidden, s.hidden, false));
    s.tail.push_back(projection("replaced", s.hidden, 1, false));
  } else {
    add_head(c, head, false, s);
  }
}

void read_mpnet(ConfigReader& c, EncoderHead head, DecoderSpec& s) {
  read_roberta(c, head, s);
  s.token_types = 0;
  s.relative_positions = dimension(c.integer({"relative_attention_num_buckets"}).value_or(32));
  for (LayerSpec& l : s.layers) {
    l.score_bias = true;
    s.relative_width = l.heads;
  }
}

// He et al. 2021 (arXiv:2006.03654, arXiv:2111.09543): scores of content against distance, both
// ways, through a table of 2 x position_buckets rows.
void read_deberta(ConfigReader& c, EncoderHead head, DecoderSpec& s) {
  read_body(c, s);
  if (!c.flag({"position_biased_input"}).value_or(true)) s.positions = 0;
  if (c.flag({"relative_attention"}).value_or(false)) {
    auto buckets = dimension(c.integer({"position_buckets"}).value_or(-1));
    s.relative_positions = 2 * (buckets > 0 ? buckets : s.max_context.value_or(512));
    s.relative_width = s.hidden;
    if (auto kind = c.text({"norm_rel_ebd"})) s.relative_norm = *kind == "layer_norm";
    const bool shares = c.flag({"share_att_key"}).value_or(false);
    for (LayerSpec& l : s.layers) {
      l.position_terms = 2;
      if (!shares) l.extra_norm_parameters = 2 * (s.hidden * s.hidden + s.hidden);
    }
  }
  if (auto kernel = c.integer({"conv_kernel_size"}); kernel && *kernel > 0 && *kernel < 1024)
    s.front.push_back(
        FrontEnd{Linear{*kernel * s.hidden, s.hidden, 1, Format::bf16, Split::replicated, true}, 1,
                 Norm{s.hidden, true, Format::bf16}});
  if (head != EncoderHead::none) add_head(c, head, false, s);
}

// Warner et al. 2024 (arXiv:2412.13663): rotary, gated, no biases, every third layer sees all.
void read_modernbert(ConfigReader& c, EncoderHead head, DecoderSpec& s) {
  read_body(c, s);
  s.positions = s.token_types = 0;
  const bool norm_bias = c.flag({"norm_bias"}).value_or(false);
  const bool attention_bias = c.flag({"attention_bias"}).value_or(false);
  const bool mlp_bias = c.flag({"mlp_bias"}).value_or(false);
  s.norm = norm_bias ? NormKind::layer_norm : NormKind::layer_norm_without_bias;
  s.final_norm = true;
  const auto every =
      std::max<std::int64_t>(dimension(c.integer({"global_attn_every_n_layers"}).value_or(3)), 1);
  const auto window = dimension(c.integer({"local_attention"}).value_or(128));
  for (std::size_t i = 0; i < s.layers.size(); ++i) {
    LayerSpec& l = s.layers[i];
    norms_before(l);
    l.norm_before_attention = i > 0;
    l.q_bias = l.k_bias = l.v_bias = l.o_bias = attention_bias;
    l.mlp_bias = mlp_bias;
    l.gated = true;
    if (static_cast<std::int64_t>(i) % every != 0) l.window = window;
  }
  if (head == EncoderHead::masked) {
    add_masked_head(s, s.hidden, c.flag({"classifier_bias"}).value_or(false), norm_bias);
    s.tied_bias = c.flag({"decoder_bias"}).value_or(true);
  } else if (head == EncoderHead::sequence) {
    add_head(c, head, true, s);
  }
}

void read_nomic_bert(ConfigReader& c, EncoderHead, DecoderSpec& s) {
  read_body(c, s);
  s.positions = 0;
  s.max_context = c.integer({"n_positions"});
  const bool attention_bias = c.flag({"qkv_proj_bias"}).value_or(false);
  const bool mlp_bias = c.flag({"mlp_fc1_bias"}).value_or(false);
  for (LayerSpec& l : s.layers) {
    l.q_bias = l.k_bias = l.v_bias = l.o_bias = attention_bias;
    l.mlp_bias = mlp_bias;
    if (auto f = c.text({"activation_function"})) l.gated = *f == "swiglu" || *f == "geglu";
  }
}

void read_esm(ConfigReader& c, EncoderHead head, DecoderSpec& s) {
  read_body(c, s);
  s.token_types = 0;
  s.embedding_norm = c.flag({"emb_layer_norm_before"}).value_or(false);
  s.final_norm = true;
  if (auto kind = c.text({"position_embedding_type"}); kind && *kind == "rotary") s.positions = 0;
  for (LayerSpec& l : s.layers) norms_before(l);
  add_head(c, head, true, s);
  // The regression of contacts from all attention maps is part of the published weights.
  if (!s.layers.empty())
    s.tail.push_back(projection(
        "contacts", static_cast<std::int64_t>(s.layers.size()) * s.layers.front().heads, 1, true));
}

// Radford et al. 2021 (arXiv:2103.00020): causal, read at one position, never continued.
void read_clip_text(ConfigReader& c, EncoderHead head, DecoderSpec& s) {
  read_body(c, s);
  s.token_types = 0;
  s.embedding_norm = false;
  s.final_norm = true;
  for (LayerSpec& l : s.layers) {
    norms_before(l);
    l.causal = true;
  }
  if (head != EncoderHead::sequence) return;
  Tail t = projection("projection", s.hidden,
                      dimension(c.integer({"projection_dim"}).value_or(512)), true);
  t.linear.bias = false;
  s.tail.push_back(t);
}

// Baevski et al. 2020 (arXiv:2006.11477): convolutions over the waveform, then an encoder with a
// grouped convolution as its positions.
void read_wav2vec2(ConfigReader& c, EncoderHead head, DecoderSpec& s) {
  s.embeds = s.has_head = false;
  s.generates = false;
  s.norm = NormKind::layer_norm;
  s.hidden = dimension(c.required({"hidden_size"}));
  const std::int64_t layers = dimension(c.required({"num_hidden_layers"}));
  LayerSpec layer = bert_layer(c, s.hidden);
  const bool stable = c.flag({"do_stable_layer_norm"}).value_or(false);
  if (stable) norms_before(layer);
  s.layers.assign(static_cast<std::size_t>(std::clamp<std::int64_t>(layers, 0, 8193)), layer);
  s.final_norm = true;  // before the layers without do_stable_layer_norm, after them with it
  const std::vector<std::int64_t> channels =
      c.integers({"conv_dim"}, 7).value_or(std::vector<std::int64_t>(7, 512));
  const std::vector<std::int64_t> kernels =
      c.integers({"conv_kernel"}, 7).value_or(std::vector<std::int64_t>{10, 3, 3, 3, 3, 2, 2});
  const std::vector<std::int64_t> strides =
      c.integers({"conv_stride"}, 7).value_or(std::vector<std::int64_t>{5, 2, 2, 2, 2, 2, 2});
  const bool bias = c.flag({"conv_bias"}).value_or(false);
  const auto norm = c.text({"feat_extract_norm"}).value_or("group");
  const std::size_t n = std::min({channels.size(), kernels.size(), strides.size()});
  double rows = 1;  // the product of the strides behind a convolution
  for (std::size_t i = 1; i < n; ++i) rows *= static_cast<double>(dimension(strides[i]));
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t in = dimension(kernels[i]) * (i == 0 ? 1 : dimension(channels[i - 1]));
    FrontEnd f{
        Linear{in, dimension(channels[i]), 1, Format::bf16, Split::replicated, bias}, rows, {}};
    if (norm == "layer" || i == 0) f.norm = Norm{dimension(channels[i]), true, Format::bf16};
    s.front.push_back(f);
    if (i + 1 < n) rows /= static_cast<double>(std::max<std::int64_t>(strides[i + 1], 1));
  }
  const std::int64_t features = n > 0 ? dimension(channels[n - 1]) : 0;
  s.front.push_back(
      FrontEnd{Linear{features, s.hidden, 1, Format::bf16, Split::replicated, true}, 1, {}});
  const auto kernel = dimension(c.integer({"num_conv_pos_embeddings"}).value_or(128));
  const auto groups = std::max<std::int64_t>(
      dimension(c.integer({"num_conv_pos_embedding_groups"}).value_or(16)), 1);
  // Weight normalisation keeps one scale for each tap; the mask embedding is a vector.
  s.front.push_back(FrontEnd{
      Linear{kernel * s.hidden / groups, s.hidden, 1, Format::bf16, Split::replicated, true}, 1,
      Norm{kernel + 2 * features + s.hidden, false, Format::bf16}});
  if (head == EncoderHead::speech)
    s.tail.push_back(projection("letters", s.hidden, dimension(c.required({"vocab_size"})), false));
  if (head == EncoderHead::sequence) {
    const auto width = dimension(c.integer({"classifier_proj_size"}).value_or(256));
    s.tail.push_back(projection("projector", s.hidden, width, false));
    s.tail.push_back(projection("classifier", width, labels(c), true));
  }
}

// Gong et al. 2021 (arXiv:2104.01778): overlapping patches of a spectrogram.
void read_audio_spectrogram(ConfigReader& c, EncoderHead head, DecoderSpec& s) {
  s.embeds = s.has_head = false;
  s.generates = false;
  s.norm = NormKind::layer_norm;
  s.final_norm = true;
  s.hidden = dimension(c.required({"hidden_size"}));
  const std::int64_t layers = dimension(c.required({"num_hidden_layers"}));
  LayerSpec layer = bert_layer(c, s.hidden);
  norms_before(layer);
  s.layers.assign(static_cast<std::size_t>(std::clamp<std::int64_t>(layers, 0, 8193)), layer);
  const auto side = std::max<std::int64_t>(dimension(c.integer({"patch_size"}).value_or(16)), 1);
  auto patches = [&](FieldNames size, std::int64_t size_default, FieldNames stride) {
    const auto step = std::max<std::int64_t>(dimension(c.integer(stride).value_or(10)), 1);
    return (dimension(c.integer(size).value_or(size_default)) - side) / step + 1;
  };
  // A class and a distillation token come before the patches.
  s.positions = 2 + patches({"num_mel_bins"}, 128, {"frequency_stride"}) *
                        patches({"max_length"}, 1024, {"time_stride"});
  s.fixed_length = s.positions;
  s.seconds_of_input = static_cast<double>(dimension(c.integer({"max_length"}).value_or(1024))) /
                       100;  // frames of 10 ms
  s.front.push_back(
      FrontEnd{Linear{side * side, s.hidden, 1, Format::bf16, Split::replicated, true}, 1,
               Norm{2 * s.hidden, false, Format::bf16}});
  if (head == EncoderHead::sequence) {
    Tail t = projection("classifier", s.hidden, labels(c), true);
    t.norm = Norm{s.hidden, true, Format::bf16};
    s.tail.push_back(t);
  }
}

}  // namespace trigon
