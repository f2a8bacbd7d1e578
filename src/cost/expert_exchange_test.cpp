#include "cost/expert_exchange.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "cost/test_devices.hpp"
#include "hardware/catalog.hpp"

namespace trigon {
namespace {

class Exchange : public testing::Test {
 protected:
  // Wires alone: no start, multiprocessors that never bind.
  Exchange() {
    for (ExchangeCoefficients& c : d.intra.c.exchange) c = wires();
  }
  static ExchangeCoefficients wires() {
    ExchangeCoefficients c;
    c.ceiling = 1, c.rate = 1e18, c.sharpness = 1000;
    return c;
  }
  void add_network(double one_way) {
    d.inter = DeviceModel::Wire{one_way, PeerTopology::fabric_switch, 0, {}};
  }
  ExpertExchange ask(ExchangeKind kind, int ranks) const {
    ExpertExchange x;
    x.kind = kind;
    x.tokens = 1000, x.hidden = 1000, x.value_bytes = 1;
    x.top_k = 2, x.experts = 16, x.ranks = ranks;
    return x;
  }
  Accelerator card = test::round_card();
  DeviceModel d = test::round_device(card);
};

TEST(GroupsReached, DrawnWithoutRepetition) {
  // One of two experts of each rank: another one lies on the same rank with 1 / 15.
  EXPECT_NEAR(groups_reached(8, 16, 2), 1 + 14.0 / 15, 1e-12);
  EXPECT_NEAR(groups_reached(8, 16, 16), 8, 1e-12);
  EXPECT_NEAR(groups_reached(8, 16, 1), 1, 1e-12);
  EXPECT_NEAR(groups_reached(1, 16, 4), 1, 1e-12);
  // All the pairs that two of four experts make, in two groups: 4 of 6 cross.
  EXPECT_NEAR(groups_reached(2, 4, 2), (4.0 * 2 + 2 * 1) / 6, 1e-12);
}

TEST_F(Exchange, OnceForEachRankOrForEachExpert) {
  const double reached = groups_reached(8, 16, 2);
  EXPECT_NEAR(exchange_seconds(d, ask(ExchangeKind::dispatch, 8)), 1e6 * reached * 7 / 8 / 100e9,
              1e-12);
  EXPECT_NEAR(exchange_seconds(d, ask(ExchangeKind::dispatch_low_latency, 8)),
              1e6 * 2.0 * 7 / 8 / 100e9, 1e-12);
  EXPECT_EQ(exchange_seconds(d, ask(ExchangeKind::dispatch, 1)), 0);
}

TEST_F(Exchange, NormalKernelsShareTheMultiprocessorsTheyGet) {
  for (ExchangeCoefficients& c : d.intra.c.exchange) c.rate = 1e9;
  ExpertExchange x = ask(ExchangeKind::combine, 8);
  x.multiprocessors = 10;
  const double ten = exchange_seconds(d, x);
  EXPECT_NEAR(ten, 1e6 * groups_reached(8, 16, 2) / (10 * 1e9), 1e-12);
  x.multiprocessors = 20;
  EXPECT_NEAR(exchange_seconds(d, x), ten / 2, 1e-12);
  x.multiprocessors = 0;  // the library's default
  EXPECT_NEAR(exchange_seconds(d, x), ten / 2, 1e-12);
}

TEST_F(Exchange, LowLatencyKernelsHaveABlockForEachExpert) {
  for (ExchangeCoefficients& c : d.intra.c.exchange) c.token_seconds = 1e-5;
  ExpertExchange x = ask(ExchangeKind::dispatch_low_latency, 8);
  EXPECT_NEAR(exchange_seconds(d, x), 1000.0 / 16 * 1e-5, 1e-12);
  // 160 experts on 100 multiprocessors: two a block, 80 blocks.
  x.experts = 160;
  EXPECT_NEAR(exchange_seconds(d, x), 1000.0 / 80 * 1e-5, 1e-12);
}

TEST_F(Exchange, AcrossNodesATokenCrossesOnceForEachNode) {
  add_network(10e9);
  // 16 ranks in two nodes, a port of 10 GB/s each, of which nine tenths carry tokens.
  const double reached = groups_reached(2, 16, 2);
  EXPECT_NEAR(exchange_seconds(d, ask(ExchangeKind::dispatch, 16)), 20e-6 + 1e6 * reached / 2 / 9e9,
              1e-12);
  // Low-latency kernels send each copy by itself: half of them to the other node.
  EXPECT_NEAR(exchange_seconds(d, ask(ExchangeKind::combine_low_latency, 16)),
              20e-6 + 1e6 * 2.0 / 2 / 9e9, 1e-12);
}

// deepseek-ai/DeepEP, docs/legacy.md: H800 (200 GB/s one way) with a 400 Gb/s port each, 128
// tokens of 7,168 values and 8 of 256 experts, FP8 out and 16 bit back. Coefficients are fitted on
// another machine; the two constants of the network are from those figures here that cross nodes.
TEST(PublishedExchange, LowLatencyOnH800) {
  const FactStore store = FactStore::embedded().value();
  const Calibration calibration = Calibration::load(store).value();
  const AcceleratorCatalog cards = AcceleratorCatalog::from(store).value();
  DeviceModel d;
  fill_units(d, *cards.by_id("h800-sxm-80gb"));
  d.per_node = 8;
  d.intra.one_way = 200e9;
  d.intra.c = calibration.link("nvlink4", false).value();
  d.inter = DeviceModel::Wire{50e9, PeerTopology::fabric_switch, 0, {}};
  struct Row {
    int ranks;
    double dispatch, combine;
  };
  for (const Row& r : {Row{8, 77, 114}, Row{16, 118, 195}, Row{32, 155, 273}, Row{64, 173, 314},
                       Row{128, 192, 369}, Row{256, 194, 360}}) {
    ExpertExchange x{
        ExchangeKind::dispatch_low_latency, 128, 7168, kFp8DispatchBytes, 8, 256, r.ranks, 1, 0};
    EXPECT_NEAR(std::log(1e6 * exchange_seconds(d, x) / r.dispatch), 0, 0.2) << r.ranks;
    x.kind = ExchangeKind::combine_low_latency;
    x.value_bytes = 2;
    EXPECT_NEAR(std::log(1e6 * exchange_seconds(d, x) / r.combine), 0, 0.25) << r.ranks;
  }
  // Normal kernels inside a node: 153 and 158 GB/s of what a rank sends, its own share included.
  ExpertExchange x{ExchangeKind::dispatch, 4096, 7168, kFp8DispatchBytes, 8, 256, 8, 1, 24};
  const double bytes = 4096 * groups_reached(8, 256, 8) * 7168;
  EXPECT_NEAR(std::log(bytes * kFp8DispatchBytes / exchange_seconds(d, x) / 153e9), 0, 0.2);
  x.kind = ExchangeKind::combine;
  x.value_bytes = 2;
  EXPECT_NEAR(std::log(bytes * 2 / exchange_seconds(d, x) / 158e9), 0, 0.2);
}

}  // namespace
}  // namespace trigon
