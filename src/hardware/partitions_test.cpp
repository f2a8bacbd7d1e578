#include "hardware/partitions.hpp"

#include <gtest/gtest.h>

#include "hardware/parse.hpp"

namespace trigon {
namespace {

const FactStore& facts() {
  static const FactStore store = FactStore::embedded().value();
  return store;
}
const HardwareCatalog& hardware() {
  static const HardwareCatalog h = HardwareCatalog::from(facts()).value();
  return h;
}

// arcs-njit-edu.github.io, MIG profile comparison of an A100 80 GB: 14 multiprocessors, 640 of
// 5,120 bits of the memory bus, 5 MB of L2.
TEST(Partitions, AnEighthOfAnA100) {
  const Accelerator& a = **hardware().accelerators.find("a100-sxm-80gb:1g.10gb");
  EXPECT_DOUBLE_EQ(*a.sm_count, 14);
  EXPECT_DOUBLE_EQ(a.memory_nominal.in_base(), 10e9);
  EXPECT_DOUBLE_EQ(a.memory_bandwidth.in_base(), 2039e9 / 8);
  EXPECT_DOUBLE_EQ(a.l2->in_base(), 5 * 1048576.0);
  EXPECT_NEAR(a.peak_of(MathMode::bf16_matrix)->in_base(), 312e12 * 14 / 108, 1e6);
  EXPECT_EQ(a.peer_link.topology, PeerTopology::none);
}

// docs.nvidia.com, MIG user guide: 1g.12gb and 3g.47gb of the 94 GB card, quarters of an A30.
TEST(Partitions, NamesFollowTheMemory) {
  const auto names = [](const char* id) {
    return partition_names(facts(), *hardware().accelerators.by_id(id));
  };
  EXPECT_EQ(names("a30"), (std::vector<std::string>{"1g.6gb", "2g.12gb", "4g.24gb"}));
  EXPECT_EQ(names("h100-nvl-94gb").front(), "1g.12gb");
  EXPECT_EQ(names("h100-nvl-94gb")[3], "3g.47gb");
  EXPECT_TRUE(names("l4").empty());
}

// No part has more than its card, and all instances of one profile together have no more.
TEST(Partitions, PartsAreLessThanTheWhole) {
  ASSERT_FALSE(hardware().accelerators.parts().empty());
  for (const Accelerator& part : hardware().accelerators.parts()) {
    const Accelerator& card = *hardware().accelerators.by_id(part.id.substr(0, part.id.rfind(':')));
    EXPECT_LE(part.memory_bandwidth, card.memory_bandwidth) << part.id;
    EXPECT_LE(part.memory_nominal, card.memory_nominal) << part.id;
    for (std::size_t m = 0; m < kMathModes; ++m) {
      if (!part.peak[m]) continue;
      EXPECT_LE(part.peak[m]->in_base(), card.peak[m]->in_base()) << part.id;
    }
  }
}

TEST(Partitions, AreNamedAfterTheirCard) {
  EXPECT_EQ(hardware().accelerators.resolve_all("a100-80gb:1g.10gb")->size(), 2u);
  EXPECT_EQ(parse_hardware("2xh100-sxm:3g.40gb", hardware())->accelerator->id,
            "h100-sxm-80gb:3g.40gb");
  EXPECT_FALSE(hardware().accelerators.find("l4:1g.5gb"));
  EXPECT_FALSE(hardware().accelerators.find("a100-sxm-80gb:5g.10gb"));
}

}  // namespace
}  // namespace trigon
