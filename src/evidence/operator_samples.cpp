#include "evidence/operator_samples.hpp"

#include <algorithm>
#include <charconv>

#include "lower/lower.hpp"

namespace trigon {
namespace {

std::uint64_t hash_of(const CsvRow& row) {
  std::uint64_t h = 1469598103934665603ULL;
  for (const std::string& f : row.fields)
    for (unsigned char c : f) h = (h ^ c) * 1099511628211ULL;
  return h ^ (h >> 29);
}

constexpr double kTinyBytes = 1e6;

struct Columns {
  const CsvTable& table;
  double number(const CsvRow& row, const char* name) const {
    auto c = table.column(name);
    double v = 0;
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

// About `wanted` rows, chosen by their hash.
std::vector<const CsvRow*> sample_rows(const CsvTable& t, std::size_t wanted) {
  std::vector<const CsvRow*> out;
  std::uint64_t keep = std::max<std::size_t>(1, t.rows.size() / std::max<std::size_t>(1, wanted));
  for (const CsvRow& r : t.rows)
    if ((hash_of(r) >> 8) % keep == 0) out.push_back(&r);
  return out;
}

Format operand(const std::string& dtype) {
  if (dtype == "fp8") return Format::fp8_tensor;
  if (dtype == "nvfp4") return Format::nvfp4;
  if (dtype == "sq") return Format::int8;
  return Format::bf16;
}

Operator matrix(OperatorKind kind, double m, double n, double k, double groups, double read,
                Format weights) {
  Operator op;
  op.kind = kind;
  op.m = m, op.n = n, op.k = k, op.groups = groups;
  op.weights = weights;
  op.flops = 2 * m * n * k;
  op.weight_bytes = read * n * k * bits_per_element(weights) / 8;
  op.data_bytes = (m * k + m * n) * 2;
  return op;
}

Operator attention(double batch, double queries, double keys, double context, double heads,
                   double kv_heads, double dim, double cache_bytes) {
  Operator op;
  op.kind = OperatorKind::attention;
  op.sequences = batch;
  op.query_tokens = queries;
  op.key_tokens = keys;
  op.group_size = heads / std::max(1.0, kv_heads);
  op.m = heads, op.n = kv_heads, op.k = dim;
  op.flops = 2 * batch * queries * keys * heads * 2 * dim;
  op.data_bytes =
      batch * context * kv_heads * 2 * dim * cache_bytes + batch * queries * heads * 2 * dim * 2;
  return op;
}

bool starts_with(const std::string& s, const char* prefix) { return s.rfind(prefix, 0) == 0; }

void read_gemm(const CsvTable& t, std::size_t device, double l2, Bench& bench) {
  Columns c{t};
  for (const CsvRow* r : sample_rows(t, 2400)) {
    std::string dtype = c.text(*r, "gemm_dtype");
    if (dtype.empty()) dtype = "bfloat16";
    // Block-scaled FP8 tables are bound by host launches, weight-only ones by dequantisation.
    std::string block = dtype == "bfloat16" ? "half"
                        : dtype == "fp8"    ? "fp8"
                        : dtype == "nvfp4"  ? "fp4"
                        : dtype == "sq"     ? "int8"
                                            : "";
    if (block.empty()) continue;
    Sample s;
    s.device = device;
    s.ops.push_back(matrix(OperatorKind::gemm, c.number(*r, "m"), c.number(*r, "n"),
                           c.number(*r, "k"), 1, 1, operand(dtype)));
    s.seconds = c.number(*r, "latency") * 1e-3;
    s.held_out = hash_of(*r) & 1;
    // The shapes that models have; the tables also hold slivers a hundred times longer than wide.
    const Operator& op = s.ops[0];
    if (op.n < 256 || op.k < 512 || op.k > 32768) continue;
    // Timed in a loop: operands that stay in L2 say nothing about memory. Tiny ones time the
    // launch.
    double moved = op.weight_bytes + op.data_bytes;
    if (moved < l2 && moved > kTinyBytes) continue;
    if (s.seconds > 0) bench.samples[block].push_back(std::move(s));
  }
}

void read_attention(const CsvTable& t, bool context, std::size_t device, double l2, Bench& bench) {
  Columns c{t};
  for (const CsvRow* r : sample_rows(t, 900)) {
    if (c.number(*r, "window_size") > 0) continue;
    double b = c.number(*r, "batch_size"), isl = c.number(*r, "isl");
    double heads = c.number(*r, "num_heads"), kv = c.number(*r, "num_key_value_heads");
    double dim = c.number(*r, "head_dim");
    if (kv <= 0) kv = heads;
    if (dim != 64 && dim != 128) continue;  // others take kernels of their own
    double cache = c.text(*r, "kv_cache_dtype") == "fp8" ? 1 : 2;
    Sample s;
    s.device = device;
    if (context) {
      s.ops.push_back(attention(b, isl, (isl + 1) / 2, isl, heads, kv, dim, 2));
    } else {
      double keys = c.number(*r, "step") + std::max(0.0, isl);
      s.ops.push_back(attention(b, 1, keys, keys, heads, kv, dim, cache));
      if (s.ops[0].data_bytes < l2 && s.ops[0].data_bytes > kTinyBytes) continue;
    }
    s.seconds = c.number(*r, "latency") * 1e-3;
    s.held_out = hash_of(*r) & 1;
    if (s.seconds > 0)
      bench.samples[context ? "attention_prefill" : "attention_decode"].push_back(std::move(s));
  }
}

void read_experts(const CsvTable& t, std::size_t device, Bench& bench) {
  Columns c{t};
  for (const CsvRow* r : sample_rows(t, 700)) {
    if (c.text(*r, "moe_dtype") != "bfloat16" || c.text(*r, "distribution") != "balanced") continue;
    double tokens = c.number(*r, "num_tokens"), hidden = c.number(*r, "hidden_size");
    double tp = std::max(1.0, c.number(*r, "moe_tp_size"));
    double ep = std::max(1.0, c.number(*r, "moe_ep_size"));
    double width = c.number(*r, "inter_size") / tp;
    double k = c.number(*r, "topk"), e = c.number(*r, "num_experts");
    double hit = experts_hit(e, k, tokens) / ep, pairs = tokens * k / ep;
    if (hit <= 0 || width < 1) continue;
    Sample s;
    s.device = device;
    s.ops.push_back(
        matrix(OperatorKind::grouped_gemm, pairs, 2 * width, hidden, hit, hit, Format::bf16));
    s.ops.push_back(
        matrix(OperatorKind::grouped_gemm, pairs, hidden, width, hit, hit, Format::bf16));
    s.seconds = c.number(*r, "latency") * 1e-3;
    s.held_out = hash_of(*r) & 1;
    if (s.seconds > 0) bench.samples["grouped"].push_back(std::move(s));
  }
}

void read_collectives(const CsvTable& t, const std::string& link, bool custom, Bench& bench) {
  Columns c{t};
  for (const CsvRow& r : t.rows) {
    CollectiveSample s;
    std::string op = custom ? "all_reduce" : c.text(r, "op_name");
    if (custom && c.text(r, "backend").find("eager") != std::string::npos) continue;
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
    s.payload = c.number(r, "message_size") * 2;  // elements of two bytes
    s.ranks = static_cast<int>(c.number(r, "num_gpus"));
    s.seconds = c.number(r, "latency") * 1e-3;
    s.held_out = hash_of(r) & 1;
    if (s.seconds > 0 && s.ranks > 1) bench.links[(custom ? "small/" : "") + link].push_back(s);
  }
}

}  // namespace

bool add_samples(const CsvTable& table, const std::string& name, std::size_t device,
                 double l2_bytes, const std::string& link, Bench& bench, Bench& wires) {
  bool context = starts_with(name, "context_attention");
  bool custom = starts_with(name, "custom_allreduce");
  if (starts_with(name, "gemm_perf"))
    read_gemm(table, device, l2_bytes, bench);
  else if (context || starts_with(name, "generation_attention"))
    read_attention(table, context, device, l2_bytes, bench);
  else if (starts_with(name, "moe_perf"))
    read_experts(table, device, bench);
  else if (custom || starts_with(name, "nccl_perf"))
    read_collectives(table, link, custom, wires);
  else
    return false;
  ((custom || starts_with(name, "nccl_perf")) ? wires : bench)
      .files.push_back(bench.devices[device].accelerator->id + "/" + name);
  return true;
}

}  // namespace trigon
