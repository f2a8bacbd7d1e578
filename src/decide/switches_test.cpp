// Switches are refused by engines that have none of the kind, and reach those that do.

#include "decide/switches.hpp"

#include <gtest/gtest.h>

namespace trigon {
namespace {

EnginePolicy server() {
  EnginePolicy e;
  e.id = "server";
  e.pool = PoolRule::free_fraction;
  e.max_batched_tokens = 2048;
  e.max_sequences = 256;
  return e;
}

TEST(Switches, EnginesWithoutOneRefuseItAndNameTheFlag) {
  PlanRequest asked;
  EXPECT_FALSE(refused_switches(server(), asked, false));
  asked.pool_tokens = 20000;
  auto no = refused_switches(server(), asked, false);
  ASSERT_TRUE(no);
  EXPECT_EQ(no->where, "--kv-cache-tokens");
  EXPECT_TRUE(no->hint);
  EnginePolicy has = server();
  has.pool_tokens_option = true;
  EXPECT_FALSE(refused_switches(has, asked, false));
  EXPECT_TRUE(refused_switches(has, asked, true));
}

TEST(Switches, AttentionThatIsParallelOverDataNeedsAnEngineAndAGroup) {
  PlanRequest asked;
  asked.attention_data = true;
  asked.tensor = 8;
  EXPECT_TRUE(refused_switches(server(), asked, false));
  EnginePolicy has = server();
  has.attention_data_parallel = true;
  EXPECT_FALSE(refused_switches(has, asked, false));
  EXPECT_TRUE(refused_switches(has, asked, true));
  take_engine_switches(asked, has);
  EXPECT_EQ(has.attention_ranks, 8);
  asked.tensor.reset();
  auto no = refused_switches(has, asked, false);
  ASSERT_TRUE(no);
  EXPECT_EQ(no->where, "--attention-dp");
}

TEST(Switches, ServersHaveNoRecipeAndTrainingNoTokenBudget) {
  PlanRequest recipe, budget;
  recipe.recipe = TrainRecipe::pure_bf16;
  budget.chunk_tokens = 4096;
  EXPECT_TRUE(refused_switches(server(), recipe, false));
  EXPECT_FALSE(refused_switches(server(), recipe, true));
  EXPECT_FALSE(refused_switches(server(), budget, false));
  EXPECT_TRUE(refused_switches(server(), budget, true));
}

TEST(Switches, ABudgetIsTheMicroBatchWhereThereIsOne) {
  PlanRequest asked;
  asked.chunk_tokens = 4096;
  EnginePolicy e = server();
  take_engine_switches(asked, e);
  EXPECT_EQ(e.max_batched_tokens, 4096);
  EnginePolicy ggml = server();
  ggml.micro_batch_tokens = 512;
  take_engine_switches(asked, ggml);
  EXPECT_EQ(ggml.micro_batch_tokens, 4096);
  EXPECT_EQ(ggml.max_batched_tokens, 2048);
}

}  // namespace
}  // namespace trigon
