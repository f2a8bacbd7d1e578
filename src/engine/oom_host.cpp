// Host memory: refused allocations (c10/core/CPUAllocator.cpp, numpy, glibc, SGLang's
// "Not enough host memory"), the kernel's out-of-memory killer (mm/oom_kill.c), containers and
// launchers that report a signal 9, Slurm (src/interfaces/cgroup.c: "Detected %d oom_kill event").

#include "engine/oom_readers.hpp"
#include "engine/oom_text.hpp"

namespace trigon {

std::optional<OomEvent> read_host_oom(const OomPassage& p) {
  const std::string_view line = p.line;
  OomEvent e;
  e.tool = OomTool::host;
  e.component = OomComponent::host_memory;
  e.quoted = quotable(line);
  e.kind = OomKind::host_allocation;
  using F = OomFigure;
  if (has(line, "DefaultCPUAllocator")) {
    e.figures[F::tried] = size_after(p.text, "you tried to allocate");
    return e;
  }
  if (has(line, "Unable to allocate ") && has(line, "for an array with shape")) {
    e.figures[F::tried] = size_after(line, "Unable to allocate");
    return e;
  }
  // Python's own error, not the end of another's name and no clause that catches it.
  if (auto at = line.find("MemoryError"); at != line.npos && !has(line, "except ")) {
    const bool starts = at == 0 || line[at - 1] == ' ' || line[at - 1] == '.';
    const std::string_view after = line.substr(at + 11);
    if (starts && (after.empty() || after[0] == ':' || after[0] == ' ')) return e;
  }
  for (std::string_view words :
       {"std::bad_alloc", "Not enough host memory", "Cannot allocate memory", "cudaErrorHostMemory",
        "cudaHostAlloc failed", "failed to allocate pinned"})
    if (has(line, words)) return e;

  if (has(line, "shared memory (shm)") || has(line, "out of shared memory") ||
      (has(line, "DataLoader worker") && has(line, "Bus error"))) {
    e.kind = OomKind::shared_memory;
    return e;
  }
  e.kind = OomKind::host_killed;
  if (has(line, "ut of memory: Killed process") || has(line, "ut of memory: Kill process")) {
    if (auto rss = size_after(line, "anon-rss:")) e.figures[F::host_used] = rss;
    return e;
  }
  for (std::string_view words :
       {"OOMKilled", "oom-kill:constraint", "is killed by signal: Killed", "Signals.SIGKILL",
        "Signal 9 (SIGKILL)", "exitcode: -9", "exitcode  : -9", "exit code 137", "exit code: 137",
        "invoked oom-killer", "oom_kill event", "oom-kill event", "have been OOM Killed"})
    if (has(line, words)) return e;
  // What a shell prints: the word alone, or after a number of a job.
  std::string_view word = line;
  while (!word.empty() && (word.back() == ' ' || word.back() == '\t')) word.remove_suffix(1);
  if (word == "Killed" || (word.size() > 7 && word.substr(0, 1) == "[" && has(word, "Killed ")))
    return e;
  return std::nullopt;
}

}  // namespace trigon
