#include "job/adapter_targets.hpp"

#include <gtest/gtest.h>

namespace trigon {
namespace {

TEST(AdapterTargets, ReadsPartsAndNamesOfCheckpoints) {
  const auto qwen = adapter_targets("c_attn+c_proj+w1+w2");
  ASSERT_TRUE(qwen);
  AdapterTargets linears = kAllLinears;
  EXPECT_TRUE(qwen->any({AdapterTarget::down}) && qwen->any({AdapterTarget::gate}));
  EXPECT_FALSE(*qwen == linears);  // no recurrent mixers
  EXPECT_EQ(*adapter_targets("v_proj+q_proj"), kQueryValue);
  EXPECT_EQ(*adapter_targets("qv"), kQueryValue);
  EXPECT_EQ(*adapter_targets("all"), kAllLinears);
}

TEST(AdapterTargets, WritesWhatItReads) {
  for (const char* text : {"all", "qv", "q_proj,down_proj", "embed_tokens,lm_head", "k_proj"})
    EXPECT_EQ(write_targets(*adapter_targets(text)), text);
}

TEST(AdapterTargets, NamesTheNearestForAnUnknownOne) {
  const auto wrong = adapter_targets("q_poj", "--adapt");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().where, "--adapt");
  ASSERT_TRUE(wrong.error().hint);
  EXPECT_EQ(std::get<std::string>(wrong.error().hint->args.at(0)), "q_proj");
  EXPECT_FALSE(adapter_targets(",,"));
  EXPECT_FALSE(adapter_targets(""));
}

}  // namespace
}  // namespace trigon
