#include "decide/plan_search.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "memory/recipe.hpp"
#include "step/step_timer.hpp"

namespace trigon {
namespace {

// Judges plans of training. Everything it needs was taken out of setup and tables, so that a plan
// costs no heap and no text.
class TrainingJudge {
 public:
  TrainingJudge(const Setup& s, const Tables& tables, Filling filling)
      : tables_(tables),
        timer_(tables),
        room_(filling == Filling::with_room),
        errors_(s.calibration->memory_errors(s.engine.id, true)),
        budget_(tables.memory.budget_bytes(Plan{}, RankMemory{})),
        host_(s.cluster.host.memory) {
    auto take = [&](const auto& job) {
      deadline_ = job.deadline;
      tokens_ = job.tokens / static_cast<double>(job.sequence);
    };
    if (auto t = std::get_if<Train>(&s.job)) take(*t);
    if (auto t = std::get_if<FineTune>(&s.job)) take(*t);
  }

  Score least(const Plan& p, double* seconds) { return bounded(p, *seconds = timer_.least(p)); }
  Score nearly(const Plan& p, double* seconds) { return bounded(p, *seconds = timer_.nearly(p)); }
  Score timed(const Plan& p, double* seconds) {
    *seconds = timer_.seconds(p);
    const double run = deadline_ ? timer_.run_seconds(p, *seconds) : 0;
    return {deadline_excess(deadline_, run), offloads_of(p), false, rounded(*seconds)};
  }
  double state_bytes(const Plan& p) {
    const StateKey key{p.tensor,  p.pipeline, p.virtual_stages, p.data,
                       p.context, p.expert,   p.expert_tensor};
    if (key != states_of_) {
      states_of_ = key;
      states_.fill(-1);
    }
    // Parts of replicas are powers of two, or one fixed number.
    const auto parts = static_cast<std::size_t>(
        std::bit_width(static_cast<std::uint32_t>(p.optimizer_groups)) - 1);
    std::size_t i = static_cast<std::size_t>(p.zero) * 16 + std::min<std::size_t>(parts, 15);
    i = (i * 8 + static_cast<std::size_t>(offloads_of(p))) * 5 + static_cast<std::size_t>(p.recipe);
    double& bytes = states_.at(i);
    if (bytes < 0) {
      NoRecord quiet;
      const RankMemory m = tables_.memory.evaluate(p, 0, quiet);
      bytes = m[MemoryTerm::weights] + m[MemoryTerm::master_weights] + m[MemoryTerm::optimizer] +
              m[MemoryTerm::context] + m[MemoryTerm::libraries];
    }
    return bytes;
  }
  double some_bytes(const Plan& p) const {
    NoRecord quiet;
    return tables_.memory.evaluate(p, 0, quiet).total();
  }
  Score at_least(Score s, const Plan&, double bytes) const {
    if (bytes > budget_.value) s.excess += memory_excess(bytes, budget_.value);
    return s;
  }
  Weight weight(const Plan& p) const {
    const RankMemory rank = tables_.memory.fullest(p).memory;
    Weight w;
    w.bytes = rank.total();
    w.excess = at_least({0, 0, false, 0}, p, w.bytes).excess;
    if (const double beside = rank.host.total(); host_ && beside > host_->in_base())
      w.excess += memory_excess(beside, host_->in_base());
    if (room_ && w.excess == 0) {
      const Range used = range_of(rank, errors_);
      w.tight = !(used.value <= kTightShare * budget_.value && used.high <= budget_.low);
    }
    return w;
  }

 private:
  // Without what failures and checkpoints take.
  Score bounded(const Plan& p, double seconds) const {
    double excess = 0;
    if (deadline_) {
      const double tokens =
          tokens_ / (static_cast<double>(p.micro_batch) * p.accumulation * p.data);
      excess = deadline_excess(deadline_, std::max(1.0, tokens) * seconds * (1 - 1e-9));
    }
    return {excess, offloads_of(p), false, rounded(seconds)};
  }

  const Tables& tables_;
  // What depends on no micro-batch: by ZeRO stage, groups, offloading and recipe.
  using StateKey = std::array<std::int32_t, 7>;
  StateKey states_of_{};
  std::array<double, 4 * 16 * 8 * 5> states_{};
  StepTimer timer_;
  double tokens_ = 0;  // of the job, in sequences
  bool room_;
  MemoryErrors errors_;
  Range budget_;
  std::optional<Bytes> host_;
  std::optional<Seconds> deadline_;
};

TrainingFacts facts_of(const Setup& s) {
  TrainingFacts f;
  f.cards = s.cluster.count();
  f.per_node = s.cluster.per_node;
  f.layers = layers_of(s);
  f.global_batch = s.global_batch;
  f.experts = s.stack && has_experts(*s.stack);
  if (auto t = std::get_if<Train>(&s.job)) f.sequence = t->sequence;
  if (auto t = std::get_if<FineTune>(&s.job)) {
    f.sequence = t->sequence;
    f.adapters = t->method != TuneMethod::full;
  }
  if (!s.stack) f.sequence = 0;
  return f;
}

// What was fixed may itself be impossible: that says more than that nothing divides.
std::optional<Message> why_nothing(const Setup& s, const PlanRequest& fixed,
                                   const PlanDomain& formats) {
  Plan asked;
  asked.tensor = fixed.tensor.value_or(1);
  asked.pipeline = fixed.pipeline.value_or(1);
  asked.context = fixed.context.value_or(1);
  asked.data = fixed.data.value_or(1);
  asked.expert = fixed.expert.value_or(1);
  asked.zero = s.training ? fixed.zero.value_or(0) : 0;
  apply_formats(asked, formats, s);
  return illegal(s, asked);
}

Chosen chosen(const Setup& s, const Tables& tables, const Plan& plan) {
  Chosen c;
  c.plan = plan;
  c.evaluation = evaluate(tables, plan);
  c.excess = limit_excess(s, c.evaluation);
  return c;
}

void take_families(PlanSearch& out, const Setup& s, const Tables& tables, const Families& families,
                   const Incumbents& found) {
  for (std::size_t i = 0; i < families.all().size(); ++i) {
    FamilyResult r{families.all()[i], std::nullopt, families.refused(i)};
    if (const Scored& best = found.of_family(i); best.found) r.best = chosen(s, tables, best.plan);
    out.families.push_back(std::move(r));
  }
}

Result<PlanSearch> search_training_plans(const Setup& s, const PlanRequest& fixed,
                                         const PlanSearchOptions& options) {
  PlanSearch out;
  PlanDomain domain = formats_of(s, fixed);
  Plan base;
  take_switches(fixed, base);
  apply_formats(base, domain, s);
  auto legal = [&](const Plan& p) { return illegal(s, p); };
  const TrainingFacts facts = facts_of(s);
  TrainingSpace space = training_space(fixed, s.engine, facts, base, false, legal);
  out.illegal = space.illegal;
  if (!options.families) space.families = {};
  if (space.divisions.empty()) {
    if (auto why = why_nothing(s, fixed, domain)) out.illegal = why;
    for (std::size_t i = 0; options.families && i < space.families.all().size(); ++i)
      out.families.push_back({space.families.all()[i], std::nullopt, space.families.refused(i)});
    return out;
  }
  domain.tensor = space.tensors();
  domain.expert = space.experts();
  domain.context = space.contexts();
  domain.expert_tensor = space.expert_slices();
  domain.context_exchange = space.exchanges();
  domain.micro_batch = space.micro_batch;
  domain.with_sequence_parallel = fixed.sequence_parallel.value_or(true);
  domain.without_sequence_parallel = !fixed.sequence_parallel.value_or(false);
  domain.sequence_parallel_by_tensor = !fixed.sequence_parallel.has_value();
  domain.passes_later = true;
  auto tables = prepare_for(s, domain);
  if (!tables) return tl::unexpected(tables.error());
  const TrainingJudge judge(s, *tables, options.filling);
  SearchOutcome found = search_training(space, judge, options);
  const bool none = !found.incumbents.best().found || found.incumbents.best().score.excess > 0;
  if (none && options.offload && !found.partial) {
    TrainingSpace wider = training_space(fixed, s.engine, facts, base, true, legal);
    if (wider.offloads.size() > space.offloads.size()) {
      found = search_training(wider, judge, options);
      space = std::move(wider);
    }
  }
  out.tally = found.tally;
  out.partial = found.partial;
  if (const Scored& best = found.incumbents.best(); best.found)
    out.best = chosen(s, *tables, best.plan);
  if (options.families) take_families(out, s, *tables, space.families, found.incumbents);
  for (const FrontPlan& p : found.incumbents.front())
    out.front.push_back(chosen(s, *tables, p.plan));
  return out;
}

Families serving_families(const std::vector<Plan>& plans, bool experts) {
  Families out;
  for (const Plan& p : plans) out.add({FamilyKind::tensor, p.tensor});
  bool pipelines = false, replicas = false;
  for (const Plan& p : plans) pipelines |= p.pipeline > 1, replicas |= p.data > 1;
  for (std::int32_t kind : {0, 1}) {
    if (pipelines) out.add({FamilyKind::pipeline, kind});
    if (replicas) out.add({FamilyKind::data, kind});
    if (experts) out.add({FamilyKind::expert, kind});
  }
  return out;
}

// What the front of serving plans is drawn by: how long a request takes.
double request_seconds(const Setup& s, const Evaluation& e) {
  return std::holds_alternative<Batch>(s.job) ? 1 / e[Metric::requests_per_second]
                                              : e[Metric::e2e_seconds];
}

Result<PlanSearch> search_serving_plans(const Setup& s, const PlanRequest& fixed,
                                        const PlanSearchOptions& options) {
  PlanSearch out;
  const int cards = s.cluster.count();
  const bool experts = s.stack && has_experts(*s.stack);
  PlanDomain domain = formats_of(s, fixed);
  domain.tensor = tensor_degrees(fixed, cards, s.cluster.per_node);
  domain.micro_batch = {fixed.micro_batch.value_or(1)};
  std::vector<Plan> plans, legal;
  serving_plans(fixed, s.engine, experts, cards, s.cluster.per_node, layers_of(s), plans);
  Families families = serving_families(plans, experts && s.engine.expert_parallel);
  domain.expert.clear();
  for (Plan& p : plans) {
    if (std::find(domain.expert.begin(), domain.expert.end(), p.expert) == domain.expert.end())
      domain.expert.push_back(p.expert);
    apply_formats(p, domain, s);
    if (auto why = illegal(s, p)) {
      families.refuse(p, *why);
      out.illegal = std::move(why);
    } else {
      legal.push_back(p);
    }
  }
  std::sort(domain.expert.begin(), domain.expert.end());
  if (domain.expert.empty()) domain.expert = {1};
  if (legal.empty()) {
    if (auto why = why_nothing(s, fixed, domain)) out.illegal = why;
    for (std::size_t i = 0; options.families && i < families.all().size(); ++i)
      out.families.push_back({families.all()[i], std::nullopt, families.refused(i)});
    return out;
  }
  auto tables = prepare_for(s, domain);
  if (!tables) return tl::unexpected(tables.error());
  Incumbents best(options.families, options.front);
  for (Plan& p : legal) {
    if (options.stop && options.stop->load(std::memory_order_relaxed)) {
      out.partial = true;
      break;
    }
    // The largest batch that fits; a smaller one only when the deadline or nothing else fits.
    p.micro_batch = std::holds_alternative<Batch>(s.job) && !fixed.micro_batch
                        ? largest_batch(tables->memory, s, p)
                        : fixed.micro_batch.value_or(1);
    // Items do not wait for each other: of halves of it the one that does most a second, such as
    // one whose values stay in the last-level cache.
    if (!s.stack && !fixed.micro_batch && std::holds_alternative<Batch>(s.job)) {
      Plan half = p;
      double most = evaluate(*tables, p)[Metric::requests_per_second];
      while ((half.micro_batch /= 2) > 0)
        if (const double rate = evaluate(*tables, half)[Metric::requests_per_second]; rate > most)
          most = rate, p.micro_batch = half.micro_batch;
    }
    const Evaluation e = evaluate(*tables, p);
    ++out.tally.decided, ++out.tally.timed, ++out.tally.weighed, ++out.tally.whole;
    best.take(p, families.of(p), {limit_excess(s, e), 0, false, rounded(wish_of(s, e))},
              request_seconds(s, e), e[Metric::memory_bytes]);
  }
  if (best.best().found) out.best = chosen(s, *tables, best.best().plan);
  if (options.families) take_families(out, s, *tables, families, best);
  for (const FrontPlan& p : best.front()) out.front.push_back(chosen(s, *tables, p.plan));
  return out;
}

}  // namespace

double least_state_bytes(const Setup& s, const PlanRequest& fixed) {
  auto tune = std::get_if<FineTune>(&s.job);
  if (!s.training || !s.stack || (tune && tune->method != TuneMethod::full)) return 0;
  if (fixed.offload_optimizer.value_or(false) || fixed.offload_weights.value_or(false)) return 0;
  const StateBytes state = state_bytes(fixed.recipe.value_or(recipe_of(s.engine)));
  const double moments =
      fixed.optimizer.value_or(Optimizer::adamw) == Optimizer::adamw ? 2 * state.moment : 0;
  // A little is left for what a count of parameters may name and no card holds.
  constexpr double kCounted = 0.98;
  return kCounted * static_cast<double>(count_parameters(*s.stack).total) *
         (state.weight + state.master + moments);
}

double wish_of(const Setup& s, const Evaluation& e) {
  if (s.training) return e[Metric::step_seconds];
  if (std::holds_alternative<Batch>(s.job)) return 1 / e[Metric::requests_per_second];
  const Serve& serve = std::get<Serve>(s.job);
  // Under a rate: the plan with most room left. In a closed loop: the one that answers most.
  return serve.rate ? e[Metric::utilization] : 1 / e[Metric::requests_per_second];
}

Result<PlanSearch> search_plans(const Setup& s, const PlanRequest& fixed,
                                const PlanSearchOptions& options) {
  return s.training ? search_training_plans(s, fixed, options)
                    : search_serving_plans(s, fixed, options);
}

}  // namespace trigon
