// What searchers are told of a step is what the evaluation has, and bounds never pass it.

#include "step/step_timer.hpp"

#include <gtest/gtest.h>

#include "step/test_tables.hpp"

namespace trigon {
namespace {

class StepTimers : public testing::Test {
 protected:
  void SetUp() override {
    model = test::llama2_7b();
    t.model = &model;
    t.stack = language_stack(model);
    t.engine = test::plain_engine();
    t.device = test::round_device(card);
    t.device.engine.overlap = 0.5;
    t.layers = 32;
    Train job;
    job.tokens = 1e9;
    job.sequence = 1000;
    job.global_batch = 64;
    t.job = job;
    auto m = MemoryModel::prepare(model, t.job, test::cluster(8), t.engine, test::exactly_gib(80));
    ASSERT_TRUE(m);
    t.memory = *m;
    t.train.parameters = 7e9;
    t.train.trainable_parameters = 7e9;
    t.train.forward_flops = 14e12;
    TrainPass pass;
    pass.layers = {0.32, 0.32, 0.32, 0.04, 0.1, 0, 0};
    pass.head = {0.02, 0.02, 0.02};
    pass.embedding = {0.001, 0, 0.002};
    pass.boundary = 1e6;
    t.train.pass = {pass, {}};
  }
  Accelerator card = test::round_card();
  Model model;
  Tables t;
};

TEST_F(StepTimers, BoundsStayBelowWhatTheEvaluationHas) {
  StepTimer timer(t);
  int walked = 0;
  for (const int p : {1, 2, 3, 5})
    for (const int v : {1, 2})
      for (const int m : {1, 3, 8, 12})
        for (const int data : {1, 2})
          for (const Schedule order : {Schedule::one_f_one_b, Schedule::gpipe,
                                       Schedule::zero_bubble, Schedule::interleaved})
            for (const Recompute r : {Recompute::none, Recompute::selective, Recompute::full}) {
              if ((order == Schedule::interleaved) != (v > 1) || (p == 1 && v > 1)) continue;
              Plan plan;
              plan.pipeline = p, plan.virtual_stages = v, plan.accumulation = m, plan.data = data;
              plan.schedule = order, plan.recompute = r;
              const double step = evaluate(t, plan)[Metric::step_seconds];
              const double least = timer.least(plan), nearly = timer.nearly(plan);
              EXPECT_LE(least, step);
              EXPECT_LE(nearly, step * (1 + 1e-12));
              EXPECT_EQ(timer.seconds(plan), step);
              walked += nearly < step * (1 - 1e-9);
            }
  // Some schedules have no closed form: there the bound is one.
  EXPECT_GT(walked, 0);
}

TEST_F(StepTimers, RunsAreThoseOfTheEvaluation) {
  StepTimer timer(t);
  Plan plan;
  plan.accumulation = 4;
  const Evaluation e = evaluate(t, plan);
  EXPECT_EQ(timer.run_seconds(plan, e[Metric::step_seconds]), e[Metric::time_to_train_seconds]);
  EXPECT_GT(timer.run_seconds(plan, 2 * e[Metric::step_seconds]), e[Metric::time_to_train_seconds]);
}

}  // namespace
}  // namespace trigon
