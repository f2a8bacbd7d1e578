// What is fixed, widened and ranked in a recommendation.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "decide/test_questions.hpp"
#include "plan/messages.hpp"

namespace trigon {
namespace {

using test::catalogues;

const Model& llama() {
  static const Model model = *catalogues().models.find("llama-3.1-8b");
  return model;
}

Question question() { return test::serving(llama(), 1, 1000, 250); }

TEST(Recommend, FewerBitsOnlyWhereAllowedAndNeverDearer) {
  Question q = question();
  Objective stored, eight, four;
  eight.min_bits = 8;
  four.min_bits = 4;
  double before = 1e300;
  for (const Objective* o : {&stored, &eight, &four}) {
    auto a = recommend(catalogues(), q, *o);
    ASSERT_TRUE(a);
    ASSERT_FALSE(a->ranked.empty());
    for (const Candidate& c : a->ranked) {
      const double bits = bits_per_element(c.report.plan.weights);
      EXPECT_EQ(c.report.narrowed.has_value(), bits < bits_per_element(llama().weight_format));
      if (c.report.narrowed) {
        ASSERT_TRUE(o->min_bits);
        EXPECT_GE(bits, *o->min_bits);
      }
    }
    double usd = a->ranked.front().report[Metric::usd_per_hour]->value;
    EXPECT_LE(usd, before * (1 + 1e-9));
    before = usd;
    bool said = std::any_of(a->assumptions.begin(), a->assumptions.end(), [](const Assumption& s) {
      return s.what.id == message_id(DecideMessage::assumed_narrower);
    });
    EXPECT_EQ(said, a->ranked.front().report.narrowed.has_value());
  }
  q.plan.weights = Format::bf16;  // fixed: nothing to widen
  auto fixed = recommend(catalogues(), q, four);
  ASSERT_TRUE(fixed);
  for (const Candidate& c : fixed->ranked) EXPECT_FALSE(c.report.narrowed);
  auto training = recommend(catalogues(), test::training(llama(), 1e9, 64), four);
  ASSERT_FALSE(training);
  EXPECT_EQ(training.error().where, "--min-bits");
}

TEST(Recommend, AnInterruptLeavesTheBestSoFarAndAllCardsAccountedFor) {
  const Question q = test::training(llama(), 1e9, 64);
  std::atomic<bool> stop{true};
  auto none = recommend(catalogues(), q, {}, &stop);
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->partial);
  EXPECT_TRUE(none->ranked.empty());
  auto whole = recommend(catalogues(), q, {});
  ASSERT_TRUE(whole);
  EXPECT_FALSE(whole->partial);
  EXPECT_EQ(none->rejected.size(),
            static_cast<std::size_t>(whole->feasible) + whole->rejected.size());
  for (const Rejection& r : none->rejected)
    EXPECT_EQ(r.reason.id, message_id(DecideMessage::not_looked_at));
}

TEST(Recommend, RankIsAmongAllThatMeetTheLimits) {
  Objective o;
  o.why_not = "h200-sxm-141gb";
  auto a = recommend(catalogues(), question(), o);
  ASSERT_TRUE(a);
  const Candidate& asked = a->ranked.back();
  ASSERT_EQ(asked.report.cluster.accelerator->id, o.why_not);
  EXPECT_GT(asked.rank, static_cast<std::int64_t>(a->ranked.size()));
  EXPECT_LE(asked.rank, a->feasible);
  // Of the same cost and count, the faster comes first.
  for (std::size_t i = 1; i < a->ranked.size(); ++i) {
    const PlanReport &x = a->ranked[i - 1].report, &y = a->ranked[i].report;
    auto usd = [](const PlanReport& r) { return r[Metric::usd_per_hour]->value; };
    if (usd(x) != usd(y) || x.cluster.count() != y.cluster.count()) continue;
    EXPECT_GE(x[Metric::capacity_requests_per_second]->value,
              y[Metric::capacity_requests_per_second]->value);
  }
}

TEST(Recommend, ImpossibleDegreesSayWhy) {
  auto reason = [](const Question& q) -> MessageId {
    auto a = recommend(catalogues(), q, Objective{});
    if (!a) return a.error().what.id;
    for (const Rejection& r : a->rejected)
      if (r.hardware == "h100-sxm-80gb") return r.reason.id;
    return {};
  };
  Question q = question();
  q.plan.tensor = 3;
  EXPECT_EQ(reason(q), message_id(PlanMessage::heads_do_not_divide));
  q.plan.tensor = std::nullopt;
  q.plan.expert = 5;
  EXPECT_EQ(reason(q), message_id(PlanMessage::no_experts));
  q.plan.expert = std::nullopt;
  q.plan.pipeline = 1000;
  EXPECT_EQ(reason(q), message_id(DecideMessage::degrees_need_cards));
  // Degrees that are no powers of two get machines that hold them.
  q.plan.pipeline = 6;
  auto a = recommend(catalogues(), q, Objective{});
  ASSERT_TRUE(a);
  ASSERT_FALSE(a->ranked.empty());
  EXPECT_EQ(a->ranked.front().report.cluster.count() % 6, 0);
}

TEST(SetUp, DocumentationRulesOutButNotWhatWasMeasured) {
  Question q = question();
  q.plan.weights = Format::fp8_tensor;
  Cluster volta = test::machine("v100-sxm-32gb");
  auto refused = estimate(catalogues(), q, volta);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what.id, message_id(DecideMessage::engine_refuses_format));
  q.measured = true;
  EXPECT_TRUE(estimate(catalogues(), q, volta));
  q = question();
  q.engine = "tensorrt-llm";
  refused = estimate(catalogues(), q, volta);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what.id, message_id(DecideMessage::engine_not_on_card));
  // The statement is of its 1.x releases.
  q.engine = "tensorrt-llm@0.9";
  EXPECT_TRUE(estimate(catalogues(), q, volta));
  q = question();
  Cluster full = test::machine("h100-sxm{used=200GiB}");
  refused = estimate(catalogues(), q, full);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what.id, message_id(DecideMessage::memory_all_used));
}

// Shares say how many cards one process has.
TEST(Recommend, SharesSayHowManyCards) {
  auto model = catalogues().models.find("llama-3.1-8b");
  ASSERT_TRUE(model);
  Question q = test::serving(*model, 0.01, 1000, 100);
  q.engine = "llama.cpp";
  q.plan.card_shares = {{3, 1}};
  Objective o;
  o.vendors = {"nvidia"};
  auto a = recommend(catalogues(), q, o);
  ASSERT_TRUE(a);
  ASSERT_FALSE(a->ranked.empty());
  for (const Candidate& c : a->ranked) {
    EXPECT_EQ(c.report.plan.pipeline, 2);
    EXPECT_EQ(c.report.cluster.count() % 2, 0);
  }
}

}  // namespace
}  // namespace trigon
