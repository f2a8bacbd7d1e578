#include <algorithm>
#include <cmath>

#include "cost/device_model.hpp"

namespace trigon {

double wire_share(Collective c, double n) {
  switch (c) {
    case Collective::all_reduce:
      return 2 * (n - 1) / n;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return (n - 1) / n;
    case Collective::send:
      return 1;
  }
  return 1;
}

namespace {

// Messages that wait for each other in a ring.
double rounds(Collective c, double n) {
  if (c == Collective::all_reduce) return 2 * (n - 1);
  return c == Collective::send ? 1 : n - 1;
}

// Between nodes an all-reduce goes up and down two trees that together use the whole bandwidth, or
// round the ring, whichever waits less (NCCL from 2.4 on: S. Jeaugey, "Massively Scale Your Deep
// Learning Training with NCCL 2.4", 2019; src/graph/tuning.cc counts 2 log2 of the nodes).
double rounds_between(Collective c, double nodes) {
  const double ring = rounds(c, nodes);
  return c == Collective::all_reduce ? std::min(ring, 2 * std::ceil(std::log2(nodes))) : ring;
}

// How much longer a payload of this size takes than at full bandwidth.
double ramp(const LinkCoefficients& c, double payload) {
  return std::pow(1 + c.half_bytes / payload, c.ramp);
}

// The library's collective inside a node.
double ring_seconds(const DeviceModel& d, Collective c, double payload, double n, double rate,
                    bool in_switch) {
  const LinkCoefficients& near = d.intra.c;
  if (in_switch && c == Collective::all_reduce && near.switch_reduction_ranks > 0 &&
      n >= near.switch_reduction_ranks)
    rate *= near.switch_reduction_gain;
  return near.start_seconds + rounds(c, n) * near.latency_seconds +
         wire_share(c, n) * payload / (rate * near.ceiling) * ramp(near, payload);
}

// Engines' own all-reduce: every rank reads every peer's whole buffer, or its part of each and then
// the sums of the others' parts, two kernels' waits instead of one.
double one_shot_seconds(const DeviceModel& d, double payload, double n, double rate) {
  const LinkCoefficients& near = d.intra.c;
  const double wire = rate * near.ceiling;
  return std::min(
      near.small_latency_seconds + (n - 1) * payload / wire,
      2 * near.small_latency_seconds + wire_share(Collective::all_reduce, n) * payload / wire);
}

// From this payload on engines call the library (vLLM, custom_all_reduce.py: max_size of 8 MiB).
constexpr double kOneShotLimit = 8 << 20;

double refined(const LinkCoefficients& c, LinkGridKind kind, double payload, double n) {
  if (!c.grids) return 1;
  const UtilisationGrid& grid = c.grids->of[static_cast<std::size_t>(kind)];
  return grid.empty() ? 1 : std::exp(grid.at({std::log2(payload), std::log2(n), 0, 0}));
}

LinkGridKind grid_of(Collective c) {
  switch (c) {
    case Collective::all_gather:
      return LinkGridKind::all_gather;
    case Collective::reduce_scatter:
      return LinkGridKind::reduce_scatter;
    case Collective::all_to_all:
      return LinkGridKind::all_to_all;
    default:
      return LinkGridKind::all_reduce;
  }
}

}  // namespace

double collective_seconds(const DeviceModel& d, Collective c, double payload, int ranks, int stride,
                          CollectiveKernels kernels) {
  if (ranks <= 1 || payload <= 0) return 0;
  double n = ranks;
  int inside = std::max(1, std::min(ranks, d.per_node / std::max(1, stride)));
  bool crosses = inside < ranks;
  // A mesh gives a group only the links between its members.
  double intra_rate = d.intra.one_way;
  double mesh = std::max({d.intra.mesh, d.per_node, inside});
  if (d.intra.topology == PeerTopology::mesh && inside > 1) intra_rate *= (inside - 1) / (mesh - 1);
  // Bridges join pairs; a ring of more goes over the bus from pair to pair.
  if (d.intra.topology == PeerTopology::bridge_pair && inside > 2 && d.accelerator &&
      d.accelerator->pcie_one_way)
    intra_rate = std::min(intra_rate, d.accelerator->pcie_one_way->in_base());
  const LinkCoefficients& near = d.intra.c;
  if (near.sharing > 0 && inside > 2) intra_rate *= std::pow(2.0 / inside, near.sharing);
  if (!crosses || !d.inter) {
    double library =
        ring_seconds(d, c, payload, n, intra_rate, kernels != CollectiveKernels::library_rings);
    if (c != Collective::send) library *= refined(near, grid_of(c), payload, n);
    const bool may = kernels == CollectiveKernels::any ? d.custom_all_reduce
                                                       : kernels == CollectiveKernels::one_shot;
    if (!may || c != Collective::all_reduce || near.small_latency_seconds <= 0) return library;
    // Engines hand large payloads on to the library.
    const double own =
        payload < kOneShotLimit ? one_shot_seconds(d, payload, n, intra_rate) : library;
    const double one_shot =
        std::min(library, own) * refined(near, LinkGridKind::one_shot, payload, n);
    if (kernels == CollectiveKernels::one_shot) return one_shot;
    return std::min(library, one_shot);
  }
  // Hierarchical: the ranks of a node share the crossing, each over its own NIC.
  const LinkCoefficients& far = d.inter->c;
  double nodes = std::ceil(n / inside);
  double across = std::min(d.inter->one_way * far.ceiling * inside,
                           inside > 1 ? intra_rate * near.ceiling : 1e300);
  double wire = wire_share(c, n) * payload;
  double latency = far.start_seconds + rounds_between(c, nodes) * far.latency_seconds +
                   (inside > 1 ? rounds(c, inside) * near.latency_seconds : 0);
  return latency + wire / across * ramp(far, payload);
}

}  // namespace trigon
