// `plan`: one cluster, all plans of a job on it.

#include <algorithm>
#include <cmath>

#include "decide/card_search.hpp"

namespace trigon {
namespace {

// One format of the weights: its setup and what was found with it.
struct Found {
  PlanRequest request;
  std::optional<Format> narrowed;
  Setup setup;
  PlanSearch search;
};

class Planner {
 public:
  Planner(const Catalogues& all, const Question& q, const Objective& o,
          const std::atomic<bool>* stop)
      : all_(all), q_(q), objective_(o), stop_(stop) {}

  Result<Found> search(const Cluster& cluster, std::optional<Format> narrowed, bool whole) const {
    Question q = q_;
    if (narrowed) q.plan.weights = narrowed;
    auto s = set_up(all_, q, cluster);
    if (!s) return tl::unexpected(s.error());
    PlanSearchOptions options;
    options.filling = Filling::with_room;
    options.families = whole;
    options.front = true;
    options.offload = whole;  // a host that nobody named is no yardstick for other counts
    options.threads = objective_.threads;
    options.stop = stop_;
    auto found = search_plans(*s, q.plan, options);
    if (!found) return tl::unexpected(found.error());
    return Found{q.plan, narrowed, std::move(*s), std::move(*found)};
  }

  // The best plan of another method of fine-tuning, offloaded where nothing else fits.
  Result<Found> search_method(const Cluster& cluster, TuneMethod method) const {
    Question q = q_;
    q.job.method = method;
    // What adapters are said to be is theirs alone.
    if (method == TuneMethod::full) q.job.rank.reset();
    auto s = set_up(all_, q, cluster);
    if (!s) return tl::unexpected(s.error());
    PlanSearchOptions options;
    options.filling = Filling::with_room;
    options.offload = true;
    options.threads = objective_.threads;
    options.stop = stop_;
    auto found = search_plans(*s, q.plan, options);
    if (!found) return tl::unexpected(found.error());
    return Found{q.plan, std::nullopt, std::move(*s), std::move(*found)};
  }

  PlanRow row(const Found& f, const Chosen& c) const {
    PlanRow r;
    const Evaluation& e = c.evaluation;
    r.plan = c.plan;
    if (std::holds_alternative<Serve>(f.setup.job))
      r.plan.micro_batch = std::max(1, e.sequences_held);
    r.cards = f.setup.cluster.count();
    r.seconds = f.setup.training                             ? e[Metric::step_seconds]
                : std::holds_alternative<Batch>(f.setup.job) ? 1 / e[Metric::requests_per_second]
                                                             : e[Metric::e2e_seconds];
    r.wish = wish_of(f.setup, e);
    r.memory_bytes = e[Metric::memory_bytes];
    r.usable_bytes = e[Metric::usable_bytes];
    r.host_bytes = e.memory.host.total();
    const Money money = money_of(all_, f.setup.cluster, objective_.payment, objective_.as_of);
    const double hours = job_hours(f.setup, e);
    if (money.usd_per_hour) r.usd = money.usd_per_hour->value * (std::isfinite(hours) ? hours : 1);
    limit_excess(f.setup, e, &r.violated);
    if (f.setup.training && e.fits) {
      const Range used = range_of(
          e.memory, f.setup.calibration->memory_errors(f.setup.engine.id, f.setup.training));
      r.tight = used.value > kTightShare * r.usable_bytes || used.high > f.setup.usable.low;
    }
    return r;
  }

 private:
  const Catalogues& all_;
  const Question& q_;
  const Objective& objective_;
  const std::atomic<bool>* stop_;
};

// Parts of a cluster: cards of one node, then whole nodes, doubled each time.
std::vector<Cluster> parts_of(const Cluster& whole) {
  std::vector<Cluster> out;
  auto add = [&](int per_node, int nodes) {
    Cluster c = whole;
    c.per_node = per_node;
    c.nodes = nodes;
    out.push_back(std::move(c));
  };
  for (int n = 1; n < whole.per_node; n *= 2) add(n, 1);
  for (int n = 1; n < whole.nodes; n *= 2) add(whole.per_node, n);
  add(whole.per_node, whole.nodes);
  return out;
}

// Whether `a` is no worse than `b` in time, share of memory and cost, and better in one.
bool dominates(const PlanRow& a, const PlanRow& b) {
  auto cost = [](const PlanRow& r) { return r.usd ? *r.usd : r.seconds * r.cards; };
  const double share_a = a.memory_bytes / a.usable_bytes, share_b = b.memory_bytes / b.usable_bytes;
  if (a.seconds > b.seconds || share_a > share_b || cost(a) > cost(b) * (1 + 1e-9)) return false;
  return a.seconds < b.seconds || share_a < share_b || cost(a) < cost(b) * (1 - 1e-9);
}

void take_front(std::vector<PlanRow>& front, std::vector<PlanRow> more) {
  for (PlanRow& r : more) {
    if (std::any_of(front.begin(), front.end(), [&](const PlanRow& x) { return dominates(x, r); }))
      continue;
    std::erase_if(front, [&](const PlanRow& x) { return dominates(r, x); });
    front.push_back(std::move(r));
  }
}

void rate_scaling(std::vector<ScalingRow>& rows) {
  const ScalingRow *first = nullptr, *before = nullptr;
  for (ScalingRow& r : rows) {
    if (!r.best || !r.best->good()) continue;
    if (!first) first = &r;
    r.speedup = first->best->wish / r.best->wish;
    r.efficiency = r.speedup * first->cards / r.cards;
    if (before) r.added = (r.speedup - before->speedup) * first->cards / (r.cards - before->cards);
    before = &r;
  }
}

bool better(const PlanSearch& a, const PlanSearch& b, const Setup& s) {
  if (!a.best || !b.best) return a.best.has_value();
  if (a.best->excess != b.best->excess) return a.best->excess < b.best->excess;
  return wish_of(s, a.best->evaluation) < wish_of(s, b.best->evaluation) * (1 - 1e-6);
}

// 8-bit floating-point products, where training may use them.
std::vector<Format> allowed_formats(const Question& q, const Objective& o, const Cluster& c,
                                    bool training) {
  if (!o.min_bits || q.plan.weights) return {};
  if (!training) return narrower_formats(q, o, *c.accelerator);
  if (*o.min_bits > 8 || !c.accelerator->peak_of(MathMode::fp8_matrix)) return {};
  return {Format::fp8_tensor};
}

}  // namespace

Result<PlanAnswer> plan_job(const Catalogues& all, const Question& q, const Cluster& cluster,
                            const Objective& objective, const std::atomic<bool>* stop) {
  const Planner planner(all, q, objective, stop);
  const bool training = q.job.kind == JobKind::train || q.job.kind == JobKind::finetune;
  auto first = planner.search(cluster, std::nullopt, true);
  if (!first) return tl::unexpected(first.error());
  Found found = std::move(*first);
  PlanAnswer a;
  auto count = [&](const SearchTally& t) {
    a.decided += t.decided, a.timed += t.timed, a.weighed += t.weighed, a.whole += t.whole;
  };
  count(found.search.tally);
  a.plans = found.search.tally.decided;
  a.partial = found.search.partial;
  for (Format f : allowed_formats(q, objective, cluster, training)) {
    auto narrow = planner.search(cluster, f, true);
    if (!narrow) continue;  // the engine does not run it there
    count(narrow->search.tally);
    a.plans += narrow->search.tally.decided;
    a.partial |= narrow->search.partial;
    if (better(narrow->search, found.search, found.setup)) found = std::move(*narrow);
  }
  const Setup& s = found.setup;
  const PlanSearch& search = found.search;
  a.job = s.job;
  a.assumptions = s.assumptions;
  if (found.narrowed)
    a.assumptions.push_back(
        {"--quant", message(DecideMessage::assumed_narrower, info(*found.narrowed).name)});
  if (!search.best) {
    if (!a.partial) return tl::unexpected(no_plan(s, found.request, search.illegal));
    return a;
  }
  const Chosen& best = *search.best;
  const Money money = money_of(all, cluster, objective.payment, objective.as_of);
  Record record;
  auto report = make_report(s, found.request, best.plan, q.explain ? &record : nullptr);
  if (!report) return tl::unexpected(report.error());
  fill_money(*report, s, money);
  report->narrowed = found.narrowed;
  if (q.explain) a.derivation = std::move(record.derivation);
  const bool good = best.excess == 0;
  if (good) {
    a.best = std::move(*report);
  } else {
    Objective limits = objective;
    limits.max_gpus = cluster.count();
    a.relax = relaxations(s, best, limits, money.usd_per_hour ? money.usd_per_hour->value : 0);
    a.nearest = std::move(*report);
  }
  const PlanRow chosen = planner.row(found, best);
  for (const FamilyResult& f : search.families) {
    if (belongs(f.family, best.plan)) continue;
    if (!f.best && !f.refused) continue;  // nothing of it is in the space
    PlanFamilyRow r{f.family, std::nullopt, f.refused, 0};
    if (f.best) {
      r.best = planner.row(found, *f.best);
      r.refused.reset();
      if (good && r.best->good()) r.ratio = r.best->wish / chosen.wish;
      if (r.ratio > 0 && (!a.runner_up || r.best->wish < a.runner_up->wish)) a.runner_up = r.best;
    }
    a.families.push_back(std::move(r));
  }
  if (auto tune = std::get_if<FineTune>(&s.job); tune && s.stack && !tune->item)
    for (TuneMethod method : {TuneMethod::full, TuneMethod::lora, TuneMethod::qlora}) {
      MethodRow r{method, std::nullopt, std::nullopt};
      if (method == tune->method) {
        r.best = chosen;
      } else if (auto other = planner.search_method(cluster, method); !other) {
        r.refused = other.error().what;
      } else {
        count(other->search.tally);
        a.partial |= other->search.partial;
        if (other->search.best)
          r.best = planner.row(*other, *other->search.best);
        else
          r.refused = no_plan(other->setup, other->request, other->search.illegal).what;
      }
      a.methods.push_back(std::move(r));
    }
  for (Cluster& part : parts_of(cluster)) {
    ScalingRow row;
    row.cards = part.count();
    const bool all_cards = row.cards == cluster.count();
    if (stop && stop->load() && !all_cards) {
      a.partial = true;
      continue;
    }
    auto on_part = all_cards ? Result<Found>(found) : planner.search(part, found.narrowed, false);
    if (!on_part) {
      row.refused = on_part.error().what;
      a.scaling.push_back(std::move(row));
      continue;
    }
    if (!all_cards) count(on_part->search.tally);
    a.partial |= on_part->search.partial;
    if (on_part->search.best)
      row.best = planner.row(*on_part, *on_part->search.best);
    else
      row.refused = no_plan(on_part->setup, found.request, on_part->search.illegal).what;
    std::vector<PlanRow> points;
    for (const Chosen& c : on_part->search.front) points.push_back(planner.row(*on_part, c));
    take_front(a.front, std::move(points));
    a.scaling.push_back(std::move(row));
  }
  rate_scaling(a.scaling);
  std::stable_sort(a.front.begin(), a.front.end(), [](const PlanRow& x, const PlanRow& y) {
    return x.seconds != y.seconds ? x.seconds < y.seconds : x.cards < y.cards;
  });
  return a;
}

}  // namespace trigon
