#include <gtest/gtest.h>

#include <cmath>

#include "step/pass_time.hpp"
#include "step/test_tables.hpp"
#include "step/training_work.hpp"

namespace trigon {
namespace {

// 1,048,576 rows met a matrix of 256 x 256: 16 tiles for 100 multiprocessors, which share a
// reduction of a million. Cut into parts it takes little more than reading the rows.
TEST(WeightGradients, LongReductionsAreCutIntoParts) {
  const Accelerator card = test::round_card();
  DeviceModel d = test::round_device(card);
  for (MatrixCoefficients& c : d.operators.matrix) c.wave_exponent = 1;
  Operator op;
  op.kind = OperatorKind::gemm;
  op.m = 1 << 20;
  op.n = op.k = 256;
  op.flops = 2 * op.m * op.n * op.k;
  op.weight_bytes = 2 * op.n * op.k;
  op.data_bytes = 2 * op.m * (op.n + op.k);
  Operator whole = op;
  std::swap(whole.m, whole.k);
  const double forward = operator_time(d, op).seconds;
  EXPECT_GT(operator_time(d, whole).seconds, 3 * forward);
  EXPECT_LT(backward_time(d, op, true).weight, 2 * forward);
  // A wide product has tiles enough.
  op.m = op.n = op.k = 8192;
  EXPECT_NEAR(backward_time(d, op, true).weight, operator_time(d, op).seconds,
              1e-6 * operator_time(d, op).seconds);
}

// 7e9 parameters on the round card: 100 GB/s between cards, 1 TB/s of memory. A micro-batch takes
// 0.32 s forward and 0.64 s backward over 32 layers; head 20 + 40 ms, embedding 1 + 2 ms.
class Training : public testing::Test {
 protected:
  void SetUp() override {
    model = test::llama2_7b();
    t.model = &model;
    t.stack = language_stack(model);
    t.engine = test::plain_engine();
    t.engine.autograd = Autograd::fused;
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
    TrainPass pass;
    pass.layers = {0.32, 0.32, 0.32, 0.04, 0.1, 0, 0};
    pass.head = {0.02, 0.02, 0.02};
    pass.embedding = {0.001, 0, 0.002};
    pass.boundary = 1e6;
    t.train.pass = {pass, {}};
  }
  double operator[](Metric m) const { return evaluate(t, plan)[m]; }
  Accelerator card = test::round_card();
  Model model;
  Tables t;
  Plan plan;
};

TEST_F(Training, AnOffloadedOptimizerStepsAtTheHostsBandwidth) {
  plan.offload_optimizer = true;
  card.pcie_one_way = gigabytes_per_second(20);
  // 16-bit gradients go down and weights come up; 28 bytes a parameter pass through host memory at
  // 28e10 / 2.57 of every 256e9 bytes that it could give.
  const double transfer = 7e9 * (2 + 2) / 20e9, usual = 7e9 * 2.57 / 10e9;
  EXPECT_NEAR((*this)[Metric::optimizer_seconds], usual + transfer, 1e-9);
  t.cluster.host.bandwidth = gigabytes_per_second(64);
  EXPECT_NEAR((*this)[Metric::optimizer_seconds], 4 * usual + transfer, 1e-9);
  // Gradients are added up on the card.
  plan.accumulation = 3;
  EXPECT_NEAR((*this)[Metric::optimizer_seconds], 4 * usual + transfer, 1e-9);
  // Weights that stay on the host come up for forward and backward passes instead, and gradients
  // follow each of the latter.
  plan.offload_weights = true;
  plan.zero = 3;
  EXPECT_NEAR((*this)[Metric::optimizer_seconds], 4 * usual + 7e9 * (3 * 2 + 3 * 2 * 2) / 20e9,
              1e-9);
}

TEST_F(Training, RanksOfANodeShareTheHost) {
  plan.offload_optimizer = true;
  plan.zero = 1;
  plan.data = 4;
  t.cluster.per_node = 8;
  const double one_host = (*this)[Metric::optimizer_seconds];
  t.cluster.per_node = 2;
  EXPECT_LT((*this)[Metric::optimizer_seconds], one_host);
}

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

// Stages of 8 layers take 0.24 s; the first has the embedding, the last the head; 1 MB goes over
// 100 GB/s in 10 us, to the stage after and to the one before.
TEST_F(Training, PipelineBubble) {
  plan.pipeline = 4;
  plan.accumulation = 12;
  const double last = 0.24 + 0.06 + 1e-5, middle = 0.24 + 2e-5, first = 0.24 + 0.003 + 1e-5;
  // One micro-batch through all, eleven more at the pace of the last.
  double pipeline = first + 2 * middle + last + 11 * last;
  EXPECT_NEAR((*this)[Metric::bubble_seconds], pipeline - 12 * last, 1e-12);
  double optimizer = (*this)[Metric::optimizer_seconds];
  EXPECT_NEAR((*this)[Metric::step_seconds], pipeline + optimizer, 1e-12);
  EXPECT_NEAR((*this)[Metric::forward_seconds], 12 * 0.1, 1e-12);
  plan.schedule = Schedule::gpipe;
  // The longest forward pass and the longest backward pass are both the last stage's.
  EXPECT_NEAR((*this)[Metric::step_seconds], pipeline + optimizer, 1e-12);
  plan.schedule = Schedule::zero_bubble;
  EXPECT_LT((*this)[Metric::bubble_seconds], pipeline - 12 * last);
  EXPECT_GT((*this)[Metric::step_seconds], 12 * last + optimizer);
  plan.schedule = Schedule::one_f_one_b;
  // 32 layers on 5 stages: 7 on the third and the fourth, 6 and the head on the last.
  plan.pipeline = 5;
  const double seven = 0.96 * 7 / 32, six = 0.96 * 6 / 32;
  const double full = six + 0.06 + 1e-5;
  pipeline = (six + 0.003 + 1e-5) + (six + 2e-5) + 2 * (seven + 2e-5) + full + 11 * full;
  EXPECT_NEAR((*this)[Metric::bubble_seconds], pipeline - 12 * full, 1e-12);
  // 2 layers on the last: now those before it set the pace. The first micro-batch comes back, the
  // first stage works without a gap until its last forward pass; that climbs to the third stage,
  // which has two micro-batches to bring down, and the first runs their backward passes.
  plan.pipeline = 4;
  plan.last_stage_layers = 2;
  const double ten = 0.96 * 10 / 32;
  pipeline = (ten + 0.003 + 1e-5) + 2 * (ten + 2e-5) + (0.96 * 2 / 32 + 0.06 + 1e-5) +
             7 * (ten + 0.003 + 1e-5) + (3 * ten + 0.003 + 5e-5) + (0.2 + 0.002);
  EXPECT_NEAR((*this)[Metric::step_seconds], pipeline + optimizer, 1e-12);
}

TEST_F(Training, VirtualStagesShortenTheBubble) {
  plan.pipeline = 4;
  plan.accumulation = 12;
  t.train.pass[0].head = t.train.pass[0].embedding = {};
  const double plain = (*this)[Metric::bubble_seconds];
  EXPECT_NEAR(plain, 3 * 0.24, 1e-3);
  // Sends hide behind the next chunk: (p - 1) / v of a micro-batch is left.
  plan.virtual_stages = 2;
  EXPECT_NEAR((*this)[Metric::bubble_seconds], 3 * 0.24 / 2, 1e-4);
  // ... but each of two chunks sends both ways, and slows what it runs beside.
  EXPECT_NEAR(evaluate(t, plan).train.sends, 12 * 4 * 1e-5 * 0.189 / 1.189, 1e-12);
}

TEST_F(Training, HybridSharding) {
  plan.data = 8;
  plan.zero = 3;
  plan.optimizer_groups = 2;
  // Four ranks gather 14 GB twice and scatter it once, 3/4 of it each; pairs sum a quarter of it.
  const double inside = 3 * 0.75 * 14e9 / 100e9, across = 1.0 * 3.5e9 / 100e9;
  EXPECT_NEAR((*this)[Metric::exposed_communication_seconds], inside + across + 0.1, 1e-9);
  EXPECT_NEAR((*this)[Metric::optimizer_seconds], 7e9 / 4 * 28 / 1e12, 1e-12);
  // Weights that stay whole between the passes are gathered once.
  plan.reshard = false;
  EXPECT_NEAR((*this)[Metric::exposed_communication_seconds], inside * 2 / 3 + across + 0.1, 1e-9);
}

TEST_F(Training, HiddenCommunicationSlowsCompute) {
  plan.data = 8;
  const double open = (*this)[Metric::step_seconds];
  t.device.engine.overlap = 0.1;
  // 68 ms are hidden; compute beside them takes 18.9 % longer.
  EXPECT_NEAR((*this)[Metric::step_seconds] - open, -0.0682 + 0.0682 * 0.189 / 1.189, 1e-9);
}

TEST_F(Training, LessThanAStepIsAStep) {
  Train job = std::get<Train>(t.job);
  job.tokens = 10;
  t.job = job;
  EXPECT_EQ((*this)[Metric::time_to_train_seconds], (*this)[Metric::step_seconds]);
}

TEST_F(Training, DataLoadersSetThePace) {
  const double busy = (*this)[Metric::step_seconds];
  t.cluster.host.items_per_second = 2 / busy;  // a node: 8 cards
  EXPECT_EQ((*this)[Metric::step_seconds], busy);
  t.cluster.host.items_per_second = 0.5 / busy;
  EXPECT_NEAR((*this)[Metric::step_seconds], 2 * busy, 1e-12);
}

TEST_F(Training, FailuresLengthenLongRuns) {
  plan.accumulation = 4;
  const double plain = (*this)[Metric::time_to_train_seconds];  // 250,000 steps
  EXPECT_EQ((*this)[Metric::goodput], 1);
  t.cluster.reliability = Reliability{50676 * 3600.0, 600, 1e9};
  // 98 GB take 98 s; one card fails each 50,676 h.
  EXPECT_NEAR((*this)[Metric::checkpoint_interval_seconds], std::sqrt(2 * 98 * 50676 * 3600.0),
              500);
  EXPECT_NEAR((*this)[Metric::time_to_train_seconds] * (*this)[Metric::goodput], plain, 1e-3);
  EXPECT_LT((*this)[Metric::goodput], 0.9999);
}

TEST_F(Training, PipelinesAcrossNodesSendOverTheNetwork) {
  LinkCoefficients c;
  c.ceiling = 1;
  t.device.inter = DeviceModel::Wire{1e9, PeerTopology::fabric_switch, 0, c};
  plan.pipeline = 8;
  double inside = (*this)[Metric::bubble_seconds];
  t.device.per_node = 4;
  // Seven boundaries, there and back; the pace is the last stage's, which has one of each.
  EXPECT_NEAR((*this)[Metric::bubble_seconds] - inside, (14 - 1) * (1e6 / 1e9 - 1e6 / 100e9),
              1e-12);
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
  // The last bucket, 25 MiB, is ready when nothing is left to hide it; so is an embedding.
  t.device.engine.overlap = 1;
  const double bucket = 1.75 * 25 * 1048576 / 100e9;
  EXPECT_NEAR((*this)[Metric::exposed_communication_seconds], bucket + 2 * 0.1, 1e-9);
  t.train.embedding_parameters = 0.1e9;
  EXPECT_NEAR((*this)[Metric::exposed_communication_seconds], 1.75 * 0.2e9 / 100e9 + 2 * 0.1, 1e-9);
}

TEST_F(Training, GradientsAreCopiedIntoBucketsAndBack) {
  t.engine.autograd = Autograd::eager;
  const double alone = (*this)[Metric::exposed_communication_seconds];
  plan.data = 8;
  // Four passes over 14 GB at 1 TB/s; a single rank makes none.
  EXPECT_NEAR((*this)[Metric::exposed_communication_seconds] - alone,
              1.75 * 14e9 / 100e9 + 4 * 14e9 / 1e12, 1e-9);
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

TEST_F(Training, ProductsHideWhatTensorRanksExchange) {
  Operator product, exchange;
  exchange.kind = OperatorKind::all_gather;
  product.repeat = 2;
  BesideProducts b;
  b.add(product, {0.3, {0.3, 0.1}, 0});
  b.add(exchange, {0.5, {0.5, 0}, 0});
  Pass pass;
  pass.sequence_parallel = true;
  EnginePolicy e;
  EXPECT_EQ(b.hidden(e, pass), (std::pair<double, double>{0, 0}));
  e.tensor_backward_overlaps = e.tensor_forward_overlaps = true;
  // 0.5 s beside 0.6 s of products; 0.2 s of gradients of weights hide as much of 0.5 s. What runs
  // beside the exchange takes longer.
  EXPECT_NEAR(b.hidden(e, pass).first, 0.5 * (1 - kSlowing), 1e-12);
  EXPECT_NEAR(b.hidden(e, pass).second, 0.2 * (1 - kSlowing), 1e-12);
  pass.sequence_parallel = false;
  EXPECT_EQ(b.hidden(e, pass).first, 0);
}

TEST_F(Training, ExpertsTakeMoreLaunches) {
  t.device.engine.layer_overhead_seconds = 3e-4;
  OperatorList ops(2);
  EXPECT_NEAR(layer_host(t, ops), 3e-4, 1e-15);
  ops[1].name = "moe.router";
  EXPECT_NEAR(layer_host(t, ops), 8e-4, 1e-15);
}

}  // namespace
}  // namespace trigon
