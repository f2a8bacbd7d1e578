// Messages of torch's allocator and of the libraries below it, in the wording of their sources:
// pytorch c10/cuda/CUDACachingAllocator.cpp (1.x "already allocated", since 2.1 "has a total
// capacity of", before 2.2 misspelt "capacty"), ATen/mps/MPSAllocator.mm,
// c10/core/CPUAllocator.cpp, nccl src/include/checks.h, tensorflow and xla "RESOURCE_EXHAUSTED".

#include <algorithm>

#include "engine/oom_readers.hpp"
#include "engine/oom_text.hpp"

namespace trigon {
namespace {

using F = OomFigure;

// Memory of other processes that is a desktop, not a job: below a twentieth of the card.
constexpr double kLargeShare = 0.25;

void read_processes(const OomPassage& p, OomEvent& e) {
  OomFigures& f = e.figures;
  std::string_view text = p.text;
  if (auto mine = size_after(text, "this process has"))
    // Inside a container the figure can wrap around below zero.
    if (!f[F::device_total] || *mine <= *f[F::device_total]) f[F::this_process] = mine;
  double others = 0, largest = 0;
  bool any = false;
  for (int i = 0; i < 64; ++i) {
    auto at = text.find("Process ");
    if (at == text.npos) break;
    text.remove_prefix(at + 8);
    std::size_t used = 0;
    if (!leading_number(text, &used) || text.substr(used, 5) != " has ") continue;
    auto held = leading_size(text.substr(used + 5));
    if (!held || !has(text.substr(0, 80), "memory in use")) continue;
    any = true;
    others += *held;
    largest = std::max(largest, *held);
  }
  if (!any) return;
  // Where process numbers of a container differ from the host's, the only one listed is this one.
  if (!f[F::this_process] && f[F::allocated] && largest >= *f[F::allocated]) {
    f[F::this_process] = largest;
    others -= largest;
  }
  if (others > 0) f[F::other_processes] = others;
}

// What the allocator's own figures say before anything else: blocks that lie apart, or another
// process on the card.
void judge_figures(OomEvent& e, std::int64_t line) {
  const OomFigures& f = e.figures;
  if (!f[F::tried]) return;
  const double tried = *f[F::tried];
  if (f[F::reserved_unallocated] && *f[F::reserved_unallocated] >= tried &&
      // Blocks of graphs' own pools are counted there as well, but serve no other request.
      *f[F::reserved_unallocated] - f[F::graph_pools].value_or(0) >= tried) {
    e.component = OomComponent::fragmentation;
    e.evidence.push_back({line, message(EngineMessage::oom_unallocated_enough,
                                        bytes(*f[F::reserved_unallocated]), bytes(tried))});
    return;
  }
  if (!f[F::device_total]) return;
  double others = f[F::other_processes].value_or(0);
  // Older releases list no processes: what is neither free nor this one's own. A context of up to
  // about a GiB is this process's.
  const double own = f[F::this_process].value_or(f[F::allocated].value_or(0) +
                                                 f[F::reserved_unallocated].value_or(0));
  if (!f[F::other_processes] && !f[F::this_process] && f[F::device_free] && f[F::allocated] &&
      !has(e.quoted, "Process ")) {
    const double rest = *f[F::device_total] - *f[F::device_free] - own;
    if (rest > kLargeShare * *f[F::device_total]) others = rest;
  }
  if (others >= kLargeShare * *f[F::device_total] &&
      others + f[F::device_free].value_or(0) >= tried) {
    e.component = OomComponent::other_process;
    e.figures[F::other_processes] = others;
    e.evidence.push_back({line, message(EngineMessage::oom_others_hold, bytes(others),
                                        bytes(*f[F::device_total]), bytes(tried))});
  }
}

OomEvent allocation(const OomPassage& p, std::string_view device) {
  OomEvent e;
  e.quoted = quotable(p.line);
  std::string_view t = p.text;
  OomFigures& f = e.figures;
  f[F::tried] = size_after(t, "ried to allocate");
  f[F::device_total] = size_after(t, "has a total capacity of");
  if (!f[F::device_total]) f[F::device_total] = size_after(t, "has a total capacty of");
  f[F::device_free] = size_before(t, " is free");
  f[F::allocated] = size_before(t, " is allocated by PyTorch");
  f[F::reserved_unallocated] = size_before(t, " is reserved by PyTorch but unallocated");
  f[F::graph_pools] = size_before(t, " allocated in private pools");
  f[F::allowed] = size_before(t, " allowed");
  if (!f[F::device_total]) {  // before 2.1
    f[F::device_total] = size_before(t, " total capacity");
    f[F::allocated] = size_before(t, " already allocated");
    f[F::device_free] = size_before(t, " free");
    auto reserved = size_before(t, " reserved in total by PyTorch");
    if (!reserved) reserved = size_before(t, " cached");
    if (reserved && f[F::allocated])
      f[F::reserved_unallocated] = std::max(0.0, *reserved - *f[F::allocated]);
  }
  for (std::string_view name : {"GPU ", "NPU ", "XPU "})
    if (auto at = t.find(name); at != t.npos)
      if (auto n = leading_number(t.substr(at + 4)); n && *n >= 0 && *n < 1e4 && t[at + 4] != ' ')
        e.device = std::string(name) + std::to_string(static_cast<int>(*n));
  if (device == "MPS") {
    f[F::allocated] = size_after(t, "MPS allocated");
    f[F::other_processes] = size_after(t, "other allocations");
    f[F::allowed] = size_after(t, "max allowed");
    return e;
  }
  read_processes(p, e);
  judge_figures(e, p.number);
  return e;
}

}  // namespace

std::optional<OomEvent> read_torch_oom(const OomPassage& p) {
  const std::string_view line = p.line;
  for (std::string_view device : {"CUDA", "HIP", "XPU", "NPU", "MUSA", "MLU"}) {
    auto at = line.find(std::string(device) + " out of memory");
    if (at == line.npos) continue;
    std::string_view after = line.substr(at + device.size() + 14);
    if (!after.empty() && after[0] != '.' && after[0] != ',' && after[0] != ':') continue;
    if (has(p.text, "ried to allocate") || after.empty() || after[0] == '.')
      return allocation(p, device);
  }
  // A logger that wraps lines into a column puts its own words between the two.
  if (auto at = line.find("out of memory. Tried to allocate "); at != line.npos && at > 0)
    if (line.find_first_not_of(" \t\r") == at) return allocation(p, "");
  if (has(line, "MPS backend out of memory")) return allocation(p, "MPS");

  OomEvent e;
  e.quoted = quotable(line);
  if (has(line, "NCCL WARN") || has(line, "RCCL WARN") || has(line, "ncclUnhandledCudaError") ||
      has(line, "Failed to CUDA calloc") || has(line, "Cuda failure")) {
    auto calloc = size_after(p.text, "Failed to CUDA calloc async");
    if (!calloc) calloc = size_after(p.text, "Failed to CUDA calloc");
    if (!calloc && !has(p.text, "out of memory")) return std::nullopt;
    e.kind = OomKind::collective;
    e.tool = OomTool::nccl;
    e.component = OomComponent::collectives;
    e.figures[F::tried] = calloc;
    return e;
  }
  for (std::string_view status : {"CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED",
                                  "HIPBLAS_STATUS_ALLOC_FAILED", "rocblas_status_memory_error"}) {
    if (!has(line, status)) continue;
    e.kind = OomKind::library_handle;
    e.component = OomComponent::library_workspace;
    e.evidence.push_back({p.number, message(EngineMessage::oom_library_says, status)});
    return e;
  }
  // A handle of cuBLAS is some MiB: its creation fails on a full card without saying so.
  if (has(line, "CUBLAS_STATUS_NOT_INITIALIZED") && has(line, "cublasCreate")) {
    e.kind = OomKind::library_handle;
    e.component = OomComponent::library_workspace;
    e.evidence.push_back({p.number, message(EngineMessage::oom_handle_of_full_card)});
    return e;
  }
  if (has(line, "RESOURCE_EXHAUSTED") || has(line, "OOM when allocating tensor with shape")) {
    auto size = size_after(p.text, "trying to allocate");
    if (!size && !has(p.text, "ut of memory") && !has(p.text, "OOM when")) return std::nullopt;
    e.kind = OomKind::xla;
    e.tool = OomTool::xla;
    e.figures[F::tried] = size;
    return e;
  }
  for (std::string_view words :
       {"CUDA error: out of memory", "HIP error: out of memory", "CUDA driver error: out of memory",
        "cudaErrorMemoryAllocation", "hipErrorOutOfMemory", "CUDA_ERROR_OUT_OF_MEMORY"}) {
    if (!has(line, words)) continue;
    e.kind = OomKind::device_error;
    return e;
  }
  return std::nullopt;
}

}  // namespace trigon
