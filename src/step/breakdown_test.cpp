// Operators and what is no operator's add up to the times that are stated.

#include "step/breakdown.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "step/test_tables.hpp"

namespace trigon {
namespace {

class BrokenDown : public ::testing::Test {
 protected:
  std::vector<StepBreakdown> parts(const Model& model, const Job& job, PlanDomain domain,
                                   const Plan& plan, int nodes = 1) {
    auto t = prepare(model, job, test::round_cluster(card, 8, nodes), engine, calibration,
                     test::exactly_gib(80), domain);
    EXPECT_TRUE(t);
    tables = std::move(*t);
    if (coefficients) reprice(tables, *coefficients);
    result = evaluate(tables, plan);
    return break_down(tables, plan, result);
  }
  static double rest(const StepBreakdown& s, StepRest what) {
    for (const RestLine& r : s.rest)
      if (r.what == what) return r.seconds;
    return 0;
  }
  // Everything is told, and hardly anything of it as "other".
  static void adds_up(const StepBreakdown& s, double stated) {
    double sum = 0;
    for (const OperatorLine& line : s.operators) sum += line.seconds;
    for (const RestLine& line : s.rest) sum += line.seconds;
    EXPECT_NEAR(sum / stated, 1, 1e-9);
    EXPECT_NEAR(s.seconds / stated, 1, 1e-9);
    EXPECT_LT(std::abs(rest(s, StepRest::other)), 1e-6 * stated);
  }

  Accelerator card = test::round_card();
  EnginePolicy engine = test::plain_engine();
  FactStore store = test::neutral_calibration();
  Calibration calibration = *Calibration::load(store);
  std::optional<EngineCoefficients> coefficients;
  Tables tables;
  Evaluation result;
};

TEST_F(BrokenDown, ServingAddsUpAtEveryLoadAndDegree) {
  for (const Model& model : {test::llama31_8b(), test::mixtral_8x7b(), test::deepseek_v3()})
    for (int tensor : {1, 8})
      for (int pipeline : {1, 2})
        for (double rate : {0.3, 3.0, 30.0}) {
          PlanDomain domain;
          domain.tensor = {1, 8};
          Plan plan;
          plan.tensor = tensor;
          plan.pipeline = pipeline;
          Serve job = test::serve(3000, 300);
          job.concurrency.reset();
          job.rate = PerSecond::base(rate);
          engine.max_batched_tokens = 2048;
          auto steps = parts(model, job, domain, plan);
          ASSERT_EQ(steps.size(), 2u);
          adds_up(steps[0], result[Metric::prefill_seconds]);
          adds_up(steps[1], result[Metric::decode_step_seconds]);
        }
}

TEST_F(BrokenDown, TheHostsShareIsALineOfItsOwn) {
  PlanDomain domain;
  parts(test::llama31_8b(), test::serve(100, 100), domain, {});
  coefficients = tables.device.engine;
  coefficients->layer_overhead_seconds = 0.01;
  auto steps = parts(test::llama31_8b(), test::serve(100, 100), domain, {});
  adds_up(steps[1], result[Metric::decode_step_seconds]);
  // 32 layers of 10 ms, of which the operators take some; a little more as both are near.
  double layers = 0;
  for (const OperatorLine& line : steps[1].operators)
    if (line.calls >= 32) layers += line.seconds;
  EXPECT_NEAR(rest(steps[1], StepRest::host_floor) + layers, 0.32, 1e-4);
}

TEST_F(BrokenDown, ATrainingStepAddsUp) {
  Train job;
  job.sequence = 2048;
  job.global_batch = 64;
  job.tokens = 1e9;
  for (int pipeline : {1, 4})
    for (int context : {1, 2})
      for (Recompute r : {Recompute::none, Recompute::selective, Recompute::full}) {
        PlanDomain domain;
        domain.tensor = {2};
        domain.context = {context};
        domain.micro_batch = {2};
        Plan plan;
        plan.tensor = 2;
        plan.pipeline = pipeline;
        plan.context = context;
        plan.data = 2;
        plan.micro_batch = 2;
        plan.accumulation = 16;
        plan.recompute = r;
        parts(test::llama2_7b(), job, domain, plan, 4);
        coefficients = tables.device.engine;
        coefficients->layer_overhead_seconds = context == 1 ? 0 : 2e-3;
        auto steps = parts(test::llama2_7b(), job, domain, plan, 4);
        ASSERT_EQ(steps.size(), 1u);
        adds_up(steps[0], result[Metric::step_seconds]);
        double forward = 0, backward = 0;
        for (const OperatorLine& line : steps[0].operators)
          (line.backward ? backward : forward) += line.seconds;
        const double host = rest(steps[0], StepRest::host_floor);
        EXPECT_NEAR((forward + backward + host) /
                        (result[Metric::forward_seconds] + result[Metric::backward_seconds]),
                    1, 1e-9);
        if (context == 1) {
          EXPECT_NEAR(forward / result[Metric::forward_seconds], 1, 1e-9);
        }
        // The timeline ends with the last pass, and its parts are those of the step.
        double end = 0;
        for (const StageEvent& e : steps[0].events) end = std::max(end, e.end);
        EXPECT_NEAR(end / steps[0].passes_end, 1, 1e-9);
      }
}

TEST_F(BrokenDown, TheRooflineOfAProduct) {
  auto steps = parts(test::llama31_8b(), test::serve(1000, 101), PlanDomain{}, Plan{});
  for (const OperatorLine& line : steps[1].operators) {
    if (std::string(line.op.name) != "mlp.down") continue;
    // One row times 14,336 x 4,096 in 16 bit: 2 FLOP for each weight of 2 B and a few rows.
    const double weights = 14336.0 * 4096, rows = 14336.0 + 4096;
    EXPECT_DOUBLE_EQ(line.intensity(), 2 * weights / (2 * weights + 2 * rows));
    EXPECT_EQ(line.calls, 32);
    EXPECT_EQ(line.time.bound, Bound::bandwidth);
    EXPECT_LT(line.intensity(), line.unit.peak / steps[1].bandwidth);
    // Neither roof is broken.
    EXPECT_LE(line.op.flops / line.time.seconds, line.unit.peak);
    EXPECT_LE(line.bytes() / line.time.seconds, steps[1].bandwidth);
    return;
  }
  FAIL() << "no mlp.down";
}

TEST_F(BrokenDown, LongestFirst) {
  for (const StepBreakdown& s :
       parts(test::mixtral_8x7b(), test::serve(1000, 101), PlanDomain{}, Plan{}))
    for (std::size_t i = 1; i < s.operators.size(); ++i)
      EXPECT_GE(s.operators[i - 1].seconds, s.operators[i].seconds);
}

}  // namespace
}  // namespace trigon
