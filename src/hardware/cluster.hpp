#pragma once
// Machines: accelerators in nodes, nodes on a network.

#include <optional>
#include <string>
#include <vector>

#include "hardware/accelerator.hpp"
#include "hardware/reliability.hpp"

namespace trigon {

// A link as collectives see it, per accelerator and one direction.
struct Link {
  std::string id;  // "nvlink4", "pcie5x16", "ib-400", ... also the calibration key
  PeerTopology topology = PeerTopology::fabric_switch;
  BytesPerSecond one_way{};
  int mesh = 0;  // devices that a mesh connects, also those not used; 0: not known to be more
  // Of a what-if: the latency of one hop instead of the calibrated one, and a factor on all of it.
  std::optional<Seconds> latency{};
  double latency_factor = 1;
};

// Facts of the real machine that replace the catalogue's.
struct CardState {
  Bytes memory_used{};          // by others ("used=2GiB")
  bool display = false;         // a display runs on the card
  std::optional<Bytes> memory;  // what the driver reports to programs ("memory=79.2GiB")
  std::optional<Watts> power_limit;
  std::optional<bool> ecc;
  std::optional<CudaVersion> cuda;  // that programs are built with ("cuda=11.6"); absent: a new one
  std::optional<double> threads;    // of a processor; absent: one on every core
};

// What the memory of a host is taken to have where nobody says: twelve channels of DDR4-2666, two
// sockets of the servers that offloading was published on.
constexpr BytesPerSecond kUsualHostBandwidth = gigabytes_per_second(256);

struct Host {
  std::optional<Bytes> memory;
  std::optional<Bytes> disk;
  std::optional<BytesPerSecond> bandwidth;  // of its memory: all channels of one node
  std::optional<double> items_per_second;   // that data loaders of one node deliver for training
};

// `nodes` equal nodes of `per_node` equal accelerators.
struct Cluster {
  const Accelerator* accelerator = nullptr;
  int per_node = 1;
  int nodes = 1;
  Link intra;                 // between accelerators of a node
  std::optional<Link> inter;  // per accelerator, between nodes; absent for one node
  CardState card;
  Host host;
  std::string system;                      // id of the node type it was named by, or empty
  std::string written;                     // as the user wrote it, or the canonical form
  std::vector<Message> assumptions;        // what was taken because nobody said it
  std::optional<Reliability> reliability;  // absent: failures are not counted

  int count() const { return per_node * nodes; }
};

}  // namespace trigon
