#include "evidence/operator_samples.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "evidence/timed_operators.hpp"

namespace trigon {
namespace {

std::uint64_t hash_of(const CsvRow& row) {
  std::uint64_t h = 1469598103934665603ULL;
  for (const std::string& f : row.fields)
    for (unsigned char c : f) h = (h ^ c) * 1099511628211ULL;
  return h ^ (h >> 29);
}

std::uint32_t kind_hash(std::initializer_list<double> dimensions) {
  std::uint64_t h = 1469598103934665603ULL;
  for (double d : dimensions) h = (h ^ static_cast<std::uint64_t>(d)) * 1099511628211ULL;
  return static_cast<std::uint32_t>(h ^ (h >> 32));
}

struct Columns {
  const CsvTable& table;
  double number(const CsvRow& row, const char* name, double otherwise = 0) const {
    auto c = table.column(name);
    double v = otherwise;
    if (c) {
      const std::string& s = row.fields[*c];
      std::from_chars(s.data(), s.data() + s.size(), v);
    }
    return v;
  }
  std::string text(const CsvRow& row, const char* name) const {
    auto c = table.column(name);
    return c ? row.fields[*c] : std::string();
  }
};

// Rows of a table for each of its number formats: enough for a grid.
constexpr std::size_t kTableRows = 20000;

// About `wanted` rows, chosen by their hash.
bool taken(const CsvTable& t, std::uint64_t hash, std::size_t wanted) {
  const std::uint64_t keep = std::max<std::size_t>(1, t.rows.size() / wanted);
  return (hash >> 8) % keep == 0;
}

bool starts_with(const std::string& s, const char* prefix) { return s.rfind(prefix, 0) == 0; }

struct Reader {
  const CsvTable& t;
  Columns c;
  std::size_t device;
  const DeviceNames& names;
  Bench& bench;
  std::uint32_t source;

  void add(Sample s, const CsvRow& r, const char* op, const std::string& shape, double seconds,
           std::uint32_t shape_kind) {
    if (!(seconds > 0)) return;
    s.device = device;
    s.seconds = seconds;
    s.hash = hash_of(r);
    s.fold = timed_fold(op, shape, 1);
    s.shape_kind = shape_kind;
    s.source = source;
    bench.samples.push_back(std::move(s));
  }
  double seconds(const CsvRow& r) const { return c.number(r, "latency") * 1e-3; }

  void gemm() {
    for (const CsvRow& r : t.rows) {
      if (!taken(t, hash_of(r), kTableRows * 2)) continue;
      std::string dtype = c.text(r, "gemm_dtype");
      if (dtype.empty()) dtype = "bfloat16";
      const auto f = timed_format(dtype);
      const double m = c.number(r, "m"), n = c.number(r, "n"), k = c.number(r, "k");
      // Slivers say nothing about the products of models.
      if (!f || n < 128 || k < 128) continue;
      Sample s;
      s.ops = timed_gemm(m, n, k, 1, *f);
      s.block = matrix_path_name(matrix_path(bench.devices[device], s.ops[0]));
      add(std::move(s), r, "gemm", fmt::format("m={};n={};k={}", m, n, k), seconds(r),
          kind_hash({n, k}));
    }
  }

  void prefill() {
    for (const CsvRow& r : t.rows) {
      if (!taken(t, hash_of(r), kTableRows)) continue;
      TimedAttention a{c.number(r, "batch_size"),
                       c.number(r, "isl"),
                       c.number(r, "isl"),
                       c.number(r, "num_heads"),
                       c.number(r, "num_key_value_heads"),
                       c.number(r, "head_dim", 128),
                       c.number(r, "window_size"),
                       starts_with(c.text(r, "kv_cache_dtype"), "fp8")};
      if (a.kv_heads <= 0) a.kv_heads = a.heads;
      if (a.queries < 2 || a.dim > 256 || a.dim == 192) continue;
      Sample s;
      s.ops = timed_prefill(a);
      const bool windowed = s.ops[0].window > 0;
      s.block = windowed ? "windowed_prefill" : "attention_prefill";
      add(std::move(s), r, "attention_prefill_causal",
          fmt::format("b={};isl={};h={};kv={};d={}", a.batch, a.queries, a.heads, a.kv_heads,
                      a.dim) +
              (windowed ? fmt::format(";w={}", a.window) : ""),
          seconds(r), kind_hash({a.heads, a.kv_heads, a.dim}));
    }
  }

  void decode() {
    for (const CsvRow& r : t.rows) {
      if (!taken(t, hash_of(r), kTableRows)) continue;
      const double keys = c.number(r, "step") + 1;
      TimedAttention a{c.number(r, "batch_size"),
                       1,
                       keys,
                       c.number(r, "num_heads"),
                       c.number(r, "num_key_value_heads"),
                       c.number(r, "head_dim", 128),
                       c.number(r, "window_size"),
                       starts_with(c.text(r, "kv_cache_dtype"), "fp8")};
      if (a.kv_heads <= 0) a.kv_heads = a.heads;
      if (a.dim > 256 || a.dim == 192) continue;
      Sample s;
      s.ops = timed_decode(a);
      const bool windowed = s.ops[0].window > 0;
      s.block = windowed ? "windowed_decode" : "attention_decode";
      add(std::move(s), r, "attention_decode",
          fmt::format("b={};kvlen={};h={};kv={};d={}", a.batch, keys, a.heads, a.kv_heads, a.dim) +
              (windowed ? fmt::format(";w={}", a.window) : ""),
          seconds(r), kind_hash({a.heads, a.kv_heads, a.dim}));
    }
  }

  void latent(bool context) {
    for (const CsvRow& r : t.rows) {
      const double b = c.number(r, "batch_size"), h = c.number(r, "num_heads");
      const double length = context ? c.number(r, "isl") : c.number(r, "step") + 1;
      const bool fp8 = starts_with(c.text(r, "kv_cache_dtype"), "fp8");
      if (context && length < 2) continue;
      Sample s;
      s.ops = context ? timed_latent_prefill(b, length, h) : timed_latent_decode(b, length, h, fp8);
      s.block = context ? "latent_prefill" : "latent_decode";
      add(std::move(s), r, context ? "mla_prefill" : "mla_decode",
          fmt::format("b={};{}={};h={}", b, context ? "isl" : "kvlen", length, h), seconds(r),
          kind_hash({h}));
    }
  }

  void experts() {
    for (const CsvRow& r : t.rows) {
      if (!taken(t, hash_of(r), kTableRows)) continue;
      const auto f =
          timed_format(c.text(r, "moe_dtype").empty() ? "bfloat16" : c.text(r, "moe_dtype"));
      // Kernels of their own that share nothing with those of integer weights.
      if (c.text(r, "moe_dtype") == "w4a16_mxfp4") continue;
      const std::string routing = c.text(r, "distribution");
      TimedExperts e{c.number(r, "num_tokens"),
                     c.number(r, "hidden_size"),
                     c.number(r, "inter_size"),
                     c.number(r, "topk"),
                     c.number(r, "num_experts"),
                     std::max(1.0, c.number(r, "moe_tp_size")),
                     std::max(1.0, c.number(r, "moe_ep_size")),
                     0};
      constexpr std::string_view kSkewed = "power_law_";
      if (starts_with(routing, "power_law_"))
        std::from_chars(routing.data() + kSkewed.size(), routing.data() + routing.size(), e.skew);
      if (!f || e.inter / e.tensor < 64 || e.expert_ranks > 1) continue;
      Sample s;
      s.ops = timed_experts(e, *f);
      s.block = "grouped";
      add(std::move(s), r, "moe_layer",
          fmt::format("tokens={};hidden={};inter={};topk={};experts={};tp={};dist={}", e.tokens,
                      e.hidden, e.inter, e.top_k, e.experts, e.tensor, routing),
          seconds(r), kind_hash({e.hidden, e.inter, e.experts}));
    }
  }

  // Elementwise functions, norms and softmax in 32 bit, several devices in one table.
  void rows(const char* op) {
    for (const CsvRow& r : t.rows) {
      const auto of = names(c.text(r, "Device"));
      if (!of) continue;
      device = *of;
      const double b = c.number(r, "B"), h = c.number(r, "H");
      const std::string function = c.text(r, "OPName");
      Sample s;
      s.ops = function.empty() ? timed_rows(op, b, h)
                               : timed_elementwise(b * h, two_operands(function) ? 2 : 1, 1, 4);
      s.block = "elementwise";
      std::string shape = fmt::format("b={};h={}", b, h);
      if (!function.empty()) shape += ";fn=" + function;
      add(std::move(s), r, op, shape, c.number(r, "Latency") * 1e-3, kind_hash({h}));
    }
  }

  // Products without matrix units, several devices in one table.
  void vector_products() {
    for (const CsvRow& r : t.rows) {
      const auto of = names(c.text(r, "Device"));
      if (!of) continue;
      device = *of;
      const double b = c.number(r, "B"), m = c.number(r, "M"), n = c.number(r, "N"),
                   k = c.number(r, "K");
      if (n < 256 || k < 256) continue;  // beyond the grid
      Sample s;
      s.ops = timed_gemm(m, n, k, b, *timed_format("fp32"));
      s.block = "fp32";
      add(std::move(s), r, "linear_fp32", fmt::format("b={};m={};n={};k={}", b, m, n, k),
          c.number(r, "Latency") * 1e-3, kind_hash({n, k}));
    }
  }
};

void read_collectives(const CsvTable& t, bool custom, std::size_t machine, std::uint32_t source,
                      Bench& bench) {
  Columns c{t};
  for (const CsvRow& r : t.rows) {
    CollectiveSample s;
    const std::string op = custom ? "all_reduce" : c.text(r, "op_name");
    if (op == "all_reduce")
      s.collective = Collective::all_reduce;
    else if (op == "all_gather")
      s.collective = Collective::all_gather;
    else if (op == "reduce_scatter")
      s.collective = Collective::reduce_scatter;
    else if (op == "alltoall")
      s.collective = Collective::all_to_all;
    else
      continue;
    if (custom) s.kernels = CollectiveKernels::one_shot;
    s.host_launched = c.text(r, "backend") == "vllm_eager";
    const double element = c.text(r, "nccl_dtype") == "int8" ? 1 : 2;
    s.payload = c.number(r, "message_size") * element;
    s.ranks = static_cast<int>(c.number(r, "num_gpus"));
    s.seconds = c.number(r, "latency") * 1e-3;
    s.machine = machine;
    s.source = source;
    s.fold = timed_fold(custom ? "custom_all_reduce" : "nccl_" + op,
                        fmt::format("bytes={}", s.payload), s.ranks);
    if (s.seconds > 0 && s.ranks > 1) bench.collectives.push_back(s);
  }
}

// Kernels for experts, in microseconds: a row has both directions. All tables are of 8 devices,
// with FP8 tokens on the way out.
void read_exchanges(const CsvTable& t, bool low_latency, std::size_t machine, Bench& bench) {
  constexpr int kRanks = 8;
  Columns c{t};
  for (const CsvRow& r : t.rows)
    for (const bool combine : {false, true}) {
      const std::string way = combine ? "combine" : "dispatch";
      ExchangeSample s;
      ExpertExchange& x = s.exchange;
      x.kind = exchange_kind(combine, low_latency);
      x.tokens = c.number(r, "num_token");
      x.hidden = c.number(r, "hidden_size");
      x.top_k = c.number(r, "num_topk");
      x.experts = c.number(r, "num_experts");
      x.value_bytes = combine ? 2 : kFp8DispatchBytes;
      x.ranks = kRanks;
      x.multiprocessors = low_latency ? 0 : c.number(r, (way + "_sms").c_str());
      s.seconds = 1e-6 * c.number(r, (way + (low_latency ? "_avg_t_us" : "_transmit_us")).c_str());
      s.machine = machine;
      s.hash = hash_of(r);
      s.fold = timed_fold(exchange_operator(x.kind), exchange_shape(x), kRanks);
      if (s.seconds > 0) bench.exchanges.push_back(s);
    }
}

// "vllm-0.24.0" of "gemm_perf.vllm-0.24.0.csv".
std::string framework_of(const std::string& name) {
  const auto dot = name.find('.'), dash = name.find('-');
  return dot == std::string::npos || dash == std::string::npos || dash < dot
             ? name
             : name.substr(dot + 1, dash - dot - 1);
}

}  // namespace

bool reads_table(const std::string& name) {
  constexpr const char* kinds[] = {
      "custom_allreduce",     "nccl_perf",    "gemm_perf",      "context_attention",
      "generation_attention", "context_mla",  "generation_mla", "moe_perf",
      "test_linear",          "test_bmm",     "test_elem",      "test_ln",
      "test_softmax",         "wideep_deepep"};
  return std::any_of(std::begin(kinds), std::end(kinds),
                     [&](const char* k) { return starts_with(name, k); });
}

bool add_samples(const CsvTable& table, const std::string& name, std::size_t device,
                 const DeviceNames& names, std::size_t machine, Bench& bench) {
  const std::string framework = framework_of(name);
  auto known = std::find(bench.sources.begin(), bench.sources.end(), framework);
  const auto source = static_cast<std::uint32_t>(known - bench.sources.begin());
  if (known == bench.sources.end()) bench.sources.push_back(framework);
  const bool custom = starts_with(name, "custom_allreduce");
  Reader r{table, {table}, device, names, bench, source};
  const bool experts = starts_with(name, "wideep_deepep");
  if (custom || experts || starts_with(name, "nccl_perf")) {
    if (experts)
      read_exchanges(table, starts_with(name, "wideep_deepep_ll"), machine, bench);
    else
      read_collectives(table, custom, machine, source, bench);
    bench.link_files[bench.machines[machine].link].push_back(bench.machines[machine].accelerator +
                                                             "/" + name);
    return true;
  }
  if (starts_with(name, "gemm_perf"))
    r.gemm();
  else if (starts_with(name, "context_attention"))
    r.prefill();
  else if (starts_with(name, "generation_attention"))
    r.decode();
  else if (starts_with(name, "context_mla") || starts_with(name, "generation_mla"))
    r.latent(starts_with(name, "context_mla"));
  else if (starts_with(name, "moe_perf"))
    r.experts();
  else if (starts_with(name, "test_linear") || starts_with(name, "test_bmm"))
    r.vector_products();
  else if (starts_with(name, "test_elem"))
    r.rows("elementwise");
  else if (starts_with(name, "test_ln"))
    r.rows("layernorm");
  else if (starts_with(name, "test_softmax"))
    r.rows("softmax");
  else
    return false;
  if (!table.column("Device"))
    bench.files[device].push_back(bench.devices[device].accelerator->id + "/" + name);
  return true;
}

}  // namespace trigon
