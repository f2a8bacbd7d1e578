#include <gtest/gtest.h>

#include "network/network_testing.hpp"

namespace trigon {
namespace {

double thousand_millions(std::string_view name) {
  return static_cast<double>(network_parameters(name)) / 1e9;
}

// NCF's script prints 31,832,577; the others as their READMEs say: 4.2, 22.8 and 113 thousand
// million, and about 90 million of wide and deep.
TEST(Recommenders, HaveTheirPublishedParameters) {
  EXPECT_EQ(network_parameters("ncf"), 31832577);
  EXPECT_NEAR(thousand_millions("DLRM:small"), 4.2, 0.02);
  EXPECT_NEAR(thousand_millions("DLRM:large"), 22.8, 0.1);
  EXPECT_NEAR(thousand_millions("dlrm-t0"), 113, 0.5);
  EXPECT_NEAR(thousand_millions("WideAndDeep"), 0.090, 0.001);
}

// By hand: 13-512-256-128, three pairs of 3456 x 512, 3456-1024-1024-512-256-1.
TEST(Recommenders, CrossNetworkHasItsWork) {
  const double dense = 13 * 512 + 512 * 256 + 256 * 128 + 3.0 * 2 * 3456 * 512 + 3456 * 1024 +
                       1024 * 1024 + 1024 * 512 + 512 * 256 + 256;
  EXPECT_DOUBLE_EQ(multiply_accumulates(network_graph("dlrm-dcnv2")), dense);
}

// 214 rows of 26 tables a sample; 479 of 480 inputs of the top network are pairs and the width.
TEST(Recommenders, ReadTheRowsOfASample) {
  for (const GraphNode& n : network_graph("dlrm-dcnv2").nodes)
    if (auto lookup = std::get_if<TableLookup>(&n.operation)) {
      EXPECT_EQ(lookup->rows_read, 214);
    }
  const Graph g = network_graph("DLRM:small");
  for (const GraphNode& n : g.nodes)
    if (n.name == "interactions") {
      EXPECT_EQ(g.values[n.outputs[0]].shape.back(), 480);
    }
}

}  // namespace
}  // namespace trigon
