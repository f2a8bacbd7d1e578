#include <gtest/gtest.h>

#include <cmath>

#include "step/test_tables.hpp"

namespace trigon {
namespace {

// 7e9 parameters on the round card: 100 GB/s between cards, 1 TB/s of memory. A micro-batch takes
// 0.32 s forward and 0.64 s backward over 32 layers; head 20 + 40 ms, embedding 1 + 2 ms.
class Training : public testing::Test {
 protected:
  void SetUp() override {
    model = test::llama2_7b();
    t.model = &model;
    t.stack = language_stack(model);
    t.engine = test::plain_engine();
    t.device = test::round_device(card);
    t.device.engine.overlap = 0;
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
    t.train.attention_forward_flops = 1e12;
    t.train.head_flops = 0.5e12;
    t.train.pass = {{0.32, 0.64, 0.04, 0.02, 0.04, 0.001, 0.002, 1e6, 0.1}, {}};
  }
  double operator[](Metric m) const { return evaluate(t, plan)[m]; }
  Accelerator card = test::round_card();
  Model model;
  Tables t;
  Plan plan;
};

TEST_F(Training, OneCard) {
  plan.accumulation = 4;
  double micro = 0.32 + 0.64 + 0.02 + 0.04 + 0.001 + 0.002;
  // 28 bytes of weights, gradients and moments pass for each parameter.
  double optimizer = 7e9 * 28 / 1e12;
  EXPECT_NEAR((*this)[Metric::optimizer_seconds], optimizer, 1e-12);
  EXPECT_NEAR((*this)[Metric::step_seconds], 4 * micro + optimizer, 1e-12);
  EXPECT_NEAR((*this)[Metric::forward_seconds], 4 * 0.341, 1e-12);
  EXPECT_NEAR((*this)[Metric::backward_seconds], 4 * 0.682, 1e-12);
  EXPECT_EQ((*this)[Metric::bubble_seconds], 0);
  EXPECT_NEAR((*this)[Metric::train_tokens_per_second], 4000 / (4 * micro + optimizer), 1e-6);
  EXPECT_NEAR((*this)[Metric::time_to_train_seconds], 1e9 / 4000 * (4 * micro + optimizer), 1e-3);
  // 3 x the forward FLOPs of four sequences over a peak of 100 TFLOP/s.
  EXPECT_NEAR((*this)[Metric::mfu], 4 * 3 * 14e12 / ((4 * micro + optimizer) * 100e12), 1e-12);
  EXPECT_EQ((*this)[Metric::hfu], (*this)[Metric::mfu]);
}

TEST_F(Training, RecomputeCostsTimeAndNoModelFlops) {
  double plain = (*this)[Metric::step_seconds], mfu = (*this)[Metric::mfu];
  plan.recompute = Recompute::full;
  EXPECT_NEAR((*this)[Metric::step_seconds] - plain, 0.32, 1e-12);
  EXPECT_LT((*this)[Metric::mfu], mfu);
  EXPECT_NEAR((*this)[Metric::hfu] / (*this)[Metric::mfu], (42 + 13.5) / 42.0, 1e-12);
  plan.recompute = Recompute::selective;
  EXPECT_NEAR((*this)[Metric::step_seconds] - plain, 0.04, 1e-12);
}

TEST_F(Training, PipelineBubble) {
  plan.pipeline = 4;
  plan.accumulation = 12;
  // Stages of 8 layers; the last carries the head; 1 MB goes over 100 GB/s each way.
  double micro = (0.32 + 0.64) / 4 + 0.06 + 2 * 1e6 / 100e9;
  EXPECT_NEAR((*this)[Metric::bubble_seconds], 3 * micro, 1e-12);
  // (p - 1) / m of the work: a quarter here.
  double step = (*this)[Metric::step_seconds], optimizer = (*this)[Metric::optimizer_seconds];
  EXPECT_NEAR((step - optimizer) / (12 * micro), 1 + 3.0 / 12, 1e-12);
  plan.virtual_stages = 2;
  EXPECT_NEAR((*this)[Metric::bubble_seconds], 3 * micro / 2, 1e-12);
  // 32 layers on 5 stages: the fullest has 7.
  plan.virtual_stages = 1;
  plan.pipeline = 5;
  EXPECT_NEAR((*this)[Metric::bubble_seconds], 4 * (0.96 * 7 / 32 + 0.06 + 2e6 / 100e9), 1e-12);
}

TEST_F(Training, PipelinesAcrossNodesSendOverTheNetwork) {
  LinkCoefficients c;
  c.ceiling = 1;
  t.device.inter = DeviceModel::Wire{1e9, PeerTopology::fabric_switch, 0, c};
  plan.pipeline = 8;
  double inside = (*this)[Metric::bubble_seconds];
  t.device.per_node = 4;
  EXPECT_NEAR((*this)[Metric::bubble_seconds] - inside, 7 * 2 * (1e6 / 1e9 - 1e6 / 100e9), 1e-12);
}

TEST_F(Training, GradientsAreReducedOnce) {
  plan.data = 8;
  plan.accumulation = 2;
  // 14 GB of 16-bit gradients: 7/4 of them over 100 GB/s.
  double reduction = 1.75 * 14e9 / 100e9;
  EXPECT_NEAR((*this)[Metric::exposed_communication_seconds], reduction + 2 * 0.1, 1e-9);
  // The last backward pass, 0.682 s, hides what its share of overlap can.
  t.device.engine.overlap = 0.1;
  EXPECT_NEAR((*this)[Metric::exposed_communication_seconds], reduction - 0.0682 + 2 * 0.1, 1e-9);
  t.device.engine.overlap = 1;
  EXPECT_NEAR((*this)[Metric::exposed_communication_seconds], 2 * 0.1, 1e-9);
}

TEST_F(Training, ZeroStages) {
  plan.data = 8;
  plan.accumulation = 2;
  auto exposed = [&](int stage) {
    plan.zero = stage;
    return (*this)[Metric::exposed_communication_seconds] - 2 * 0.1;
  };
  double once = 0.875 * 14e9 / 100e9;  // one pass over 14 GB
  EXPECT_NEAR(exposed(0), 2 * once, 1e-9);
  EXPECT_NEAR(exposed(1), 2 * once, 1e-9);  // scatter gradients, gather weights
  EXPECT_NEAR(exposed(2), 3 * once, 1e-9);  // scatter for each of two micro-batches
  EXPECT_NEAR(exposed(3), 6 * once, 1e-9);  // and gather twice for each
  // From stage 1 on a rank updates an eighth of the parameters.
  plan.zero = 0;
  double whole = (*this)[Metric::optimizer_seconds];
  for (int stage : {1, 2, 3}) {
    plan.zero = stage;
    EXPECT_NEAR((*this)[Metric::optimizer_seconds] * 8, whole, 1e-12);
  }
}

TEST_F(Training, ExpertsAreOnFewerRanks) {
  t.train.expert_parameters = 6e9;
  t.domain.expert = {4};
  plan.data = 8;
  plan.expert = 4;
  // 1e9 dense parameters are reduced over 8 ranks; 1.5e9 of experts over the two that hold them.
  double dense = 1.75 * 2e9 / 100e9, experts = 1.0 * 3e9 / 100e9;
  EXPECT_NEAR((*this)[Metric::exposed_communication_seconds], dense + experts + 0.1, 1e-9);
  plan.zero = 1;
  EXPECT_NEAR((*this)[Metric::optimizer_seconds], (1e9 / 8 + 1.5e9 / 2) * 28 / 1e12, 1e-12);
  plan.zero = 3;  // weights gathered twice, gradients scattered: each half of an all-reduce
  EXPECT_NEAR((*this)[Metric::exposed_communication_seconds], 1.5 * (dense + experts) + 0.1, 1e-9);
}

TEST_F(Training, FrozenWeightsHaveNoGradients) {
  t.train.frozen_base = true;
  t.train.trainable_share = 0.01;
  plan.data = 8;
  EXPECT_NEAR((*this)[Metric::exposed_communication_seconds], 0.01 * 1.75 * 14e9 / 100e9 + 0.1,
              1e-9);
  EXPECT_NEAR((*this)[Metric::optimizer_seconds], 0.01 * 7e9 * 28 / 1e12, 1e-12);
  // Forward and the gradients of inputs, not of weights.
  double model_flops = (*this)[Metric::mfu] * (*this)[Metric::step_seconds] * 8 * 100e12;
  EXPECT_NEAR(model_flops, 8 * 14e12 * 2.02, 1e3);
}

TEST_F(Training, Recipes) {
  auto bytes = [&](TrainRecipe r) {
    plan.recipe = r;
    return (*this)[Metric::optimizer_seconds] * 1e12 / 7e9;
  };
  EXPECT_NEAR(bytes(TrainRecipe::mixed_16bit), 28, 1e-9);
  EXPECT_NEAR(bytes(TrainRecipe::mixed_fp32_grad), 30, 1e-9);
  EXPECT_NEAR(bytes(TrainRecipe::pure_bf16), 14, 1e-9);
  EXPECT_NEAR(bytes(TrainRecipe::fp32), 28, 1e-9);
}

}  // namespace
}  // namespace trigon
