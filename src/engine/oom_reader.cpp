#include <algorithm>
#include <deque>

#include "engine/oom_frames.hpp"
#include "engine/oom_readers.hpp"
#include "engine/oom_text.hpp"

namespace trigon {
namespace {

constexpr std::size_t kMostEvents = 64;
constexpr std::size_t kMostEstimates = 64;
constexpr std::size_t kPassageLines = 16;  // a message wraps over so many lines at most
constexpr std::size_t kPassageBytes = 8192;
constexpr std::int64_t kSameFailure = 12;  // lines within which llama.cpp repeats one failure

// Letters that every line of interest holds: nearly all lines of a long log hold none.
bool worth_reading(std::string_view line) {
  for (std::string_view part :
       {"emory",      "lloc",      "iB",      "GB",      "n_ctx",         "n_vocab",   "File \"",
        "File \\\"",  "Traceback", "ill",     "xhaust",  "EXHAUST",       "OOM",       "bad_alloc",
        "max_",       "--max-",    "--mem-",  "--gpu-",  "offloaded",     "llama_",    "exit",
        "vocab_size", "Error",     "SIGKILL", "per GPU", "sched_reserve", "offload_",  "expandable",
        "n_layer",    "shm",       "failed",  "vllm",    "sglang",        "deepspeed", "LLM]"})
    if (line.find(part) != line.npos) return true;
  return false;
}

// "  127.48GB |   5.31GB | offload_optimizer=cpu": a row of DeepSpeed's table.
std::optional<OomEstimate> read_estimate(std::string_view line, std::int64_t number) {
  auto first = line.find('|');
  if (first == line.npos) return std::nullopt;
  auto second = line.find('|', first + 1);
  if (second == line.npos || !has(line.substr(second), "offload_")) return std::nullopt;
  auto from = line.find_first_of("0123456789");
  if (from == line.npos || from > first) return std::nullopt;
  auto host = leading_size(line.substr(from));
  auto start = line.find_first_of("0123456789", first);
  if (start == line.npos || start > second) return std::nullopt;
  auto card = leading_size(line.substr(start));
  if (!host || !card) return std::nullopt;
  std::string options = quotable(line.substr(second + 1));
  for (std::size_t at; (at = options.find("OffloadDeviceEnum.")) != options.npos;)
    options.erase(at, 18);
  for (std::size_t at; (at = options.find(" ,")) != options.npos;) options.erase(at, 1);
  return OomEstimate{number, *host, *card, options};
}

bool is_device_kind(OomKind k) { return k != OomKind::host_killed; }

class Reader {
 public:
  explicit Reader(std::string_view text) : lines_(text) {}

  OomReport read() {
    std::string_view line;
    while (fetch(line)) {
      if (!worth_reading(line) && !trace_.wants_source()) continue;
      trace_.see(line, number_);
      if (auto row = read_estimate(line, number_)) {
        if (report_.estimates.size() < kMostEstimates) report_.estimates.push_back(*row);
        continue;
      }
      OomPassage p{line, passage(line), number_};
      bool found = true;
      if (auto serving = read_serving_oom(p))
        add(std::move(*serving));
      else if (auto torch = read_torch_oom(p))
        add(std::move(*torch));
      else if (auto llama = read_llama_oom(p, above_))
        add(std::move(*llama));
      else if (auto host = read_host_oom(p))
        add(std::move(*host));
      else
        found = false;
      if (!found || has(line, "Free memory on device")) {
        see_serving_line(line, number_, above_);
        see_llama_line(line, number_, above_);
      }
      if (has(line, "PYTORCH_ALLOC_CONF"))
        report_.allocator_variable = "PYTORCH_ALLOC_CONF";
      else if (report_.allocator_variable.empty() && has(line, "PYTORCH_HIP_ALLOC_CONF"))
        report_.allocator_variable = "PYTORCH_HIP_ALLOC_CONF";
    }
    report_.lines = number_;
    report_.engine = above_.engine;
    report_.expandable_segments = above_.expandable_segments.value_or(false);
    if (report_.allocator_variable.empty()) report_.allocator_variable = "PYTORCH_CUDA_ALLOC_CONF";
    return std::move(report_);
  }

 private:
  struct Kept {
    std::string_view line;
    std::int64_t number;
  };

  // The next line, from those already looked at or from the log.
  bool fetch(std::string_view& line) {
    if (!ahead_.empty()) {
      line = ahead_.front().line;
      number_ = ahead_.front().number;
      ahead_.pop_front();
      return true;
    }
    if (read_ >= kOomMostLines || !lines_.next(line)) return false;
    ++read_;
    number_ = lines_.number();
    return true;
  }

  // The line with those below it that can belong to its message, blanks between.
  std::string passage(std::string_view line) {
    std::string out(line.substr(0, kPassageBytes));
    if (!may_be_error(line)) return out;
    while (ahead_.size() < kPassageLines) {
      std::string_view more;
      if (read_ >= kOomMostLines || !lines_.next(more)) break;
      ++read_;
      ahead_.push_back({more, lines_.number()});
    }
    for (const Kept& below : ahead_) {
      std::string_view more = below.line;
      if (out.size() + more.size() + 2 > kPassageBytes || has(more, "Traceback") ||
          has(more, "File \"") || has(more, "OutOfMemoryError"))
        break;
      auto from = more.find_first_not_of(" \t");
      if (from == more.npos) {
        out += "  ";  // an empty line ends a sentence
        continue;
      }
      out += ' ';
      out += more.substr(from);
    }
    return out;
  }

  static bool may_be_error(std::string_view line) {
    for (std::string_view part : {"emory", "lloc", "EXHAUST", "OOM", "max seq len", "NCCL", "KV "})
      if (line.find(part) != line.npos) return true;
    return false;
  }

  void add(OomEvent e) {
    e.line = number_;
    // A process that was ended after a failure was ended because of it.
    if (e.kind == OomKind::host_killed &&
        std::any_of(report_.events.begin(), report_.events.end(),
                    [](const OomEvent& x) { return is_device_kind(x.kind); }) &&
        !has(e.quoted, "Killed process"))
      return;
    TraceVerdict trace;
    if (e.kind == OomKind::allocation || e.kind == OomKind::device_error ||
        e.kind == OomKind::library_handle || e.kind == OomKind::collective) {
      trace = judge(trace_.frames(number_));
      if (trace.tool && e.tool == OomTool::torch) e.tool = *trace.tool;
      if (!trace.tool && e.tool == OomTool::torch && above_.engine &&
          *above_.engine != OomTool::llama_cpp)
        e.tool = *above_.engine;
      e.training = trace.training;
      const bool said = e.component != OomComponent::unknown;
      (said ? e.asked_for : e.component) = trace.component;
      if (trace.evidence) e.evidence.push_back(*trace.evidence);
    }
    for (std::size_t i = 0; i < kOomFigures; ++i)
      if (!e.figures.values[i]) e.figures.values[i] = above_.figures.values[i];
    judge_sizes(e);
    merge(std::move(e));
  }

  // Sizes that are those of one thing: rows of a vocabulary in 4 or 2 bytes.
  void judge_sizes(OomEvent& e) const {
    using F = OomFigure;
    const OomFigures& f = e.figures;
    if (e.component != OomComponent::unknown && e.component != OomComponent::activations) return;
    if (!f[F::tried] || !f[F::vocabulary]) return;
    for (F rows : {F::batch_tokens, F::requests, F::context})
      for (double width : {4.0, 2.0}) {
        if (!f[rows]) continue;
        const double size = *f[rows] * *f[F::vocabulary] * width;
        // Sizes are printed with two decimals of a MiB or GiB.
        const double step = size >= kGi ? kGi / 100 : kMi / 100;
        if (size < kMi || *f[F::tried] < size - step || *f[F::tried] > size + step) continue;
        e.component = OomComponent::logits;
        e.evidence.push_back(
            {e.line, message(EngineMessage::oom_size_of_logits, bytes(*f[F::tried]),
                             static_cast<std::int64_t>(*f[rows]),
                             static_cast<std::int64_t>(*f[F::vocabulary]),
                             static_cast<std::int64_t>(width))});
        return;
      }
  }

  void merge(OomEvent e) {
    if (!report_.events.empty()) {
      OomEvent& last = report_.events.back();
      // llama.cpp tells one failure in several lines, the cause first and the place last.
      if (e.kind == OomKind::buffer && last.kind == OomKind::buffer &&
          e.line <= last_line_ + kSameFailure) {
        if (last.component == OomComponent::unknown) {
          last.component = e.component;
          last.evidence = e.evidence;
        }
        if (last.device.empty()) last.device = e.device;
        if (!last.figures[OomFigure::tried]) last.figures = e.figures;
        last_line_ = e.line;
        return;
      }
    }
    last_line_ = e.line;
    for (OomEvent& x : report_.events)
      if (x.kind == e.kind && x.tool == e.tool && x.component == e.component &&
          x.asked_for == e.asked_for) {
        ++x.times;
        return;
      }
    if (report_.events.size() < kMostEvents) report_.events.push_back(std::move(e));
  }

  LogLines lines_;
  std::deque<Kept> ahead_;  // looked at for a passage, not yet read
  std::int64_t number_ = 0, read_ = 0, last_line_ = 0;
  Traceback trace_;
  OomContext above_;
  OomReport report_;
};

}  // namespace

OomReport read_oom_log(std::string_view text) {
  if (auto narrow = narrowed(text)) return Reader(*narrow).read();
  return Reader(text).read();
}

std::string_view oom_component_name(OomComponent c) {
  static constexpr std::string_view kNames[] = {
      "weights",       "kv_cache",      "activations",     "attention_scores",
      "logits",        "gradients",     "optimizer_state", "gathered_layers",
      "graphs",        "collectives",   "compute_buffer",  "library_workspace",
      "fragmentation", "other_process", "host_memory",     "unknown"};
  return kNames[static_cast<std::size_t>(c)];
}

std::string_view oom_tool_name(OomTool t) {
  static constexpr std::string_view kNames[] = {
      "pytorch", "vllm",        "sglang", "tensorrt-llm", "llama.cpp", "transformers", "deepspeed",
      "fsdp",    "megatron-lm", "xla",    "nccl",         "host",      "tgi"};
  return kNames[static_cast<std::size_t>(t)];
}

std::string_view oom_kind_name(OomKind k) {
  static constexpr std::string_view kNames[] = {"allocation",
                                                "device_error",
                                                "no_kv_blocks",
                                                "kv_too_short",
                                                "free_below_fraction",
                                                "sampler_warmup",
                                                "graph_capture",
                                                "static_fraction",
                                                "kv_pool_full",
                                                "executor_creation",
                                                "buffer",
                                                "modules_on_host",
                                                "collective",
                                                "library_handle",
                                                "xla",
                                                "host_allocation",
                                                "host_killed",
                                                "shared_memory",
                                                "prefill_warmup",
                                                "estimate"};
  return kNames[static_cast<std::size_t>(k)];
}

std::string_view oom_figure_name(OomFigure f) {
  static constexpr std::string_view kNames[] = {
#define TRIGON_OOM_FIGURE(id, unit) #id,
#include "engine/oom_figures.def"
#undef TRIGON_OOM_FIGURE
  };
  return kNames[static_cast<std::size_t>(f)];
}

std::string_view oom_figure_unit(OomFigure f) {
  static constexpr std::string_view kUnits[] = {
#define TRIGON_OOM_FIGURE(id, unit) unit,
#include "engine/oom_figures.def"
#undef TRIGON_OOM_FIGURE
  };
  return kUnits[static_cast<std::size_t>(f)];
}

}  // namespace trigon
