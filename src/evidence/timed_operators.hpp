#pragma once
// Operators as published tables time them: from the dimensions that a row states to what a rank
// runs, and the shape by which a row is known ("m=8;n=4096;k=4096").

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost/expert_exchange.hpp"
#include "lower/operators.hpp"

namespace trigon {

// Numbers of a product as the tables call them.
struct TimedFormat {
  Format weights = Format::bf16, activations = Format::bf16;
  bool widened = false;
};
// "bfloat16", "fp8", "fp8_block", "nvfp4", "sq" (8-bit integers), "int8_wo", "int4_wo", "fp32".
std::optional<TimedFormat> timed_format(std::string_view dtype);

std::vector<Operator> timed_gemm(double m, double n, double k, double batch, TimedFormat f);

struct TimedAttention {
  double batch = 1, queries = 1, keys = 0;  // keys: of the last query
  double heads = 1, kv_heads = 1, dim = 128;
  double window = 0;  // 0: everything
  bool fp8_cache = false;
};
std::vector<Operator> timed_prefill(const TimedAttention& a);  // causal, keys == queries
std::vector<Operator> timed_decode(const TimedAttention& a);
// DeepSeek's latent attention: 512 latent and 64 rotated values, heads of 128 + 64.
std::vector<Operator> timed_latent_prefill(double batch, double queries, double heads);
std::vector<Operator> timed_latent_decode(double batch, double keys, double heads, bool fp8_cache);

struct TimedExperts {
  double tokens = 1, hidden = 0, inter = 0, top_k = 1, experts = 1, tensor = 1, expert_ranks = 1;
  double skew = 0;  // exponent of "power_law_1.2"; 0: balanced
};
std::vector<Operator> timed_experts(const TimedExperts& e, TimedFormat f);
// Experts that get a token, of all ranks.
double timed_experts_hit(const TimedExperts& e);

// Memory-bound operators: `values` elements, each read `reads` times and written `writes` times.
std::vector<Operator> timed_elementwise(double values, double reads, double writes, double bytes);

// "layernorm" or "softmax" over rows of so many 32-bit values.
std::vector<Operator> timed_rows(std::string_view op, double rows, double width);
// Functions of two tensors ("add"), which tables tell from those of one and a number ("addu").
bool two_operands(std::string_view function);

// Dimensions of a shape: "m=8;n=4096;k=4096".
class TimedShape {
 public:
  explicit TimedShape(std::string_view text);
  std::optional<double> number(std::string_view key) const;
  std::string_view text(std::string_view key) const;
  bool empty() const { return pairs_.empty(); }

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

// The operators of a row of a summary table: operator, numbers and shape. Absent when the operator
// is none that is modelled or the shape lacks a dimension.
std::optional<std::vector<Operator>> timed_operators(std::string_view op, std::string_view dtype,
                                                     const TimedShape& shape);

// Kernels for experts as rows name them: "deepep_dispatch_low_latency" of
// "tokens=128;hidden=7168;topk=8;experts=256", normal ones with ";sms=20". Absent for another
// operator or without a dimension; `dtype` is that of the tokens on their way.
ExchangeKind exchange_kind(bool combine, bool low_latency);
std::string exchange_operator(ExchangeKind k);
std::string exchange_shape(const ExpertExchange& x);
std::optional<ExpertExchange> timed_exchange(std::string_view op, std::string_view dtype,
                                             const TimedShape& shape);

// One shape is in one fold whatever device, numbers or run it was timed with.
constexpr int kTimedFolds = 4;
// The kind of the sheets that were fitted without a fold.
inline std::string operator_fold_kind(int fold) { return "operator_fold_" + std::to_string(fold); }
int timed_fold(std::string_view op, std::string_view shape, int devices);

}  // namespace trigon
