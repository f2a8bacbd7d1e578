#pragma once
// What a log of a job that ran out of memory says: which part of memory overflowed, the figures
// beside it, and where in the log both stand. read_oom_log() reads a text and judges nothing that
// the text does not hold.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/messages.hpp"

namespace trigon {

// The part of memory that did not fit.
enum class OomComponent : std::uint8_t {
  weights,
  kv_cache,
  activations,
  attention_scores,
  logits,
  gradients,
  optimizer_state,
  gathered_layers,
  graphs,
  collectives,
  compute_buffer,
  library_workspace,
  fragmentation,
  other_process,
  host_memory,
  unknown
};
constexpr std::size_t kOomComponents = static_cast<std::size_t>(OomComponent::unknown) + 1;
std::string_view oom_component_name(OomComponent c);  // "kv_cache", as in JSON

// What wrote the message, or whose frames the traceback passes.
enum class OomTool : std::uint8_t {
  torch,
  vllm,
  sglang,
  tensorrt_llm,
  llama_cpp,
  transformers,
  deepspeed,
  fsdp,
  megatron,
  xla,
  nccl,
  host,
  tgi
};
std::string_view oom_tool_name(OomTool t);  // "llama.cpp": an engine's id where it is one

// Which message it was.
enum class OomKind : std::uint8_t {
  allocation,           // torch's allocator, with sizes
  device_error,         // a bare "out of memory" of the driver
  no_kv_blocks,         // vLLM: nothing is left for the cache
  kv_too_short,         // vLLM: the cache does not hold one request of the longest length
  free_below_fraction,  // vLLM: others hold too much of the card at the start
  sampler_warmup,       // vLLM: logits of the most requests
  graph_capture,        // SGLang: a captured graph did not fit
  static_fraction,      // SGLang: nothing is left for the cache
  kv_pool_full,         // SGLang: the cache is full in the middle of work
  executor_creation,    // TensorRT-LLM names the part
  buffer,               // llama.cpp: one buffer of a device
  modules_on_host,      // transformers: quantised weights do not all fit the card
  collective,           // NCCL or RCCL
  library_handle,       // cuBLAS or cuDNN could not allocate
  xla,                  // JAX, TensorFlow
  host_allocation,      // host memory was refused
  host_killed,          // the kernel or a container ended the process
  shared_memory,        // /dev/shm of data loader workers
  prefill_warmup,       // TGI: the largest prefill did not fit at the start
  estimate              // DeepSpeed's table of needs: nothing failed
};
std::string_view oom_kind_name(OomKind k);

// Figures of the log, each with the base unit that it is kept in.
enum class OomFigure : std::uint8_t {
#define TRIGON_OOM_FIGURE(id, unit) id,
#include "engine/oom_figures.def"
#undef TRIGON_OOM_FIGURE
};
constexpr std::size_t kOomFigures = 0
#define TRIGON_OOM_FIGURE(id, unit) +1
#include "engine/oom_figures.def"
#undef TRIGON_OOM_FIGURE
    ;
std::string_view oom_figure_name(OomFigure f);
std::string_view oom_figure_unit(OomFigure f);  // "B", "tokens" or "": as in_words takes it

struct OomFigures {
  std::array<std::optional<double>, kOomFigures> values;
  std::optional<double>& operator[](OomFigure f) { return values[static_cast<std::size_t>(f)]; }
  const std::optional<double>& operator[](OomFigure f) const {
    return values[static_cast<std::size_t>(f)];
  }
};

struct OomEvidence {
  std::int64_t line = 0;  // from 1
  Message what;
};

struct OomEvent {
  OomKind kind = OomKind::allocation;
  OomTool tool = OomTool::torch;
  OomComponent component = OomComponent::unknown;
  // Where the request came from when something else (fragmentation, another process) refused it.
  OomComponent asked_for = OomComponent::unknown;
  bool training = false;   // the traceback passes a training step
  std::int64_t line = 0;   // from 1
  std::int64_t times = 1;  // how often the same was met: ranks, retries
  std::string quoted;      // the line, cut to a readable length
  std::string device;      // "CUDA0", "GPU 3"; empty: not said
  OomFigures figures;
  std::vector<OomEvidence> evidence;
};

// A line of DeepSpeed's estimate_zero*_model_states_mem_needs tables.
struct OomEstimate {
  std::int64_t line = 0;
  double host_bytes = 0, card_bytes = 0;
  std::string options;  // "offload_param=none, offload_optimizer=cpu, zero_init=1"
};

struct OomReport {
  std::vector<OomEvent> events;  // as they stand in the log: the first cause first
  std::vector<OomEstimate> estimates;
  std::optional<OomTool> engine;     // whose log it is, when lines say so
  std::string allocator_variable;    // PYTORCH_CUDA_ALLOC_CONF as this release calls it
  bool expandable_segments = false;  // already set
  std::int64_t lines = 0;
};

// Reads at most the first kOomMostLines lines; further ones are counted, not read. Text in two
// bytes a character (as PowerShell redirects it) is narrowed first.
OomReport read_oom_log(std::string_view text);

}  // namespace trigon
