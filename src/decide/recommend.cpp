#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "decide/card_search.hpp"
#include "decide/triangle.hpp"
#include "plan/legality.hpp"

namespace trigon {
namespace {

constexpr std::size_t kShown = 12;  // candidates with ranges and triangle

// Against the candidate ranked before it.
std::vector<Message> reasons(const PlanReport& before, const PlanReport& r, bool training) {
  std::vector<Message> out;
  Metric cost = training ? Metric::usd_total : Metric::usd_per_hour;
  const std::string& name = before.cluster.accelerator->name;
  const auto& a = before[cost];
  const auto& b = r[cost];
  if (!b) {
    out.push_back(message(DecideMessage::no_price_known));
  } else if (a && b->value > a->value * 1.02) {
    out.push_back(message(DecideMessage::costs_more, b->value / a->value, name));
  } else if (a) {
    double speed = deciding_speed(before, training);
    if (speed > 0)
      out.push_back(
          message(DecideMessage::costs_same_slower, deciding_speed(r, training) / speed, name));
  }
  return out;
}

}  // namespace

std::vector<Message> relaxations(const Setup& s, const Chosen& c, const Objective& o,
                                 double usd_per_hour) {
  std::vector<Message> out;
  const Evaluation& e = c.evaluation;
  if (!e.fits) {
    out.push_back(message(DecideMessage::relax_memory,
                          bytes(e[Metric::memory_bytes] - e[Metric::usable_bytes])));
    out.push_back(message(DecideMessage::relax_count, o.max_gpus));
    return out;
  }
  if (auto serve = std::get_if<Serve>(&s.job)) {
    if (!e.sustainable && serve->rate) {
      out.push_back(message(DecideMessage::relax_rate,
                            serve->rate->in_base() / std::max(1e-12, e[Metric::utilization])));
      out.push_back(message(DecideMessage::relax_count, o.max_gpus));
    } else {
      const ServeLimits& l = serve->limits;
      auto relax = [&](const std::optional<LatencyLimit>& limit, Metric m, DecideMessage id) {
        if (limit && e[m] > limit->at_most.in_base()) out.push_back(message(id, seconds(e[m])));
      };
      relax(l.ttft, Metric::ttft_percentile_seconds, DecideMessage::relax_ttft);
      relax(l.tpot, Metric::tpot_percentile_seconds, DecideMessage::relax_tpot);
      relax(l.e2e, Metric::e2e_percentile_seconds, DecideMessage::relax_e2e);
    }
  }
  std::optional<Seconds> deadline;
  if (auto t = std::get_if<Train>(&s.job)) deadline = t->deadline;
  if (auto t = std::get_if<FineTune>(&s.job)) deadline = t->deadline;
  if (auto t = std::get_if<Batch>(&s.job)) deadline = t->deadline;
  double hours_needed = job_hours(s, e);
  if (deadline && hours_needed * 3600 > deadline->in_base()) {
    out.push_back(message(DecideMessage::relax_deadline, hours(hours_needed)));
    out.push_back(message(DecideMessage::relax_count, o.max_gpus));
  }
  if (o.budget.total && std::isfinite(hours_needed) &&
      usd_per_hour * hours_needed > o.budget.total->in_base())
    out.push_back(message(DecideMessage::relax_budget, dollars(usd_per_hour * hours_needed)));
  if (o.budget.per_second && usd_per_hour / 3600 > o.budget.per_second->in_base())
    out.push_back(message(DecideMessage::relax_budget, dollars_per_hour(usd_per_hour)));
  return out;
}

namespace {

// What was fixed of the plan may divide the model on no hardware at all.
std::optional<Message> never_divides(const Question& q) {
  const Stack* stack = language_stack(*q.model);
  if (!stack) return std::nullopt;
  const bool training = q.job.kind == JobKind::train || q.job.kind == JobKind::finetune;
  Plan p;
  p.tensor = q.plan.tensor.value_or(1);
  p.pipeline = q.plan.pipeline.value_or(1);
  p.data = q.plan.data.value_or(1);
  p.context = q.plan.context.value_or(1);
  if (training && q.plan.zero) p.zero = *q.plan.zero;
  if (q.plan.weights && *q.plan.weights != q.model->weight_format) p.weights = *q.plan.weights;
  // An expert degree alone leaves open which ranks it lies in.
  if (q.plan.expert && (training ? q.plan.data : q.plan.tensor)) p.expert = *q.plan.expert;
  return check_split(*stack, p, !training);
}

}  // namespace

Result<RecommendAnswer> recommend(const Catalogues& all, const Question& q,
                                  const Objective& objective, const std::atomic<bool>* stop) {
  if (objective.min_bits && (q.job.kind == JobKind::train || q.job.kind == JobKind::finetune))
    return fail(ErrorCode::bad_argument, message(DecideMessage::bits_are_for_serving),
                "--min-bits");
  if (std::int64_t ranks = fixed_ranks(q.plan); ranks > objective.max_gpus)
    return fail(ErrorCode::bad_argument,
                message(DecideMessage::degrees_need_cards, ranks, objective.max_gpus),
                "--max-gpus");
  if (auto why = never_divides(q)) return fail(ErrorCode::bad_argument, *why, flag_of(*why));
  // Processors have no prices and are in every machine that has cards: answers are about cards.
  std::vector<const Accelerator*> cards;
  for (const Accelerator& a : all.hardware.accelerators.all())
    if (a.kind != DeviceKind::cpu) cards.push_back(&a);
  std::vector<CardResult> results(cards.size());
  for (std::size_t i = 0; i < cards.size(); ++i) {
    results[i].card = cards[i];
    results[i].rejection = message(DecideMessage::not_looked_at);
  }
  const auto stopped = [&] { return stop && stop->load(std::memory_order_relaxed); };
  // Cards are independent: threads take the next one; results land at the card's own place, so
  // the answer does not depend on how many threads there are.
  const auto look = [&](Offloading offloading) {
    std::atomic<std::size_t> next{0};
    auto work = [&] {
      for (std::size_t i; (i = next.fetch_add(1)) < cards.size();)
        if (!stopped()) results[i] = search_card(all, q, objective, *cards[i], offloading, stop);
    };
    unsigned threads = std::max(1u, std::min(16u, std::thread::hardware_concurrency()));
    if (objective.threads > 0) threads = static_cast<unsigned>(objective.threads);
    std::vector<std::jthread> pool;
    for (unsigned t = 1; t < threads; ++t) pool.emplace_back(work);
    work();
  };
  look(Offloading::as_asked);
  // Training that no card holds may still run from host memory.
  const bool trains = q.job.kind == JobKind::train || q.job.kind == JobKind::finetune;
  if (trains && !stopped() &&
      std::none_of(results.begin(), results.end(), [](const CardResult& r) { return r.chosen; }))
    look(Offloading::where_nothing_fits);
  RecommendAnswer a;
  a.partial = stopped();
  std::vector<CardResult*> feasible, infeasible;
  const std::string* why_not = objective.why_not.empty() ? nullptr : &objective.why_not;
  for (CardResult& r : results) {
    if (r.error) return tl::unexpected(*r.error);
    a.counts.cards += r.counts.cards;
    a.counts.counts += r.counts.counts;
    a.counts.plans_considered += r.counts.plans_considered;
    a.counts.plans_pruned += r.counts.plans_pruned;
    a.counts.plans_evaluated += r.counts.plans_evaluated;
    (r.chosen ? feasible : infeasible).push_back(&r);
  }
  a.feasible = static_cast<std::int64_t>(feasible.size());
  auto cost_of = [](const CardResult& r) { return r.usd_total; };
  std::stable_sort(feasible.begin(), feasible.end(), [&](CardResult* x, CardResult* y) {
    bool px = cost_of(*x) > 0, py = cost_of(*y) > 0;
    if (px != py) return px;
    if (px && cost_of(*x) != cost_of(*y)) return cost_of(*x) < cost_of(*y);
    int nx = x->setup->cluster.count(), ny = y->setup->cluster.count();
    if (nx != ny) return nx < ny;
    if (double sx = speed_of(*x), sy = speed_of(*y); sx != sy) return sx > sy;
    return x->card->id < y->card->id;
  });
  auto report_of = [&](const CardResult& r, const Setup& s, const Plan& plan,
                       Record* record) -> Result<PlanReport> {
    auto report = make_report(s, r.request, plan, record);
    if (!report) return report;
    report->narrowed = r.narrowed;
    fill_money(*report, s, money_of(all, s.cluster, objective.payment, objective.as_of));
    return report;
  };
  bool training = false;
  Record record;
  for (std::size_t i = 0; i < feasible.size(); ++i) {
    CardResult& r = *feasible[i];
    bool asked = why_not && r.card->id == *why_not;
    if (i >= kShown && !asked) continue;
    training = r.setup->training;
    auto report = report_of(r, *r.setup, r.chosen->plan, q.explain && i == 0 ? &record : nullptr);
    if (!report) return tl::unexpected(report.error());
    Candidate c;
    c.report = std::move(*report);
    c.rank = static_cast<std::int64_t>(i) + 1;
    if (!a.ranked.empty()) c.why = reasons(a.ranked.front().report, c.report, training);
    a.ranked.push_back(std::move(c));
  }
  TriangleScale scale;
  for (const Candidate& c : a.ranked) {
    double speed = deciding_speed(c.report, training);
    if (const auto& usd = c.report[Metric::usd_per_hour]; usd && usd->value > 0)
      scale.speed_per_dollar = std::max(scale.speed_per_dollar, speed / usd->value);
    if (const auto& w = c.report[Metric::power_watts]; w && w->value > 0)
      scale.speed_per_watt = std::max(scale.speed_per_watt, speed / w->value);
  }
  for (Candidate& c : a.ranked) c.triangle = triangle_of(all, c.report, training, scale);
  std::stable_sort(infeasible.begin(), infeasible.end(), [](CardResult* x, CardResult* y) {
    bool nx = x->nearest.has_value(), ny = y->nearest.has_value();
    if (nx != ny) return nx;
    if (nx && x->nearest_excess != y->nearest_excess) return x->nearest_excess < y->nearest_excess;
    return x->card->id < y->card->id;
  });
  for (CardResult* r : infeasible) {
    Rejection rejection;
    rejection.hardware = r->card->id;
    if (r->rejection) rejection.reason = *r->rejection;
    bool asked = why_not && r->card->id == *why_not;
    if (asked && r->nearest) {
      auto report = report_of(*r, *r->nearest_setup, r->nearest->plan, nullptr);
      if (report) rejection.nearest = std::move(*report);
    }
    a.rejected.push_back(std::move(rejection));
  }
  const CardResult* first = !feasible.empty()     ? feasible.front()
                            : !infeasible.empty() ? infeasible.front()
                                                  : nullptr;
  if (feasible.empty() && first && first->nearest) {
    auto report = report_of(*first, *first->nearest_setup, first->nearest->plan, nullptr);
    if (!report) return tl::unexpected(report.error());
    double hour = (*report)[Metric::usd_per_hour] ? (*report)[Metric::usd_per_hour]->value : 0;
    a.relax = relaxations(*first->nearest_setup, *first->nearest, objective, hour);
    a.nearest = std::move(*report);
  }
  const Setup* setup = first ? (first->setup           ? &*first->setup
                                : first->nearest_setup ? &*first->nearest_setup
                                                       : nullptr)
                             : nullptr;
  if (setup) {
    a.job = setup->job;
    a.assumptions = setup->assumptions;
    if (first->narrowed)
      a.assumptions.push_back(
          {"--min-bits", message(DecideMessage::assumed_narrower, info(*first->narrowed).name)});
  }
  if (!feasible.empty() && feasible.front()->narrowed) {
    double least = 0;
    for (const CardResult* r : feasible)
      if (double usd = r->stored_usd_total; usd > 0 && (least == 0 || usd < least)) least = usd;
    bool hourly = feasible.front()->usd_total == feasible.front()->usd_per_hour;
    std::string_view stored = info(q.model->weight_format).name;
    if (least > 0)
      a.would_change.push_back(
          hourly ? message(DecideMessage::change_stored, stored, dollars_per_hour(least))
                 : message(DecideMessage::change_stored, stored, dollars(least)));
  }
  if (!feasible.empty()) {
    const PlanReport& best = a.ranked.front().report;
    if (a.ranked.size() > 1) {
      Metric cost = training ? Metric::usd_total : Metric::usd_per_hour;
      const auto& x = best[cost];
      const auto& y = a.ranked[1].report[cost];
      if (x && y && y->value > x->value)
        a.would_change.push_back(message(DecideMessage::change_price,
                                         a.ranked[1].report.cluster.accelerator->name,
                                         100 * (1 - x->value / y->value)));
    }
    if (const auto& c = best[Metric::capacity_requests_per_second];
        c && std::holds_alternative<Serve>(a.job))
      a.would_change.push_back(message(DecideMessage::change_rate, c->value));
    if (training)
      if (const auto& t = best[Metric::time_to_train_seconds])
        a.would_change.push_back(message(DecideMessage::change_deadline, seconds(t->value)));
    if (q.explain) a.derivation = std::move(record.derivation);
  }
  return a;
}

}  // namespace trigon
