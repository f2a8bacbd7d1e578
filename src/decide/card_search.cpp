#include "decide/card_search.hpp"

#include <algorithm>
#include <cmath>

#include "hardware/parse.hpp"

namespace trigon {
namespace {

int cards_per_node(const Catalogues& all, const Accelerator& a) {
  if (const System* s = all.hardware.typical_system(a, 8)) return std::max(1, s->count);
  return 8;
}

std::vector<int> card_counts(int least, int most) {
  std::vector<int> out;
  for (std::int64_t n = least; n <= most; n *= 2) out.push_back(static_cast<int>(n));
  if (out.back() != most && most % least == 0) out.push_back(most);
  return out;
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

bool serves_forever(const Setup& s) { return std::holds_alternative<Serve>(s.job); }

// One accelerator with its weights in one format, count by count.
class CountSearch {
 public:
  CountSearch(const Catalogues& all, const Question& q, const Objective& o, Offloading offloading,
              const std::atomic<bool>* stop, CardResult& r)
      : all_(all), q_(q), objective_(o), offloading_(offloading), stop_(stop), r_(r) {}

  // Looks at all counts. What certainly does not fit is looked at only where nothing else holds
  // the limits, and then only if it may miss them by less: the answer is that of looking at all.
  void all_counts(const Accelerator& card) {
    const int node = cards_per_node(all_, card);
    struct Crowded {
      Setup setup;
      double excess;
    };
    std::vector<Crowded> crowded;
    for (int count : card_counts(static_cast<int>(fixed_ranks(q_.plan)), objective_.max_gpus)) {
      if (count > node && count % node != 0) continue;
      const Cluster cluster = count <= node ? make_cluster(all_.hardware, card, count, 1)
                                            : make_cluster(all_.hardware, card, node, count / node);
      auto s = set_up(all_, q_, cluster);
      if (!s) {
        if (s.error().code == ErrorCode::bad_argument || s.error().code == ErrorCode::unknown_name)
          r_.error = s.error();
        else
          r_.rejection = s.error().what;
        return;
      }
      // GGUF types belong to engines on ggml, the others to the rest.
      if (r_.narrowed && info(*r_.narrowed).gguf != s->engine.compute_buffer) return;
      ++r_.counts.counts;
      const double share = offloading_ == Offloading::where_nothing_fits
                               ? 0
                               : least_state_bytes(*s, q_.plan) / count;
      if (const auto room = cluster.card.memory; room && share > room->in_base()) {
        crowded.push_back({std::move(*s), memory_excess(share, room->in_base())});
        continue;
      }
      if (!take(*s)) return;
      // Serving costs grow with every card: the first count that holds is the cheapest.
      if (r_.chosen && serves_forever(*s)) return;
    }
    if (r_.chosen) return;
    for (auto c = crowded.rbegin(); c != crowded.rend(); ++c)
      if (!r_.nearest || c->excess <= r_.nearest_excess)
        if (!take(c->setup)) return;
  }

 private:
  bool stopped() const { return stop_ && stop_->load(std::memory_order_relaxed); }

  // False: no count of this card can be searched, or no more is.
  bool take(const Setup& s) {
    if (stopped()) return false;
    auto found = best_plan(s, q_.plan, Filling::with_room, offloading_, stop_);
    if (!found) {
      r_.rejection = found.error().what;
      return false;
    }
    r_.counts.plans_considered += found->counts.plans_considered;
    r_.counts.plans_pruned += found->counts.plans_pruned;
    r_.counts.plans_evaluated += found->counts.plans_evaluated;
    const int count = s.cluster.count();
    if (!found->best && stopped()) return false;
    if (!found->best) {
      if (!r_.rejection)
        r_.rejection =
            found->illegal ? *found->illegal : message(DecideMessage::no_plan_divides, count);
      return true;
    }
    const Chosen& c = *found->best;
    const Money money = money_of(all_, s.cluster, objective_.payment, objective_.as_of);
    const double excess = c.excess + budget_excess(s, objective_, c, money, nullptr);
    if (excess > 0)
      take_nearest(s, c, money, excess);
    else
      take_chosen(s, c, money);
    return true;
  }

  void take_nearest(const Setup& s, const Chosen& c, const Money& money, double excess) {
    const bool nearer =
        !r_.nearest || excess < r_.nearest_excess ||
        (excess == r_.nearest_excess && s.cluster.count() < r_.nearest_setup->cluster.count());
    if (!nearer) return;
    r_.nearest_excess = excess;
    r_.nearest = c;
    r_.nearest_setup = s;
    r_.nearest_violated.clear();
    limit_excess(s, c.evaluation, &r_.nearest_violated);
    budget_excess(s, objective_, c, money, &r_.nearest_violated);
  }

  // Cost of the job: what serving costs an hour, what everything else costs in all; without a
  // price, cards times time.
  void take_chosen(const Setup& s, const Chosen& c, const Money& money) {
    double hour = money.usd_per_hour ? money.usd_per_hour->value : 0;
    const double hours = job_hours(s, c.evaluation);
    double total = std::isfinite(hours) ? hour * hours : hour;
    // A bought machine is paid for at once, however short the job.
    if (money.way == Payment::buy && std::isfinite(hours) && money.usd_purchase)
      total = hour = money.usd_purchase->value;
    const double cost =
        hour > 0 ? total : s.cluster.count() * (std::isfinite(hours) ? std::max(hours, 1e-9) : 1.0);
    if (r_.chosen && cost >= r_.cost * (1 - 1e-9)) return;
    r_.cost = cost;
    r_.chosen = c;
    r_.setup = s;
    r_.usd_per_hour = hour;
    r_.usd_total = hour > 0 ? total : 0;
  }

  const Catalogues& all_;
  const Question& q_;
  const Objective& objective_;
  Offloading offloading_;
  const std::atomic<bool>* stop_;
  CardResult& r_;
};

CardResult search_format(const Catalogues& all, const Question& q, const Objective& o,
                         const Accelerator& card, std::optional<Format> narrowed,
                         Offloading offloading, const std::atomic<bool>* stop) {
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
  CountSearch(all, q, o, offloading, stop, r).all_counts(card);
  if (!r.chosen && !r.nearest_violated.empty()) r.rejection = r.nearest_violated.front();
  if (!r.chosen && !r.rejection && stop && stop->load())
    r.rejection = message(DecideMessage::not_looked_at);
  return r;
}

}  // namespace

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

std::int64_t fixed_ranks(const PlanRequest& p) {
  std::int64_t n = 1;
  for (const auto& degree : {p.tensor, p.pipeline, p.context, p.data})
    n = std::min<std::int64_t>(n * degree.value_or(1), std::int64_t{1} << 32);
  if (p.card_shares && !p.pipeline) n *= static_cast<std::int64_t>(p.card_shares->size());
  if (p.main_card) n = std::max<std::int64_t>(n, std::int64_t{1} + *p.main_card);
  return n;
}

double job_hours(const Setup& s, const Evaluation& e) {
  double seconds = s.training                             ? e[Metric::time_to_train_seconds]
                   : std::holds_alternative<Batch>(s.job) ? e[Metric::job_seconds]
                                                          : std::nan("");
  return seconds / 3600;
}

double speed_of(const CardResult& r) {
  const Evaluation& e = r.chosen->evaluation;
  if (r.setup->training)
    return r.setup->stack ? e[Metric::train_tokens_per_second]
                          : e[Metric::samples_per_second_per_gpu] * r.setup->cluster.count();
  auto serve = std::get_if<Serve>(&r.setup->job);
  return serve && serve->rate ? 1 / e[Metric::utilization] : e[Metric::requests_per_second];
}

CardResult search_card(const Catalogues& all, const Question& asked, const Objective& o,
                       const Accelerator& card, Offloading offloading,
                       const std::atomic<bool>* stop) {
  Question q = asked;
  // Shares are those of one process: more cards run more of them.
  if (q.plan.card_shares && !q.plan.pipeline)
    q.plan.pipeline = static_cast<std::int32_t>(q.plan.card_shares->size());
  CardResult best = search_format(all, q, o, card, std::nullopt, offloading, stop);
  best.stored_usd_total = best.usd_total;
  for (Format f : narrower_formats(q, o, card)) {
    if (best.error) break;
    Question narrow = q;
    narrow.plan.weights = f;
    CardResult r = search_format(all, narrow, o, card, f, offloading, stop);
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

}  // namespace trigon
