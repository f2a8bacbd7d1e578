#include "decide/best_plan.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "search/space.hpp"

namespace trigon {
namespace {

// Smaller is better. Rounded so that plans within a part in a million tie and the order of the
// space decides, not the last bit.
double rounded(double v) {
  if (!(v > 0) || !std::isfinite(v)) return v;
  double scale = std::pow(10, std::floor(std::log10(v)) - 6);
  return std::round(v / scale) * scale;
}

double wish(const Setup& s, const Evaluation& e) {
  if (s.training) return e[Metric::step_seconds];
  if (std::holds_alternative<Batch>(s.job)) return 1 / e[Metric::requests_per_second];
  const Serve& serve = std::get<Serve>(s.job);
  // Under a rate: the plan with most room left. In a closed loop: the one that answers most.
  return serve.rate ? e[Metric::utilization] : 1 / e[Metric::requests_per_second];
}

}  // namespace

bool has_room(const MemoryModel& memory, const MemoryErrors& errors, const Plan& plan) {
  const RankMemory rank = memory.fullest(plan).memory;
  const Range used = range_of(rank, errors), budget = memory.budget_bytes(plan, rank);
  return used.value <= kTightShare * budget.value && used.high <= budget.low;
}

Result<BestPlan> best_plan(const Setup& s, const PlanRequest& fixed, Filling filling) {
  BestPlan out;
  int cards = s.cluster.count();
  std::vector<Plan> plans;
  bool experts = s.stack && has_experts(*s.stack);
  bool adapters = false;
  if (auto t = std::get_if<FineTune>(&s.job)) adapters = t->method != TuneMethod::full;
  PlanDomain domain = formats_of(s, fixed);
  domain.tensor = tensor_degrees(fixed, cards, s.cluster.per_node);
  if (s.training) {
    training_plans(fixed, s.engine, experts, cards, s.cluster.per_node, layers_of(s),
                   s.global_batch, adapters, plans);
    domain.micro_batch = micro_batches(fixed, s.global_batch);
    domain.context = {fixed.context.value_or(1)};
    domain.with_sequence_parallel = fixed.sequence_parallel.value_or(true);
    domain.without_sequence_parallel = true;
  } else {
    serving_plans(fixed, s.engine, experts, cards, s.cluster.per_node, layers_of(s), plans);
    domain.micro_batch = {fixed.micro_batch.value_or(1)};
  }
  domain.expert.clear();
  for (const Plan& p : plans)
    if (std::find(domain.expert.begin(), domain.expert.end(), p.expert) == domain.expert.end())
      domain.expert.push_back(p.expert);
  std::sort(domain.expert.begin(), domain.expert.end());
  if (domain.expert.empty()) domain.expert = {1};
  out.counts.plans_considered = static_cast<std::int64_t>(plans.size());
  std::vector<Plan> legal;
  for (Plan& p : plans) {
    apply_formats(p, domain, s);
    if (auto why = illegal(s, p)) {
      out.illegal = why;
      ++out.counts.plans_pruned;
    } else {
      legal.push_back(p);
    }
  }
  if (legal.empty()) {
    // What was fixed may itself be impossible: that says more than that nothing divides.
    Plan asked;
    asked.tensor = fixed.tensor.value_or(1);
    asked.pipeline = fixed.pipeline.value_or(1);
    asked.context = fixed.context.value_or(1);
    asked.data = fixed.data.value_or(1);
    asked.expert = fixed.expert.value_or(1);
    asked.zero = s.training ? fixed.zero.value_or(0) : 0;
    apply_formats(asked, domain, s);
    if (auto why = illegal(s, asked)) out.illegal = why;
  }
  if (legal.empty()) return out;
  auto tables = prepare_for(s, domain);
  if (!tables) return tl::unexpected(tables.error());
  using Key = std::tuple<double, bool, double, int>;
  std::optional<Key> best;
  const MemoryErrors errors = s.calibration->memory_errors(s.engine.id, s.training);
  auto consider = [&](const Plan& p) {
    Evaluation e = evaluate(*tables, p);
    ++out.counts.plans_evaluated;
    Chosen c{p, e, limit_excess(s, e)};
    const bool tight = filling == Filling::with_room && s.training && c.excess == 0 &&
                       !has_room(tables->memory, errors, p);
    Key key{c.excess, tight, rounded(wish(s, e)), p.tensor * p.pipeline};
    if (!best || key < *best) {
      best = key;
      out.best = std::move(c);
    }
  };
  for (Plan& p : legal) {
    if (s.training) {
      // Memory is judged first: it is cheaper than time, and most of the space fails it.
      if (out.best && out.best->excess == 0 && !tables->memory.fits(p)) {
        ++out.counts.plans_pruned;
        continue;
      }
      consider(p);
      continue;
    }
    if (std::holds_alternative<Batch>(s.job) && !fixed.micro_batch) {
      // The largest batch that fits; a smaller one only when the deadline or nothing else fits.
      p.micro_batch = largest_batch(tables->memory, s, p);
    } else {
      p.micro_batch = fixed.micro_batch.value_or(1);
    }
    consider(p);
  }
  return out;
}

}  // namespace trigon
