// Tables against the operators they were made of.

#include <gtest/gtest.h>

#include <cmath>

#include "step/breakdown.hpp"
#include "step/evaluate_parts.hpp"
#include "step/test_tables.hpp"

namespace trigon {
namespace {

PlanDomain stored_as(std::optional<Format> weights) {
  PlanDomain d;
  d.weights = weights;
  return d;
}

class Prepared : public testing::Test {
 protected:
  Tables tables(const Model& model, const Job& job, const PlanDomain& domain) {
    auto t = prepare(model, job, test::round_cluster(card, 8), engine, calibration,
                     test::exactly_gib(80), domain);
    EXPECT_TRUE(t);
    return *t;
  }
  Accelerator card = test::round_card();
  EnginePolicy engine = test::plain_engine();
  FactStore store = test::neutral_calibration();
  Calibration calibration = *Calibration::load(store);
};

TEST_F(Prepared, ADecodeStepIsTheSumOfItsOperators) {
  engine.launch = Launch::graphs;
  for (const Model& model : {test::llama31_8b(), test::mixtral_8x7b(), test::deepseek_v3()}) {
    PlanDomain domain;
    domain.tensor = {1, 4, 8};
    Tables t = tables(model, test::serve(1000, 201), domain);
    for (int tensor : domain.tensor)
      for (int batch : {1, 8, 128}) {
        Plan p;
        p.tensor = tensor;
        p.micro_batch = batch;
        double sum = t.device.engine.step_overhead_seconds;
        Evaluation e;
        e.sequences_together = batch;
        const auto steps = break_down(t, p, e);
        for (const OperatorLine& c : steps.back().operators) {
          sum += c.seconds;
          EXPECT_NEAR(c.seconds / (c.calls * c.time.seconds), 1, 1e-12) << c.op.name;
          if (c.op.kind == OperatorKind::attention) {
            EXPECT_EQ(c.op.key_tokens, 1101);
          }
        }
        EXPECT_NEAR(decode_step_seconds(t, p, batch) / sum, 1, 1e-12) << model.id;
      }
  }
}

TEST_F(Prepared, TheBatchesOfAPlanAreAllThatItsEvaluationLooksUp) {
  engine.capture_batches = {1, 8, 24, 100, 256};
  engine.max_batched_tokens = 8192;
  engine.pipeline_parallel = true;
  engine.batching = Batching::continuous;
  for (int batch : {1, 3, 20, 97, 300, 5000})
    for (std::int64_t input : {1, 100, 700, 3000})
      for (int pipeline : {1, 4}) {
        Batch job;
        job.input_tokens = input;
        job.output_tokens = 50;
        Plan plan;
        plan.micro_batch = batch;
        plan.pipeline = pipeline;
        PlanDomain domain;
        domain.micro_batch = {batch};
        const Model model = test::llama31_8b();
        const Evaluation whole = evaluate(tables(model, job, domain), plan);
        domain.batches = batches_of(model, job, engine, plan);
        EXPECT_LE(domain.batches.size(), 7u);
        const Evaluation part = evaluate(tables(model, job, domain), plan);
        for (std::size_t m = 0; m < kMetrics; ++m)
          if (!std::isnan(whole.values[m])) {
            EXPECT_NEAR(part.values[m], whole.values[m], 1e-12 * std::abs(whole.values[m]))
                << metric_info(static_cast<Metric>(m)).json;
          }
      }
}

TEST_F(Prepared, TheHostLaunchesNoFasterThanItCan) {
  Model model = test::llama31_8b();
  PlanDomain domain;
  Tables t = tables(model, test::serve(100, 100), domain);
  Plan p;
  double fast = decode_step_seconds(t, p, 1);
  EngineCoefficients slow = t.device.engine;
  slow.layer_overhead_seconds = 0.01;
  reprice(t, slow);
  EXPECT_GT(decode_step_seconds(t, p, 1), 32 * 0.01);
  slow.layer_overhead_seconds = 0;
  reprice(t, slow);
  EXPECT_DOUBLE_EQ(decode_step_seconds(t, p, 1), fast);
}

TEST_F(Prepared, TrainingFlopsOfKnownModels) {
  Train job;
  job.sequence = 2048;
  job.global_batch = 8;
  job.tokens = 1e9;
  Model model = test::llama2_7b();
  Tables t = tables(model, job, {});
  // 2 x 6,607,077,376 multiplied weights a token, and causal attention over (s + 1) / 2 keys.
  double attention = 32 * 4 * 4096.0 * 1024.5 * 2048;
  EXPECT_NEAR(t.train.attention_forward_flops, attention, 1);
  EXPECT_NEAR(t.train.forward_flops, 2 * 6607077376.0 * 2048 + attention, 1e3);
  EXPECT_EQ(t.train.parameters, 6738415616.0);
  Model mixtral = test::mixtral_8x7b();
  t = tables(mixtral, job, {});
  EXPECT_EQ(t.train.expert_parameters, 32 * 8 * 3 * 4096.0 * 14336);
}

TEST_F(Prepared, LowRankAdapters) {
  FineTune job;
  job.method = TuneMethod::lora;
  job.sequence = 1024;
  job.global_batch = 4;
  job.tokens = 1e6;
  job.rank = 16;
  job.targets = kQueryValue;
  Model model = test::llama2_7b();
  Tables t = tables(model, job, {});
  // Query and value of 32 layers: 16 x (4096 + 4096) each.
  EXPECT_EQ(t.train.trainable_parameters, 32 * 2 * 16 * 8192.0);
  EXPECT_TRUE(t.train.frozen_base);
  Train full;
  full.sequence = 1024;
  full.global_batch = 4;
  full.tokens = 1e6;
  Tables whole = tables(model, full, {});
  // No gradients of weights: the backward pass of matrices is one product instead of two.
  const LayerWork &some = t.train.pass[0].layers, &all = whole.train.pass[0].layers;
  EXPECT_NEAR(some.forward, all.forward, 1e-12);
  EXPECT_EQ(some.weight, 0);
  EXPECT_NEAR(some.input, all.input, 1e-12);
  EXPECT_LT(some.backward(), 0.65 * all.backward());
}

TEST_F(Prepared, LayersAddUpToStages) {
  Train job;
  job.sequence = 1024;
  job.global_batch = 4;
  job.tokens = 1e6;
  Model model = test::llama2_7b();
  Tables t = tables(model, job, {});
  const TrainPass& pass = t.train.pass[0];
  ASSERT_EQ(pass.upto.size(), 33u);
  EXPECT_NEAR(pass.of(0, 8, 32).total() * 4, pass.layers.total(), 1e-9);
  EXPECT_EQ(pass.of(3, 3, 32).total(), 0);
  // Attention of every layer is repeated under selective recomputation.
  EXPECT_GT(pass.layers.again, 0);
  EXPECT_LT(pass.layers.again, 0.3 * pass.layers.forward);
}

TEST_F(Prepared, WeightClasses) {
  Model m = test::llama31_8b();
  EXPECT_STREQ(weight_class(m, stored_as(std::nullopt)), "half");
  EXPECT_STREQ(weight_class(m, stored_as(Format::fp8_tensor)), "fp8");
  m.weight_format = Format::int4_g128;
  EXPECT_STREQ(weight_class(m, stored_as(Format::fp8_tensor)), "int4");  // quantised weights stay
  m.weight_format = Format::q4_k;
  EXPECT_STREQ(weight_class(m, stored_as(std::nullopt)), "gguf");
  m.weight_format = Format::f32;
  EXPECT_STREQ(weight_class(m, stored_as(std::nullopt)), "fp32");
}

}  // namespace
}  // namespace trigon
