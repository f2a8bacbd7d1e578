#pragma once
// A model as Trigon reasons about it: components made of stacks of layers (or, for vision and
// diffusion, graphs), with the formats its weights are stored in.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/byte_count.hpp"
#include "base/message.hpp"
#include "model/format.hpp"
#include "model/graph.hpp"
#include "model/item.hpp"

namespace trigon {

// How tensor parallelism divides a weight.
enum class Split : std::uint8_t {
  column,      // output features are divided
  row,         // input features are divided, outputs are summed
  vocabulary,  // vocabulary rows are divided, padded to a multiple
  replicated,
  expert  // divided by expert and expert-tensor parallelism
};

// A weight matrix of one layer, `in` x `out`, stored `count` times (experts).
struct Linear {
  std::int64_t in = 0, out = 0;
  std::int64_t count = 1;
  Format format = Format::bf16;
  Split split = Split::column;
  bool bias = false;
  std::int64_t parameters() const { return count * (in * out + (bias ? out : 0)); }
  friend bool operator==(const Linear&, const Linear&) = default;
};

struct Norm {
  std::int64_t width = 0;
  bool bias = false;  // LayerNorm has one, RMSNorm does not
  Format format = Format::bf16;
};

// Chooses the `top_k` tokens each query attends to (DeepSeek sparse attention; MiniMax-M3 chooses
// whole blocks); its keys of `head_dim` are cached beside the main cache.
struct SparseIndexer {
  std::int64_t heads = 0, head_dim = 0, top_k = 0;
  Linear q, k, weights;
  Norm k_norm;
  bool eight_bit = true;  // keys are kept in FP8 with scales, else in 16 bit
};

// Multi-head, grouped-query or multi-query attention.
struct Attention {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;
  Linear q, k, v, o;
  std::optional<Norm> q_norm, k_norm;  // per head unless width says otherwise
  std::optional<std::int64_t> window;  // sliding: keys further back are not read
  std::optional<std::int64_t> chunk;   // chunked: keys of the current chunk only
  bool sinks = false;                  // one learned value per head
  bool keys_are_values = false;        // one projection gives both ...
  bool values_cached_apart = false;    // ... but they are normalised apart, so both are cached
  std::optional<std::int64_t> shares_cache_of;  // layer whose KV it reuses
  std::optional<Linear> gate;                   // its sigmoid scales the output (Qwen3-Next)
  std::optional<SparseIndexer> indexer;
  bool causal = true;
  bool score_bias = false;          // scores get a learned bias by distance (T5)
  std::int64_t position_terms = 0;  // further products of scores with positions (DeBERTa: 2)
};

// Attention of a decoder to the output of its encoder. Keys and values are projected from it once
// for each sequence and kept as long as the sequence is decoded.
struct CrossAttention {
  Attention attention;
};

// Multi-head latent attention (DeepSeek): the cache holds kv_lora_rank + rope_dim per token.
struct LatentAttention {
  std::int64_t heads = 0, q_lora_rank = 0, kv_lora_rank = 0;
  std::int64_t nope_dim = 0, rope_dim = 0, value_dim = 0;
  std::optional<Linear> q_down;  // absent: q_up projects from the hidden state
  std::optional<Norm> q_norm;
  Linear q_up, kv_down, kv_up, o;
  Norm kv_norm;
  std::optional<SparseIndexer> indexer;
};

// Pools the keys of `ratio` tokens into one entry by a learned softmax (DeepSeek-V4).
struct KeyCompressor {
  std::int64_t ratio = 0;    // tokens an entry stands for
  bool overlapping = false;  // windows of twice the ratio: projections are twice as wide
  Linear keys, gate;
  Norm norm;
  std::int64_t position_parameters = 0;  // a bias for each place of a window
};

// Attention of many query heads over one key that serves as value too: the last `window` tokens
// as they are, older ones compressed; with an indexer only the `top_k` best of those
// (DeepSeek-V4; its heads' outputs go through a grouped low-rank projection).
struct CompressedAttention {
  std::int64_t heads = 0, head_dim = 0, rope_dim = 0, window = 0;
  Linear q_down, q_up, kv, o_down, o_up;
  Norm q_norm, kv_norm;
  bool sinks = false;
  std::optional<KeyCompressor> compressor;  // absent: the window is all there is
  struct Indexer {
    std::int64_t heads = 0, head_dim = 0, top_k = 0;  // entries
    Linear q, weights;
    KeyCompressor compressor;
  };
  std::optional<Indexer> indexer;
};

// How a mixer carries the past from token to token.
enum class MixerKind : std::uint8_t {
  selective_scan,    // Mamba-1: every channel decays by itself
  state_space,       // Mamba-2: one decay a head, a matrix form over chunks
  linear_attention,  // a fixed decay a head (Lightning attention)
  gated_delta,       // decay and delta rule (Qwen3-Next, Kimi Linear)
  gated_linear,      // one number a channel (RG-LRU)
  convolution        // only the last inputs of a short convolution (LFM2)
};

struct MixerLinear {
  const char* role = "";
  Linear linear;
  friend bool operator==(const MixerLinear&, const MixerLinear&) = default;
};

// A mixer whose memory of a sequence does not grow: for each of `heads` heads a matrix of
// `head_dim` x `state`, and the last inputs of a causal convolution.
struct RecurrentMixer {
  MixerKind kind = MixerKind::state_space;
  std::int64_t heads = 0, head_dim = 0, state = 0;
  std::int64_t groups = 1;  // heads that keys (B) and queries (C) are made for
  std::int64_t conv_channels = 0, conv_kernel = 0;
  std::int64_t chunk = 0;  // tokens of one chunk of the matrix form; 0: none
  // In order of execution: those before the recurrence, then the `row`-split last one.
  std::vector<MixerLinear> projections;
  std::int64_t vectors = 0;  // parameters of convolution, decays, norms: divided with heads
  Format vector_format = Format::bf16;
  Format state_format = Format::f32, conv_format = Format::bf16;  // of what is kept
  std::int64_t inner() const { return heads * head_dim; }
  std::int64_t state_elements() const { return heads * head_dim * state; }
  std::int64_t conv_elements() const {
    return conv_kernel > 1 ? conv_channels * (conv_kernel - 1) : 0;
  }
  friend bool operator==(const RecurrentMixer&, const RecurrentMixer&) = default;
};

// Mixes the parallel residual streams of hyper-connections before and after a sub-layer
// (arXiv:2409.19606; DeepSeek-V4 keeps four): one small matrix on all streams.
struct StreamMixer {
  std::int64_t streams = 0;
  Linear mix;  // in = streams x hidden
  std::int64_t vectors = 0;
};

struct Mlp {
  std::int64_t width = 0;
  bool gated = true;
  Linear up, down;
  std::optional<Linear> gate;
};

struct MixtureOfExperts {
  std::int64_t experts = 0, active = 0, width = 0;
  bool gated = true;
  Linear router;
  bool router_bias = false;  // a correction bias beside the router's weights
  Linear up, down;           // count = experts
  std::optional<Linear> gate;
  std::optional<Mlp> shared;          // always active
  std::optional<Linear> shared_gate;  // scales the shared expert (Qwen2-MoE)
  // Around the experts, whose own matrices are then narrower than the model (Nemotron-3 Super).
  std::optional<Linear> latent_in, latent_out;
};

using SubLayer = std::variant<Norm, Attention, LatentAttention, CompressedAttention, RecurrentMixer,
                              StreamMixer, Mlp, MixtureOfExperts, CrossAttention>;

struct Layer {
  std::vector<SubLayer> parts;     // in order of execution
  bool parallel_residual = false;  // attention and MLP read the same input and are added once
};

// `count` identical layers after each other.
struct LayerRun {
  Layer layer;
  std::int64_t count = 0;
  bool shared = false;  // one set of weights does the work of all `count` layers (ALBERT)
  std::int64_t stored() const { return shared && count > 1 ? 1 : count; }
};

// A convolution over a signal or the projection of its patches, before the first layer:
// in = kernel x channels (of one group), out = channels. It runs `rows` times for each position
// of the stack.
struct FrontEnd {
  Linear linear;
  double rows = 1;
  std::optional<Norm> norm;
};

// A projection between the last layer and the head. `pooled`: of one position of a sequence
// (pooler, classifier), else of every position that has a label (the transform of a masked-LM
// head).
struct Tail {
  std::string name;
  Linear linear;
  std::optional<Norm> norm;
  bool pooled = false;
};

// The largest image that a processor lets through, and how a film meets the tower.
struct MediaInput {
  std::int64_t patches = 0;         // positions of the image in the tower
  std::int64_t tokens = 0;          // of the image in the language model
  std::int64_t patch_elements = 0;  // values of a patch as it enters the tower
  std::int64_t token_width = 0;     // elements that a token leaves the tower with
  // Films: frames that share a patch, each pair as large as an image; 0: films are no larger than
  // an image.
  std::int64_t frames_of_patch = 0;
};

struct Stack {
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;  // rows of the embedding as stored
  std::vector<LayerRun> runs;
  std::optional<Linear> embedding;  // in = vocabulary, out = hidden
  std::optional<Linear> positions;  // learned position embedding, in = positions
  // Learned by distance: in = buckets, out = heads (biases of T5) or hidden (DeBERTa).
  std::optional<Linear> relative_positions;
  std::optional<Norm> relative_norm;
  std::optional<Linear> token_types;   // in = types (BERT's segments)
  std::vector<FrontEnd> front;         // in order of execution
  std::optional<Norm> embedding_norm;  // BLOOM normalises the embedding
  std::vector<Linear> projections;     // between an embedding width and `hidden` (OPT-350M)
  std::vector<Norm> final_norms;
  std::optional<Linear> head;  // absent when tied or missing
  bool tied = false;           // the head reuses the embedding
  bool tied_bias = false;      // ... and adds a bias of its own
  std::vector<Tail> tail;      // in order of execution, after the final norms
  // False: one pass over a whole sequence is the answer (encoders). Nothing is cached or decoded,
  // and the head is only for training.
  bool generates = true;
  // Every input is padded to so many positions (Whisper: 30 s are 1500).
  std::optional<std::int64_t> fixed_length;
  double seconds_of_input = 0;      // of sound in `fixed_length` positions; 0: not sound
  std::optional<MediaInput> media;  // of a vision tower, where its processor's limits are known
  double label_share = 1;           // positions whose logits training needs: 0.15 of a masked LM
  std::optional<std::int64_t> max_context;
  std::int64_t layers() const {
    std::int64_t n = 0;
    for (const LayerRun& r : runs) n += r.count;
    return n;
  }
};

enum class ComponentRole : std::uint8_t {
  language_model,
  draft,
  vision_tower,
  encoder,
  network,  // the whole of a vision, speech or recommender model
  text_encoder,
  denoiser,
  autoencoder,
  other
};

// How often a component runs for one item of work.
enum class Runs : std::uint8_t { once, each_step };

struct Component {
  std::string name;
  ComponentRole role = ComponentRole::language_model;
  std::variant<Stack, Graph> body;
  Runs runs = Runs::once;
  // Rows of a batch that one item takes in inference: 2 with classifier-free guidance.
  std::int64_t rows = 1;
  bool serves = true;  // runs in inference (a diffusion model's image encoder does not)
  enum class Training : std::uint8_t { trained, frozen, absent } training = Training::trained;
};

// A tensor as a file stores it.
struct Tensor {
  std::string name;
  Format format = Format::unknown;
  std::string stored_type;          // the file's own word, also for types we do not know
  std::vector<std::int64_t> shape;  // row-major: last dimension is contiguous
  std::optional<ByteCount> bytes;   // unknown for unknown types and bare indexes
  std::string file;
};

struct Model {
  std::string id;            // catalogue name or file name
  std::string architecture;  // "LlamaForCausalLM", "deepseek2", ...
  std::string source, date;
  std::vector<Component> components;
  std::optional<Item> item;               // absent: it writes tokens
  Format weight_format = Format::bf16;    // of most weights
  std::optional<Format> kv_format;        // what the checkpoint asks for, if it does
  std::vector<Tensor> tensors;            // of the file, when one was read
  std::optional<ByteCount> stored_bytes;  // exact, from the file
  std::vector<Message> notes;             // what the reader left out or assumed
};

// Counts over all components that are stacks.
struct ParameterCount {
  std::int64_t total = 0;
  std::int64_t active = 0;     // as published: experts a token is not routed to are left out
  std::int64_t embedding = 0;  // of total, the token embedding
};
ParameterCount count_parameters(const Model& m);
ParameterCount count_parameters(const Stack& s);
std::int64_t count_parameters(const Layer& l);
std::int64_t active_parameters(const Layer& l);
// Every Linear of a layer, with the word for its role ("q", "kv_up", "experts.down").
struct NamedLinear {
  const char* role;
  const Linear* linear;
};
std::vector<NamedLinear> linears_of(const Layer& l);
// Exact bytes of the weights as stored, scales included; a tied head counts once.
ByteCount weight_bytes(const Stack& s);
ByteCount weight_bytes(const Layer& l);
ByteCount weight_bytes(const Linear& l);
ByteCount weight_bytes(const Norm& n);
// Of an embedding, whose rows are `in` entries of `out` elements each.
ByteCount embedding_bytes(const Linear& l);
// "mamba-2", "gated delta" ...
const char* mixer_name(MixerKind k);
// Whether any layer routes tokens to experts.
bool has_experts(const Stack& s);
// The stack whose output is the answer: the first language model, else the first encoder.
const Stack* language_stack(const Model& m);
// The encoder that feeds the cross-attention of `language_stack`; null when there is none.
const Stack* source_stack(const Model& m);
// The stacks of a pass in order: the encoder, where there is one, then the language stack.
std::vector<const Stack*> stacks_in_order(const Model& m);
// Whether training computes logits over the vocabulary.
inline bool has_vocabulary_head(const Stack& s) {
  return s.head.has_value() || (s.tied && s.embedding.has_value());
}
// Positions of a stack for inputs of `tokens`.
inline std::int64_t positions_of(const Stack& s, std::int64_t tokens) {
  return s.fixed_length.value_or(tokens);
}

}  // namespace trigon
