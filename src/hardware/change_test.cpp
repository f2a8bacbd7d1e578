// Facts changed for one question.

#include "hardware/change.hpp"

#include <gtest/gtest.h>

#include "hardware/parse.hpp"

namespace trigon {
namespace {

const HardwareCatalog& catalog() {
  static const FactStore store = FactStore::embedded().value();
  static const HardwareCatalog loaded = HardwareCatalog::from(store).value();
  return loaded;
}

Cluster machine(const char* text) { return *parse_hardware(text, catalog(), "test"); }

HardwareChange change(const char* key, const char* value) {
  auto c = parse_hardware_change(key, value);
  EXPECT_TRUE(c) << key << "=" << value;
  return c ? *c : HardwareChange{};
}

ChangedHardware with(const Cluster& c, std::vector<HardwareChange> changes) {
  auto out = changed(c, changes, catalog());
  EXPECT_TRUE(out);
  return out ? *out : ChangedHardware{};
}

TEST(HardwareChange, Factors) {
  EXPECT_DOUBLE_EQ(change("bandwidth", "2x").factor, 2);
  EXPECT_DOUBLE_EQ(change("peak", "x1.5").factor, 1.5);
  EXPECT_DOUBLE_EQ(change("mem_bw", "+50%").factor, 1.5);
  EXPECT_DOUBLE_EQ(change("latency", "-20%").factor, 0.8);
  for (const char* bad : {"0x", "-100%", "x", "%", "2", "50%", ""})
    EXPECT_FALSE(parse_hardware_change("peak", bad)) << bad;
}

TEST(HardwareChange, ValuesTakeTheUnitsOfTheirKind) {
  // 1.6 Tb/s are 200 GB/s.
  EXPECT_DOUBLE_EQ(*change("network", "1.6Tb/s").value, 200e9);
  EXPECT_DOUBLE_EQ(*change("memory", "96GB").value, 96e9);
  EXPECT_DOUBLE_EQ(*change("power", "400W").value, 400);
  EXPECT_DOUBLE_EQ(*change("latency", "1us").value, 1e-6);
  EXPECT_FALSE(parse_hardware_change("memory", "96G"));
  EXPECT_FALSE(parse_hardware_change("bandwidth", "3"));
  EXPECT_FALSE(parse_hardware_change("power", "0W"));
}

TEST(HardwareChange, OnlyTheAskedFactMoves) {
  const Cluster now = machine("h100-sxm");
  const ChangedHardware then = with(now, {change("bandwidth", "2x")});
  EXPECT_DOUBLE_EQ(then.accelerator->memory_bandwidth.in_base(),
                   2 * now.accelerator->memory_bandwidth.in_base());
  EXPECT_EQ(then.accelerator->peak, now.accelerator->peak);
  EXPECT_EQ(then.cluster.accelerator, then.accelerator.get());
  // The catalogue's own card is what it was.
  EXPECT_DOUBLE_EQ(machine("h100-sxm").accelerator->memory_bandwidth.in_base(),
                   now.accelerator->memory_bandwidth.in_base());
}

TEST(HardwareChange, WhatTheDriverReportsGrowsWithTheMemory) {
  const Cluster now = machine("h100-sxm");
  const ChangedHardware then = with(now, {change("memory", "160GB")});
  EXPECT_DOUBLE_EQ(then.accelerator->memory_nominal.in_base(), 160e9);
  EXPECT_NEAR(
      then.accelerator->memory_reported->in_base() / now.accelerator->memory_reported->in_base(),
      160e9 / now.accelerator->memory_nominal.in_base(), 1e-12);
}

TEST(HardwareChange, TheLinkIsTheOneBetweenNodesWhereThereIsOne) {
  const ChangedHardware many = with(machine("4x8xh100-sxm@ib400"), {change("link", "1.6Tb/s")});
  EXPECT_DOUBLE_EQ(many.cluster.inter->one_way.in_base(), 200e9);
  const Cluster one = machine("8xh100-sxm");
  const ChangedHardware node = with(one, {change("link", "2x")});
  EXPECT_DOUBLE_EQ(node.cluster.intra.one_way.in_base(), 2 * one.intra.one_way.in_base());
  const std::vector<HardwareChange> network{change("network", "2x")};
  EXPECT_FALSE(changed(one, network, catalog()));
  EXPECT_TRUE(changed(one, network, catalog(), "", true));
}

TEST(HardwareChange, TheCardComesFirst) {
  const ChangedHardware then =
      with(machine("2x8xa100-sxm-80gb@ib100"), {change("memory", "2x"), change("card", "h200")});
  EXPECT_EQ(then.accelerator->id, "h200-sxm-141gb");
  EXPECT_DOUBLE_EQ(then.accelerator->memory_nominal.in_base(),
                   2 * machine("h200-sxm-141gb").accelerator->memory_nominal.in_base());
  EXPECT_EQ(then.cluster.per_node, 8);
  EXPECT_EQ(then.cluster.nodes, 2);
  EXPECT_EQ(then.cluster.inter->id, machine("2x8xa100-sxm-80gb@ib100").inter->id);
}

}  // namespace
}  // namespace trigon
