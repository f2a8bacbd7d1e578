#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "decide/best_plan.hpp"
#include "decide/triangle.hpp"
#include "hardware/parse.hpp"

namespace trigon {
namespace {

constexpr double kHoursOfAMonth = 730;  // a twelfth of a year: what an endless service is held to
constexpr std::size_t kShown = 12;      // candidates with ranges and triangle

// What was found on one accelerator, over all counts of it.
struct CardResult {
  const Accelerator* card = nullptr;
  std::optional<Setup> setup;    // of the chosen count
  std::optional<Chosen> chosen;  // the cheapest that meets everything
  std::optional<Setup> nearest_setup;
  std::optional<Chosen> nearest;  // the one that misses by least
  double nearest_excess = 0;
  std::vector<Message> nearest_violated;
  std::optional<Message> rejection;
  std::optional<Error> error;              // of the question itself
  double usd_per_hour = 0, usd_total = 0;  // of the chosen; 0: no price is known
  double cost = 0;                         // what counts were compared by
  PlanRequest request;                     // the question's, with the format of the weights
  std::optional<Format> narrowed;          // weights in fewer bits than the checkpoint's
  double stored_usd_total = 0;             // the same card with the weights as they are stored
  SearchCounts counts;
};

int cards_per_node(const Catalogues& all, const Accelerator& a) {
  if (const System* s = all.hardware.typical_system(a, 8)) return std::max(1, s->count);
  return 8;
}

// Ranks that the fixed degrees make: machines hold a multiple of them.
std::int64_t fixed_ranks(const PlanRequest& p) {
  std::int64_t n = 1;
  for (const auto& degree : {p.tensor, p.pipeline, p.context, p.data})
    n = std::min<std::int64_t>(n * degree.value_or(1), std::int64_t{1} << 32);
  return n;
}

std::vector<int> card_counts(int least, int most) {
  std::vector<int> out;
  for (std::int64_t n = least; n <= most; n *= 2) out.push_back(static_cast<int>(n));
  if (out.back() != most && most % least == 0) out.push_back(most);
  return out;
}

double job_hours(const Setup& s, const Evaluation& e) {
  double seconds = s.training                             ? e[Metric::time_to_train_seconds]
                   : std::holds_alternative<Batch>(s.job) ? e[Metric::job_seconds]
                                                          : std::nan("");
  return seconds / 3600;
}

// Excess of budgets over what the plan costs, and the message of the one that binds.
double budget_excess(const Setup& s, const Objective& o, const Chosen& c, const Money& money,
                     std::vector<Message>* out) {
  double usd_per_hour = money.usd_per_hour ? money.usd_per_hour->value : 0;
  double excess = 0;
  const Budget& b = o.budget;
  if (!b.total && !b.per_second) return 0;
  double hours = job_hours(s, c.evaluation);
  // A sum is held against what has to be paid: the purchase, or the rent of the whole job.
  std::optional<double> to_pay;
  if (money.way == Payment::buy) {
    if (money.usd_purchase) to_pay = money.usd_purchase->value;
  } else if (usd_per_hour > 0) {
    to_pay = usd_per_hour * (std::isfinite(hours) ? hours : kHoursOfAMonth);
  }
  if ((b.total && !to_pay) || (b.per_second && usd_per_hour <= 0)) {
    if (out) out->push_back(message(DecideMessage::price_unknown));
    return 1e3;
  }
  if (b.total && *to_pay > b.total->in_base()) {
    excess += *to_pay / b.total->in_base() - 1;
    if (out) out->push_back(message(DecideMessage::budget_total_binds, dollars(*to_pay), *b.total));
  }
  if (b.per_second && usd_per_hour / 3600 > b.per_second->in_base()) {
    excess += usd_per_hour / 3600 / b.per_second->in_base() - 1;
    if (out)
      out->push_back(
          message(DecideMessage::budget_rate_binds, dollars_per_hour(usd_per_hour), *b.per_second));
  }
  return excess;
}

// What more of breaks a tie of costs.
double speed_of(const CardResult& r) {
  const Evaluation& e = r.chosen->evaluation;
  if (r.setup->training) return e[Metric::train_tokens_per_second];
  auto serve = std::get_if<Serve>(&r.setup->job);
  return serve && serve->rate ? 1 / e[Metric::utilization] : e[Metric::requests_per_second];
}

bool serves_forever(const Setup& s) { return std::holds_alternative<Serve>(s.job); }

// The formats that weights may be stored in instead: of fewer bits than the checkpoint's, not of
// fewer than was allowed, and such as the card multiplies or unpacks.
std::vector<Format> narrower_formats(const Question& q, const Objective& o,
                                     const Accelerator& card) {
  std::vector<Format> out;
  if (!o.min_bits || q.plan.weights) return out;
  const double stored = bits_per_element(q.model->weight_format);
  for (Format f :
       {Format::fp8_tensor, Format::int8, Format::int4_g128, Format::q8_0, Format::q4_k}) {
    if (f == Format::fp8_tensor && !card.peak_of(MathMode::fp8_matrix)) continue;
    if (bits_per_element(f) < stored && bits_per_element(f) >= *o.min_bits) out.push_back(f);
  }
  return out;
}

CardResult search_format(const Catalogues& all, const Question& q, const Objective& o,
                         const Accelerator& card, std::optional<Format> narrowed) {
  CardResult r;
  r.card = &card;
  r.request = q.plan;
  r.narrowed = narrowed;
  if (!o.vendors.empty() &&
      std::find(o.vendors.begin(), o.vendors.end(), card.vendor) == o.vendors.end()) {
    r.rejection = message(DecideMessage::vendor_excluded, card.vendor);
    return r;
  }
  if (card.announced) {
    r.rejection = message(DecideMessage::not_on_sale, card.name);
    return r;
  }
  ++r.counts.cards;
  int node = cards_per_node(all, card);
  double best_cost = 0;
  for (int count : card_counts(static_cast<int>(fixed_ranks(q.plan)), o.max_gpus)) {
    if (count > node && count % node != 0) continue;
    Cluster cluster = count <= node ? make_cluster(all.hardware, card, count, 1)
                                    : make_cluster(all.hardware, card, node, count / node);
    auto s = set_up(all, q, cluster);
    if (!s) {
      if (s.error().code == ErrorCode::bad_argument || s.error().code == ErrorCode::unknown_name)
        r.error = s.error();
      else
        r.rejection = s.error().what;
      return r;
    }
    // GGUF types belong to engines on ggml, the others to the rest.
    if (narrowed && info(*narrowed).gguf != s->engine.compute_buffer) return r;
    ++r.counts.counts;
    auto found = best_plan(*s, q.plan);
    if (!found) {
      r.rejection = found.error().what;
      return r;
    }
    r.counts.plans_considered += found->counts.plans_considered;
    r.counts.plans_pruned += found->counts.plans_pruned;
    r.counts.plans_evaluated += found->counts.plans_evaluated;
    if (!found->best) {
      if (!r.rejection)
        r.rejection =
            found->illegal ? *found->illegal : message(DecideMessage::no_plan_divides, count);
      continue;
    }
    const Chosen& c = *found->best;
    Money money = money_of(all, cluster, o.payment, o.as_of);
    double hour = money.usd_per_hour ? money.usd_per_hour->value : 0;
    double over_budget = budget_excess(*s, o, c, money, nullptr);
    double excess = c.excess + over_budget;
    if (excess > 0) {
      if (!r.nearest || excess < r.nearest_excess) {
        r.nearest_excess = excess;
        r.nearest = c;
        r.nearest_setup = *s;
        r.nearest_violated.clear();
        limit_excess(*s, c.evaluation, &r.nearest_violated);
        budget_excess(*s, o, c, money, &r.nearest_violated);
      }
      continue;
    }
    // Cost of the job: what serving costs an hour, what everything else costs in all; without a
    // price, cards times time.
    double hours = job_hours(*s, c.evaluation);
    double total = std::isfinite(hours) ? hour * hours : hour;
    // A bought machine is paid for at once, however short the job.
    if (money.way == Payment::buy && std::isfinite(hours) && money.usd_purchase)
      total = hour = money.usd_purchase->value;
    double cost = hour > 0 ? total : count * (std::isfinite(hours) ? std::max(hours, 1e-9) : 1.0);
    bool better = !r.chosen || cost < best_cost * (1 - 1e-9);
    // More cards for the same money are taken when time is what was asked for.
    if (better) {
      best_cost = r.cost = cost;
      r.chosen = c;
      r.setup = *s;
      r.usd_per_hour = hour;
      r.usd_total = hour > 0 ? total : 0;
    }
    // Serving costs grow with every card: the first count that holds is the cheapest.
    if (serves_forever(*s)) break;
  }
  if (!r.chosen && !r.nearest_violated.empty()) r.rejection = r.nearest_violated.front();
  return r;
}

CardResult search_card(const Catalogues& all, const Question& q, const Objective& o,
                       const Accelerator& card) {
  CardResult best = search_format(all, q, o, card, std::nullopt);
  best.stored_usd_total = best.usd_total;
  for (Format f : narrower_formats(q, o, card)) {
    if (best.error) break;
    Question narrow = q;
    narrow.plan.weights = f;
    CardResult r = search_format(all, narrow, o, card, f);
    SearchCounts sum = best.counts;
    sum.counts += r.counts.counts;
    sum.plans_considered += r.counts.plans_considered;
    sum.plans_pruned += r.counts.plans_pruned;
    sum.plans_evaluated += r.counts.plans_evaluated;
    bool better = r.chosen ? !best.chosen || r.cost < best.cost * (1 - 1e-9)
                  : r.nearest
                      ? !best.chosen && (!best.nearest || r.nearest_excess < best.nearest_excess)
                      : false;
    if (better) {
      r.stored_usd_total = best.stored_usd_total;
      best = std::move(r);
    }
    best.counts = sum;
  }
  return best;
}

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

Result<RecommendAnswer> recommend(const Catalogues& all, const Question& q,
                                  const Objective& objective) {
  if (objective.min_bits && (q.job.kind == JobKind::train || q.job.kind == JobKind::finetune))
    return fail(ErrorCode::bad_argument, message(DecideMessage::bits_are_for_serving),
                "--min-bits");
  if (std::int64_t ranks = fixed_ranks(q.plan); ranks > objective.max_gpus)
    return fail(ErrorCode::bad_argument,
                message(DecideMessage::degrees_need_cards, ranks, objective.max_gpus),
                "--max-gpus");
  const std::vector<Accelerator>& cards = all.hardware.accelerators.all();
  std::vector<CardResult> results(cards.size());
  // Cards are independent: threads take the next one; results land at the card's own place, so
  // the answer does not depend on how many threads there are.
  std::atomic<std::size_t> next{0};
  auto work = [&] {
    for (std::size_t i; (i = next.fetch_add(1)) < cards.size();)
      results[i] = search_card(all, q, objective, cards[i]);
  };
  {
    unsigned threads = std::max(1u, std::min(16u, std::thread::hardware_concurrency()));
    if (objective.threads > 0) threads = static_cast<unsigned>(objective.threads);
    std::vector<std::jthread> pool;
    for (unsigned t = 1; t < threads; ++t) pool.emplace_back(work);
    work();
  }
  RecommendAnswer a;
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
