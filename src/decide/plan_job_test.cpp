// The verb `plan`: what it says about a cluster beside the best plan.

#include <gtest/gtest.h>

#include <thread>

#include "decide/card_search.hpp"
#include "decide/test_questions.hpp"

namespace trigon {
namespace {

TEST(PlanJob, ScalingIsAgainstTheFewestCardsThatHoldTheLimits) {
  const Model model = test::llama31_8b();
  const Question q = test::training(model, 1e9, 64);
  auto a = plan_job(test::catalogues(), q, test::machine("8xh100-sxm-80gb"), Objective{});
  ASSERT_TRUE(a);
  ASSERT_TRUE(a->best);
  const ScalingRow *first = nullptr, *last = nullptr, *before = nullptr;
  for (const ScalingRow& r : a->scaling) {
    if (!r.best || !r.best->good()) continue;
    if (!first) first = &r;
    before = last;
    last = &r;
  }
  ASSERT_TRUE(first && last && before);
  EXPECT_EQ(last->cards, 8);
  EXPECT_DOUBLE_EQ(first->speedup, 1);
  EXPECT_NEAR(last->speedup, first->best->wish / last->best->wish, 1e-12);
  EXPECT_NEAR(last->efficiency, last->speedup * first->cards / 8, 1e-12);
  EXPECT_NEAR(last->added, (last->speedup - before->speedup) * first->cards / (8 - before->cards),
              1e-12);
}

TEST(PlanJob, NoPointOfTheFrontIsBeatenByAnother) {
  const Model model = test::llama31_8b();
  const Question q = test::training(model, 1e9, 64);
  auto a = plan_job(test::catalogues(), q, test::machine("8xh100-sxm-80gb"), Objective{});
  ASSERT_TRUE(a);
  ASSERT_GT(a->front.size(), 1u);
  for (const PlanRow& x : a->front)
    for (const PlanRow& y : a->front) {
      if (&x == &y) continue;
      const double cost_x = x.usd.value_or(x.cards * x.seconds);
      const double cost_y = y.usd.value_or(y.cards * y.seconds);
      EXPECT_FALSE(x.seconds < y.seconds &&
                   x.memory_bytes / x.usable_bytes < y.memory_bytes / y.usable_bytes &&
                   cost_x < cost_y * (1 - 1e-9));
    }
}

TEST(PlanJob, SaysWhatMethodsOfFineTuningFit) {
  const Model model = test::decoder("seven", {32, 4096, 32, 32, 128, 11008, 32000});
  Question q = test::question(model, JobKind::finetune);
  q.job.method = TuneMethod::qlora;
  q.job.tokens = 1e6;
  q.job.sequence = 512;
  q.job.global_batch = 4;
  auto a = plan_job(test::catalogues(), q, test::machine("rtx-3060-12gb"), Objective{});
  ASSERT_TRUE(a);
  ASSERT_EQ(a->methods.size(), 3u);
  for (const MethodRow& m : a->methods) {
    ASSERT_TRUE(m.best);
    // 3.5 GB of weights in four bits fit; in sixteen they fit no card of twelve but from the host.
    if (m.method == TuneMethod::qlora) {
      EXPECT_TRUE(m.best->good());
      EXPECT_FALSE(m.best->plan.offload_weights);
    } else {
      EXPECT_TRUE(!m.best->good() || m.best->plan.offload_weights);
    }
  }
}

TEST(PlanJob, AStopLeavesTheBestSoFar) {
  const Model model = test::decoder("many", {96, 12288, 96, 96, 128, 49152, 51200});
  Question q = test::training(model, 300e9, 1536);
  std::atomic<bool> stop{false};
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    stop = true;
  });
  Objective objective;
  objective.threads = 1;
  auto a = plan_job(test::catalogues(), q, test::machine("512x8xa100-sxm-80gb"), objective, &stop);
  ASSERT_TRUE(a);
  EXPECT_TRUE(a->partial);
}

}  // namespace
}  // namespace trigon
