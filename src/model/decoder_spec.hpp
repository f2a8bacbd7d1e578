#pragma once
// The plain description of a language model that every reader fills and from which `build_decoder`
// makes the stacks: one entry for each layer, so that nothing is left to a pattern. An encoder is
// described the same way, alone or as the source of a decoder.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/message.hpp"
#include "base/result.hpp"
#include "model/format.hpp"
#include "model/model.hpp"

namespace trigon {

enum class NormKind : std::uint8_t { rms, layer_norm, layer_norm_without_bias, no_parameters };

// Normalisation of queries and keys before attention.
enum class QkNorm : std::uint8_t {
  none,
  shared,    // one vector of head_dim, the same for every head
  per_head,  // a vector of head_dim for each head (also one over all heads: the same size)
};

enum class AttentionKind : std::uint8_t { none, grouped, latent, compressed };
enum class MlpKind : std::uint8_t { none, dense, experts };

// How the matrices of one layer are stored.
struct LayerFormats {
  Format q = Format::bf16, q_down = Format::bf16, k = Format::bf16, v = Format::bf16;
  Format kv_down = Format::bf16, kv_up = Format::bf16, o = Format::bf16, indexer = Format::bf16;
  Format gate = Format::bf16, up = Format::bf16, down = Format::bf16;
  Format expert_gate = Format::bf16, expert_up = Format::bf16, expert_down = Format::bf16;
  Format shared_gate = Format::bf16, shared_up = Format::bf16, shared_down = Format::bf16;
  Format router = Format::bf16, norm = Format::bf16;
  friend bool operator==(const LayerFormats&, const LayerFormats&) = default;
};

struct LayerSpec {
  AttentionKind attention = AttentionKind::grouped;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;
  bool q_bias = false, k_bias = false, v_bias = false, o_bias = false;
  QkNorm qk_norm = QkNorm::none;
  bool qk_norm_bias = false;
  std::optional<std::int64_t> window, chunk;  // tokens
  bool sinks = false;
  bool keys_are_values = false, values_cached_apart = false;
  std::optional<std::int64_t> shares_cache_of;
  bool causal = true;
  bool cross = false;  // attends to the encoder after itself, with heads and formats of its own
  bool score_bias = false;
  std::int64_t position_terms = 0;
  // Latent attention; head_dim is nope_dim + rope_dim there.
  std::int64_t q_lora_rank = 0, kv_lora_rank = 0, nope_dim = 0, rope_dim = 0;  // q rank 0: none
  std::int64_t index_heads = 0, index_head_dim = 0, index_top_k = 0;           // sparse selection
  bool index_eight_bit = true;
  std::int64_t gate_width = 0;  // outputs of a gate on the attention's output; 0: none
  // Compressed attention: q_lora_rank, index_* and window as above; ratio 0: the window alone.
  std::int64_t compress_ratio = 0, output_groups = 0, output_rank = 0;
  bool compress_overlapping = false;
  // Beside the attention, or in its place; formats of its matrices are set as it is.
  std::optional<RecurrentMixer> mixer;
  std::int64_t streams = 1;  // residual streams of hyper-connections

  MlpKind mlp = MlpKind::dense;
  std::int64_t ffn = 0;
  bool gated = true, mlp_bias = false;
  std::int64_t experts = 0, active = 0, expert_width = 0;
  std::int64_t expert_hidden = 0;  // experts work on a projection of the hidden state; 0: on all
  bool expert_bias = false, router_bias = false;
  bool router_correction = false;  // a bias that only steers the choice of experts
  std::int64_t shared_width = 0;   // 0: no expert is always active
  bool shared_gate = false;
  std::int64_t extra_norm_parameters = 0;  // scales of odd sub-layers, in norm format

  bool norm_before_attention = true, norm_after_attention = false;
  bool norm_before_mlp = true, norm_after_mlp = false;
  bool parallel_residual = false;
  LayerFormats formats;
  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

// A vision tower: equal layers over the patches of an image.
struct VisionSpec {
  std::string type;
  bool recognised = true;  // else counted from its dimensions alone
  Format format = Format::bf16;
  std::int64_t layers = 0, hidden = 0, heads = 0, ffn = 0;
  bool rms = false, bias = true, gated = false, patch_bias = false;
  std::int64_t patch_elements = 0;  // channels x side x side x frames
  std::int64_t positions = 0;       // rows of a learned position embedding
  std::int64_t outer_norms = 0, vectors = 0;
  std::vector<Linear> projector;             // to the language model
  std::int64_t patch_pixels = 0;             // side of the square that becomes one token
  std::optional<std::int64_t> image_tokens;  // where an image has one size
  std::optional<MediaInput> media;           // its largest image
};

struct DecoderSpec {
  std::string id, architecture;
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;  // rows as stored, padding included
  std::vector<LayerSpec> layers;
  std::vector<LayerSpec>
      drafts;  // layers for multi-token prediction; embedding and head are shared
  std::optional<VisionSpec> vision;
  bool generates = true;       // false: an encoder
  bool shared_layers = false;  // equal layers are one set of weights
  NormKind norm = NormKind::rms;
  bool tied = false;
  bool head_bias = false;
  bool final_norm = true;
  bool embedding_norm = false;
  std::int64_t positions = 0;        // rows of a learned position embedding
  std::int64_t embedding_width = 0;  // where it differs from hidden (OPT-350M); 0: hidden
  std::int64_t relative_positions = 0, relative_width = 0;  // rows and their width
  bool relative_norm = false;
  std::int64_t token_types = 0;
  bool embeds = true;        // false: no token embedding of its own
  bool has_head = true;      // false: the answer is hidden states
  bool tied_bias = false;    // a tied head with a bias
  bool projects_out = true;  // back to embedding_width before the head
  bool projection_bias = false;
  std::vector<FrontEnd> front;
  std::vector<Tail> tail;
  double label_share = 1;
  std::optional<std::int64_t> fixed_length;
  double seconds_of_input = 0;
  std::vector<DecoderSpec> encoder;  // at most one, read by the cross-attention
  std::optional<std::int64_t> max_context;
  Format embedding_format = Format::bf16, head_format = Format::bf16, norm_format = Format::bf16;
  Format weight_format = Format::bf16;  // of most weights
  std::optional<Format> kv_format;
  std::vector<Message> notes;
};

// The stack of the spec, with equal neighbours merged into runs. Refuses dimensions that cannot
// be, so that every later count fits 64 bits. `where` names the source in errors.
Result<Model> build_decoder(const DecoderSpec& spec, const std::string& where);

}  // namespace trigon
