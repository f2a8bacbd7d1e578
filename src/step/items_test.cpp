#include <gtest/gtest.h>

#include "network/builder.hpp"
#include "step/items.hpp"
#include "step/test_tables.hpp"

namespace trigon {
namespace {

// One convolution and a head, as a model of images; with `steps` a denoiser that runs each step.
Model image_model(std::int64_t steps = 1) {
  NetworkBuilder b("test");
  ValueId x = b.input({64, 32, 32});
  x = b.activation("r", b.convolution("c", x, 64), Activation::relu);
  Model m;
  m.id = "test";
  m.weight_format = Format::f32;
  m.item = Item{};
  m.item->size = {32, 32};
  m.item->steps = steps;
  Component c{"net", ComponentRole::network, b.finish({x})};
  if (steps > 1) c.runs = Runs::each_step;
  m.components.push_back(std::move(c));
  return m;
}

// Tables with times written by hand: a pass of b items takes 1 ms + 1 ms an item.
struct Hand {
  Model model;
  Tables t;
  explicit Hand(std::int64_t steps = 1) : model(image_model(steps)) {
    t.model = &model;
    t.engine = test::plain_engine();
    Cluster cluster;
    static const Accelerator card = test::round_card();
    cluster.accelerator = &card;
    Serve job;
    job.item = model.item;
    t.job = job;
    t.memory = *MemoryModel::prepare(model, t.job, cluster, t.engine, {8e9, 8e9, 8e9});
    t.inference.batches = {1, 2, 4, 8, 16};
    for (std::int32_t b : t.inference.batches) {
      const PassTime pass{1e-3 + 1e-3 * b, 0};
      t.inference.prefill.push_back(steps > 1 ? PassTime{5e-3, 0} : pass);
      t.inference.decode.push_back(steps > 1 ? pass : PassTime{});
    }
  }
  Evaluation serve(double rate) {
    Serve job;
    job.item = model.item;
    job.rate = PerSecond::base(rate);
    Plan plan;
    Evaluation e;
    NoRecord none;
    evaluate_item_serve(t, job, plan, e, none);
    return e;
  }
};

TEST(Items, ABatchTakesItsPassesOneAfterAnother) {
  EXPECT_DOUBLE_EQ(item_batch_seconds(Hand().t, Plan{}, 4), 5e-3);
  // 20 steps of 5 ms and what runs once.
  EXPECT_DOUBLE_EQ(item_batch_seconds(Hand(20).t, Plan{}, 4), 0.105);
}

TEST(Items, AServerBatchesWhatWaits) {
  Hand h;
  // 100 a second keep a lone pass of 2 ms busy for a fifth of the time.
  const Evaluation idle = h.serve(100);
  EXPECT_TRUE(idle.sustainable);
  EXPECT_NEAR(idle[Metric::e2e_seconds], 2e-3 + 0.2 * 1e-3, 1e-9);
  // 800 a second need batches of four: 4 / 5 ms.
  const Evaluation busy = h.serve(800);
  EXPECT_TRUE(busy.sustainable);
  EXPECT_NEAR(busy[Metric::e2e_seconds], 5e-3 * 1.5, 1e-5);
  EXPECT_GT(busy[Metric::e2e_percentile_seconds], busy[Metric::e2e_seconds]);
  // No batch reaches a thousand.
  EXPECT_FALSE(h.serve(1100).sustainable);
}

TEST(Items, LatencyNeverFallsAsTheRateGrows) {
  Hand h;
  double last = 0;
  for (double rate = 1; rate < 900; rate *= 1.3) {
    const Evaluation e = h.serve(rate);
    EXPECT_GE(e[Metric::e2e_seconds], last - 1e-9) << rate;
    last = e[Metric::e2e_seconds];
  }
}

TEST(Items, AFixedBatchGivesItemsAndStepsPerSecond) {
  Hand h(20);
  Batch job;
  job.item = h.model.item;
  job.requests = 100;
  Plan plan;
  plan.micro_batch = 4;
  plan.data = 2;
  Evaluation e;
  NoRecord none;
  evaluate_item_batch(h.t, job, plan, e, none);
  EXPECT_NEAR(e[Metric::requests_per_second], 2 * 4 / 0.105, 1e-9);
  EXPECT_NEAR(e[Metric::denoising_steps_per_second], 200, 1e-9);
  EXPECT_NEAR(e[Metric::job_seconds], 100 * 0.105 / 8, 1e-9);
}

}  // namespace
}  // namespace trigon
