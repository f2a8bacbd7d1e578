// The search on questions whose answer is known beforehand. Whether it is exact is tested against
// nested loops in tests/properties/plan_search_test.cpp.

#include "decide/plan_search.hpp"

#include <gtest/gtest.h>

#include "decide/test_questions.hpp"
#include "step/step_timer.hpp"

namespace trigon {
namespace {

struct Searched {
  Setup setup;
  PlanSearch found;
};

Searched search(const Question& q, const char* hardware, PlanSearchOptions options = {}) {
  auto s = set_up(test::catalogues(), q, test::machine(hardware));
  EXPECT_TRUE(s);
  auto found = search_plans(*s, q.plan, options);
  EXPECT_TRUE(found);
  return {std::move(*s), std::move(*found)};
}

PlanSearchOptions everything() {
  PlanSearchOptions o;
  o.families = o.front = true;
  return o;
}

TEST(PlanSearchUnit, EveryKindOfPlanIsLookedAt) {
  const Model model = test::decoder("sixteen", {16, 2048, 16, 16, 128, 8192, 32000});
  Question q = test::training(model, 1e9, 64);
  q.engine = "megatron-lm";
  q.plan.any_schedule = true;
  const Searched s = search(q, "8xh100-sxm-80gb", everything());
  std::array<bool, 5> pipelines{};
  std::array<bool, 3> contexts{};
  bool grouped = false;
  for (const FamilyResult& f : s.found.families) {
    if (!f.best) continue;
    EXPECT_TRUE(belongs(f.family, f.best->plan));
    const auto value = static_cast<std::size_t>(f.family.value);
    if (f.family.kind == FamilyKind::pipeline) pipelines.at(value) = true;
    if (f.family.kind == FamilyKind::context) contexts.at(value) = true;
    if (f.family.kind == FamilyKind::groups && f.family.value == 1) grouped = true;
  }
  EXPECT_EQ(pipelines, (std::array<bool, 5>{true, true, true, true, true}));
  EXPECT_EQ(contexts, (std::array<bool, 3>{true, true, true}));
  EXPECT_TRUE(grouped);
}

TEST(PlanSearchUnit, AScheduleThatWasAskedForIsKept) {
  const Model model = test::decoder("sixteen", {16, 2048, 16, 16, 128, 8192, 32000});
  Question q = test::training(model, 1e9, 64);
  q.engine = "megatron-lm";
  q.plan.pipeline = 4;
  for (Schedule order :
       {Schedule::gpipe, Schedule::one_f_one_b, Schedule::zero_bubble, Schedule::interleaved}) {
    q.plan.schedule = order;
    const Searched s = search(q, "8xh100-sxm-80gb");
    ASSERT_TRUE(s.found.best) << schedule_name(order);
    EXPECT_EQ(s.found.best->plan.schedule, order);
    EXPECT_EQ(s.found.best->plan.virtual_stages > 1, order == Schedule::interleaved);
  }
}

TEST(PlanSearchUnit, TensorGroupsStayInsideANode) {
  const Model model = test::llama31_8b();
  const Question q = test::training(model, 1e9, 64);
  const Searched s = search(q, "4x2xh100-sxm-80gb", everything());
  for (const FamilyResult& f : s.found.families)
    if (f.best) {
      EXPECT_LE(f.best->plan.tensor, 2);
    }
}

// A card of 12 GB: the weights of seven billion parameters alone are more, so they stay in host
// memory and come a layer at a time.
TEST(PlanSearchUnit, OneCardMayKeepWeightsInHostMemory) {
  const Model model = test::decoder("seven", {32, 4096, 32, 32, 128, 11008, 32000});
  Question q = test::training(model, 1e6, 4);
  q.engine = "deepspeed";
  PlanSearchOptions options;
  EXPECT_GT(search(q, "rtx-3060-12gb", options).found.best->excess, 0);
  options.offload = true;
  const Searched s = search(q, "rtx-3060-12gb", options);
  ASSERT_TRUE(s.found.best);
  EXPECT_EQ(s.found.best->excess, 0);
  EXPECT_TRUE(s.found.best->plan.offload_weights);
  EXPECT_EQ(s.found.best->plan.zero, 3);
  EXPECT_GT(s.found.best->evaluation.memory[MemoryTerm::gathered], 0);
}

// Bounds never pass what a step takes, and the last is the step itself where nothing is walked.
TEST(PlanSearchUnit, BoundsHold) {
  const Model model = test::decoder("sixteen", {16, 2048, 16, 16, 128, 8192, 32000});
  Question q = test::training(model, 1e9, 64);
  q.engine = "megatron-lm";
  q.plan.pipeline = 4;
  q.plan.tensor = 2;
  const Searched s = search(q, "8xh100-sxm-80gb");
  ASSERT_TRUE(s.found.best);
  Plan plan = s.found.best->plan;
  auto tables = prepare_for(s.setup, domain_of(s.setup, q.plan, plan));
  ASSERT_TRUE(tables);
  StepTimer timer(*tables);
  for (Schedule order : {Schedule::gpipe, Schedule::one_f_one_b, Schedule::zero_bubble})
    for (int v : {1, 2, 4}) {
      plan.virtual_stages = v;
      plan.schedule = v > 1 ? Schedule::interleaved : order;
      const double step = evaluate(*tables, plan)[Metric::step_seconds];
      EXPECT_EQ(timer.seconds(plan), step);
      EXPECT_LE(timer.least(plan), step);
      EXPECT_GT(timer.least(plan), 0.5 * step);
      StepTimer fresh(*tables);
      EXPECT_LE(fresh.nearly(plan), step);
      if (v == 1) {
        EXPECT_EQ(fresh.nearly(plan), step);
      }
    }
}

}  // namespace
}  // namespace trigon
