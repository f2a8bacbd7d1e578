#include "evidence/architecture.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "evidence/messages.hpp"

namespace trigon {

namespace {

// Megatron pads the 50,257 tokens of GPT-2 to a multiple of 128 x 8.
constexpr std::int64_t kGpt2PaddedVocabulary = 51200;

bool begins(std::string_view s, std::string_view with) { return s.substr(0, with.size()) == with; }

// Networks of the GPT-2 kind: LayerNorm, two-matrix MLP, learned positions.
bool gpt_kind(std::string_view name) {
  return begins(name, "gpt") || begins(name, "mpt") || begins(name, "moe:gpt") ||
         begins(name, "opt") || begins(name, "hybrid:gpt") || begins(name, "bert:") ||
         begins(name, "t5:");
}

// Rows give the same columns for encoders, which are not decoders of these dimensions.
bool decoder_kind(const Row& row) {
  if (row.text("engine").find("llama.cpp") != std::string_view::npos) return true;
  std::string name;
  for (const char c : row.text("model"))
    name.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  const auto slash = name.rfind('/');
  if (slash != std::string::npos) name.erase(0, slash + 1);
  constexpr std::array kinds = {"gpt",   "mpt",     "moe:gpt",      "opt",      "llama",
                                "qwen",  "mistral", "mixtral",      "deepseek", "glm",
                                "gemma", "bloom",   "moe:deepseek", "falcon",   "megatron",
                                "phi",   "granite", "bert:",        "t5:"};
  return std::any_of(kinds.begin(), kinds.end(), [&](const char* k) { return begins(name, k); });
}

DecoderSpec spec_of(const Architecture& a, bool gated, bool tied) {
  DecoderSpec s;
  s.id = a.name;
  s.architecture = gated ? "columns:gated" : "columns:gpt";
  s.hidden = a.hidden;
  s.vocabulary = a.vocabulary;
  s.norm = gated ? NormKind::rms : NormKind::layer_norm;
  s.tied = tied;
  s.positions = a.positions;
  LayerSpec l;
  l.heads = a.heads;
  l.kv_heads = a.kv_heads;
  l.head_dim = l.value_dim = a.head_dim;
  const bool bias = !gated && !begins(a.name, "mpt");
  l.q_bias = l.k_bias = l.v_bias = l.o_bias = l.mlp_bias = bias;
  l.gated = gated;
  l.ffn = a.ffn;
  if (a.kv_lora_rank > 0) {
    // Head sizes that Megatron's MLATransformerConfig takes unless told (DeepSeek-V2's).
    l.attention = AttentionKind::latent;
    l.kv_heads = a.heads;
    l.kv_lora_rank = a.kv_lora_rank;
    l.q_lora_rank = a.q_lora_rank;
    l.nope_dim = l.value_dim = 128;
    l.rope_dim = 64;
    l.head_dim = l.nope_dim + l.rope_dim;
  }
  s.layers.assign(static_cast<std::size_t>(a.layers), l);
  if (a.experts > 1) {
    l.mlp = MlpKind::experts;
    l.experts = a.experts;
    l.active = a.active;
    l.expert_width = a.expert_width;
    l.shared_width = a.shared_width;
    const std::int64_t dense = std::clamp<std::int64_t>(a.dense_layers, 0, a.layers);
    std::fill(s.layers.begin() + dense, s.layers.end(), l);
  }
  // Megatron's models: BERT has a second token table, a pooler and a dense layer before the head
  // (megatron/core/models/bert); T5's sides share tables and have LayerNorm (models/T5).
  if (begins(a.name, "bert:")) {
    s.token_types = 2;
    Linear square;
    square.in = square.out = a.hidden;
    square.bias = true;
    s.tail = {Tail{"dense", square, Norm{a.hidden, true}}, Tail{"pooler", square, std::nullopt}};
  } else if (begins(a.name, "t5:")) {
    DecoderSpec encoder;
    encoder.id = s.id;
    encoder.architecture = s.architecture;
    encoder.hidden = s.hidden;
    encoder.norm = s.norm;
    encoder.embeds = encoder.has_head = encoder.generates = false;
    encoder.layers = s.layers;
    for (LayerSpec& side : encoder.layers) side.causal = false;
    for (LayerSpec& side : s.layers) side.cross = true;
    s.encoder.push_back(std::move(encoder));
  }
  if (a.drafts > 0) s.drafts.assign(static_cast<std::size_t>(a.drafts), l);
  return s;
}

}  // namespace

std::optional<Architecture> architecture_of(const Row& row) {
  if (!decoder_kind(row)) return std::nullopt;
  const auto layers = row.whole("layers"), hidden = row.whole("hidden"), heads = row.whole("heads");
  if (!layers || !hidden || !heads || *layers <= 0 || *hidden <= 0 || *heads <= 0)
    return std::nullopt;
  // Above any network ever trained; keeps hostile rows from asking for huge allocations.
  if (*layers > 10000 || *hidden > 1000000 || *heads > 100000) return std::nullopt;
  Architecture a;
  a.name = std::string(row.text("model"));
  a.layers = *layers;
  a.hidden = *hidden;
  a.heads = *heads;
  a.kv_heads = row.whole("kv_heads").value_or(a.heads);
  a.head_dim = row.whole("head_dim").value_or(a.hidden / a.heads);
  a.ffn = row.whole("ffn").value_or(4 * a.hidden);
  if (const auto v = row.whole("vocab")) {
    a.vocabulary = *v;
  } else {
    a.vocabulary = kGpt2PaddedVocabulary;
    a.assumptions.push_back(
        {"vocab", message(EvidenceMessage::vocabulary_assumed, kGpt2PaddedVocabulary)});
  }
  a.experts = row.whole("experts", {"num-experts"}).value_or(0);
  a.active = row.whole("top_k", {"moe-router-topk"}).value_or(a.experts > 0 ? 1 : 0);
  a.drafts = std::clamp<std::int64_t>(row.whole("mtp_layers").value_or(0), 0, 16);
  a.shared_width = row.whole("shared_ffn").value_or(0);
  a.dense_layers = row.whole("dense_layers").value_or(0);
  a.kv_lora_rank = row.whole("kv_lora_rank").value_or(0);
  a.q_lora_rank = row.whole("q_lora_rank").value_or(0);
  a.expert_width = row.whole("moe_ffn", {"moe-ffn-hidden-size"}).value_or(a.ffn);
  if (const auto b = row.number("params_b"); b && *b > 0) a.parameters = *b * 1e9;
  if (const auto g = row.text("gated"); !g.empty())
    a.gated = g == "1";
  else if (row.text("", {"swiglu"}) == "true")
    a.gated = true;
  if (const auto t = row.text("tied"); !t.empty())
    a.tied = t == "1";
  else if (row.text("", {"untie-embeddings-and-output-weights"}) == "true")
    a.tied = false;
  if (gpt_kind(a.name)) {
    a.positions =
        row.whole("positions")
            .value_or(row.whole("seq_len").value_or(row.whole("context_len").value_or(0)));
    if (!a.gated && !begins(a.name, "gpt-oss")) a.gated = false;
    if (!a.tied) a.tied = true;
  }
  return a;
}

Result<Model> model_of(const Architecture& a, const std::string& where) {
  std::optional<Result<Model>> best;
  double best_distance = 0;
  for (const bool gated : {true, false}) {
    if (a.gated && *a.gated != gated) continue;
    for (const bool tied : {false, true}) {
      if (a.tied && *a.tied != tied) continue;
      auto m = build_decoder(spec_of(a, gated, tied), where);
      if (!m) return m;
      const double distance =
          a.parameters
              ? std::fabs(std::log(static_cast<double>(count_parameters(*m).total) / *a.parameters))
              : 0;
      if (!best || distance < best_distance) {
        best_distance = distance;
        best.emplace(std::move(m));
      }
    }
  }
  // Dimensions that are far from the stated size leave something out, experts for one.
  if (a.parameters && best_distance > std::log(1.15))
    return fail(ErrorCode::unsupported,
                message(EvidenceMessage::dimensions_contradict_size, a.name, *a.parameters), where);
  return std::move(*best);
}

}  // namespace trigon
