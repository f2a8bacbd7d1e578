#pragma once
// What one engine or framework version does, as mechanisms and sourced coefficients. A new
// version is data under data/engines/; a new mechanism is an enumerator, code and a test.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/facts.hpp"
#include "base/quantity.hpp"
#include "engine/messages.hpp"
#include "model/format.hpp"

namespace trigon {

struct Accelerator;

// How an engine turns its memory fraction into a KV pool.
enum class PoolRule : std::uint8_t {
  none,            // caches are allocated per request (Hugging Face) or for a given context
                   // (llama.cpp)
  total_fraction,  // total * f - everything else (vLLM)
  free_fraction,   // (total - everything else) * f (TensorRT-LLM)
  static_fraction  // total * f - weights; activations live in the rest (SGLang)
};

enum class WindowAllocator : std::uint8_t {
  full,   // sliding layers keep pages for the whole context
  capped  // sliding layers keep min(window, context)
};

enum class LogitsRows : std::uint8_t { sampled_only, all_tokens };

enum class Launch : std::uint8_t { eager, graphs };

enum class Batching : std::uint8_t { continuous, fixed };

// What a framework's autograd keeps and which intermediates its kernels materialise.
enum class Autograd : std::uint8_t {
  eager,     // one kernel per operator: 32-bit copies in norms, activation and product kept apart
  compiled,  // a compiler fuses norms and activations and recomputes cheap parts
  fused      // hand-written kernels: norm inputs, one gate-up tensor, the product
};

// Where a split over cards cuts the model.
enum class Parallelism : std::uint8_t { tensor, layers };

struct EnginePolicy {
  std::string id;       // "vllm"
  std::string version;  // the entry used ("0.11"), may be empty
  bool trains = false, serves = false;
  bool runs_tokens = true;   // language models
  bool runs_graphs = false;  // networks as graphs
  // The engine that takes over the other kind of model under the same name ("TensorRT").
  std::string tokens_engine, items_engine;
  bool tf32_convolutions = false;  // 32-bit convolutions are multiplied in TF32 where that exists

  PoolRule pool = PoolRule::none;
  double memory_fraction = 1.0;   // default of the engine
  std::int64_t block_tokens = 1;  // KV page
  WindowAllocator windows = WindowAllocator::full;
  LogitsRows logits = LogitsRows::sampled_only;
  std::int64_t logits_bytes_per_value = 4;
  std::int64_t max_batched_tokens = 0;  // token budget of a step; 0: the whole prompt
  std::int64_t max_sequences = 0;       // 0: no limit
  Batching batching = Batching::continuous;
  bool chunked_prefill = false;
  Launch launch = Launch::eager;
  std::vector<std::int64_t> capture_batches;  // decode batches are rounded up to these
  Parallelism default_parallelism = Parallelism::tensor;
  bool tensor_parallel = true, pipeline_parallel = true, expert_parallel = false;
  bool mla_absorbed = true;             // caches the latent, not the expanded heads
  bool graphs_inside_fraction = false;  // CUDA graphs count against the fraction
  bool embedding_on_host = false;       // llama.cpp keeps token embeddings in host memory

  // Bytes beside weights and KV, with their sources in `sheet`.
  Bytes context_overhead{};             // device context and libraries, per rank
  Bytes collective_overhead{};          // communication buffers, per rank when there are several
  Bytes collective_overhead_pair{};     // the same with just two ranks, when it differs
  Bytes graph_overhead{};               // captured graphs, per rank
  bool context_inside_fraction = true;  // the device context counts against the fraction
  double hidden_copies = 0;             // live activation copies of the hidden state per token
  std::int64_t micro_batch_tokens = 0;  // llama.cpp n_ubatch: tokens a compute buffer is sized for

  // Cards whose driver reports `large_card` or more get other defaults (0: no such rule).
  Bytes large_card{};
  std::int64_t large_card_batched_tokens = 0;
  std::int64_t large_card_sequences = 0;
  std::vector<std::string> large_card_not;  // architectures that the rule leaves out
  // SGLang chooses prefill chunk and largest captured batch by the size of the card (GiB, from),
  // and derives from them what it keeps free: base + a * chunk + b * batch + c * ranks / 8.
  std::vector<double> tier_gib, tier_tokens, tier_graphs, tier_graphs_tp4;
  Bytes reserve_base{}, reserve_per_token{}, reserve_per_graph{}, reserve_per_8_ranks{};
  bool derives_fraction() const { return reserve_base > Bytes{} && memory_fraction <= 0; }
  // Or a fraction by tensor-parallel ranks: from so many on. Both only while none is given.
  std::vector<double> fraction_ranks, fraction_values;
  // The fraction that holds for a plan: what was given, or by ranks.
  double fraction(int tensor) const;
  bool card_resolved = false;  // `on_card` has run: what was set since stays

  std::int64_t vocabulary_padding = 1;  // rows of embedding and head are padded to a multiple
  bool flash_attention = true;          // scores are never materialised
  bool concatenated_cache = false;      // a layer's cache is copied when it grows (Hugging Face)
  bool compute_buffer = false;          // ggml: one buffer per device, sized for a micro-batch
  double pipeline_input_copies = 1;     // ggml: of masks and embeddings, with several devices
  bool latent_expanded = false;  // flash attention on MLA expands keys and values of the context
  Bytes attention_chunk{};       // of that expansion in 32 bit, at once; 0: all of it

  // Training.
  Autograd autograd = Autograd::eager;
  double loss_bytes_per_logit = 0;   // live at the loss: logits, their copies and gradient
  std::int64_t loss_chunks = 1;      // the loss is computed on this many slices
  bool gradients_persist = false;    // gradient buffers live through forward (Megatron, DeepSpeed)
  bool dropout_masks = false;        // models without gates train with dropout: masks are kept
  double adapter_dropout_bytes = 0;  // kept per input element of an adapter (dropped copy, mask)
  double optimizer_step_bytes = 0;   // temporaries of the optimizer step, per local parameter
  double gathered_layers = 2;        // layers whole at once under ZeRO-3 / FSDP
  double fragmentation = 0;          // allocator: share of activations reserved but unused
  std::int64_t default_zero = 0;     // ZeRO stage without further flags; FSDP is 3
  std::string default_recipe;        // name of a TrainRecipe: "mixed_16bit" ...

  std::vector<std::string> vendors;  // accelerators it runs on
  double nvidia_capability_min = 0;  // compute capability its releases need; 0: not stated
  // Whether its vendor and its capability are those that the engine is made for.
  bool runs_on(const Accelerator& card) const;
  std::vector<Message> assumptions;  // what `find` took for granted (a version, a date)
  const FactSheet* sheet = nullptr;

  // With the defaults that depend on the card filled in; unchanged when they are already.
  EnginePolicy on_card(Bytes reported, std::string_view architecture = {}) const;
  // Bytes the engine keeps out of its pool where it derives its fraction (SGLang).
  Bytes reserve(int tensor, int pipeline) const;
  // "engine/vllm#key": the id under which a coefficient is cited.
  std::string fact_id(const char* key) const { return "engine/" + id + "#" + key; }
};

}  // namespace trigon
