#include <gtest/gtest.h>

#include "network/network_testing.hpp"

namespace trigon {
namespace {

// Table 1 of arXiv:1911.09070: 3.9, 6.6, 8.1 and 12.0 million parameters of D0 to D3, and 2.5, 6.1,
// 11 and 25 thousand million multiply-adds.
TEST(EfficientDet, HasItsPublishedSizeAndWork) {
  const double millions[] = {3.9, 6.6, 8.1, 12.0}, gmacs[] = {2.54, 6.1, 11, 25};
  for (int i = 0; i < 4; ++i) {
    const std::string name = "EfficientDet-D" + std::to_string(i);
    EXPECT_NEAR(static_cast<double>(network_parameters(name)) / 1e6, millions[i],
                0.01 * millions[i] + 0.05)
        << name;
    EXPECT_NEAR(network_gmacs(name), gmacs[i], 0.03 * gmacs[i]) << name;
  }
}

TEST(EfficientDet, BuildsAtEveryAllowedSize) {
  for (std::int64_t size : {128, 129, 333, 512, 1023, 2048}) {
    ItemOptions item;
    item.size = {size, size + (size < 2048 ? 1 : 0)};
    EXPECT_TRUE(embedded_networks().find("EfficientDet-D0", item)) << size;
  }
}

// One pass over 192 hours: an LSTM over 168 of them and one over 24, 4 (128 + 128) 128 each step.
TEST(TemporalFusion, ItsRecurrencesCoverTheWindow) {
  const Graph g = network_graph("TFT:Electricity");
  double macs = 0;
  for (const GraphNode& n : g.nodes)
    if (std::holds_alternative<Recurrence>(n.operation)) macs += multiply_accumulates(g, n);
  EXPECT_DOUBLE_EQ(macs, 192.0 * 4 * 256 * 128);
}

// A coupling over the bonds: 3 x 3 of 800-512-512-1600 on a map of 2 x 2.
TEST(MoFlow, BondsTakeNearlyAllWork) {
  const double coupling = 4 * 9 * (800.0 * 512 + 512 * 512 + 512 * 1600);
  EXPECT_NEAR(network_gmacs("MoFlow"), (10 * coupling) / 1e9, 0.35);
  EXPECT_GT(network_gmacs("MoFlow"), (10 * coupling) / 1e9);
}

// Six layers of 37 edges: 44 bases between degrees 0 to 3, 32 channels, 16 components.
TEST(Se3Transformer, AnEdgeTakesItsKernel) {
  const Graph g = network_graph("SE3Transformer");
  double macs = 0;
  for (const GraphNode& n : g.nodes)
    if (n.name.find("layer3.to_key_value") == 0) macs += multiply_accumulates(g, n);
  const double kernel = 5 * 32 + 32 * 32 + 32.0 * 44 * 32 * 32;
  const double product = 32.0 * 16 * 44 * 16 + 32.0 * (32 * 44) * 16;
  EXPECT_DOUBLE_EQ(macs, 37 * (kernel + product));
}

}  // namespace
}  // namespace trigon
