#include "hardware/checks.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "hardware/aliases.hpp"

namespace trigon {
namespace {

// The embedded facts with one number of one sheet changed.
std::vector<Error> with_change(std::string_view kind, std::string_view id, std::string_view key,
                               FactValue value) {
  FactStore store = FactStore::embedded().value();
  FactSheet sheet = *store.find(kind, id);
  bool found = false;
  for (Fact& f : sheet.facts)
    if (f.key == key) {
      f.value = value;
      found = true;
    }
  EXPECT_TRUE(found) << key;
  store.add(sheet);
  return hardware_contradictions(store);
}

void expect_error_at(const std::vector<Error>& errors, std::string_view where) {
  EXPECT_TRUE(
      std::any_of(errors.begin(), errors.end(), [&](const Error& e) { return e.where == where; }))
      << where << (errors.empty() ? " (none)" : " but " + errors[0].where);
}

TEST(Checks, TheCatalogueHoldsTogether) {
  auto r = check_hardware_facts(FactStore::embedded().value());
  EXPECT_TRUE(r) << (r ? "" : r.error().where);
}

TEST(Checks, APeakMustFollowFromUnitsClockAndRate) {
  auto e = with_change("accelerator", "rtx-4090", "peak.bf16_matrix_tflops", 330.3);
  expect_error_at(e, "accelerator/rtx-4090#peak.bf16_matrix_tflops");
  ASSERT_FALSE(e.empty());
  EXPECT_EQ(e[0].what.id, message_id(HardwareMessage::peak_contradicts_rates));
  // A sparse figure taken for a dense one.
  expect_error_at(with_change("accelerator", "h100-sxm-80gb", "peak.bf16_matrix_tflops", 1978.9),
                  "accelerator/h100-sxm-80gb#peak.bf16_matrix_tflops");
}

TEST(Checks, WiderFormatsAreNotFaster) {
  expect_error_at(with_change("accelerator", "h20-sxm-96gb", "peak.bf16_matrix_tflops", 300.0),
                  "accelerator/h20-sxm-96gb#peak.bf16_matrix_tflops");
}

TEST(Checks, LinksHaveADirection) {
  expect_error_at(with_change("accelerator", "h100-sxm-80gb", "link.one_way_gb_per_s", 900.0),
                  "accelerator/h100-sxm-80gb#link.one_way_gb_per_s");
  expect_error_at(with_change("accelerator", "rtx-4090", "pcie.one_way_gb_per_s", 63.0),
                  "accelerator/rtx-4090#pcie.one_way_gb_per_s");
  expect_error_at(with_change("system", "dgx-h100", "intra.one_way_gb_per_s", 900.0),
                  "system/dgx-h100#intra.one_way_gb_per_s");
}

TEST(Checks, MemoryIsOfThisWorld) {
  expect_error_at(with_change("accelerator", "rtx-4090", "memory.reported_mib", 12282.0),
                  "accelerator/rtx-4090#memory.reported_mib");
  expect_error_at(with_change("accelerator", "rtx-4090", "memory.bandwidth_gb_per_s", 1.008),
                  "accelerator/rtx-4090#memory.bandwidth_gb_per_s");
}

TEST(Checks, ReferencesLeadSomewhere) {
  expect_error_at(with_change("system", "dgx-h100", "accelerator", std::string("h1000")),
                  "system/dgx-h100#accelerator");
  FactStore store = FactStore::embedded().value();
  store.add(*read_alias_table("name,kind,target,candidates,note\nx1,accelerator,nowhere,,\n",
                              "aliases.csv"));
  expect_error_at(hardware_contradictions(store), "aliases.csv");
}

TEST(Aliases, TableIsReadStrictly) {
  std::string head = "name,kind,target,candidates,note\n";
  auto t = read_alias_table(head +
                                "\"A, B\",unknown,unknown,,\"why, then\"\nC 1,accelerator,"
                                "ambiguous,x;y,\n",
                            "a.csv");
  ASSERT_TRUE(t);
  AliasTable table = *AliasTable::from(*t);
  ASSERT_TRUE(table.find("c-1"));
  EXPECT_EQ(table.find("c-1")->targets.size(), 2u);
  EXPECT_EQ(table.find("a, b")->note, "why, then");
  EXPECT_FALSE(table.find("c"));
  EXPECT_EQ(read_alias_table(head + "a,b\n", "a.csv").error().where, "a.csv:2");
  EXPECT_FALSE(read_alias_table(head + "a,card,x,,\n", "a.csv"));
  EXPECT_FALSE(read_alias_table(head + "a,accelerator,,,\n", "a.csv"));
  EXPECT_FALSE(read_alias_table(head + "A 1,accelerator,x,,\na-1,accelerator,y,,\n", "a.csv"));
}

}  // namespace
}  // namespace trigon
