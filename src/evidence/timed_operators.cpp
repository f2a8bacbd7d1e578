#include "evidence/timed_operators.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace trigon {
namespace {

double element(Format f) { return bits_per_element(f) / 8; }

Operator product(OperatorKind kind, double m, double n, double k, double groups, double read,
                 TimedFormat f) {
  Operator op;
  op.kind = kind;
  op.m = m, op.n = n, op.k = k, op.groups = groups;
  op.weights = f.weights;
  op.activations = f.activations;
  op.widened = f.widened;
  op.timed_alone = true;
  op.flops = 2 * m * n * k;
  op.weight_bytes = read * n * k * element(f.weights);
  const double wide = f.activations == Format::f32 ? 4 : 2;
  op.data_bytes = (m * k + m * n) * wide;
  return op;
}

Operator attention(double batch, double queries, double mean_keys, double context, double heads,
                   double kv_heads, double qk, double v, double cache_width, double cache_bytes) {
  Operator op;
  op.kind = OperatorKind::attention;
  op.sequences = batch;
  op.query_tokens = queries;
  op.key_tokens = mean_keys;
  op.group_size = heads / std::max(1.0, kv_heads);
  op.m = heads, op.n = kv_heads, op.k = qk;
  op.weights = cache_bytes < 2 ? Format::fp8_tensor : Format::bf16;
  op.timed_alone = true;
  op.flops = 2 * batch * queries * mean_keys * heads * (qk + v);
  op.data_bytes =
      batch * context * cache_width * cache_bytes + batch * queries * heads * (qk + v) * 2;
  return op;
}

// Keys that a causal query sees on average behind `before` others, within a window.
double mean_causal(double queries, double window) {
  if (window <= 0 || window >= queries) return (queries + 1) / 2;
  return (window * (window + 1) / 2 + (queries - window) * window) / queries;
}

}  // namespace

std::optional<TimedFormat> timed_format(std::string_view dtype) {
  if (dtype == "bfloat16" || dtype == "bf16" || dtype == "half" || dtype == "float16")
    return TimedFormat{};
  if (dtype == "fp8") return TimedFormat{Format::fp8_tensor, Format::bf16, false};
  if (dtype == "fp8_block") return TimedFormat{Format::fp8_block, Format::bf16, false};
  if (dtype == "nvfp4") return TimedFormat{Format::nvfp4, Format::bf16, false};
  if (dtype == "sq" || dtype == "int8") return TimedFormat{Format::int8, Format::i8, false};
  if (dtype == "int8_wo") return TimedFormat{Format::int8, Format::bf16, true};
  if (dtype == "int4_wo" || dtype == "w4a16_mxfp4")
    return TimedFormat{Format::int4_g128, Format::bf16, true};
  if (dtype == "fp32" || dtype == "float32") return TimedFormat{Format::f32, Format::f32, false};
  if (dtype == "tf32") return TimedFormat{Format::tf32, Format::tf32, false};
  return std::nullopt;
}

std::vector<Operator> timed_gemm(double m, double n, double k, double batch, TimedFormat f) {
  Operator op = product(OperatorKind::gemm, m * batch, n, k, batch, batch, f);
  return {op};
}

std::vector<Operator> timed_prefill(const TimedAttention& a) {
  const double keys = mean_causal(a.queries, a.window);
  std::vector<Operator> out = {attention(a.batch, a.queries, keys, a.queries, a.heads, a.kv_heads,
                                         a.dim, a.dim, a.kv_heads * 2 * a.dim,
                                         a.fp8_cache ? 1 : 2)};
  if (a.window < a.queries) out[0].window = a.window;
  return out;
}

std::vector<Operator> timed_decode(const TimedAttention& a) {
  const double keys = a.window > 0 ? std::min(a.window, a.keys) : a.keys;
  std::vector<Operator> out = {attention(a.batch, 1, keys, keys, a.heads, a.kv_heads, a.dim, a.dim,
                                         a.kv_heads * 2 * a.dim, a.fp8_cache ? 1 : 2)};
  if (a.window < a.keys) out[0].window = a.window;
  return out;
}

std::vector<Operator> timed_latent_prefill(double batch, double queries, double heads) {
  return {attention(batch, queries, mean_causal(queries, 0), queries, heads, heads, 192, 128,
                    heads * 320, 2)};
}

std::vector<Operator> timed_latent_decode(double batch, double keys, double heads, bool fp8_cache) {
  return {attention(batch, 1, keys, keys, heads, 1, 576, 512, 576, fp8_cache ? 1 : 2)};
}

bool two_operands(std::string_view function) {
  return function == "add" || function == "mul" || function == "div" || function == "pow";
}

// A power law gives expert i of E a load of its quantile u = (i + 1/2) / E:
// ((b^(1-a) - s^(1-a)) u + s^(1-a))^(1/(1-a)) between s and b, rounded to whole tokens. The tables
// draw between 1 and 0.8 of the tokens, or 0.01 and 2 when there are fewer pairs than experts
// (collector of ai-dynamo/aiconfigurator, power_law_logits_v3).
double timed_experts_hit(const TimedExperts& e) {
  const double pairs = e.tokens * e.top_k;
  if (e.skew <= 0) {
    // "Balanced" tables of 256 experts read about 140 of them from 32 tokens on.
    const double reached = e.experts >= 256 ? 0.55 * e.experts : e.experts;
    return std::min(reached, pairs);
  }
  const double low = pairs > e.experts ? 1 : 0.01;
  const double high = pairs > e.experts ? std::max(1.5, e.tokens * 0.8) : 2;
  const double a = 1 - e.skew;
  const double from = std::pow(low, a), to = std::pow(high, a);
  const auto n = static_cast<int>(e.experts);
  double sum = 0, hit = 0;
  for (int i = 0; i < n; ++i) sum += std::pow((to - from) * ((i + 0.5) / n) + from, 1 / a);
  for (int i = 0; i < n; ++i) {
    const double load = std::pow((to - from) * ((i + 0.5) / n) + from, 1 / a) / sum * pairs;
    hit += load >= 0.5 ? 1 : 0;
  }
  return std::clamp(hit, std::min(e.top_k, e.experts), std::min(pairs, e.experts));
}

std::vector<Operator> timed_experts(const TimedExperts& e, TimedFormat f) {
  const double width = e.inter / e.tensor;
  const double hit = std::max(timed_experts_hit(e) / e.expert_ranks, 1.0);
  const double pairs = std::max(e.tokens * e.top_k / e.expert_ranks, 1.0);
  std::vector<Operator> out = {
      product(OperatorKind::grouped_gemm, pairs, 2 * width, e.hidden, hit, hit, f),
      product(OperatorKind::grouped_gemm, pairs, e.hidden, width, hit, hit, f)};
  for (Operator& op : out) op.routing_skew = e.skew;
  return out;
}

std::vector<Operator> timed_rows(std::string_view op, double rows, double width) {
  constexpr double kBytes = 4;
  std::vector<Operator> out = timed_elementwise(rows * width, 1, 1, kBytes);
  const bool norm = op == "layernorm", wide_softmax = op == "softmax" && width > 1024;
  // A multiprocessor holds sixteen norms of 128 threads, but two softmaxes of 1,024.
  out[0].row_bytes = width * kBytes * (norm ? 1 : 2.0 / 16);
  // Norms read a row for its mean and once more to scale it; softmax of more than 1,024 values for
  // its largest, its sum and its quotients (PyTorch, layer_norm_kernel.cu, SoftMax.cu).
  out[0].again_bytes = (norm ? 1 : wide_softmax ? 2 : 0) * rows * width * kBytes;
  return out;
}

std::vector<Operator> timed_elementwise(double values, double reads, double writes, double bytes) {
  Operator op;
  op.kind = OperatorKind::elementwise;
  op.timed_alone = true;
  op.flops = values;
  op.data_bytes = values * (reads + writes) * bytes;
  return {op};
}

TimedShape::TimedShape(std::string_view text) {
  while (!text.empty()) {
    const auto end = std::min(text.find(';'), text.size());
    const std::string_view pair = text.substr(0, end);
    const auto equals = pair.find('=');
    if (equals != std::string_view::npos)
      pairs_.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::string_view TimedShape::text(std::string_view key) const {
  for (const auto& [k, v] : pairs_)
    if (k == key) return v;
  return {};
}

std::optional<double> TimedShape::number(std::string_view key) const {
  const std::string_view t = text(key);
  double v = 0;
  const auto [end, code] = std::from_chars(t.data(), t.data() + t.size(), v);
  if (t.empty() || code != std::errc{} || end != t.data() + t.size() || !(v > 0)) return {};
  return v;
}

std::optional<std::vector<Operator>> timed_operators(std::string_view op, std::string_view dtype,
                                                     const TimedShape& shape) {
  const auto at = [&](const char* key) { return shape.number(key); };
  const auto either = [&](const char* key, const char* other, double otherwise) {
    return at(key).value_or(at(other).value_or(otherwise));
  };
  const auto slash = dtype.find("/kv=");
  const bool fp8_cache =
      slash != std::string_view::npos && dtype.substr(slash + 4).substr(0, 3) == "fp8";
  if (op == "attention_prefill_causal" || op == "attention_decode") {
    const bool decode = op == "attention_decode";
    const auto length = decode ? at("kvlen") : at("isl");
    if (!at("b") || !length || !at("h")) return std::nullopt;
    TimedAttention a{*at("b"),
                     decode ? 1 : *length,
                     *length,
                     *at("h"),
                     either("kv", "h", 1),
                     either("d", "head_dim", 128),
                     either("window", "w", 0),
                     fp8_cache};
    return decode ? timed_decode(a) : timed_prefill(a);
  }
  if (op == "mla_prefill" || op == "context_mla") {
    const double length = either("isl", "s", 0);
    if (!at("b") || length <= 0 || !at("h")) return std::nullopt;
    return timed_latent_prefill(*at("b"), length, *at("h"));
  }
  if (op == "mla_decode" || op == "generation_mla") {
    const double length = either("kvlen", "isl", 0);
    if (!at("b") || length <= 0 || !at("h")) return std::nullopt;
    return timed_latent_decode(*at("b"), length, *at("h"), fp8_cache);
  }
  if (op == "elementwise" || op == "softmax" || op == "layernorm") {
    const auto b = at("b"), h = at("h");
    if (!b || !h) return std::nullopt;
    if (op != "elementwise") return timed_rows(op, *b, *h);
    return timed_elementwise(*b * *h, two_operands(shape.text("fn")) ? 2 : 1, 1, 4);
  }
  const auto format = timed_format(dtype);
  if (!format) return std::nullopt;
  if (op == "moe_layer") {
    if (!at("tokens") || !at("hidden") || !at("inter") || !at("topk") || !at("experts"))
      return std::nullopt;
    TimedExperts e{*at("tokens"),  *at("hidden"),         *at("inter"),          *at("topk"),
                   *at("experts"), either("tp", "tp", 1), either("ep", "ep", 1), 0};
    constexpr std::string_view kSkewed = "power_law_";
    if (const auto d = shape.text("dist"); d.substr(0, kSkewed.size()) == kSkewed)
      std::from_chars(d.data() + kSkewed.size(), d.data() + d.size(), e.skew);
    return timed_experts(e, *format);
  }
  if (op == "gemm" || op == "linear_fp32" || op == "bmm" || op == "bmm_fp32" || op == "linear") {
    if (!at("m") || !at("n") || !at("k")) return std::nullopt;
    return timed_gemm(*at("m"), *at("n"), *at("k"), either("b", "batch", 1), *format);
  }
  return std::nullopt;
}

ExchangeKind exchange_kind(bool combine, bool low_latency) {
  if (low_latency)
    return combine ? ExchangeKind::combine_low_latency : ExchangeKind::dispatch_low_latency;
  return combine ? ExchangeKind::combine : ExchangeKind::dispatch;
}

std::string exchange_operator(ExchangeKind k) { return std::string("deepep_") + exchange_name(k); }

std::string exchange_shape(const ExpertExchange& x) {
  std::string s =
      fmt::format("tokens={};hidden={};topk={};experts={}", x.tokens, x.hidden, x.top_k, x.experts);
  if (x.multiprocessors > 0) s += fmt::format(";sms={}", x.multiprocessors);
  return s;
}

std::optional<ExpertExchange> timed_exchange(std::string_view op, std::string_view dtype,
                                             const TimedShape& shape) {
  ExpertExchange x;
  std::size_t kind = 0;
  while (kind < kExchangeKinds && op != exchange_operator(static_cast<ExchangeKind>(kind))) ++kind;
  const auto tokens = shape.number("tokens"), hidden = shape.number("hidden");
  const auto top_k = shape.number("topk"), experts = shape.number("experts");
  if (kind == kExchangeKinds || !tokens || !hidden || !top_k || !experts || *top_k > *experts)
    return std::nullopt;
  x.kind = static_cast<ExchangeKind>(kind);
  x.tokens = *tokens, x.hidden = *hidden, x.top_k = *top_k, x.experts = *experts;
  x.value_bytes = dtype == "fp8" ? kFp8DispatchBytes : 2;
  x.multiprocessors = shape.number("sms").value_or(0);
  return x;
}

int timed_fold(std::string_view op, std::string_view shape, int devices) {
  std::uint64_t h = 0xCBF29CE484222325u;
  const auto add = [&](std::string_view s) {
    for (const char c : s) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  };
  add(op), add("|"), add(shape), add("|"), add(std::to_string(devices));
  return static_cast<int>(h % kTimedFolds);
}

}  // namespace trigon
