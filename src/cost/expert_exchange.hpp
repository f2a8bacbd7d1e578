#pragma once
// Dispatch of tokens to the ranks of their experts and the combination of what those give back, by
// kernels made for that (DeepEP and its kin) instead of a general all-to-all.
//
// Normal kernels send a token once to each rank that has one of its experts, over NVLink inside a
// node and once to each other node over the network, from a given number of multiprocessors.
// Low-latency kernels send it once for each expert, straight to its rank, into buffers of fixed
// size, from a block for each expert (deepseek-ai/DeepEP, docs/legacy.md,
// csrc/kernels/legacy/internode_ll.cu).

#include <array>
#include <cstddef>
#include <cstdint>

namespace trigon {

struct DeviceModel;

enum class ExchangeKind : std::uint8_t {
  dispatch,
  combine,
  dispatch_low_latency,
  combine_low_latency,
  count_
};
constexpr std::size_t kExchangeKinds = static_cast<std::size_t>(ExchangeKind::count_);
const char* exchange_name(ExchangeKind k);  // "dispatch_low_latency", as in the sheets

// Fitted for each kind. A call takes
//   start + experts * expert_seconds, rounded into max(units, wire) where those are longer;
//   units = tokens / units * (token + copies * copy + max(bytes / lane_rate, copies * bytes /
//   rate)) wire  = tokens * copies * bytes * (ranks - 1) / ranks / (one_way * ceiling).
struct ExchangeCoefficients {
  double ceiling = 0;  // share of the link; 0: never measured
  double start_seconds = 0, expert_seconds = 0;
  double token_seconds = 0, copy_seconds = 0;  // of one multiprocessor
  double lane_rate = 0, rate = 0;              // bytes a second of one multiprocessor
  double start_sharpness = 1, sharpness = 3;   // of both corners
  double error = 0;                            // relative, one standard deviation
};
using ExchangeTable = std::array<ExchangeCoefficients, kExchangeKinds>;

struct ExpertExchange {
  ExchangeKind kind = ExchangeKind::dispatch;
  double tokens = 0;  // of one rank
  double hidden = 0, value_bytes = 2;
  double top_k = 1, experts = 1;
  int ranks = 1, stride = 1;
  double multiprocessors = 0;  // of normal kernels; 0: the library's default
};

// What a value takes that is dispatched in FP8, with 32-bit scales of 128 values (DeepEP README).
constexpr double kFp8DispatchBytes = 1 + 4.0 / 128;

// Distinct of `groups` that a token reaches whose k experts of E are drawn without repetition and
// lie evenly in the groups: groups * (1 - C(E - E/groups, k) / C(E, k)).
double groups_reached(double groups, double experts, double top_k);

double exchange_seconds(const DeviceModel& d, const ExpertExchange& x);

}  // namespace trigon
