// Start-up messages of serving engines, in the wording of their sources: vLLM
// v1/core/kv_cache_utils.py, worker/worker.py, v1/worker/gpu_worker.py and gpu_model_runner.py;
// SGLang srt/model_executor (model_runner, pool_configurator, cuda_graph_runner) and
// srt/managers/schedule_batch.py; TensorRT-LLM _torch/pyexecutor/py_executor_creator.py and
// cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp; transformers quantizers.

#include <algorithm>

#include "engine/oom_readers.hpp"
#include "engine/oom_text.hpp"

namespace trigon {
namespace {

using F = OomFigure;
using C = OomComponent;

OomEvent event(const OomPassage& p, OomKind kind, OomTool tool, C component) {
  OomEvent e;
  e.kind = kind;
  e.tool = tool;
  e.component = component;
  e.quoted = quotable(p.line);
  return e;
}

std::optional<OomEvent> read_vllm(const OomPassage& p) {
  const std::string_view line = p.line, text = p.text;
  if (has(line, "No available memory for the cache blocks"))
    return event(p, OomKind::no_kv_blocks, OomTool::vllm, C::kv_cache);
  // V0: both lengths in tokens. V1: sizes, and an estimate of the longest length.
  if (has(line, "max seq len") &&
      (has(text, "stored in KV cache") || has(text, "KV cache is needed"))) {
    OomEvent e = event(p, OomKind::kv_too_short, OomTool::vllm, C::kv_cache);
    e.figures[F::length_asked] = number_after(text, "max seq len (");
    e.figures[F::length_fits] = number_after(text, "stored in KV cache (");
    if (!e.figures[F::length_fits])
      e.figures[F::length_fits] = number_after(text, "estimated maximum model length is");
    e.figures[F::kv_needed] = size_before(text, " KV cache is needed");
    e.figures[F::kv_available] = size_after(text, "available KV cache memory");
    return e;
  }
  if (has(line, "Free memory on device") && has(text, "less than desired GPU memory utilization")) {
    OomEvent e = event(p, OomKind::free_below_fraction, OomTool::vllm, C::other_process);
    auto at = text.find("Free memory on device");
    std::string_view rest = text.substr(at);
    auto open = rest.find('(');
    auto slash = rest.find('/');
    if (open != rest.npos && slash != rest.npos && slash > open) {
      // "(3.25/23.43 GiB)": the unit of both stands once.
      auto free = leading_number(rest.substr(open));
      auto total = leading_size(rest.substr(slash + 1));
      auto total_number = leading_number(rest.substr(slash + 1));
      if (free && total && total_number && *total_number > 0) {
        e.figures[F::device_total] = total;
        e.figures[F::device_free] = *free * (*total / *total_number);
        e.figures[F::other_processes] = *total - *e.figures[F::device_free];
      }
    }
    e.figures[F::fraction] = number_after(text, "desired GPU memory utilization (");
    if (auto u = text.find("desired GPU memory utilization ("); u != text.npos)
      e.figures[F::budget] = size_after(text.substr(u), ", ");
    return e;
  }
  if (has(line, "out of memory occurred when warming up")) {
    OomEvent e = event(p, OomKind::sampler_warmup, OomTool::vllm, C::logits);
    e.figures[F::requests] = number_after(text, " with ");
    return e;
  }
  if (has(line, "Error in memory profiling")) {
    OomEvent e = event(p, OomKind::free_below_fraction, OomTool::vllm, C::other_process);
    return e;
  }
  return std::nullopt;
}

std::optional<OomEvent> read_sglang(const OomPassage& p) {
  const std::string_view line = p.line, text = p.text;
  if (has(line, "Not enough memory") && has(text, "--mem-fraction-static")) {
    OomEvent e = event(p, OomKind::static_fraction, OomTool::sglang, C::kv_cache);
    e.figures[F::fraction] = number_after(text, "mem_fraction_static=");
    return e;
  }
  if (has(line, "Capture cuda graph failed")) {
    if (!has(text, "out of memory")) return std::nullopt;
    OomEvent e = event(p, OomKind::graph_capture, OomTool::sglang, C::graphs);
    e.figures[F::tried] = size_after(text, "ried to allocate");
    return e;
  }
  for (std::string_view words :
       {"Prefill out of memory", "Decode out of memory", "KV cache pool is full"})
    if (has(line, words)) {
      OomEvent e = event(p, OomKind::kv_pool_full, OomTool::sglang, C::kv_cache);
      return e;
    }
  return std::nullopt;
}

// The parts by the names that the executor prints, by what they begin with.
constexpr std::pair<std::string_view, C> kExecutorParts[] = {
    {"Model", C::weights},
    {"Draft model", C::weights},
    {"KV cache", C::kv_cache},
    {"Initial KV cache", C::kv_cache},
    {"Temporary KV cache", C::kv_cache},
    {"Sampler", C::logits},
    {"Guided", C::logits},
    {"Additional executor", C::activations},
};

std::optional<OomEvent> read_tensorrt_llm(const OomPassage& p) {
  const std::string_view line = p.line, text = p.text;
  if (has(line, "Executor creation failed due to insufficient GPU memory")) {
    OomEvent e = event(p, OomKind::executor_creation, OomTool::tensorrt_llm, C::unknown);
    constexpr std::string_view kNamed = "component could not be created: ";
    if (auto at = text.find(kNamed); at != text.npos) {
      std::string_view part = text.substr(at + kNamed.size());
      for (const auto& [name, component] : kExecutorParts)
        if (part.substr(0, name.size()) == name) e.component = component;
      e.evidence.push_back(
          {p.number, message(EngineMessage::oom_log_names,
                             part.substr(0, std::min<std::size_t>(part.find("  "), 40)))});
    }
    if (auto total = number_after(text, "Total GPU memory (GiB):"))
      e.figures[F::device_total] = *total * kGi;
    if (auto free = number_after(text, "before component creation attempt (GiB):"))
      e.figures[F::device_free] = *free * kGi;
    return e;
  }
  if (has(line, "CUDA runtime error in") && has(line, "out of memory")) {
    OomEvent e = event(p, OomKind::device_error, OomTool::tensorrt_llm, C::unknown);
    return e;
  }
  return std::nullopt;
}

// text_generation_server/models: what warmup raises, and the router passes on.
std::optional<OomEvent> read_tgi(const OomPassage& p) {
  if (!has(p.line, "Not enough memory to handle ") || !has(p.text, "prefill tokens"))
    return std::nullopt;
  OomEvent e = event(p, OomKind::prefill_warmup, OomTool::tgi, C::activations);
  e.figures[F::batch_tokens] = number_after(p.text, "Not enough memory to handle ");
  return e;
}

}  // namespace

std::optional<OomEvent> read_serving_oom(const OomPassage& p) {
  if (auto e = read_vllm(p)) return e;
  if (auto e = read_sglang(p)) return e;
  if (auto e = read_tensorrt_llm(p)) return e;
  if (auto e = read_tgi(p)) return e;
  if (has(p.line, "Some modules are dispatched on the CPU or the disk"))
    return event(p, OomKind::modules_on_host, OomTool::transformers, C::weights);
  return std::nullopt;
}

void see_serving_line(std::string_view line, std::int64_t, OomContext& context) {
  OomFigures& f = context.figures;
  auto take = [&](F figure, std::optional<double> v) {
    if (v) f[figure] = v;
  };
  // vLLM.
  take(F::weights, size_after(line, "Model loading took"));
  take(F::weights, size_after(line, "model weights take"));
  take(F::non_torch, size_after(line, "non_torch_memory takes"));
  take(F::activation_peak, size_after(line, "PyTorch activation peak memory takes"));
  take(F::activation_peak, size_after(line, "torch peak memory increase:"));
  take(F::kv_available, size_after(line, "reserved for KV Cache is"));
  take(F::kv_available, size_after(line, "Available KV cache memory:"));
  take(F::graphs_estimated, size_after(line, "Estimated CUDA graph memory:"));
  if (auto total = size_after(line, "total_gpu_memory")) {
    take(F::device_total, total);
    take(F::fraction, number_after(line, "gpu_memory_utilization ("));
    if (auto u = line.find("gpu_memory_utilization ("); u != line.npos)
      take(F::budget, size_after(line.substr(u), "="));
  }
  // Settings as command lines and configuration dumps write them.
  for (std::string_view name : {"gpu_memory_utilization=", "'gpu_memory_utilization':",
                                "\"gpu_memory_utilization\":", "--gpu-memory-utilization"})
    if (auto u = number_after(line, name); u && *u > 0 && *u <= 1) f[F::fraction] = u;
  for (std::string_view name : {"max_num_batched_tokens=", "'max_num_batched_tokens':",
                                "--max-num-batched-tokens", "--chunked-prefill-size"})
    if (auto n = number_after(line, name); n && *n >= 1) f[F::batch_tokens] = n;
  for (std::string_view name :
       {"max_seq_len=", "max_model_len=", "'max_model_len':", "--max-model-len"})
    if (auto n = number_after(line, name); n && *n >= 1) f[F::context] = n;
  for (std::string_view name : {"max_num_seqs=", "'max_num_seqs':", "--max-num-seqs"})
    if (auto n = number_after(line, name); n && *n >= 1) f[F::requests] = n;
  for (std::string_view name : {"\"vocab_size\":", "vocab_size=", "'vocab_size':"})
    if (auto n = number_after(line, name); n && *n > 1) f[F::vocabulary] = n;
  // SGLang.
  if (has(line, "Load weight begin")) take(F::free_before_load, size_after(line, "avail mem="));
  if (has(line, "Load weight end")) {
    take(F::free_after_load, size_after(line, "avail mem="));
    take(F::weights, size_after(line, "mem usage="));
  }
  for (std::string_view name : {"mem_fraction_static=", "--mem-fraction-static"})
    if (auto u = number_after(line, name); u && *u > 0 && *u <= 1) f[F::fraction] = u;
  // TensorRT-LLM.
  if (has(line, "in paged KV cache")) take(F::kv_available, size_after(line, "Allocated"));

  if (!context.engine) {
    if (has(line, "vllm") || has(line, "EngineCore"))
      context.engine = OomTool::vllm;
    else if (has(line, "sglang"))
      context.engine = OomTool::sglang;
    else if (has(line, "[TensorRT-LLM]") || has(line, "[TRT-LLM]") || has(line, "tensorrt_llm"))
      context.engine = OomTool::tensorrt_llm;
    else if (has(line, "deepspeed"))
      context.engine = OomTool::deepspeed;
  }
  if (has(line, "expandable_segments:True") && !has(line, "try setting"))
    context.expandable_segments = true;
}

}  // namespace trigon
