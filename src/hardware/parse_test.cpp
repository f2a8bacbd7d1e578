#include "hardware/parse.hpp"

#include <gtest/gtest.h>

namespace trigon {
namespace {

const HardwareCatalog& hardware() {
  static const FactStore store = FactStore::embedded().value();
  static const HardwareCatalog h = HardwareCatalog::from(store).value();
  return h;
}
Cluster parsed(std::string_view text) {
  auto c = parse_hardware(text, hardware(), "--on");
  EXPECT_TRUE(c) << text;
  return c ? *c : Cluster{};
}
ErrorCode refused(std::string_view text) {
  auto c = parse_hardware(text, hardware(), "--on");
  EXPECT_FALSE(c) << text;
  if (!c) {
    EXPECT_EQ(c.error().where, "--on");
  }
  return c ? ErrorCode::unreadable : c.error().code;
}

TEST(ParseHardware, CountsAndNodes) {
  Cluster one = parsed("h100-sxm");
  EXPECT_EQ(one.accelerator->id, "h100-sxm-80gb");
  EXPECT_EQ(one.count(), 1);
  EXPECT_FALSE(one.inter);
  Cluster eight = parsed("8xh100-sxm");
  EXPECT_EQ(eight.per_node, 8);
  EXPECT_EQ(eight.nodes, 1);
  EXPECT_EQ(eight.intra.topology, PeerTopology::fabric_switch);
  EXPECT_EQ(eight.written, "8xh100-sxm-80gb");
  Cluster four = parsed("4x8xh100-sxm@ib400");
  EXPECT_EQ(four.nodes, 4);
  EXPECT_EQ(four.count(), 32);
  EXPECT_DOUBLE_EQ(four.inter->one_way.in_base(), 50e9);
  EXPECT_TRUE(four.assumptions.empty());
  Cluster spaced = parsed("2 x RTX 4090");
  EXPECT_EQ(spaced.per_node, 2);
  EXPECT_EQ(spaced.accelerator->id, "rtx-4090");
}

TEST(ParseHardware, ANameMayBeginWithANumber) {
  EXPECT_EQ(parsed("7900 XT").accelerator->id, "rx-7900-xt");
  EXPECT_EQ(parsed("2x7900 XT").per_node, 2);
}

TEST(ParseHardware, NodeTypes) {
  Cluster c = parsed("dgx-h100");
  EXPECT_EQ(c.per_node, 8);
  EXPECT_EQ(c.system, "dgx-h100");
  EXPECT_DOUBLE_EQ(c.host.memory->in_base(), 2048e9);
  Cluster four = parsed("4xdgx-h100");
  EXPECT_EQ(four.nodes, 4);
  EXPECT_DOUBLE_EQ(four.inter->one_way.in_base(), 50e9);
  EXPECT_TRUE(four.assumptions.empty());
  EXPECT_EQ(refused("2x4xdgx-h100"), ErrorCode::bad_argument);
  EXPECT_EQ(parsed("2xp5.48xlarge").accelerator->id, "h100-sxm-80gb");
}

TEST(ParseHardware, AnAssumedNetworkIsReported) {
  Cluster c = parsed("4x8xh100-sxm");
  ASSERT_TRUE(c.inter);
  EXPECT_DOUBLE_EQ(c.inter->one_way.in_base(), 50e9);
  ASSERT_EQ(c.assumptions.size(), 1u);
  EXPECT_EQ(c.assumptions[0].id, message_id(HardwareMessage::assumed_network));
  Cluster cards = parsed("2x4xrtx-4090");
  ASSERT_EQ(cards.assumptions.size(), 1u);
  EXPECT_EQ(cards.assumptions[0].id, message_id(HardwareMessage::assumed_default_network));
  EXPECT_DOUBLE_EQ(cards.inter->one_way.in_base(), 100e9 / 8 / 4);
}

TEST(ParseHardware, Links) {
  Cluster pcie = parsed("2xrtx-4090");
  EXPECT_EQ(pcie.intra.id, "pcie4x16");
  EXPECT_EQ(pcie.intra.topology, PeerTopology::none);
  Cluster bridged = parsed("2xrtx-3090@nvlink");
  EXPECT_EQ(bridged.intra.topology, PeerTopology::bridge_pair);
  EXPECT_DOUBLE_EQ(bridged.intra.one_way.in_base(), 56.25e9);
  EXPECT_TRUE(bridged.assumptions.empty());
  EXPECT_EQ(parsed("2xrtx-3090").intra.id, "pcie4x16");
  EXPECT_FALSE(parsed("2xrtx-3090").assumptions.empty());
  EXPECT_EQ(parsed("8xh100-sxm@pcie").intra.id, "pcie5x16");
  EXPECT_NEAR(parsed("2xrtx-4090@pcie4x8").intra.one_way.in_base(), 15.75e9, 0.01e9);
  Cluster both = parsed("2x8xmi300x@xgmi@roce400");
  EXPECT_EQ(both.intra.topology, PeerTopology::mesh);
  EXPECT_EQ(both.inter->id, "roce400");
  EXPECT_EQ(refused("2xrtx-4090@nvlink"), ErrorCode::bad_argument);
  EXPECT_EQ(refused("8xh100-sxm@ib4000"), ErrorCode::unknown_name);
}

TEST(ParseHardware, FactsOfTheCard) {
  Cluster c = parsed("rtx-4090{used=2GiB, display, power=350W}");
  EXPECT_EQ(c.card.memory_used, gibibytes(2));
  EXPECT_TRUE(c.card.display);
  EXPECT_EQ(*c.card.power_limit, watts(350));
  EXPECT_FALSE(c.card.ecc);
  EXPECT_EQ(c.written, "rtx-4090{used=2GiB,display,power=350W}");
  EXPECT_EQ(parsed("rtx-5090{display}").card.memory_used, mebibytes(1586));
  EXPECT_EQ(parsed("rtx-5090{display}").written, "rtx-5090{display}");
  EXPECT_EQ(parsed("rtx-3090{cuda=11.6,used=1GiB}").written, "rtx-3090{used=1GiB,cuda=11.6}");
  EXPECT_EQ(refused("rtx-3090{cuda=new}"), ErrorCode::bad_argument);
  EXPECT_EQ(refused("rtx-3090{cuda=11.x}"), ErrorCode::bad_argument);
  EXPECT_EQ(refused("mi300x{cuda=11.6}"), ErrorCode::unsupported);
  EXPECT_EQ(*parsed("l40s{ecc=off}").card.ecc, false);
  EXPECT_EQ(parsed("2xrtx-4090{display}@pcie4x8").intra.id, "pcie4x8");
  EXPECT_EQ(refused("rtx-4090{used=2G}"), ErrorCode::bad_argument);
  EXPECT_EQ(refused("rtx-4090{usd=2GiB}"), ErrorCode::bad_argument);
  EXPECT_EQ(refused("rtx-4090{ecc=maybe}"), ErrorCode::bad_argument);
  EXPECT_EQ(refused("rtx-4090{power=0W}"), ErrorCode::bad_argument);
  EXPECT_EQ(refused("rtx-4090{display"), ErrorCode::bad_argument);
  EXPECT_EQ(refused("a100-sxm-80gb{mig=3g.40gb}"), ErrorCode::unsupported);
}

TEST(ParseHardware, Refusals) {
  EXPECT_EQ(refused("a100-80gb"), ErrorCode::ambiguous_name);
  EXPECT_EQ(refused("8xa100-80gb"), ErrorCode::ambiguous_name);
  EXPECT_EQ(refused("here"), ErrorCode::unsupported);
  EXPECT_EQ(refused("rtx-4090+rtx-3090"), ErrorCode::unsupported);
  EXPECT_EQ(refused("warp-drive"), ErrorCode::unknown_name);
  EXPECT_EQ(refused("2x2x2xrtx-4090"), ErrorCode::bad_argument);
  EXPECT_EQ(refused("8x"), ErrorCode::bad_argument);
  for (const char* slip : {"0xrtx-4090", "-1xrtx-4090", "2x0xrtx-4090", "99999999xrtx-4090",
                           "99999999999999999999xrtx-4090"}) {
    auto r = parse_hardware(slip, hardware());
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().what.id, message_id(BaseMessage::number_out_of_range)) << slip;
  }
  EXPECT_EQ(refused(""), ErrorCode::bad_argument);
  EXPECT_EQ(refused("@ib400"), ErrorCode::bad_argument);
}

TEST(ParseHardware, CandidatesOfAnAmbiguousName) {
  auto two = parse_hardware_candidates("8xa100-80gb", hardware());
  ASSERT_TRUE(two);
  ASSERT_EQ(two->size(), 2u);
  EXPECT_EQ((*two)[0].written, "8xa100-sxm-80gb");
  EXPECT_EQ((*two)[1].written, "8xa100-pcie-80gb");
  EXPECT_EQ((*two)[1].intra.topology, PeerTopology::none);
  auto nodes = parse_hardware_candidates("2xdgx-a100", hardware());
  ASSERT_TRUE(nodes);
  EXPECT_EQ(nodes->size(), 2u);
  EXPECT_EQ(nodes->front().nodes, 2);
  EXPECT_EQ(refused("2xdgx-a100"), ErrorCode::ambiguous_name);
  EXPECT_EQ(parse_hardware_candidates("8xh100-sxm", hardware())->size(), 1u);
  EXPECT_FALSE(parse_hardware_candidates("warp-drive", hardware()));
}

TEST(ParseHardware, TheCanonicalFormReadsBack) {
  for (const char* text :
       {"h100-sxm", "8xh200", "4x8xh100-sxm@ib400", "dgx-h100", "3xdgx-b200", "2xrtx-3090@nvlink",
        "rtx-4090{used=2GiB,display,power=350W}", "2x1xl40s{ecc=off}", "16x8xmi300x@roce400"}) {
    Cluster a = parsed(text), b = parsed(a.written);
    EXPECT_EQ(a.written, b.written);
    EXPECT_EQ(a.accelerator, b.accelerator);
    EXPECT_EQ(a.count(), b.count());
    EXPECT_EQ(a.nodes, b.nodes);
    EXPECT_EQ(a.intra.one_way, b.intra.one_way);
    EXPECT_EQ(a.card.memory_used, b.card.memory_used);
  }
}

}  // namespace
}  // namespace trigon
