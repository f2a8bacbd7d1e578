// Messages of llama.cpp and what is built on it, in the wording of its sources: ggml-cuda.cu,
// ggml-vulkan.cpp, ggml-metal, ggml-alloc.c ("failed to allocate CUDA0 buffer of size"),
// llama-model.cpp ("load_tensors: CUDA0 model buffer size", earlier llm_load_tensors),
// llama-kv-cache.cpp, llama-context.cpp ("sched_reserve", earlier llama_new_context_with_model).

#include "engine/oom_readers.hpp"
#include "engine/oom_text.hpp"

namespace trigon {
namespace {

using F = OomFigure;
using C = OomComponent;

bool is_refusal(std::string_view line) {
  if (has(line, "cudaMalloc failed: out of memory") || has(line, "hipMalloc failed: out of memory"))
    return true;
  if (has(line, "unable to allocate ") && has(line, " buffer")) return true;
  if (has(line, "alloc_tensor_range: failed to allocate")) return true;
  if (has(line, "gallocr_reserve") && has(line, "failed to allocate")) return true;
  if (has(line, "failed to allocate buffer for ")) return true;
  if (has(line, "failed to allocate compute")) return true;
  if (has(line, "buffer_type_alloc_buffer: failed to allocate buffer of size")) return true;
  if (has(line, "ErrorOutOfDeviceMemory")) return true;
  if (has(line, "ggml_metal") && has(line, "failed to allocate buffer")) return true;
  if (has(line, "kIOGPUCommandBufferCallbackErrorOutOfMemory")) return true;
  return has(line, "ggml_vulkan: Device memory allocation of size");
}

// The name before " buffer": "CUDA0" of "unable to allocate CUDA0 buffer".
std::string device_of(std::string_view line) {
  for (std::string_view before : {"unable to allocate ", "failed to allocate "}) {
    auto at = line.find(before);
    if (at == line.npos) continue;
    std::string_view rest = line.substr(at + before.size());
    auto end = rest.find(" buffer");
    if (end == rest.npos || end == 0 || end > 40) continue;
    std::string name(rest.substr(0, end));
    if (name != "compute" && name != "compute pp" && name.find("buffer") == name.npos) return name;
  }
  if (auto n = number_after(line, " on device "); n && *n >= 0 && *n < 1024)
    return "CUDA" + std::to_string(static_cast<int>(*n));
  return {};
}

// What a line names by itself.
std::optional<C> named(std::string_view line) {
  if (has(line, "for kv cache") || has(line, "kv_cache_init") || has(line, "for rs cache") ||
      has(line, "for self-attention cache") || has(line, "for cross-attention cache"))
    return C::kv_cache;
  if (has(line, "gallocr_reserve") || has(line, "graph_reserve") || has(line, "sched_reserve") ||
      has(line, "compute buffer") || has(line, "compute pp") ||
      has(line, "kIOGPUCommandBufferCallbackErrorOutOfMemory"))
    return C::compute_buffer;
  if (has(line, "error loading model") || has(line, "load_tensors") ||
      has(line, "unable to allocate "))
    return C::weights;
  return std::nullopt;
}

}  // namespace

std::optional<OomEvent> read_llama_oom(const OomPassage& p, const OomContext& above) {
  if (!is_refusal(p.line)) return std::nullopt;
  OomEvent e;
  e.kind = OomKind::buffer;
  e.tool = OomTool::llama_cpp;
  e.quoted = quotable(p.line);
  e.device = device_of(p.line);
  if (e.device.empty()) e.device = device_of(p.text);
  const std::string_view text = p.text;
  e.figures[F::tried] = size_after(text, "allocating");
  for (std::string_view before : {"buffer of size", "allocation of size", "buffer, size ="}) {
    if (e.figures[F::tried]) break;
    if (auto size = size_after(text, before))
      e.figures[F::tried] = size;
    else if (auto n = number_after(text, before); n && *n >= 0)
      e.figures[F::tried] = n;  // plain bytes
  }
  // The line names it, or one of the next few that only repeat the failure, or the stage above.
  if (auto c = named(p.line)) {
    e.component = *c;
    e.evidence.push_back({p.number, message(EngineMessage::oom_line_names)});
  } else if (has(text, "for kv cache") || has(text, "for rs cache")) {
    e.component = C::kv_cache;
  } else if (has(text, "gallocr_reserve") || has(text, "compute")) {
    e.component = C::compute_buffer;
  } else if (has(text, "error loading model") || has(text, "unable to allocate ")) {
    e.component = C::weights;
  } else if (above.llama_stage) {
    e.component = *above.llama_stage;
    e.evidence.push_back({above.llama_stage_line, message(EngineMessage::oom_stage_above)});
  }
  if (e.evidence.empty() && e.component != C::unknown)
    e.evidence.push_back({p.number, message(EngineMessage::oom_lines_below_name)});
  if (has(e.device, "CPU") || has(e.device, "Host") || has(p.line, "cpu_buffer_type")) {
    e.evidence.push_back({p.number, message(EngineMessage::oom_buffer_of_host)});
    e.asked_for = e.component;
    e.component = C::host_memory;
  }
  return e;
}

void see_llama_line(std::string_view line, std::int64_t number, OomContext& context) {
  OomFigures& f = context.figures;
  auto stage = [&](C c) {
    context.llama_stage = c;
    context.llama_stage_line = number;
    context.engine = OomTool::llama_cpp;
  };
  if (has(line, "load_tensors:")) {
    stage(C::weights);
    if (has(line, "offloaded ")) {
      if (auto on = number_after(line, "offloaded ")) {
        f[F::layers_on_card] = on;
        if (auto slash = line.find('/'); slash != line.npos)
          if (auto all = leading_number(line.substr(slash + 1))) f[F::layers] = all;
      }
    }
    // Of each device in turn; those of host memory do not count.
    if (has(line, "buffer size") && !has(line, "CPU") && !has(line, "Host"))
      if (auto size = size_after(line, "buffer size ="))
        f[F::weights] = f[F::weights].value_or(0) + *size;
  } else if (has(line, "llama_model_load") || has(line, "llama_model_loader:")) {
    // A new load: what an earlier one took is gone.
    if (has(line, "loaded meta data"))
      f[F::weights] = f[F::kv_buffer] = f[F::compute_buffer] = std::nullopt;
    if (!context.llama_stage || has(line, "loaded meta data")) stage(C::weights);
  } else if (has(line, "llama_kv_cache") || has(line, "llama_context:") ||
             has(line, "llama_new_context_with_model:") || has(line, "llama_memory_recurrent:")) {
    stage(C::kv_cache);
    if (has(line, "n_ctx ") || has(line, "n_ctx="))
      if (auto n = number_after(line.substr(line.find("n_ctx") + 5), "="); n && *n >= 1)
        f[F::context] = n;
    if (has(line, "KV buffer size") && !has(line, "CPU"))
      if (auto size = size_after(line, "buffer size ="))
        f[F::kv_buffer] = f[F::kv_buffer].value_or(0) + *size;
    if (has(line, "compute buffer size")) stage(C::compute_buffer);
  } else if (has(line, "sched_reserve") || has(line, "graph_reserve")) {
    stage(C::compute_buffer);
  }
  if (has(line, "compute buffer size") && !has(line, "Host") && !has(line, "CPU"))
    if (auto size = size_after(line, "buffer size =")) f[F::compute_buffer] = size;
  // The output counts as one layer more (llama-model.cpp: n_gpu_layers up to n_layer + 1).
  if (has(line, "n_layer "))
    if (auto n = number_after(line.substr(line.find("n_layer ") + 7), "=");
        n && *n >= 1 && *n < 1e5)
      f[F::layers] = *n + 1;
  if (has(line, "n_vocab"))
    if (auto n = number_after(line.substr(line.find("n_vocab") + 7), "="); n && *n > 1)
      f[F::vocabulary] = n;
  // "using device CUDA0 (NVIDIA ...) (...) - 22965 MiB free"; of several devices, their sum is of
  // no use to one buffer: the least counts.
  if (has(line, "using device ") && has(line, " MiB free"))
    if (auto free = size_before(line, " free"))
      f[F::device_free] = f[F::device_free] ? std::min(*f[F::device_free], *free) : *free;
}

}  // namespace trigon
