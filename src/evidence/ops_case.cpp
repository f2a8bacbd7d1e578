// Rows of operator tables: "gemm" of a shape on a card in so many milliseconds.

#include "evidence/messages.hpp"
#include "evidence/resolve.hpp"
#include "evidence/timed_operators.hpp"

namespace trigon {
namespace {

bool starts(std::string_view s, std::string_view with) { return s.substr(0, with.size()) == with; }

bool ends(std::string_view s, std::string_view with) {
  return s.size() >= with.size() && s.substr(s.size() - with.size()) == with;
}

// Side of the square product that a table of peak rates stands for when it gives no shape.
constexpr double kLargeSide = 8192;
constexpr double kLargeBytes = 4e9;

std::optional<Refusal> take_collective(std::string_view op, const TimedShape& shape, TimedCase& t) {
  if (op == "custom_all_reduce") {
    t.kernels = CollectiveKernels::one_shot;
  } else {
    const auto c = collective_by_name(op.substr(op.find('_') + 1));
    if (!c) return Refusal{RefusalReason::method_not_supported, std::string(op)};
    t.collective = *c;
  }
  const auto bytes = shape.number("bytes");
  if (!bytes) return Refusal{RefusalReason::input_missing, "shape"};
  t.payload = *bytes;
  if (t.ranks < 2) return Refusal{RefusalReason::input_missing, "num_gpus"};
  return std::nullopt;
}

// "flagperf_toolkits_computation-BF16": what a vendor's or a framework's large product reaches.
std::optional<Refusal> take_peak(std::string_view op, Case& c, TimedCase& t) {
  const auto dash = op.rfind('-');
  const std::string_view what = op.substr(dash + 1);
  if (op.find("computation") != std::string_view::npos) {
    const auto f = timed_format(what == "BF16" || what == "FP16" ? "bf16"
                                : what == "FP32"                 ? "fp32"
                                : what == "TF32"                 ? "tf32"
                                : what == "INT8"                 ? "int8"
                                : what == "FP8"                  ? "fp8"
                                                                 : "");
    if (!f) return Refusal{RefusalReason::format_unknown, std::string(what)};
    t.operators = timed_gemm(kLargeSide, kLargeSide, kLargeSide, 1, *f);
    c.assumptions.push_back({"shape", message(EvidenceMessage::large_product, kLargeSide)});
    return std::nullopt;
  }
  if (op.find("main_memory-bandwidth") != std::string_view::npos) {
    t.operators = timed_elementwise(kLargeBytes / 8, 1, 1, 4);
    return std::nullopt;
  }
  return Refusal{RefusalReason::method_not_supported, std::string(op)};
}

}  // namespace

CaseOrRefusal read_ops_case(const Row& row, const RowNames& names) {
  Case c;
  if (auto r = take_identity(row, c, false, "")) return *r;
  c.timed.emplace();
  TimedCase& t = *c.timed;
  const std::string_view op = row.text("op");
  const TimedShape shape(row.text("shape"));
  t.ranks = static_cast<int>(row.whole("num_gpus").value_or(1));
  const bool collective = op == "custom_all_reduce" || starts(op, "nccl_");
  if (starts(op, "deepep_")) {
    t.exchange = timed_exchange(op, row.text("dtype"), shape);
    if (!t.exchange) return Refusal{RefusalReason::input_missing, "shape"};
    t.exchange->ranks = t.ranks;
  } else if (collective) {
    t.host_launched = ends(row.text("kernel_or_framework"), "_eager");
    if (auto r = take_collective(op, shape, t)) return *r;
  } else if (starts(op, "flagperf_")) {
    if (auto r = take_peak(op, c, t)) return *r;
  } else {
    auto ops = timed_operators(op, row.text("dtype"), shape);
    if (!ops) {
      if (shape.empty()) return Refusal{RefusalReason::input_missing, "shape"};
      return Refusal{RefusalReason::method_not_supported, std::string(op)};
    }
    t.operators = std::move(*ops);
  }
  double flops = 0, bytes = 0;
  for (const Operator& o : t.operators) flops += o.flops, bytes += o.weight_bytes + o.data_bytes;
  if (const auto ms = row.number("latency_ms"); ms && *ms > 0) {
    c.measured = *ms * 1e-3;
  } else if (const auto tflops = row.number("achieved_tflops"); tflops && *tflops > 0) {
    c.measured = *tflops * 1e12;
    t.figure = TimedCase::Figure::rate;
    t.work = flops;
  } else if (const auto rate = row.number("achieved_GBps"); rate && *rate > 0) {
    c.measured = *rate * 1e9;
    t.figure = collective ? TimedCase::Figure::bus_bandwidth : TimedCase::Figure::rate;
    t.work = bytes;
  } else {
    return Refusal{RefusalReason::bad_value, "latency_ms"};
  }
  if (auto r = take_hardware(row, names, collective || t.exchange ? t.ranks : 1, 0, c)) return *r;
  return c;
}

}  // namespace trigon
