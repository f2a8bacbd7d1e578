// Limits, budgets, ranking, the nearest plan, comparison and the triangle.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "decide/report.hpp"
#include "decide/test_questions.hpp"
#include "decide/triangle.hpp"

namespace trigon {
namespace {

using test::catalogues;
using test::machine;

bool says(const std::vector<Message>& all, DecideMessage id) {
  return std::any_of(all.begin(), all.end(),
                     [&](const Message& m) { return m.id == message_id(id); });
}

Setup serving_setup() {
  Setup s;
  Serve job;
  job.rate = PerSecond::base(10);
  job.limits.ttft = LatencyLimit{seconds(1), 95};
  job.limits.tpot = LatencyLimit{milliseconds(50), 95};
  s.job = job;
  return s;
}

Evaluation good() {
  Evaluation e;
  e.fits = true;
  e[Metric::memory_bytes] = 50e9;
  e[Metric::usable_bytes] = 80e9;
  e[Metric::ttft_percentile_seconds] = 0.5;
  e[Metric::tpot_percentile_seconds] = 0.04;
  e[Metric::utilization] = 0.5;
  return e;
}

TEST(Limits, NothingMissedIsZero) {
  std::vector<Message> said;
  EXPECT_EQ(limit_excess(serving_setup(), good(), &said), 0);
  EXPECT_TRUE(said.empty());
}

TEST(Limits, MissesAddUpWorstFirst) {
  Evaluation e = good();
  e[Metric::ttft_percentile_seconds] = 1.5;
  e[Metric::tpot_percentile_seconds] = 0.15;
  std::vector<Message> said;
  EXPECT_NEAR(limit_excess(serving_setup(), e, &said), 0.5 + 2, 1e-12);
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0].id, message_id(DecideMessage::tpot_binds));
  EXPECT_EQ(said[1].id, message_id(DecideMessage::ttft_binds));
  // Exactly at the limit holds.
  e = good();
  e[Metric::ttft_percentile_seconds] = 1;
  EXPECT_EQ(limit_excess(serving_setup(), e), 0);
}

TEST(Limits, MemoryOutweighsAndSaturationHidesLatency) {
  Evaluation e = good();
  e.sustainable = false;
  e[Metric::utilization] = 2;
  e[Metric::ttft_percentile_seconds] = 1e9;  // meaningless beyond saturation
  std::vector<Message> said;
  double saturated = limit_excess(serving_setup(), e, &said);
  // Asks for twice what there is, and misses both latencies by any measure.
  EXPECT_NEAR(saturated, 2 + 2e3, 1e-9);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].id, message_id(DecideMessage::rate_binds));
  EXPECT_NEAR(std::get<double>(said[0].args[0]), 5, 1e-9);
  // A step that is too slow before anybody waits counts too: 0.1 s against 50 ms.
  e.lone_step_seconds = 0.1;
  EXPECT_NEAR(limit_excess(serving_setup(), e), saturated + 1, 1e-9);
  e.lone_step_seconds = 0;
  e.fits = false;
  e[Metric::memory_bytes] = 100e9;
  said.clear();
  EXPECT_GT(limit_excess(serving_setup(), e, &said), 1e4 + saturated);
  EXPECT_EQ(said[0].id, message_id(DecideMessage::memory_binds));
}

TEST(Limits, Deadlines) {
  trigon::Setup s;
  Train job;
  job.deadline = days(10);
  s.job = job;
  Evaluation e = good();
  e[Metric::time_to_train_seconds] = 15 * 86400;
  EXPECT_NEAR(limit_excess(s, e), 0.5, 1e-12);
  e[Metric::time_to_train_seconds] = 10 * 86400;
  EXPECT_EQ(limit_excess(s, e), 0);
}

TEST(Money, CostsFollowThePrice) {
  Model model = test::llama31_8b();
  Question q = test::training(model, 1e9, 64);
  auto a = estimate(catalogues(), q, machine("8xa100-sxm-80gb"));
  ASSERT_TRUE(a);
  auto s = set_up(catalogues(), q, machine("8xa100-sxm-80gb"));
  ASSERT_TRUE(s);
  PlanReport once = a->report, twice = a->report;
  Money m;
  m.usd_per_hour = Estimate<double>{10, 8, 12, Basis::measured};
  fill_money(once, *s, m);
  m.usd_per_hour = Estimate<double>{20, 16, 24, Basis::measured};
  fill_money(twice, *s, m);
  double hours = once[Metric::time_to_train_seconds]->value / 3600;
  EXPECT_NEAR(once[Metric::usd_total]->value, 10 * hours, 1e-9 * hours);
  EXPECT_NEAR(once[Metric::usd_per_million_tokens]->value, 10 * hours / 1000, 1e-9 * hours);
  for (Metric c : {Metric::usd_total, Metric::usd_per_million_tokens}) {
    EXPECT_NEAR(twice[c]->value / once[c]->value, 2, 1e-12);
    EXPECT_NEAR(twice[c]->low / once[c]->low, 2, 1e-12);
    EXPECT_NEAR(twice[c]->high / once[c]->high, 2, 1e-12);
    EXPECT_LT(once[c]->low, once[c]->value);
    EXPECT_LT(once[c]->value, once[c]->high);
  }
  // 8 boards of 400 W for that time, at most.
  EXPECT_NEAR(once[Metric::energy_joules]->value, 3200 * hours * 3600, 1e-6 * hours * 3600);
}

TEST(Money, ByTheCard) {
  Cluster one = machine("a100-sxm-80gb"), eight = machine("8xa100-sxm-80gb");
  Money a = money_of(catalogues(), one, Payment::rent, {});
  Money b = money_of(catalogues(), eight, Payment::rent, {});
  ASSERT_TRUE(a.usd_per_hour && b.usd_per_hour);
  EXPECT_NEAR(b.usd_per_hour->value, 8 * a.usd_per_hour->value, 1e-9);
  EXPECT_LE(a.usd_per_hour->low, a.usd_per_hour->value);
  EXPECT_GE(a.usd_per_hour->high, a.usd_per_hour->value);
}

TEST(Estimate, DegreesMustMultiplyToTheMachine) {
  Model model = test::llama31_8b();
  Question q = test::serving(model, 1, 100, 100);
  q.plan.tensor = 2;
  q.plan.pipeline = 2;
  q.plan.data = 1;
  auto a = estimate(catalogues(), q, machine("8xl40s"));
  ASSERT_FALSE(a);
  EXPECT_EQ(a.error().what.id, message_id(DecideMessage::degrees_do_not_multiply));
  q.plan.data = 2;
  a = estimate(catalogues(), q, machine("8xl40s"));
  ASSERT_TRUE(a);
  EXPECT_EQ(a->report.plan.ranks(), 8);
}

bool assumes(const EstimateAnswer& a, DecideMessage what) {
  return std::any_of(a.assumptions.begin(), a.assumptions.end(),
                     [&](const Assumption& s) { return s.what.id == message_id(what); });
}

TEST(Estimate, MoreCardsThanAnyMachineHoldsAreReported) {
  const Model model = test::mixtral_8x7b();
  const Question q = test::training(model, 1e9, 1024);
  for (const auto& [on, said] : {std::pair{"8xh100-sxm", false}, std::pair{"4x8xh100-sxm", false},
                                 std::pair{"512xh100-sxm", true}}) {
    auto a = estimate(catalogues(), q, machine(on));
    ASSERT_TRUE(a) << on;
    EXPECT_EQ(assumes(*a, DecideMessage::assumed_one_machine), said) << on;
  }
}

TEST(Estimate, StepsThatAreNotTheAskedOnesAreReported) {
  const Model model = test::mixtral_8x7b();
  for (const auto& [batch, said] :
       {std::pair{16, false}, std::pair{3, true}, std::pair{20, true}}) {
    const Question q = test::training(model, 1e9, batch);
    auto a = estimate(catalogues(), q, machine("8xh100-sxm"));
    ASSERT_TRUE(a);
    EXPECT_EQ(assumes(*a, DecideMessage::assumed_whole_shares), said) << batch;
  }
}

TEST(Estimate, RangesHoldTheValue) {
  Model model = test::mixtral_8x7b();
  for (Question q : {test::serving(model, 2, 500, 100), test::training(model, 1e9, 64)}) {
    auto a = estimate_best(catalogues(), q, machine("8xh100-sxm-80gb"));
    ASSERT_TRUE(a);
    for (std::size_t i = 0; i < kMetrics; ++i)
      if (const auto& e = a->report.metrics[i]) {
        EXPECT_LE(e->low, e->value) << metric_info(static_cast<Metric>(i)).json;
        EXPECT_GE(e->high, e->value) << metric_info(static_cast<Metric>(i)).json;
      }
  }
}

Objective of_vendor(const char* vendor, int max_gpus) {
  Objective o;
  o.vendors = {vendor};
  o.max_gpus = max_gpus;
  return o;
}

TEST(Recommend, RanksByCostAndAccountsForEveryCard) {
  Model model = test::llama31_8b();
  Objective o = of_vendor("amd", 8);
  auto a = recommend(catalogues(), test::serving(model, 2, 500, 100), o);
  ASSERT_TRUE(a);
  ASSERT_GE(a->ranked.size(), 2u);
  double last = 0;
  bool priced = true;
  for (const Candidate& c : a->ranked) {
    const auto& usd = c.report[Metric::usd_per_hour];
    EXPECT_EQ(c.report.cluster.accelerator->vendor, "amd");
    EXPECT_TRUE(c.report.fits && c.report.meets_limits);
    EXPECT_TRUE(priced || !usd);  // those without a price come last
    priced = usd.has_value();
    if (!usd) continue;
    EXPECT_GE(usd->value, last);
    last = usd->value;
  }
  std::set<std::string> rejected;
  for (const Rejection& r : a->rejected) {
    EXPECT_TRUE(rejected.insert(r.hardware).second);
    EXPECT_FALSE(r.reason.id == MessageId{} && r.reason.args.empty()) << r.hardware;
  }
  for (const Accelerator& card : catalogues().hardware.accelerators.all())
    if (card.vendor != "amd" && card.kind != DeviceKind::cpu) {  // processors are never offered
      EXPECT_TRUE(rejected.count(card.id)) << card.id;
    }
  for (const Candidate& c : a->ranked)
    EXPECT_FALSE(rejected.count(c.report.cluster.accelerator->id));
}

TEST(Recommend, TheNearestPlanWhenNothingHolds) {
  Model model = test::llama31_8b();
  Question q = test::serving(model, 1, 500, 100);
  q.job.limits.tpot = LatencyLimit{microseconds(100), 95};
  Objective o = of_vendor("amd", 8);
  o.why_not = "mi300x";
  auto a = recommend(catalogues(), q, o);
  ASSERT_TRUE(a);
  EXPECT_TRUE(a->ranked.empty());
  ASSERT_TRUE(a->nearest);
  EXPECT_TRUE(says(a->nearest->violated, DecideMessage::tpot_binds));
  EXPECT_TRUE(says(a->relax, DecideMessage::relax_tpot));
  // No other rejected card that was asked about misses by less.
  auto mi300x = std::find_if(a->rejected.begin(), a->rejected.end(),
                             [](const Rejection& r) { return r.hardware == "mi300x"; });
  ASSERT_NE(mi300x, a->rejected.end());
  EXPECT_EQ(mi300x->reason.id, message_id(DecideMessage::tpot_binds));
  ASSERT_TRUE(mi300x->nearest);
  EXPECT_GE((*mi300x->nearest)[Metric::tpot_percentile_seconds]->value * (1 + 1e-9),
            (*a->nearest)[Metric::tpot_percentile_seconds]->value);
}

TEST(Recommend, WhyNotShowsAFeasibleCardToo) {
  Model model = test::llama31_8b();
  Objective o;
  o.max_gpus = 1;
  o.why_not = "mi300x";
  auto a = recommend(catalogues(), test::serving(model, 0.1, 100, 100), o);
  ASSERT_TRUE(a);
  EXPECT_TRUE(std::any_of(a->ranked.begin(), a->ranked.end(), [](const Candidate& c) {
    return c.report.cluster.accelerator->id == "mi300x";
  }));
}

TEST(Recommend, BudgetsBind) {
  Model model = test::llama31_8b();
  Question q = test::training(model, 1e9, 64);
  Objective o = of_vendor("nvidia", 4);
  o.payment = Payment::rent;
  auto free = recommend(catalogues(), q, o);
  ASSERT_TRUE(free);
  ASSERT_FALSE(free->ranked.empty());
  ASSERT_TRUE(free->ranked[0].report[Metric::usd_total]);
  double usd = free->ranked[0].report[Metric::usd_total]->value;
  o.budget.total = dollars(usd * 1.01);
  auto enough = recommend(catalogues(), q, o);
  ASSERT_TRUE(enough);
  ASSERT_FALSE(enough->ranked.empty());
  for (const Candidate& c : enough->ranked) {
    ASSERT_TRUE(c.report[Metric::usd_total]);
    EXPECT_LE(c.report[Metric::usd_total]->value, usd * 1.01);
  }
  o.budget.total = dollars(usd * 0.5);
  auto little = recommend(catalogues(), q, o);
  ASSERT_TRUE(little);
  EXPECT_TRUE(little->ranked.empty());
  EXPECT_TRUE(says(little->relax, DecideMessage::relax_budget));
}

TEST(Recommend, DeadlinesTakeMoreCards) {
  Model model = test::llama31_8b();
  Question q = test::training(model, 1e10, 64);
  Objective o;
  o.vendors = {"nvidia"};
  o.max_gpus = 16;
  auto easy = recommend(catalogues(), q, o);
  ASSERT_TRUE(easy && !easy->ranked.empty());
  ASSERT_TRUE(easy->ranked[0].report[Metric::usd_total]);
  double seconds_taken = easy->ranked[0].report[Metric::time_to_train_seconds]->value;
  q.job.deadline = seconds(seconds_taken / 3);
  auto hard = recommend(catalogues(), q, o);
  ASSERT_TRUE(hard && !hard->ranked.empty());
  ASSERT_TRUE(hard->ranked[0].report[Metric::usd_total]);
  EXPECT_LE(hard->ranked[0].report[Metric::time_to_train_seconds]->value, seconds_taken / 3);
  EXPECT_GE(hard->ranked[0].report[Metric::usd_total]->value,
            easy->ranked[0].report[Metric::usd_total]->value * (1 - 1e-9));
}

TEST(Compare, RatiosAgainstTheFirst) {
  Model model = test::llama31_8b();
  Question q = test::serving(model, 1, 500, 100);
  auto a = compare(catalogues(), q, {machine("l40s"), machine("h100-sxm-80gb")}, {});
  ASSERT_TRUE(a);
  ASSERT_EQ(a->rows.size(), 2u);
  EXPECT_EQ(a->rows[0].ratio, 1);
  EXPECT_DOUBLE_EQ(a->rows[1].ratio,
                   a->rows[1].report[a->deciding]->value / a->rows[0].report[a->deciding]->value);
  EXPECT_GT(a->rows[1].ratio, 1.5);  // 3.9 times the bandwidth, 2.7 times the arithmetic
  EXPECT_LT(a->rows[1].ratio, 6);
}

TEST(Triangle, PartsByHand) {
  PlanReport r;
  r.cluster = machine("h100-sxm-80gb");
  auto set = [&](Metric m, double v) {
    r.metrics[static_cast<std::size_t>(m)] = Estimate<double>{v, v, v, Basis::exact};
  };
  set(Metric::capacity_requests_per_second, 30);
  set(Metric::usd_per_hour, 3);   // 10 requests/s a dollar
  set(Metric::power_watts, 600);  // 0.05 a watt
  set(Metric::memory_bytes, 60e9);
  set(Metric::usable_bytes, 66e9);
  Triangle t = triangle_of(catalogues(), r, false, {20, 0.1});
  ASSERT_EQ(t.parts.size(), 5u);
  EXPECT_DOUBLE_EQ(t.parts[0].value, 0.5);
  EXPECT_DOUBLE_EQ(t.parts[1].value, 0.5);
  EXPECT_DOUBLE_EQ(t.compute_density, 0.5);
  EXPECT_DOUBLE_EQ(t.memory, 1.1 / 1.2);  // 10 % room where 20 % is full marks
  EXPECT_DOUBLE_EQ(t.ecosystem, (t.parts[3].value + t.parts[4].value) / 2);
  EXPECT_DOUBLE_EQ(t.score, (t.compute_density + t.memory + t.ecosystem) / 3);
  EXPECT_GT(t.parts[3].value, 0.5);         // most engines run on it
  EXPECT_DOUBLE_EQ(t.parts[4].value, 0.8);  // all of the five but FP4
  set(Metric::usable_bytes, 600e9);
  EXPECT_EQ(triangle_of(catalogues(), r, false, {20, 0.1}).memory, 1);
}

}  // namespace
}  // namespace trigon
