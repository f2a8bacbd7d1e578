#include <gtest/gtest.h>

#include <cmath>

#include "step/serving_passes.hpp"
#include "step/test_tables.hpp"

namespace trigon {
namespace {

// A decode step of b sequences takes 10 ms + b x 0.1 ms, a prompt 50 ms.
class Serving : public testing::Test {
 protected:
  void SetUp() override {
    model = test::llama2_7b();
    t.model = &model;
    t.stack = language_stack(model);
    t.engine = test::plain_engine();
    t.device = test::round_device(card);
    t.layers = 32;
    t.inference.batches = {1, 256};
    t.inference.decode = {{0.0100, 0.0001}, {0.0300, 0.0056}};
    t.inference.prefill = {{0.048, 0.002}, {256 * 0.048, 256 * 0.002}};
    t.inference.send_per_token = {8192};
    ask(2.0, 100, 100);
  }
  void ask(std::optional<double> rate, std::int64_t input, std::int64_t output,
           std::optional<double> concurrency = std::nullopt) {
    Serve s;
    if (rate) s.rate = PerSecond::base(*rate);
    s.concurrency = concurrency;
    s.input_tokens = input;
    s.output_tokens = output;
    t.job = s;
    remember();
  }
  void remember() {
    auto m = MemoryModel::prepare(model, t.job, test::cluster(8), t.engine, test::exactly_gib(80));
    ASSERT_TRUE(m);
    t.memory = *m;
  }
  double step_of(double b) const { return 0.0101 + (b - 1) / 255 * (0.0356 - 0.0101); }
  Accelerator card = test::round_card();
  Model model;
  Tables t;
  Plan plan;
};

TEST_F(Serving, TablesAreInterpolated) {
  EXPECT_DOUBLE_EQ(decode_step_seconds(t, plan, 1), 0.0101);
  EXPECT_DOUBLE_EQ(decode_step_seconds(t, plan, 256), 0.0356);
  EXPECT_NEAR(decode_step_seconds(t, plan, 100.5), step_of(100.5), 1e-15);
  EXPECT_NEAR(decode_step_seconds(t, plan, 512), step_of(512), 1e-15);  // the last slope holds
  EXPECT_DOUBLE_EQ(prefill_seconds(t, plan, 1), 0.05);
  // A table of one batch: its first time holds below, and grows in proportion above.
  t.inference.batches = {8};
  t.inference.decode = {{0.02, 0.002}};
  EXPECT_DOUBLE_EQ(decode_step_seconds(t, plan, 4), 0.022);
  EXPECT_DOUBLE_EQ(decode_step_seconds(t, plan, 8), 0.022);
  EXPECT_DOUBLE_EQ(decode_step_seconds(t, plan, 16), 0.044);
}

// LLM.int8() waits for its outliers: nothing overlaps, and 50 launches more of seven modules make
// eight layers' worth of launches.
TEST_F(Serving, ModulesThatWaitAddTheirHost) {
  t.engine.launch = Launch::eager;
  t.device.engine.layer_overhead_seconds = 1e-3;
  Pass pass;
  pass.new_tokens = 1;
  Operator linear;
  linear.kind = OperatorKind::gemm;
  linear.weights = Format::int8;
  const OperatorList ops(7, linear);
  EXPECT_DOUBLE_EQ(with_layer_host(t, pass, ops, 2e-3, 1), with_host(t.device, 2e-3, 1e-3));
  t.engine.waiting_formats = {"int8"};
  t.engine.waiting_launches = {50};
  EXPECT_NEAR(with_layer_host(t, pass, ops, 2e-3, 1), 10e-3, 1e-15);
  EXPECT_NEAR(with_layer_host(t, pass, ops, 6e-3, 3), 30e-3, 1e-15);
  const OperatorList plain(7, Operator{});
  EXPECT_DOUBLE_EQ(with_layer_host(t, pass, plain, 2e-3, 1), with_host(t.device, 2e-3, 1e-3));
  // A replayed graph has no host to wait.
  t.engine.launch = Launch::graphs;
  EXPECT_DOUBLE_EQ(with_layer_host(t, pass, ops, 2e-3, 1), 2e-3);
}

TEST_F(Serving, CapturedGraphsMakeAStaircase) {
  t.engine.capture_batches = {1, 2, 4, 8, 16};
  EXPECT_DOUBLE_EQ(decode_step_seconds(t, plan, 5), step_of(8));
  EXPECT_DOUBLE_EQ(decode_step_seconds(t, plan, 8), step_of(8));
  EXPECT_DOUBLE_EQ(decode_step_seconds(t, plan, 17), step_of(17));
}

TEST_F(Serving, SteadyStateIsTheFixedPoint) {
  for (double rate : {0.5, 2.0, 5.0, 9.0}) {
    ask(rate, 100, 100);
    // Independently: the batch is the rate of tokens times how long each takes, again and again.
    double busy = rate * 0.05, b = 1;
    for (int i = 0; i < 10000; ++i) b = rate * 100 * step_of(std::max(b, 1.0)) / (1 - busy);
    Evaluation e = evaluate(t, plan);
    EXPECT_TRUE(e.sustainable);
    EXPECT_NEAR(e[Metric::tpot_seconds], step_of(std::max(b, 1.0)) / (1 - busy), 1e-7) << rate;
    EXPECT_NEAR(e[Metric::requests_per_second], rate, 1e-12);
    EXPECT_NEAR(e[Metric::output_tokens_per_second], 100 * rate, 1e-9);
    // Little's law: requests there = rate x time each is there.
    EXPECT_NEAR(e[Metric::sequences_in_flight] / (rate * e[Metric::e2e_seconds]), 1, 0.012);
  }
}

TEST_F(Serving, MeanWaitIsMD1) {
  ask(10.0, 100, 20);  // prompts keep the replica half busy
  Evaluation e = evaluate(t, plan);
  double b = 10 * 20 / 0.5 * e[Metric::decode_step_seconds];
  double wait = 0.5 / (2 * 0.5) * 0.05;  // Pollaczek-Khinchine, constant service
  EXPECT_NEAR(e[Metric::ttft_seconds],
              wait + 0.05 + std::min(1.0, b) * e[Metric::decode_step_seconds] / 2, 1e-6);
  EXPECT_GT(e[Metric::ttft_percentile_seconds], e[Metric::ttft_seconds]);
}

TEST_F(Serving, SaturationIsSaid) {
  // Full batches: 256 sequences share a step, and prompts take the rest.
  double saturation = 1 / (0.05 + 100 * step_of(256) / 256);
  ask(saturation * 0.99, 100, 100);
  Evaluation below = evaluate(t, plan);
  EXPECT_TRUE(below.sustainable);
  EXPECT_NEAR(below[Metric::utilization], 0.99, 1e-9);
  ask(saturation * 1.01, 100, 100);
  EXPECT_FALSE(evaluate(t, plan).sustainable);
  ask(saturation * 3, 100, 100);
  // What arrives beyond it is not answered.
  EXPECT_NEAR(evaluate(t, plan)[Metric::requests_per_second] / saturation, 1, 1e-6);
  EXPECT_NEAR(evaluate(t, plan)[Metric::output_tokens_per_second] / (100 * saturation), 1, 1e-6);
  EXPECT_NEAR(evaluate(t, plan)[Metric::utilization], 3, 1e-6);
  EXPECT_NEAR(capacity_requests_per_second(t, plan) / saturation, 1, 1e-3);
}

TEST_F(Serving, CapacityHoldsTheLimitsAndNoMore) {
  Serve job = std::get<Serve>(t.job);
  double free = capacity_requests_per_second(t, plan);
  double last = 0;
  for (double tpot : {0.012, 0.02, 0.04, 0.1, 1.0}) {
    job.limits.tpot = LatencyLimit{seconds(tpot), 95};
    t.job = job;
    double c = capacity_requests_per_second(t, plan);
    EXPECT_GE(c, last);
    EXPECT_LE(c, free * 1.0001);
    last = c;
    if (c == 0) continue;
    auto at = [&](double rate) {
      Tables other = t;
      Serve s = job;
      s.rate = PerSecond::base(rate);
      other.job = s;
      return evaluate(other, plan);
    };
    EXPECT_LE(at(c)[Metric::tpot_percentile_seconds], tpot);
    Evaluation over = at(c * 1.01);
    EXPECT_TRUE(!over.sustainable || over[Metric::tpot_percentile_seconds] > tpot);
  }
  job.limits.tpot = LatencyLimit{seconds(0.001), 95};  // below one step
  t.job = job;
  EXPECT_EQ(capacity_requests_per_second(t, plan), 0);
}

TEST_F(Serving, APoolIsHeldAtThePercentile) {
  // 80 GiB less the weights hold some tens of sequences of 4,000 tokens.
  ask(0.01, 3000, 1000);
  double pool = t.memory.capacity(plan).max_sequences;
  ASSERT_GT(pool, 20);
  ASSERT_LT(pool, 100);
  double c = capacity_requests_per_second(t, plan);
  ask(c * 0.999, 3000, 1000);
  Evaluation below = evaluate(t, plan);
  EXPECT_TRUE(below.sustainable);
  EXPECT_TRUE(below.fits);
  EXPECT_LE(below.sequences_held, pool);
  EXPECT_GE(below.sequences_held, pool - 1);
  // Asking for more saturates the replica; it does not outgrow its memory.
  ask(c * 3, 3000, 1000);
  Evaluation over = evaluate(t, plan);
  EXPECT_FALSE(over.sustainable);
  EXPECT_TRUE(over.fits);
}

TEST_F(Serving, PromptsShareThePassesTheyWaitFor) {
  // 8 prompts of 100 tokens fit a budget of 800, and a pass of 8 takes what 2 take alone.
  t.engine.max_batched_tokens = 800;
  t.inference.batches = {1, 8, 256};
  t.inference.decode = {{0.01, 0}, {0.01, 0}, {0.03, 0}};
  t.inference.prefill = {{0.05, 0}, {0.1, 0}, {3.2, 0}};
  ask(10.0, 100, 20);
  EXPECT_DOUBLE_EQ(prompt_occupancy(t, plan), 0.1 / 8);
  Evaluation e = evaluate(t, plan);
  // The replica is busy for an eighth of 0.1 s a request, but each prompt still takes its 50 ms.
  EXPECT_NEAR(e[Metric::tpot_seconds], 0.01 / (1 - 10 * 0.0125), 1e-3);
  EXPECT_GE(e[Metric::ttft_seconds], 0.05);
}

TEST_F(Serving, OneRequestAloneWaitsForNobody) {
  ask(std::nullopt, 100, 100, 1);
  Evaluation e = evaluate(t, plan);
  EXPECT_DOUBLE_EQ(e[Metric::ttft_seconds], 0.05);
  EXPECT_DOUBLE_EQ(e[Metric::tpot_seconds], 0.0101);
  EXPECT_DOUBLE_EQ(e[Metric::requests_per_second], 1 / (0.05 + 99 * 0.0101));
  EXPECT_EQ(e.sequences_held, 1);
}

TEST_F(Serving, QueuedRequestsRunInWaves) {
  Batch job;
  job.input_tokens = job.output_tokens = 100;
  job.requests = 600;
  t.engine.batching = Batching::continuous;
  t.job = job;
  remember();
  plan.micro_batch = 256;
  // Two waves of 256 and one of 88, each of 100 steps, and 600 prompts of 50 ms between them.
  const double seconds = 600 * 0.05 + 100 * (2 * step_of(256) + step_of(88));
  EXPECT_NEAR(evaluate(t, plan)[Metric::requests_per_second], 600 / seconds, 1e-9);
  // Without a number of requests it never ends.
  job.requests.reset();
  t.job = job;
  EXPECT_NEAR(evaluate(t, plan)[Metric::requests_per_second], 1 / (0.05 + 100 * step_of(256) / 256),
              1e-9);
}

TEST_F(Serving, TheLargestBatchMayHaveItsOwnGraph) {
  t.engine.capture_batches = {64, 256};
  plan.micro_batch = 100;
  EXPECT_NEAR(decode_step_seconds(t, plan, 100), step_of(256), 1e-12);
  t.engine.captures_most = true;
  EXPECT_NEAR(decode_step_seconds(t, plan, 100), step_of(100), 1e-12);
  EXPECT_NEAR(decode_step_seconds(t, plan, 80), step_of(100), 1e-12);
  EXPECT_NEAR(decode_step_seconds(t, plan, 60), step_of(64), 1e-12);
}

TEST_F(Serving, AClosedLoopKeepsItsRequests) {
  for (double c : {4.0, 16.0, 64.0, 200.0}) {
    ask(std::nullopt, 100, 100, c);
    Evaluation e = evaluate(t, plan);
    // Decoding or in their prompt pass, c requests are there.
    double busy = e[Metric::requests_per_second] * 0.05;
    double decoding =
        e[Metric::requests_per_second] * 100 * e[Metric::decode_step_seconds] / (1 - busy);
    EXPECT_NEAR((decoding + busy) / c, 1, 1e-3) << c;
    EXPECT_TRUE(e.sustainable);
  }
}

TEST_F(Serving, ReplicasDivideTheLoad) {
  ask(4.0, 100, 100);
  Evaluation one = evaluate(t, plan);
  ask(8.0, 100, 100);
  plan.data = 2;
  Evaluation two = evaluate(t, plan);
  EXPECT_DOUBLE_EQ(two[Metric::tpot_seconds], one[Metric::tpot_seconds]);
  EXPECT_DOUBLE_EQ(two[Metric::output_tokens_per_second],
                   2 * one[Metric::output_tokens_per_second]);
  EXPECT_DOUBLE_EQ(two[Metric::sequences_in_flight], 2 * one[Metric::sequences_in_flight]);
}

TEST_F(Serving, PipelinesWorkOnGroups) {
  t.device.intra.one_way = 1e18;  // sends cost nothing here
  plan.pipeline = 4;
  // 64 sequences: four groups of 16, each through all the stages.
  EXPECT_NEAR(decode_step_seconds(t, plan, 64), step_of(16), 1e-10);
  // One prompt takes as long as on one stage, but keeps each for a quarter of it.
  EXPECT_NEAR(prefill_seconds(t, plan, 1), 0.05, 1e-10);
  EXPECT_NEAR(prompt_occupancy(t, plan), 0.0125, 1e-10);
  // Eight chunks follow each other: 8 + 3 stage times instead of 32.
  t.engine.max_batched_tokens = 100;
  EXPECT_NEAR(prefill_seconds(t, plan, 8), 8 * 0.05 * 11 / 32, 1e-10);
  // With two inside at once, the next two enter when the first is through: four rounds of four
  // stage times, and one for the last.
  t.engine.pipeline_passes = 2;
  EXPECT_NEAR(prefill_seconds(t, plan, 8), 8 * 0.05 * 17 / 32, 1e-10);
  t.engine.pipeline_passes = 1;
  EXPECT_NEAR(prefill_seconds(t, plan, 8), 8 * 0.05, 1e-10);
  t.engine.pipeline_passes = 8;  // more than there are stages
  EXPECT_NEAR(prefill_seconds(t, plan, 8), 8 * 0.05 * 11 / 32, 1e-10);
  // llama.cpp decodes on one card after the other; its prompts go through them in micro-batches.
  t.engine.default_parallelism = Parallelism::layers;
  EXPECT_NEAR(decode_step_seconds(t, plan, 64), step_of(64), 1e-10);
  EXPECT_NEAR(prompt_occupancy(t, plan), 0.0125, 1e-10);
}

TEST_F(Serving, BoundariesCrossTheNetworkWhereNodesEnd) {
  plan.pipeline = 4;
  double inside = decode_step_seconds(t, plan, 4);
  t.device.per_node = 2;
  LinkCoefficients c;
  c.ceiling = 1;
  t.device.inter = DeviceModel::Wire{1e6, PeerTopology::fabric_switch, 0, c};
  // Of three boundaries the middle one crosses: 8,192 bytes at 1 MB/s instead of 100 GB/s.
  EXPECT_NEAR(decode_step_seconds(t, plan, 4) - inside, 8192 / 1e6 - 8192 / 100e9, 1e-9);
}

TEST_F(Serving, FixedBatches) {
  Batch b;
  b.requests = 64;
  b.input_tokens = b.output_tokens = 100;
  t.job = b;
  t.engine.batching = Batching::fixed;
  remember();
  plan.micro_batch = 32;
  Evaluation e = evaluate(t, plan);
  double whole = 32 * 0.05 + 99 * step_of(32);
  EXPECT_NEAR(e[Metric::e2e_seconds], whole, 1e-12);
  EXPECT_NEAR(e[Metric::job_seconds], 2 * whole, 1e-12);
  // Continuous: finished requests are replaced at once.
  t.engine.batching = Batching::continuous;
  e = evaluate(t, plan);
  EXPECT_NEAR(e[Metric::requests_per_second], 32 / (32 * 0.05 + 100 * step_of(32)), 1e-9);
}

TEST(PromptPasses, AreCutByTheBudget) {
  PromptPasses p = prompt_passes(10, 100, 0);  // no budget: one pass
  EXPECT_EQ(p.passes, 1);
  EXPECT_EQ(p.sequences, 10);
  p = prompt_passes(10, 100, 250);  // two prompts a pass
  EXPECT_EQ(p.passes, 5);
  EXPECT_EQ(p.sequences, 2);
  EXPECT_EQ(p.new_tokens, 100);
  p = prompt_passes(3, 1000, 250);  // four chunks each, of 250 tokens after 0, 250, 500, 750
  EXPECT_EQ(p.passes, 12);
  EXPECT_EQ(p.sequences, 1);
  EXPECT_EQ(p.new_tokens, 250);
  EXPECT_EQ(p.mean_cached, 375);
}

}  // namespace
}  // namespace trigon
