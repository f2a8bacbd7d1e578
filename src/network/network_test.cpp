#include <gtest/gtest.h>

#include "network/catalog.hpp"

namespace trigon {
namespace {

const NetworkCatalog& networks() {
  static const FactStore store = *FactStore::embedded();
  static const NetworkCatalog catalog = *NetworkCatalog::from(store);
  return catalog;
}

const Graph& graph_of(const Model& m) { return std::get<Graph>(m.components.front().body); }

// Parameters as torchvision publishes them for these networks.
TEST(Networks, ResidualNetworksHaveTheirPublishedParameters) {
  EXPECT_EQ(count_parameters(graph_of(*networks().find("resnet18"))), 11689512);
  EXPECT_EQ(count_parameters(graph_of(*networks().find("resnet50"))), 25557032);
  EXPECT_EQ(count_parameters(graph_of(*networks().find("resnext50_32x4d"))), 25028904);
}

// He et al. 2015, table 1, print 1.8 and 3.8 GFLOPs (v1); v1.5 has 4.09 GMACs.
TEST(Networks, ResidualNetworksHaveTheirPublishedWork) {
  EXPECT_NEAR(multiply_accumulates(graph_of(*networks().find("resnet18"))), 1.814e9, 0.005e9);
  EXPECT_NEAR(multiply_accumulates(graph_of(*networks().find("resnet50"))), 4.089e9, 0.005e9);
  ItemOptions twice;
  twice.size = {448};
  EXPECT_NEAR(multiply_accumulates(graph_of(*networks().find("resnet50", twice))), 4 * 4.089e9,
              0.03e9);
}

TEST(Networks, EveryVariantBuilds) {
  for (const NetworkCatalog::Entry& e : networks().all()) {
    auto m = build_network(e, {});
    ASSERT_TRUE(m) << e.id << " " << m.error().where;
    ASSERT_TRUE(m->item) << e.id;
    EXPECT_GT(count_parameters(*m).total, 0) << e.id;
  }
}

}  // namespace
}  // namespace trigon
