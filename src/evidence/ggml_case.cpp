#include "evidence/ggml_case.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "evidence/resolve.hpp"
#include "model/gguf_file_type.hpp"

namespace trigon {

namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

bool begins(std::string_view s, std::string_view with) { return s.substr(0, with.size()) == with; }

// "4.89" of "gguf:Q4_K_M@4.89bpw"; 0 when not stated.
double stated_bits(std::string_view text) {
  const auto at = text.find('@');
  if (at == std::string_view::npos) return 0;
  double bits = 0;
  const std::string_view number = text.substr(at + 1);
  std::from_chars(number.data(), number.data() + number.size(), bits);
  return std::isfinite(bits) && bits > 0.5 && bits < 64 ? bits : 0;
}

// "Q8_0_R8" is Q8_0 with its rows interleaved.
std::string_view plain_type(std::string_view type) {
  for (const std::string_view tail : {"_R4", "_R8", "_R16"})
    if (type.size() > tail.size() && type.substr(type.size() - tail.size()) == tail)
      type.remove_suffix(tail.size());
  return type;
}

struct Counts {
  double all = 0, experts = 0;
  std::int64_t layers = 0, expert_layers = 0, first_expert_layer = 0;
};

Counts counts_of(const Stack& s) {
  Counts n;
  n.all = d(count_parameters(s).total);
  for (const LayerRun& run : s.runs) {
    for (const SubLayer& part : run.layer.parts)
      if (auto x = std::get_if<MixtureOfExperts>(&part)) {
        if (n.expert_layers == 0) n.first_expert_layer = n.layers;
        const auto one =
            x->up.parameters() + x->down.parameters() + (x->gate ? x->gate->parameters() : 0);
        n.experts += d(one * run.count);
        n.expert_layers += run.count;
      }
    n.layers += run.count;
  }
  return n;
}

// Buffers of weights in host memory, MiB, in the order of the log.
std::vector<double> host_buffers(const Row& row) {
  if (row.text("component") != "weights") return row.numbers("host_mib", {});
  return row.numbers("host_mib", {"CPU", "CUDA_Host", "CPU_Mapped", "Vulkan_Host"});
}
bool mapped(const Row& row) {
  return row.text("host_mapped") == "1" || !row.text("", {"CPU_Mapped"}).empty();
}

// The embedding has a buffer of its own size on the host: its format, and in how many of the
// buffers (of several runs in one log) it is.
struct HostEmbedding {
  Format format = Format::unknown;
  double mib = 0;
  int times = 0;
};
HostEmbedding embedding_in(const std::vector<double>& buffers, const Stack& s) {
  HostEmbedding e;
  if (!s.embedding) return e;
  for (int i = 0; i < static_cast<int>(Format::unknown); ++i) {
    const auto f = static_cast<Format>(i);
    if (!info(f).gguf && f != Format::f16 && f != Format::bf16) continue;
    const auto bytes = bytes_of(f, s.embedding->in, s.embedding->out);
    if (!bytes) continue;
    const double mib = d(bytes->value()) / kMi;
    const auto n = std::count_if(buffers.begin(), buffers.end(),
                                 [&](double b) { return std::fabs(b - mib) < 0.006; });
    if (n > 0 && e.times == 0) e = {f, mib, static_cast<int>(n)};
  }
  return e;
}

double file_bits(const Model& m) {
  const Stack& s = *language_stack(m);
  return d(weight_bytes(s).value()) * 8 / d(count_parameters(s).total);
}

// The named type whose rule gives the stated bits within half a hundredth: logs cut "Q4_K -
// Medium".
std::shared_ptr<const Model> named_mix(std::string_view type, double bits, const RowNames& names,
                                       const Case& c) {
  std::shared_ptr<const Model> best;
  double least = 0.005;
  for (const std::string_view t : gguf_file_types()) {
    if (t != type && !(begins(t, type) && t[type.size()] == '_')) continue;
    auto mixed = names.model_in_file_type(c.model, t);
    if (!mixed) continue;
    const double error = std::fabs(file_bits(*mixed) / bits - 1);
    if (error <= least) least = error, best = std::move(mixed);
  }
  return best;
}

// Layers whose experts the host holds, from what it holds beside the embedding. A mapped file is
// held from its first host tensor to its last, whatever of it lies on cards too.
std::int32_t experts_on_host(const Row& row, const Case& c, const HostEmbedding& e,
                             const std::vector<double>& buffers, double file) {
  const Counts n = counts_of(*language_stack(*c.model));
  if (n.expert_layers == 0) return 0;
  const std::optional<std::int32_t> gpu_layers = c.question.plan.gpu_layers;
  double rest = 0;
  for (const double b : buffers) rest += b * kMi;
  const int runs = std::max(e.times, 1);
  rest = rest / runs - e.mib * kMi;
  // The whole file: nothing is known but that the experts of what is offloaded whole do not fit.
  // More than the file: host layers and experts put there by name map it twice.
  if (mapped(row) || rest > 0.99 * file)
    return gpu_layers && rest < 1.2 * file ? 0 : static_cast<std::int32_t>(n.layers);
  const bool regions = buffers.size() > 2 * static_cast<std::size_t>(runs);
  double beside = (n.all - n.experts) * bits_per_element(e.format) / 8;
  if (e.format == Format::unknown) beside = file * (1 - n.experts / n.all);
  const double dense = std::max(0.0, beside - 2 * e.mib * kMi) / d(n.layers);  // of one layer
  const double one = (file - beside) / d(n.expert_layers) + (regions ? dense : 0);
  if (!(one > 0)) return 0;
  if (gpu_layers && !regions) rest -= dense * d(std::max<std::int64_t>(0, n.layers - *gpu_layers));
  const auto layers = std::llround(rest / one);
  if (layers <= 0) return 0;
  return static_cast<std::int32_t>(std::min<std::int64_t>(n.first_expert_layer + layers, n.layers));
}

// Where nothing is said of the host: all experts, when the file is larger than the cards.
std::int32_t experts_beyond(const Row& row, const Stack& s, double file) {
  const Counts n = counts_of(s);
  if (n.expert_layers == 0) return 0;
  const double cards = static_cast<double>(row.whole("n_gpus").value_or(0)) *
                       row.number("gpu_mem_gb").value_or(0) * kGi;
  if (file <= 0) file = n.all * bits_per_element(Format::iq1_s) / 8;  // at least so much
  return cards > 0 && file > cards ? static_cast<std::int32_t>(n.layers) : 0;
}

// Types that only ik_llama.cpp makes. Its converter stores the two halves of MLA's `kv_b` beside
// it (llama.cpp stores only the halves; the sizes of both forms are the same).
bool made_by_ik(std::string_view type) {
  if (type != plain_type(type)) return true;
  const auto f = format_by_name(type);
  return f && *f >= Format::q6_0 && *f <= Format::iq2_bn;
}

std::shared_ptr<const Model> with_halves(const Model& m) {
  auto out = std::make_shared<Model>(m);
  for (Component& part : out->components)
    if (auto* stack = std::get_if<Stack>(&part.body))
      for (LayerRun& run : stack->runs)
        for (SubLayer& sub : run.layer.parts)
          if (auto* l = std::get_if<LatentAttention>(&sub)) l->kv_up.count = 2;
  return out;
}

}  // namespace

bool by_ggml(const Row& row) {
  const std::string_view engine = row.text("engine");
  return engine == "llama.cpp" || engine == "ik_llama.cpp" || engine == "ollama";
}

std::optional<std::int64_t> cards_used(const Row& row) {
  if (row.text("component") != "compute_buffer") return std::nullopt;
  if (row.text("offload") == "cpu") return 0;
  const std::string_view all = row.text("", {"all"});
  if (!all.empty()) return 1 + std::count(all.begin(), all.end(), '/');
  const bool on_cpu = !row.text("", {"CPU"}).empty();
  return on_cpu ? std::optional<std::int64_t>(0) : std::nullopt;
}

std::string_view ggml_date(const Row& row) {
  const std::string_view stated = row.text("date");
  if (!stated.empty()) return stated;
  // Its issues, discussions and pull requests share one count; dates of some pull requests.
  struct Thread {
    int number;
    std::string_view date;
  };
  constexpr std::array threads = {Thread{1, "2024-08-01"},   Thread{240, "2025-03-03"},
                                  Thread{260, "2025-03-17"}, Thread{409, "2025-05-11"},
                                  Thread{520, "2025-06-11"}, Thread{698, "2025-08-16"},
                                  Thread{842, "2025-10-20"}, Thread{1211, "2026-01-31"}};
  const std::string_view source = row.text("source");
  if (source.find("ikawrakow/ik_llama.cpp") == std::string_view::npos) return {};
  std::string_view date;
  for (const std::string_view kind : {"issues/", "pull/", "discussions/"}) {
    const auto at = source.find(kind);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = source.substr(at + kind.size());
    int number = 0;
    std::from_chars(rest.data(), rest.data() + rest.size(), number);
    for (const Thread& t : threads)
      if (t.number <= number) date = t.date;
  }
  return date;
}

std::optional<Refusal> take_ggml_weights(const Row& row, const RowNames& names, Case& c) {
  const std::string_view text = row.text("weight_format"), component = row.text("component");
  PlanRequest& p = c.question.plan;
  if (row.text("engine") == "ik_llama.cpp" && made_by_ik(gguf_file_type(text))) {
    c.model = with_halves(*c.model);
    c.question.model = c.model.get();
  }
  const Stack& stack = *language_stack(*c.model);
  if (const auto layers = row.text("gpu_layers", {"offloaded"}); !layers.empty()) {
    std::int64_t n = 0;
    const auto [end, code] = std::from_chars(layers.data(), layers.data() + layers.size(), n);
    if (code == std::errc{} && n >= 0 && n < stack.layers() + 1)
      p.gpu_layers = static_cast<std::int32_t>(n);
    (void)end;
  }
  const std::vector<double> buffers = host_buffers(row);
  const HostEmbedding e = embedding_in(buffers, stack);
  const double bits = stated_bits(text);
  const std::string_view type = plain_type(gguf_file_type(text));
  double file = bits / 8 * d(count_parameters(stack).total);

  std::shared_ptr<const Model> mixed;
  if (!type.empty() && names.model_in_file_type)
    mixed = bits > 0 ? named_mix(type, bits, names, c) : names.model_in_file_type(c.model, type);
  if (mixed) {
    file = d(weight_bytes(*language_stack(*mixed)).value());
    c.model = std::move(mixed);
    c.question.model = c.model.get();
  } else if (bits > 0) {
    p.mean_bits = bits;
    p.weights = format_of(text).value_or(Format::q4_k);
    if (e.times > 0) p.beside_experts = e.format;
  } else if (const auto format = format_of(text)) {
    p.weights = format;
    file = d(count_parameters(stack).total) * bits_per_element(*format) / 8;
  } else if (e.times > 0) {
    // What lies on the cards is stored as the embedding is; experts lie elsewhere.
    p.weights = e.format;
  } else if (component != "kv_cache" && component != "compute_buffer") {
    return Refusal{RefusalReason::format_unknown, std::string(text)};
  }
  if (const auto n = row.whole("experts_on_host"))
    p.experts_on_host = static_cast<std::int32_t>(std::clamp<std::int64_t>(*n, 0, 100000));
  else if (!buffers.empty())
    p.experts_on_host = experts_on_host(row, c, e, buffers, file);
  else if (component == "compute_buffer")
    p.experts_on_host = experts_beyond(row, *language_stack(*c.model), file);
  return std::nullopt;
}

std::optional<Refusal> take_ggml_switches(const Row& row, Case& c) {
  PlanRequest& p = c.question.plan;
  if (const std::string_view kv = row.text("kv_format"); !kv.empty()) {
    const auto plus = kv.find('+');
    p.kv = format_of(kv.substr(0, plus));
    if (!p.kv) return Refusal{RefusalReason::format_unknown, std::string(kv)};
    if (plus != std::string_view::npos) {
      p.kv_values = format_of(kv.substr(plus + 1));
      if (!p.kv_values) return Refusal{RefusalReason::format_unknown, std::string(kv)};
    }
  }
  if (const auto mla = row.whole("mla")) p.latent_mode = mla;
  if (const auto fused = row.text("fmoe"); !fused.empty()) p.fused_experts = fused == "1";
  if (const auto amb = row.whole("amb")) p.attention_chunk_bytes = d(*amb) * kMi;
  return std::nullopt;
}

bool take_ggml_component(const Row& row, std::string_view span, Case& c) {
  const std::string_view component = row.text("component");
  PlanRequest& p = c.question.plan;
  if (component == "weights" && span == "file") {
    p.gpu_layers.reset();
    p.experts_on_host.reset();
    c.readout.host = Readout::Host::weights;
  } else if (component == "kv_cache") {
    // Logs sum the caches of all devices.
    p.gpu_layers.reset();
  } else if (component == "compute_buffer") {
    const bool on_host = row.text("offload") == "cpu" || cards_used(row) == 0;
    if (on_host) {
      p.gpu_layers = 0;
      c.readout.host = Readout::Host::buffers_alone;
    } else {
      c.readout.host = Readout::Host::largest_forward;
    }
  } else {
    return false;
  }
  return true;
}

}  // namespace trigon
