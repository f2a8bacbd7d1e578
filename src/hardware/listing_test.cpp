#include "hardware/listing.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace trigon {
namespace {

const FactStore& facts() {
  static const FactStore store = FactStore::embedded().value();
  return store;
}
const AcceleratorCatalog& cards() {
  static const AcceleratorCatalog c = AcceleratorCatalog::from(facts()).value();
  return c;
}
std::vector<const Accelerator*> chosen(std::initializer_list<const char*> texts) {
  std::vector<Condition> conditions;
  for (const char* t : texts) {
    auto c = parse_condition(t);
    EXPECT_TRUE(c) << t;
    if (c) conditions.push_back(*c);
  }
  return select(cards(), conditions);
}
bool has(const std::vector<const Accelerator*>& v, std::string_view id) {
  return std::any_of(v.begin(), v.end(), [&](const Accelerator* a) { return a->id == id; });
}

TEST(Listing, FactsComeWithUnitAndSource) {
  auto rows = list_facts(*facts().find("accelerator", "h100-sxm-80gb"));
  auto it = std::find_if(rows.begin(), rows.end(),
                         [](const FactRow& r) { return r.key == "memory.bandwidth"; });
  ASSERT_NE(it, rows.end());
  EXPECT_EQ(it->value, "3350");
  EXPECT_EQ(it->unit, "GB/s");
  EXPECT_EQ(it->id, "accelerator/h100-sxm-80gb#memory.bandwidth_gb_per_s");
  for (const FactRow& r : rows) {
    EXPECT_FALSE(r.source.empty()) << r.key;
    EXPECT_FALSE(r.date.empty()) << r.key;
  }
  auto derived = std::find_if(rows.begin(), rows.end(),
                              [](const FactRow& r) { return r.key == "link.one_way"; });
  ASSERT_NE(derived, rows.end());
  EXPECT_EQ(derived->source, "derived: half of both ways");
}

TEST(Conditions, SelectByNumberAndWord) {
  auto big = chosen({"mem>=80GB", "vendor=amd"});
  EXPECT_TRUE(has(big, "mi300x"));
  EXPECT_FALSE(has(big, "h100-sxm-80gb"));
  EXPECT_FALSE(has(big, "rx-7900-xtx"));
  EXPECT_TRUE(has(chosen({"mem=80GB"}), "h100-sxm-80gb"));
  EXPECT_TRUE(has(chosen({"bw>3TB/s"}), "h100-sxm-80gb"));
  EXPECT_FALSE(has(chosen({"bw>3TB/s"}), "a100-sxm-80gb"));
  EXPECT_TRUE(has(chosen({"fp16>=100", "power<=450W", "price<2000"}), "rtx-4090"));
  EXPECT_FALSE(has(chosen({"fp8>0"}), "a100-sxm-80gb"));  // unknown facts satisfy nothing
  auto two = chosen({"vendor=amd,intel"});
  EXPECT_TRUE(has(two, "arc-b580"));
  EXPECT_FALSE(has(two, "rtx-4090"));
  EXPECT_TRUE(has(chosen({"vendor!=nvidia"}), "tpu-v5e"));
  EXPECT_TRUE(has(chosen({"launch>=2022", "family=hopper"}), "h100-sxm-80gb"));
  EXPECT_FALSE(has(chosen({"launch<2022"}), "h100-sxm-80gb"));
  std::size_t processors = 0;
  for (const Accelerator& a : cards().all()) processors += a.kind == DeviceKind::cpu;
  EXPECT_GT(processors, 50u);
  EXPECT_EQ(chosen({}).size(), cards().all().size() - processors);
  EXPECT_EQ(chosen({"kind=cpu"}).size(), processors);
}

TEST(Conditions, ErrorsNameTheRemedy) {
  EXPECT_EQ(parse_condition("mem>=24").error().what.id, message_id(BaseMessage::missing_unit));
  EXPECT_EQ(parse_condition("mem>=24G").error().what.id, message_id(BaseMessage::ambiguous_size));
  auto key = parse_condition("memm>=24GB", "--where");
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().where, "--where");
  ASSERT_TRUE(key.error().hint);
  EXPECT_EQ(std::get<std::string>(key.error().hint->args[0]), "mem");
  for (const char* bad : {"mem", ">=24GB", "mem>=", "vendor>amd", "vendor=", "fp16=fast", ""})
    EXPECT_FALSE(parse_condition(bad)) << bad;
}

TEST(Conditions, EveryKeyCanBeUsed) {
  for (std::string_view key : condition_keys()) {
    auto number = parse_condition(std::string(key) + "=1GB");
    auto word = parse_condition(std::string(key) + "=1");
    EXPECT_TRUE(number || word) << key;
  }
}

}  // namespace
}  // namespace trigon
