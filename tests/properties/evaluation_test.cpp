// What must hold for the times, memory and money of every plan.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "decide/best_plan.hpp"
#include "random_questions.hpp"
#include "step/evaluate_parts.hpp"

namespace trigon {
namespace {

using test::between;

PlanRequest none;

Tables tables_of(const Setup& s, const Plan& p) {
  auto t = prepare_for(s, domain_of(s, none, p));
  RC_PRE(t.has_value());  // a card without a peak for these formats is refused
  return *t;
}

bool same_bits(const Evaluation& a, const Evaluation& b) {
  return std::memcmp(a.values.data(), b.values.data(), sizeof a.values) == 0 &&
         a.memory.bytes == b.memory.bytes && a.fits == b.fits && a.sustainable == b.sustainable &&
         a.sequences_held == b.sequences_held;
}

TEST(EvaluationProperties, RecorderAndPlainAgreeBitByBit) {
  int compared = 0;
  EXPECT_TRUE(rc::check("recorded == plain", [&] {
    Model model = test::any_model();
    Cluster machine = test::any_machine(test::any_card());
    auto s = test::any_setup(model, machine);
    PlanDomain domain = formats_of(s, none);
    domain.tensor = {1, 2, 4, 8};
    domain.expert = {1, 2, 4, 8};
    domain.expert_tensor = {0, 1, 2, 4, 8};
    domain.micro_batch = {1, 2, 3, 8, 16};
    domain.with_sequence_parallel = true;
    if (!s.training) domain.batches = {1, 16, 256};
    auto t = prepare_for(s, domain);
    RC_PRE(t.has_value());
    for (int i = 0; i < 25; ++i) {
      Plan p = test::any_plan(s);
      Record heard;
      Evaluation recorded = evaluate(*t, p, heard), plain = evaluate(*t, p);
      RC_ASSERT(same_bits(recorded, plain));
      RC_ASSERT(same_bits(plain, evaluate(*t, p)));
      RC_ASSERT(!heard.derivation.steps.empty());
      ++compared;
    }
  }));
  EXPECT_GE(compared, 2000);
}

TEST(EvaluationProperties, NumbersAreNumbers) {
  EXPECT_TRUE(rc::check("finite and positive", [] {
    Model model = test::any_model();
    Cluster machine = test::any_machine(test::any_card());
    auto s = test::any_setup(model, machine);
    Plan p = test::any_plan(s);
    Evaluation e = evaluate(tables_of(s, p), p);
    auto positive = [&](Metric m) { RC_ASSERT(e[m] > 0 && std::isfinite(e[m])); };
    positive(Metric::memory_bytes);
    if (s.training) {
      positive(Metric::step_seconds);
      positive(Metric::backward_seconds);
      RC_ASSERT(e[Metric::mfu] > 0 && e[Metric::mfu] <= 1);
      RC_ASSERT(e[Metric::hfu] >= e[Metric::mfu]);
      // The step is what it is made of.
      RC_ASSERT(e[Metric::step_seconds] >=
                e[Metric::forward_seconds] + e[Metric::backward_seconds] +
                    e[Metric::recompute_seconds] + e[Metric::bubble_seconds]);
    } else {
      positive(Metric::prefill_seconds);
      positive(Metric::decode_step_seconds);
      positive(Metric::ttft_seconds);
      positive(Metric::output_tokens_per_second);
      RC_ASSERT(e[Metric::ttft_seconds] >= e[Metric::prefill_seconds] * (1 - 1e-9));
      RC_ASSERT(e[Metric::tpot_seconds] >= e[Metric::decode_step_seconds] * (1 - 1e-9));
      if (std::holds_alternative<Serve>(s.job)) {
        RC_ASSERT(e[Metric::ttft_percentile_seconds] >= e[Metric::prefill_seconds] * (1 - 1e-9));
      }
    }
  }));
}

// Evaluates the same plan on a card with more of something.
Evaluation with(const Setup& s, const Plan& p, void (*change)(Accelerator&, Cluster&, double),
                double factor) {
  Setup better = s;
  Accelerator card = *s.cluster.accelerator;
  change(card, better.cluster, factor);
  better.cluster.accelerator = &card;
  return evaluate(tables_of(better, p), p);
}

void never_slower(void (*change)(Accelerator&, Cluster&, double)) {
  EXPECT_TRUE(rc::check("more is never slower", [change] {
    Model model = test::any_model();
    Cluster machine = test::any_machine(test::any_card());
    auto s = test::any_setup(model, machine);
    Plan p = test::any_plan(s);
    Evaluation base = evaluate(tables_of(s, p), p);
    Evaluation better = with(s, p, change, 1 + between(1, 30) / 10.0);
    auto no_slower = [&](Metric m) {
      RC_LOG() << metric_info(m).json << " on " << machine.written << " with " << s.engine.id
               << ", " << write_plan(p) << "\n";
      RC_ASSERT(better[m] <= base[m] * (1 + 1e-5));
    };
    if (s.training) {
      no_slower(Metric::step_seconds);
      no_slower(Metric::time_to_train_seconds);
      return;
    }
    no_slower(Metric::prefill_seconds);
    if (std::holds_alternative<Batch>(s.job)) no_slower(Metric::decode_step_seconds);
    const Serve* serve = std::get_if<Serve>(&s.job);
    if (!serve) return;
    if (serve->rate) no_slower(Metric::utilization);
    if (!serve->rate)
      RC_ASSERT(better[Metric::requests_per_second] >=
                base[Metric::requests_per_second] * (1 - 1e-5));
    if (serve->rate && base.sustainable) {
      RC_ASSERT(better.sustainable);
      no_slower(Metric::ttft_percentile_seconds);
      no_slower(Metric::tpot_percentile_seconds);
    }
  }));
}

TEST(EvaluationProperties, MoreBandwidthIsNeverSlower) {
  never_slower(
      [](Accelerator& a, Cluster&, double k) { a.memory_bandwidth = a.memory_bandwidth * k; });
}

TEST(EvaluationProperties, MoreArithmeticIsNeverSlower) {
  never_slower([](Accelerator& a, Cluster&, double k) {
    for (auto& peak : a.peak)
      if (peak) peak = *peak * k;
  });
}

TEST(EvaluationProperties, FasterLinksAreNeverSlower) {
  never_slower([](Accelerator&, Cluster& c, double k) {
    c.intra.one_way = c.intra.one_way * k;
    if (c.inter) c.inter->one_way = c.inter->one_way * k;
  });
}

TEST(EvaluationProperties, MoreMemoryNeverMakesAFitWorse) {
  EXPECT_TRUE(rc::check("more memory", [] {
    Model model = test::any_model();
    Cluster machine = test::any_machine(test::any_card());
    auto s = test::any_setup(model, machine);
    // Where a card's size changes the engine's defaults, the larger card may be asked for more.
    s.engine.large_card = Bytes{};
    s.engine.tier_gib.clear();
    s.engine.tier_tokens.clear();
    auto larger = s;
    double more = 1 + between(1, 20) / 10.0;
    for (double* v : {&larger.usable.low, &larger.usable.value, &larger.usable.high}) *v *= more;
    Plan p = test::any_plan(s);
    Evaluation a = evaluate(tables_of(s, p), p), b = evaluate(tables_of(larger, p), p);
    RC_ASSERT(!a.fits || b.fits);
    RC_ASSERT(!a.sustainable || b.sustainable);
    auto found = best_plan(s, none), better = best_plan(larger, none);
    RC_ASSERT(found.has_value() == better.has_value());
    RC_PRE(found.has_value());
    RC_ASSERT(found->best.has_value() == better->best.has_value());
    if (!found->best) return;
    RC_LOG() << machine.written << " with " << s.engine.id << ", " << write_plan(found->best->plan)
             << " then " << write_plan(better->best->plan) << " job " << s.job.index() << " fits "
             << found->best->evaluation.fits << better->best->evaluation.fits << " sustainable "
             << found->best->evaluation.sustainable << better->best->evaluation.sustainable << "\n";
    if (!found->best->evaluation.fits) return;
    RC_ASSERT(better->best->evaluation.fits);
    // The steady state is found to a part in a million, which waiting near saturation magnifies.
    RC_ASSERT(better->best->excess <= found->best->excess + 1e-3 * (1 + found->best->excess));
  }));
}

TEST(EvaluationProperties, CapacityIsTheLargestRateThatHolds) {
  EXPECT_TRUE(rc::check("capacity", [] {
    Model model = test::any_model();
    Cluster machine = test::any_machine(test::any_card());
    Question q = test::any_question(model);
    q.job = {};
    q.job.kind = JobKind::serve;
    q.job.rate = PerSecond::base(1);
    q.job.input_tokens = between(1, 4000);
    q.job.output_tokens = between(2, 1000);
    auto s = set_up(test::catalogues(), q, machine);
    RC_PRE(s.has_value());
    Plan p = test::any_plan(*s);
    Tables t = tables_of(*s, p);
    double c = capacity_requests_per_second(t, p);
    auto at = [&](double rate) {
      Serve job = std::get<Serve>(s->job);
      job.rate = PerSecond::base(rate);
      t.job = job;
      return evaluate(t, p);
    };
    RC_ASSERT(c > 0);
    RC_ASSERT(at(c * 0.999).sustainable);
    RC_ASSERT(!at(c * 1.001).sustainable);
  }));
}

TEST(EvaluationProperties, CostFollowsThePrice) {
  EXPECT_TRUE(rc::check("k times the price, k times the cost", [] {
    Model model = test::any_model();
    Cluster machine = test::any_machine(test::any_card());
    auto s = test::any_setup(model, machine);
    Plan p = test::any_plan(s);
    Evaluation e = evaluate(tables_of(s, p), p);
    PlanReport r;
    r.cluster = s.cluster;
    for (std::size_t i = 0; i < kMetrics; ++i)
      if (std::isfinite(e.values[i]) && e.values[i] > 0)
        r.metrics[i] = Estimate<double>{e.values[i], e.values[i] * 0.8, e.values[i] * 1.3};
    PlanReport dear = r;
    double usd = between(1, 1000) / 10.0, k = between(11, 50) / 10.0;
    Money money;
    money.usd_per_hour = Estimate<double>{usd, usd * 0.9, usd * 1.2, Basis::measured};
    fill_money(r, s, money);
    money.usd_per_hour = Estimate<double>{usd * k, usd * k * 0.9, usd * k * 1.2, Basis::measured};
    fill_money(dear, s, money);
    bool any = false;
    for (Metric m : {Metric::usd_per_hour, Metric::usd_total, Metric::usd_per_million_tokens}) {
      RC_ASSERT(r[m].has_value() == dear[m].has_value());
      if (!r[m]) continue;
      any = true;
      RC_ASSERT(std::fabs(dear[m]->value / r[m]->value / k - 1) < 1e-9);
      RC_ASSERT(r[m]->low <= r[m]->value && r[m]->value <= r[m]->high);
    }
    RC_ASSERT(any);
  }));
}

}  // namespace
}  // namespace trigon
