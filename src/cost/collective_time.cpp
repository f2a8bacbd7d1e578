#include <algorithm>
#include <cmath>

#include "cost/device_model.hpp"

namespace trigon {
namespace {

// Bytes each rank puts on the wire per byte of the full buffer.
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

// Messages that wait for each other in a ring.
double rounds(Collective c, double n) {
  if (c == Collective::all_reduce) return 2 * (n - 1);
  return c == Collective::send ? 1 : n - 1;
}

// How much longer a payload of this size takes than at full bandwidth.
double ramp(const LinkCoefficients& c, double payload) {
  return std::pow(1 + c.half_bytes / payload, c.ramp);
}

}  // namespace

double collective_seconds(const DeviceModel& d, Collective c, double payload, int ranks,
                          int stride) {
  if (ranks <= 1 || payload <= 0) return 0;
  double n = ranks;
  int inside = std::max(1, std::min(ranks, d.per_node / std::max(1, stride)));
  bool crosses = inside < ranks;
  // A mesh gives a group only the links between its members.
  double intra_rate = d.intra.one_way;
  double mesh = std::max({d.intra.mesh, d.per_node, inside});
  if (d.intra.topology == PeerTopology::mesh && inside > 1) intra_rate *= (inside - 1) / (mesh - 1);
  const LinkCoefficients& near = d.intra.c;
  if (near.sharing > 0 && inside > 2) intra_rate *= std::pow(2.0 / inside, near.sharing);
  if (!crosses || !d.inter) {
    double wire = wire_share(c, n) * payload;
    double ring = near.start_seconds + rounds(c, n) * near.latency_seconds +
                  wire / (intra_rate * near.ceiling) * ramp(near, payload);
    if (c == Collective::all_reduce && near.small_latency_seconds > 0) {
      // One-shot: every rank reads every peer's whole buffer.
      double one_shot =
          near.small_latency_seconds + (n - 1) * payload / (intra_rate * near.ceiling);
      return std::min(ring, one_shot);
    }
    return ring;
  }
  // Hierarchical: the ranks of a node share the crossing, each over its own NIC.
  const LinkCoefficients& far = d.inter->c;
  double nodes = std::ceil(n / inside);
  double across = std::min(d.inter->one_way * far.ceiling * inside,
                           inside > 1 ? intra_rate * near.ceiling : 1e300);
  double wire = wire_share(c, n) * payload;
  double latency = far.start_seconds + rounds(c, nodes) * far.latency_seconds +
                   (inside > 1 ? rounds(c, inside) * near.latency_seconds : 0);
  return latency + wire / across * ramp(far, payload);
}

}  // namespace trigon
