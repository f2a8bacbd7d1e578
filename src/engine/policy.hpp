#pragma once
// What one engine or framework version does, as mechanisms and sourced coefficients. A new
// version is data under data/engines/; a new mechanism is an enumerator, code and a test.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/facts.hpp"
#include "base/quantity.hpp"
#include "engine/messages.hpp"
#include "model/format.hpp"

namespace trigon {

// How an engine turns its memory fraction into a KV pool.
enum class PoolRule : std::uint8_t {
  none,             // caches are allocated per request (Hugging Face) or for a given context
                    // (llama.cpp)
  total_fraction,   // total * f - everything else (vLLM)
  free_fraction,    // (total - everything else) * f (TensorRT-LLM)
  static_fraction   // total * f - weights; activations live in the rest (SGLang)
};

enum class WindowAllocator : std::uint8_t {
  full,    // sliding layers keep pages for the whole context
  capped   // sliding layers keep min(window, context)
};

enum class LogitsRows : std::uint8_t { sampled_only, all_tokens };

enum class Launch : std::uint8_t { eager, graphs };

enum class Batching : std::uint8_t { continuous, fixed };

// Where a split over cards cuts the model.
enum class Parallelism : std::uint8_t { tensor, layers };

struct EnginePolicy {
  std::string id;       // "vllm"
  std::string version;  // the entry used ("0.11"), may be empty
  bool trains = false, serves = false;

  PoolRule pool = PoolRule::none;
  double memory_fraction = 1.0;     // default of the engine
  std::int64_t block_tokens = 1;    // KV page
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
  bool mla_absorbed = true;                // caches the latent, not the expanded heads
  bool graphs_inside_fraction = false;     // CUDA graphs count against the fraction
  bool embedding_on_host = false;          // llama.cpp keeps token embeddings in host memory

  // Bytes beside weights and KV, with their sources in `sheet`.
  Bytes context_overhead{};       // device context and libraries, per rank
  Bytes collective_overhead{};    // communication buffers, per rank when there are several
  Bytes graph_overhead{};         // captured graphs, per rank
  double hidden_copies = 0;       // live activation copies of the hidden state per token
  std::int64_t micro_batch_tokens = 0;  // llama.cpp n_ubatch: tokens a compute buffer is sized for

  const FactSheet* sheet = nullptr;
};

}  // namespace trigon
