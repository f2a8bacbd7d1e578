#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "cost/test_devices.hpp"

namespace trigon {
namespace {

class Collectives : public testing::Test {
 protected:
  double seconds(Collective c, double payload, int ranks, int stride = 1) const {
    return collective_seconds(d, c, payload, ranks, stride);
  }
  void add_network(double one_way) {
    LinkCoefficients c;
    c.ceiling = 1;
    d.inter = DeviceModel::Wire{one_way, PeerTopology::fabric_switch, 0, c};
  }
  Accelerator card = test::round_card();
  DeviceModel d = test::round_device(card);
};

TEST_F(Collectives, RingBytes) {
  // 1 GB over 8 ranks with 100 GB/s each: 2 x 7/8 of it for an all-reduce.
  EXPECT_NEAR(seconds(Collective::all_reduce, 1e9, 8), 1.75e9 / 100e9, 1e-12);
  EXPECT_NEAR(seconds(Collective::all_gather, 1e9, 8), 0.875e9 / 100e9, 1e-12);
  EXPECT_NEAR(seconds(Collective::reduce_scatter, 1e9, 8), 0.875e9 / 100e9, 1e-12);
  EXPECT_NEAR(seconds(Collective::all_to_all, 1e9, 8), 0.875e9 / 100e9, 1e-12);
  EXPECT_NEAR(seconds(Collective::send, 1e9, 2), 1e9 / 100e9, 1e-12);
  EXPECT_EQ(seconds(Collective::all_reduce, 1e9, 1), 0);
  EXPECT_EQ(seconds(Collective::all_reduce, 0, 8), 0);
  // Reduce-scatter and all-gather make an all-reduce.
  EXPECT_NEAR(seconds(Collective::reduce_scatter, 1e9, 4) + seconds(Collective::all_gather, 1e9, 4),
              seconds(Collective::all_reduce, 1e9, 4), 1e-12);
}

TEST_F(Collectives, LatencyOfTheRounds) {
  d.intra.c.latency_seconds = 1e-6;
  d.intra.c.start_seconds = 10e-6;
  EXPECT_NEAR(seconds(Collective::all_reduce, 1, 8), 24e-6, 1e-9);  // 2 (n - 1) rounds
  EXPECT_NEAR(seconds(Collective::all_gather, 1, 8), 17e-6, 1e-9);
  EXPECT_NEAR(seconds(Collective::send, 1, 2), 11e-6, 1e-9);
  // One-shot: every rank reads its peers' whole buffers at once; it loses when they are large.
  d.intra.c.small_latency_seconds = 5e-6;
  EXPECT_NEAR(seconds(Collective::all_reduce, 1, 8), 5e-6, 1e-9);
  EXPECT_NEAR(seconds(Collective::all_reduce, 1e9, 8), 24e-6 + 1.75e9 / 100e9, 1e-9);
  EXPECT_NEAR(seconds(Collective::all_gather, 1, 8), 17e-6, 1e-9);
  // Engines without kernels of their own wait for the library's rounds.
  d.custom_all_reduce = false;
  EXPECT_NEAR(seconds(Collective::all_reduce, 1, 8), 24e-6, 1e-9);
}

TEST_F(Collectives, ReducedInTheSwitchFromSomeRanksOn) {
  d.intra.c.switch_reduction_ranks = 5;
  d.intra.c.switch_reduction_gain = 1.25;
  auto library = [&](Collective c, int ranks, CollectiveKernels k = CollectiveKernels::library) {
    return collective_seconds(d, c, 1e9, ranks, 1, k);
  };
  EXPECT_NEAR(library(Collective::all_reduce, 4), 1.5e9 / 100e9, 1e-12);
  EXPECT_NEAR(library(Collective::all_reduce, 8), 1.75e9 / 125e9, 1e-12);
  EXPECT_NEAR(library(Collective::all_gather, 8), 0.875e9 / 100e9, 1e-12);
  EXPECT_NEAR(library(Collective::all_reduce, 8, CollectiveKernels::library_rings), 1.75e9 / 100e9,
              1e-12);
}

TEST_F(Collectives, GridsMultiplyTheirOwnCollective) {
  auto grids = std::make_shared<LinkGrids>();
  UtilisationGrid& g = grids->of[static_cast<std::size_t>(LinkGridKind::all_gather)];
  g = UtilisationGrid(link_grid_axes());
  for (float& v : g.values()) v = std::log(2.0F);
  d.intra.c.grids = grids;
  EXPECT_NEAR(seconds(Collective::all_gather, 1e9, 8), 2 * 0.875e9 / 100e9, 1e-8);
  EXPECT_NEAR(seconds(Collective::all_reduce, 1e9, 8), 1.75e9 / 100e9, 1e-12);
}

TEST_F(Collectives, BusBandwidthRampsWithSize) {
  d.intra.c.half_bytes = 1e6;
  // At half_bytes half of the bandwidth is there.
  EXPECT_NEAR(seconds(Collective::send, 1e6, 2), 2e6 / 100e9, 1e-12);
  EXPECT_NEAR(seconds(Collective::send, 1e12, 2), 10, 1e-4);
  d.intra.c.ramp = 0.5;
  EXPECT_NEAR(seconds(Collective::send, 1e6, 2), std::sqrt(2.0) * 1e6 / 100e9, 1e-12);
}

TEST_F(Collectives, ASharedBusIsDivided) {
  double alone = seconds(Collective::all_gather, 1e9, 2);
  d.intra.c.sharing = 1;
  EXPECT_NEAR(seconds(Collective::all_gather, 1e9, 2), alone, 1e-12);
  // Eight ranks: a quarter of the rate of two, 7/8 instead of 1/2 of the bytes.
  EXPECT_NEAR(seconds(Collective::all_gather, 1e9, 8), alone * 4 * 1.75, 1e-12);
}

TEST_F(Collectives, AMeshGivesOnlyTheLinksBetweenMembers) {
  d.intra.topology = PeerTopology::mesh;
  EXPECT_NEAR(seconds(Collective::all_gather, 1e9, 8), 0.875e9 / 100e9, 1e-12);
  // Two of eight: one of seven links.
  EXPECT_NEAR(seconds(Collective::all_gather, 1e9, 2), 0.5e9 / (100e9 / 7), 1e-12);
  // The mesh does not change because only two of its devices are rented.
  d.per_node = 2;
  d.intra.mesh = 8;
  EXPECT_NEAR(seconds(Collective::all_gather, 1e9, 2), 0.5e9 / (100e9 / 7), 1e-12);
  d.intra.mesh = 0;
  EXPECT_NEAR(seconds(Collective::all_gather, 1e9, 2), 0.5e9 / 100e9, 1e-12);
}

TEST_F(Collectives, BridgesJoinPairs) {
  d.intra.topology = PeerTopology::bridge_pair;
  card.pcie_one_way = gigabytes_per_second(25);
  EXPECT_NEAR(seconds(Collective::all_gather, 1e9, 2), 0.5e9 / 100e9, 1e-12);
  EXPECT_NEAR(seconds(Collective::all_gather, 1e9, 4), 0.75e9 / 25e9, 1e-12);
}

TEST_F(Collectives, AcrossNodesEachRankHasItsPort) {
  add_network(10e9);
  // 16 ranks in 2 nodes: 8 ports of 10 GB/s carry a node's crossing.
  EXPECT_NEAR(seconds(Collective::all_reduce, 1e9, 16), 2 * 15.0 / 16 * 1e9 / 80e9, 1e-12);
  // The inside of the node can be the narrower part.
  add_network(50e9);
  EXPECT_NEAR(seconds(Collective::all_reduce, 1e9, 16), 2 * 15.0 / 16 * 1e9 / 100e9, 1e-12);
  // One rank a node: its own port.
  EXPECT_NEAR(seconds(Collective::all_reduce, 1e9, 2, 8), 1e9 / 50e9, 1e-12);
  // Eight ranks with two between neighbours span two nodes, four ports each.
  add_network(10e9);
  EXPECT_NEAR(seconds(Collective::all_gather, 1e9, 8, 2), 7.0 / 8 * 1e9 / 40e9, 1e-12);
  // Inside one node the network plays no part.
  EXPECT_NEAR(seconds(Collective::all_reduce, 1e9, 8), 1.75e9 / 100e9, 1e-12);
}

TEST_F(Collectives, TreesWaitForFewerNodesThanARing) {
  add_network(10e9);
  d.inter->c.latency_seconds = 20e-6;
  // One byte each: what is left is waiting. Two nodes are as far from each other either way.
  EXPECT_NEAR(seconds(Collective::all_reduce, 1, 2, 8), 2 * 20e-6, 1e-9);
  EXPECT_NEAR(seconds(Collective::all_reduce, 1, 64, 8), 2 * 6 * 20e-6, 1e-9);
  EXPECT_NEAR(seconds(Collective::all_gather, 1, 64, 8), 63 * 20e-6, 1e-9);
}

TEST_F(Collectives, MoreRanksOrBytesNeverTakeLess) {
  d.intra.c = {0.8, 1e6, 0.5, 0.2, 1e-6, 5e-6, 0.2, 8e-6, 0, 1, 0, nullptr, {}, Basis::analytic,
               ""};
  add_network(10e9);
  d.inter->c = d.intra.c;
  for (Collective c : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                       Collective::all_to_all}) {
    for (double payload = 1; payload < 1e12; payload *= 3)
      for (int ranks : {2, 4, 8, 16, 64})
        EXPECT_LE(seconds(c, payload, ranks), seconds(c, 3 * payload, ranks));
    for (int ranks : {2, 4}) EXPECT_LE(seconds(c, 1e8, ranks), seconds(c, 1e8, 2 * ranks));
  }
}

}  // namespace
}  // namespace trigon
