// Rows of collectives (bus bandwidth at a payload) and of matrix products (the most over shapes).

#include <cmath>

#include "evidence/messages.hpp"
#include "evidence/resolve.hpp"
#include "evidence/timed_operators.hpp"

namespace trigon {
namespace {

// What a bandwidth without a payload is taken to be measured at.
constexpr double kLargePayload = 8589934592;

CollectiveKernels kernels_of(std::string_view algorithm) {
  const bool rings = algorithm == "Ring" || algorithm.find("NVLS off") != std::string_view::npos;
  return rings ? CollectiveKernels::library_rings : CollectiveKernels::library;
}

std::optional<std::array<double, 3>> dimensions(std::string_view text) {
  std::array<double, 3> out{};
  for (std::size_t i = 0; i < 3; ++i) {
    double v = 0;
    const auto end = std::min(text.find('x'), text.size());
    for (const char c : text.substr(0, end)) {
      if (c < '0' || c > '9') return std::nullopt;
      v = v * 10 + (c - '0');
    }
    if (v <= 0 || v > 1e9) return std::nullopt;
    out[i] = v;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

std::optional<Collective> collective_by_name(std::string_view name) {
  if (name == "all_reduce" || name == "allreduce") return Collective::all_reduce;
  if (name == "all_gather" || name == "allgather") return Collective::all_gather;
  if (name == "reduce_scatter") return Collective::reduce_scatter;
  if (name == "alltoall" || name == "all_to_all") return Collective::all_to_all;
  if (name == "sendrecv" || name == "send") return Collective::send;
  return std::nullopt;
}

CaseOrRefusal read_comm_case(const Row& row, const RowNames& names) {
  Case c;
  if (auto r = take_identity(row, c, false, "busbw_gbps")) return *r;
  c.measured *= 1e9;
  c.timed.emplace();
  TimedCase& t = *c.timed;
  const std::string_view name = row.text("collective");
  const auto collective = collective_by_name(name);
  if (!collective) return Refusal{RefusalReason::method_not_supported, std::string(name)};
  t.collective = *collective;
  t.kernels = kernels_of(row.text("algo"));
  t.figure = TimedCase::Figure::bus_bandwidth;
  // A script that times each call of a framework, launch and all.
  t.host_launched = row.text("tool") == "all_reduce_bench.py";
  t.payload = row.number("payload_bytes").value_or(0);
  if (t.payload <= 0) {
    t.payload = kLargePayload;
    c.assumptions.push_back({"payload_bytes", message(EvidenceMessage::large_payload)});
  }
  const auto ranks = row.whole("n_gpus");
  if (!ranks || *ranks < 2 || *ranks > 1000000)
    return Refusal{RefusalReason::input_missing, "n_gpus"};
  t.ranks = static_cast<int>(*ranks);
  const auto nodes = std::max<std::int64_t>(1, row.whole("nodes").value_or(1));
  if (auto r = take_hardware(row, names, *ranks, *ranks / nodes, c)) return *r;
  return c;
}

CaseOrRefusal read_matmul_case(const Row& row, const RowNames& names) {
  Case c;
  if (auto r = take_identity(row, c, false, "achieved_tflops")) return *r;
  c.measured *= 1e12;
  c.timed.emplace();
  TimedCase& t = *c.timed;
  std::string_view precision = row.text("precision");
  if (!precision.empty() && precision.back() == '?') precision.remove_suffix(1);
  const auto f = timed_format(precision == "fp16" ? "bf16" : precision);
  if (!f) return Refusal{RefusalReason::format_unknown, std::string(precision)};
  auto shape = dimensions(row.text("shape_mnk"));
  if (!shape) {
    shape = {8192, 8192, 8192};
    c.assumptions.push_back({"shape_mnk", message(EvidenceMessage::large_product, (*shape)[0])});
  }
  const auto [m, n, k] = *shape;
  // Operands are in the format already: nothing is scaled first.
  const bool narrow = precision == "fp8" || precision == "int8";
  if (narrow) t.at_peak_of = precision == "fp8" ? MathClass::fp8 : MathClass::int8;
  const TimedFormat format = narrow ? TimedFormat{} : *f;
  t.operators = timed_gemm(m, n, k, 1, format);
  t.figure = TimedCase::Figure::rate;
  t.work = t.operators[0].flops;
  // The most over many shapes is no less than a large square reaches.
  t.best_shape = row.text("kind").find("max over shapes") != std::string_view::npos;
  if (t.best_shape) t.operators.push_back(timed_gemm(8192, 8192, 8192, 1, format)[0]);
  if (auto r = take_hardware(row, names, 1, 0, c)) return *r;
  return c;
}

}  // namespace trigon
