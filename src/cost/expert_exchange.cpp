#include "cost/expert_exchange.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "cost/device_model.hpp"

namespace trigon {
namespace {

constexpr const char* kNames[] = {"dispatch", "combine", "dispatch_low_latency",
                                  "combine_low_latency"};
static_assert(std::size(kNames) == kExchangeKinds);

// Multiprocessors of normal kernels unless they are set (deep_ep/buffers/legacy.py, num_sms;
// Megatron-LM, moe_deepep_num_sms).
constexpr double kMultiprocessors = 20;

// A 400 Gb/s port carries 44 to 45 of its 50 GB/s, over 16 ranks and more, and a call that crosses
// takes some 20 us more to start than one inside a node: low-latency rows of DeepEP's
// docs/legacy.md (dispatch 118 us over 16 ranks to 194 us over 256, combine 195 us to 360 us) at
// 128 tokens of 7,168 values and 8 experts.
constexpr double kPortShare = 0.9, kPortStart = 20e-6;

double corner(double a, double b, double sharpness) {
  const double hi = std::max(a, b), lo = std::min(a, b);
  return lo <= 0 ? hi : hi * std::pow(1 + std::pow(lo / hi, sharpness), 1 / sharpness);
}

bool low_latency(ExchangeKind k) { return k >= ExchangeKind::dispatch_low_latency; }

// Low-latency kernels launch a block for so many experts that there is one for each
// multiprocessor.
double expert_blocks(double experts, double multiprocessors) {
  if (multiprocessors <= 0) return experts;
  return std::ceil(experts / std::ceil(experts / multiprocessors));
}

}  // namespace

const char* exchange_name(ExchangeKind k) { return kNames[static_cast<std::size_t>(k)]; }

double groups_reached(double groups, double experts, double top_k) {
  const double each = experts / groups;
  double missed = 1;
  for (double i = 0; i < top_k; ++i)
    missed *= std::max(0.0, experts - each - i) / std::max(1.0, experts - i);
  return groups * (1 - missed);
}

double exchange_seconds(const DeviceModel& d, const ExpertExchange& x) {
  const ExchangeCoefficients& c = d.intra.c.exchange[static_cast<std::size_t>(x.kind)];
  if (x.ranks <= 1 || x.tokens <= 0 || c.ceiling <= 0) return 0;
  const double n = x.ranks;
  const int together = d.per_node / std::max(1, x.stride);
  const double inside = std::clamp(static_cast<double>(together), 1.0, n);
  const bool crosses = inside < n && d.inter;
  const bool direct = low_latency(x.kind);
  const double bytes = x.hidden * x.value_bytes;
  const double copies = direct ? x.top_k : groups_reached(n, x.experts, x.top_k);
  const double units = direct                  ? expert_blocks(x.experts, d.sm_count)
                       : x.multiprocessors > 0 ? x.multiprocessors
                                               : kMultiprocessors;
  const double work =
      x.tokens / units *
      (c.token_seconds + copies * c.copy_seconds +
       corner(c.lane_rate > 0 ? bytes / c.lane_rate : 0, copies * bytes / c.rate, c.sharpness));
  const double near_rate = d.intra.one_way * c.ceiling;
  double start = c.start_seconds + x.experts * c.expert_seconds;
  double wire = 0;
  if (!crosses) {
    if (inside > 1) wire = x.tokens * copies * bytes * (n - 1) / n / near_rate;
  } else {
    const double nodes = std::ceil(n / inside);
    const double port = d.inter->one_way * kPortShare;
    if (direct) {
      // Copies to ranks of the same node go over its own link, all others over the port.
      const double far = x.tokens * copies * bytes * (n - inside) / n / port;
      const double near = x.tokens * copies * bytes * (inside - 1) / n / near_rate;
      wire = std::max(far, inside > 1 ? near : 0);
    } else {
      // Once to each other node, from where it is forwarded to that node's ranks.
      const double reached = groups_reached(nodes, x.experts, x.top_k);
      const double far = x.tokens * reached * bytes * (nodes - 1) / nodes / port;
      const double forward = x.tokens * copies * bytes * (inside - 1) / inside / near_rate;
      wire = std::max(far, inside > 1 ? forward : 0);
    }
    // What waits for the network comes after the start.
    return start + kPortStart + corner(work, wire, c.sharpness);
  }
  return corner(start, corner(work, wire, c.sharpness), c.start_sharpness);
}

}  // namespace trigon
