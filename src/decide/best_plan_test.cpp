// The best plan of serving against nested loops over all degrees, which share what is legal and the
// tables with the search, and neither its order nor its bounds. For training, whose nested loops
// have a legality of their own, see tests/properties/plan_search_test.cpp.

#include "decide/best_plan.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "decide/test_questions.hpp"
#include "library/library.hpp"

namespace trigon {
namespace {

// Small models, so that a space is searched in milliseconds.
Model small_model(std::mt19937& random, bool experts) {
  std::int64_t layers = 2 + static_cast<std::int64_t>(random() % 15);
  std::int64_t kv = std::int64_t{1} << (random() % 4);
  std::int64_t heads = kv * (1 + static_cast<std::int64_t>(random() % 4));
  test::Shape s{layers, heads * 128, heads,
                kv,     128,         1024 * (1 + static_cast<std::int64_t>(random() % 16)),
                32000};
  if (experts) s.experts = 8, s.active = 2;
  return test::decoder("small", s);
}

struct Best {
  double excess = 1e300, wish = 1e300;
  int plans = 0;
};

// Evaluates a plan in tables of its own.
void consider(Best& best, const Setup& s, Plan p) {
  PlanRequest none;
  apply_formats(p, formats_of(s, none), s);
  if (illegal(s, p)) return;
  auto t = prepare_for(s, domain_of(s, none, p));
  ASSERT_TRUE(t);
  if (std::holds_alternative<Batch>(s.job)) {
    // The largest batch that fits, counted up from one.
    double most = s.engine.max_sequences > 0 ? static_cast<double>(s.engine.max_sequences) : 65536;
    if (auto r = std::get<Batch>(s.job).requests) most = std::min(most, std::ceil(*r / p.data));
    p.micro_batch = 1;
    for (int b = 2; b <= most; ++b) {
      Plan trial = p;
      trial.micro_batch = b;
      if (!t->memory.fits(trial)) break;
      p.micro_batch = b;
    }
    t = prepare_for(s, domain_of(s, none, p));
  }
  Evaluation e = evaluate(*t, p);
  double wish = s.training                             ? e[Metric::step_seconds]
                : std::holds_alternative<Batch>(s.job) ? 1 / e[Metric::requests_per_second]
                                                       : e[Metric::utilization];
  double excess = limit_excess(s, e);
  ++best.plans;
  if (excess < best.excess * (1 - 1e-9) || (excess <= best.excess * (1 + 1e-9) && wish < best.wish))
    best.excess = excess, best.wish = wish;
}

Best by_nested_loops(const Setup& s, bool experts) {
  Best best;
  const int cards = s.cluster.count(), node = s.cluster.per_node;
  for (int t = 1; t <= std::min(cards, node); ++t) {
    if ((t & (t - 1)) != 0 && t != node) continue;
    for (int p = 1; p * t <= cards; ++p) {
      if (cards % (p * t) != 0 || p > s.stack->layers()) continue;
      const int d = cards / (p * t);
      for (int e = 1; e <= cards; ++e) {
        Plan plan;
        plan.tensor = t, plan.pipeline = p, plan.data = d, plan.expert = e;
        if (e != 1 && (!experts || e != t || !s.engine.expert_parallel)) continue;
        consider(best, s, plan);
      }
    }
  }
  return best;
}

void agree(const Question& q, const char* hardware, bool experts) {
  auto s = set_up(test::catalogues(), q, test::machine(hardware));
  ASSERT_TRUE(s) << hardware;
  auto found = best_plan(*s, q.plan);
  ASSERT_TRUE(found);
  Best expected = by_nested_loops(*s, experts);
  ASSERT_EQ(found->best.has_value(), expected.plans > 0) << hardware;
  if (!found->best) return;
  const Evaluation& e = found->best->evaluation;
  double wish = s->training                             ? e[Metric::step_seconds]
                : std::holds_alternative<Batch>(s->job) ? 1 / e[Metric::requests_per_second]
                                                        : e[Metric::utilization];
  EXPECT_NEAR(found->best->excess, expected.excess, 1e-9 * (1 + expected.excess)) << hardware;
  if (std::holds_alternative<Batch>(s->job)) {
    // The search interpolates between tabulated batches; in tables of its own the plan it chose is
    // as good within the height of a stair.
    Best chosen;
    consider(chosen, *s, found->best->plan);
    EXPECT_LE(chosen.wish, expected.wish * 1.02) << hardware;
    return;
  }
  // Plans within a part in a million tie.
  EXPECT_NEAR(wish / expected.wish, 1, 2e-6)
      << hardware << ": " << write_plan(found->best->plan) << " of " << expected.plans;
}

TEST(BestPlan, ServingAgreesWithNestedLoops) {
  std::mt19937 random(11);
  const char* machines[] = {"1xa100-sxm-80gb", "2xrtx-4090", "4xl40s",  "8xh100-sxm-80gb",
                            "6xa100-sxm-80gb", "4xmi300x",   "2x4xl40s"};
  for (int i = 0; i < 42; ++i)
    for (bool experts : {false, true}) {
      const char* m = machines[static_cast<std::size_t>(i) % std::size(machines)];
      Model model = small_model(random, experts);
      Question q = test::serving(model, 0.5 + static_cast<double>(random() % 100),
                                 64 + static_cast<std::int64_t>(random() % 2000),
                                 16 + static_cast<std::int64_t>(random() % 500));
      agree(q, m, experts);
      q.job.limits.tpot = LatencyLimit{milliseconds(1 + static_cast<double>(random() % 20)), 95};
      agree(q, m, experts);
    }
}

TEST(BestPlan, BatchesAgreeWithNestedLoops) {
  std::mt19937 random(12);
  for (const char* m : {"1xrtx-4090", "4xl40s", "8xa100-sxm-40gb", "6xa100-sxm-80gb"}) {
    Model model = small_model(random, false);
    Question q = test::question(model, JobKind::batch);
    q.job.requests = 500;
    q.job.input_tokens = 300;
    q.job.output_tokens = 100;
    agree(q, m, false);
  }
}

TEST(BestPlan, AFreeBatchOfItemsIsTheFastestOfTheLargestAndItsHalves) {
  const Catalogues& all = test::catalogues();
  auto model = named_model("resnet50", all.models, all.networks);
  ASSERT_TRUE(model);
  for (const char* m : {"l4", "l40s", "a100-sxm-80gb"}) {
    Question q = test::question(*model, JobKind::batch);
    q.engine = "tensorrt";
    q.plan.weights = q.plan.activations = Format::int8;
    auto s = set_up(all, q, test::machine(m));
    ASSERT_TRUE(s) << m;
    auto free = best_plan(*s, q.plan);
    ASSERT_TRUE(free && free->best) << m;
    const double most = free->best->evaluation[Metric::requests_per_second];
    for (std::int32_t b = free->best->plan.micro_batch; b >= 1; b /= 2) {
      q.plan.micro_batch = b;
      auto fixed = best_plan(*s, q.plan);
      ASSERT_TRUE(fixed && fixed->best) << m;
      EXPECT_LE(fixed->best->evaluation[Metric::requests_per_second], most * 1.001) << m << b;
    }
  }
}

TEST(BestPlan, MemoryBindsBeforeSpeed) {
  // 70B weights in 16 bit on two 80 GB cards: only divided plans hold them.
  Model model = test::decoder("llama-70b", {80, 8192, 64, 8, 128, 28672, 32000});
  Question q = test::serving(model, 0.01, 500, 100);
  auto s = set_up(test::catalogues(), q, test::machine("2xh100-sxm-80gb"));
  ASSERT_TRUE(s);
  auto found = best_plan(*s, q.plan);
  ASSERT_TRUE(found);
  ASSERT_TRUE(found->best);
  EXPECT_EQ(found->best->plan.tensor * found->best->plan.pipeline, 2);
  // On one card nothing fits, and the one plan there is says by how much.
  s = set_up(test::catalogues(), q, test::machine("h100-sxm-80gb"));
  found = best_plan(*s, q.plan);
  ASSERT_TRUE(found && found->best);
  EXPECT_FALSE(found->best->evaluation.fits);
  EXPECT_GT(found->best->excess, 10);
}

TEST(BestPlan, NothingDividesIsSaid) {
  Model model = test::decoder("odd", {7, 896, 7, 7, 128, 1024, 32000});
  Question q = test::serving(model, 1, 100, 100);
  q.plan.tensor = 4;  // seven heads
  auto s = set_up(test::catalogues(), q, test::machine("4xl40s"));
  ASSERT_TRUE(s);
  auto found = best_plan(*s, q.plan);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->best);
  ASSERT_TRUE(found->illegal);
  EXPECT_EQ(found->counts.plans_pruned, found->counts.plans_considered);
}

}  // namespace
}  // namespace trigon
