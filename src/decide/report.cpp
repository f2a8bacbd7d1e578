#include "decide/report.hpp"

#include <algorithm>
#include <cmath>

namespace trigon {
namespace {

// Ranges hold about 80 % of what is measured: 1.28 standard deviations on each side.
constexpr double kSigmas = 1.28;

constexpr double kHighMfu = 0.65;

bool is_memory(Metric m) {
  return m == Metric::memory_bytes || m == Metric::usable_bytes || m == Metric::headroom_bytes ||
         m == Metric::kv_pool_bytes || m == Metric::kv_capacity_tokens ||
         m == Metric::max_context_tokens || m == Metric::max_sequences;
}

// One limit counts for at most this many times itself. A replica that cannot keep up has latencies
// without bound, so it counts as much for each of them; one that does not fit counts for more.
constexpr double kWorst = 1e3, kDoesNotFit = 1e4;

struct Excess {
  double ratio = 0;
  Message what;
};

void hold(std::vector<Excess>& out, const std::optional<LatencyLimit>& limit, double value,
          DecideMessage id) {
  if (!limit || !(value > limit->at_most.in_base())) return;
  out.push_back({std::min(kWorst, value / limit->at_most.in_base() - 1),
                 message(id, limit->percentile, seconds(value), limit->at_most)});
}

// Share of the error groups in one metric, as the log of the ratio to the base value.
struct Spread {
  double up = 0, down = 0;  // squared sums
};

}  // namespace

double memory_excess(double used, double usable) {
  return used / std::max(1.0, usable) - 1 + kDoesNotFit;
}

std::optional<Message> host_lacks(const Cluster& cluster, const HostMemory& taken) {
  const auto& host = cluster.host.memory;
  if (!host || !(taken.total() > host->in_base())) return std::nullopt;
  return message(DecideMessage::host_memory_binds, bytes(taken.total()), *host);
}

double deadline_excess(const std::optional<Seconds>& deadline, double takes) {
  return deadline && takes > deadline->in_base() ? takes / deadline->in_base() - 1 : 0;
}

double limit_excess(const Setup& s, const Evaluation& e, std::vector<Message>* out) {
  std::vector<Excess> found;
  double beyond = 0;  // of limits that are not spelled out
  if (!e.fits)
    found.push_back(
        {memory_excess(e[Metric::memory_bytes], e[Metric::usable_bytes]),
         message(DecideMessage::memory_binds, bytes(e[Metric::memory_bytes]),
                 bytes(e[Metric::usable_bytes]), memory_term_name(largest_term(e.memory)))});
  if (auto lacks = host_lacks(s.cluster, e.memory.host))
    found.push_back({memory_excess(e.memory.host.total(), s.cluster.host.memory->in_base()),
                     std::move(*lacks)});
  if (auto serve = std::get_if<Serve>(&s.job)) {
    if (!e.sustainable && serve->rate) {
      double asked = serve->rate->in_base();
      double most = asked / std::max(1e-12, e[Metric::utilization]);
      found.push_back({std::clamp(asked / most - 1, 0.01, kWorst) + 1,
                       message(DecideMessage::rate_binds, most, asked)});
      // Percentiles mean nothing there, but limits that one prompt or one step breaks already are
      // no nearer for that.
      auto least = [&](const std::optional<LatencyLimit>& limit, double value) {
        if (limit) beyond += kWorst + std::clamp(value / limit->at_most.in_base() - 1, 0.0, kWorst);
      };
      double steps = std::max<double>(0, static_cast<double>(serve->output_tokens) - 1);
      // Whole items have no prompt: one of them alone is the least there is.
      double prompt = s.stack ? e[Metric::prefill_seconds] : 0, step = e.lone_step_seconds;
      if (!s.stack) steps = 1;
      least(serve->limits.ttft, prompt);
      least(serve->limits.tpot, step);
      least(serve->limits.e2e, prompt + steps * step);
    } else {
      hold(found, serve->limits.ttft, e[Metric::ttft_percentile_seconds],
           DecideMessage::ttft_binds);
      hold(found, serve->limits.tpot, e[Metric::tpot_percentile_seconds],
           DecideMessage::tpot_binds);
      hold(found, serve->limits.e2e, e[Metric::e2e_percentile_seconds], DecideMessage::e2e_binds);
    }
  }
  auto deadline = [&](const std::optional<Seconds>& d, double takes) {
    if (const double excess = deadline_excess(d, takes); excess > 0)
      found.push_back({excess, message(DecideMessage::deadline_binds, seconds(takes), *d)});
  };
  if (auto b = std::get_if<Batch>(&s.job)) deadline(b->deadline, e[Metric::job_seconds]);
  if (auto t = std::get_if<Train>(&s.job)) deadline(t->deadline, e[Metric::time_to_train_seconds]);
  if (auto t = std::get_if<FineTune>(&s.job))
    deadline(t->deadline, e[Metric::time_to_train_seconds]);
  std::stable_sort(found.begin(), found.end(),
                   [](const Excess& a, const Excess& b) { return a.ratio > b.ratio; });
  double sum = beyond;
  for (Excess& x : found) {
    sum += x.ratio;
    if (out) out->push_back(std::move(x.what));
  }
  return sum;
}

Result<PlanReport> make_report(const Setup& s, const PlanRequest& fixed, const Plan& plan,
                               Record* recorder) {
  PlanDomain domain = domain_of(s, fixed, plan);
  auto tables = prepare_for(s, domain);
  if (!tables) return tl::unexpected(tables.error());
  Evaluation base = recorder ? evaluate(*tables, plan, *recorder) : evaluate(*tables, plan);
  PlanReport r;
  r.cluster = s.cluster;
  r.item = s.model->item;
  r.engine = s.engine.version.empty() ? s.engine.id : s.engine.id + " " + s.engine.version;
  r.plan = plan;
  if (std::holds_alternative<Serve>(s.job)) r.plan.micro_batch = std::max(1, base.sequences_held);
  r.memory = base.memory;
  FullestRank fullest = tables->memory.fullest(r.plan);
  r.fullest_stage = fullest.stage;
  r.program_bytes = s.usable.value;
  for (int stage = 0; r.plan.pipeline > 1 && stage < r.plan.pipeline; ++stage) {
    NoRecord quiet;
    r.stages.push_back(tables->memory.evaluate(r.plan, stage, quiet));
  }
  r.fits = base.fits;
  if (recorder) r.steps = break_down(*tables, plan, base);
  r.meets_limits = limit_excess(s, base, &r.violated) == 0;

  std::array<Spread, kMetrics> spread{};
  for (ErrorGroup g : {ErrorGroup::matrix, ErrorGroup::stream, ErrorGroup::attention,
                       ErrorGroup::link, ErrorGroup::host}) {
    // Where an engine was held against end-to-end times, their spread is the spread of all.
    if (tables->device.engine.end_to_end && g != ErrorGroup::host) continue;
    for (double sigmas : {kSigmas, -kSigmas}) {
      auto moved = prepare(*s.model, s.job, s.cluster, s.engine, s.calibration->moved(g, sigmas),
                           s.usable, domain);
      if (!moved) return tl::unexpected(moved.error());
      Evaluation e = evaluate(*moved, plan);
      for (std::size_t m = 0; m < kMetrics; ++m) {
        double v = base.values[m], w = e.values[m];
        if (!(v > 0) || !(w > 0)) continue;
        double shift = std::log(w / v);
        (shift > 0 ? spread[m].up : spread[m].down) += shift * shift;
      }
    }
  }
  // What the host computes is not timed, so neither is the whole.
  const bool all_on_cards =
      r.plan.gpu_layers < 0 || (s.stack && r.plan.gpu_layers > s.stack->layers());
  const bool on_host = !all_on_cards || r.plan.experts_on_host > 0;
  const bool by_rows = r.plan.card_split == CardSplit::row && r.plan.pipeline > 1;
  const bool timed = !on_host && !by_rows;
  if (on_host) r.warnings.push_back(message(DecideMessage::host_part_untimed));
  if (const double beside = base.memory.host.total(); s.training && beside > 0)
    r.warnings.push_back(message(DecideMessage::host_memory_taken, bytes(beside)));
  if (s.training && r.plan.offload_optimizer && !s.cluster.host.bandwidth)
    r.warnings.push_back(message(DecideMessage::assumed_host_bandwidth, kUsualHostBandwidth));
  if (by_rows) r.warnings.push_back(message(DecideMessage::rows_untimed));
  if (timed && r.plan.has_shares()) r.warnings.push_back(message(DecideMessage::shares_timed_even));
  if (const double copies =
          base.memory.host.repacked +
          (s.engine.repacked_formats.empty() ? 0 : base.memory[MemoryTerm::gathered]);
      copies > 0)
    r.warnings.push_back(message(DecideMessage::repacked_copies, bytes(copies)));
  // No published run of a language model reaches this (PaLM, table 3: 0.46; MegaScale: 0.55).
  if (s.training && base[Metric::mfu] > kHighMfu)
    r.warnings.push_back(message(DecideMessage::mfu_high, base[Metric::mfu], kHighMfu));
  Basis time_basis = tables->device.engine.end_to_end
                         ? tables->device.engine.basis
                         : worse(tables->device.operators.basis, tables->device.engine.basis);
  for (std::size_t m = 0; m < kMetrics; ++m) {
    double v = base.values[m];
    if (!timed || !std::isfinite(v) || is_memory(static_cast<Metric>(m))) continue;
    r.metrics[m] = Estimate<double>{v, v * std::exp(-std::sqrt(spread[m].down)),
                                    v * std::exp(std::sqrt(spread[m].up)), time_basis};
  }
  auto set = [&](Metric m, double v, double low, double high, Basis b) {
    r.metrics[static_cast<std::size_t>(m)] = Estimate<double>{v, low, high, b};
  };
  r.memory_errors = s.calibration->memory_errors(s.engine.id, s.training);
  if (!r.memory_errors.validated && s.stack)
    r.warnings.push_back(message(DecideMessage::memory_not_measured, s.engine.id));
  Range total = range_of(base.memory, r.memory_errors);
  Range budget = tables->memory.budget_bytes(r.plan, base.memory);
  set(Metric::memory_bytes, total.value, total.low, total.high, Basis::analytic);
  set(Metric::usable_bytes, budget.value, budget.low, budget.high,
      budget.low == budget.high ? Basis::exact : Basis::analytic);
  set(Metric::headroom_bytes, budget.value - total.value, budget.low - total.high,
      budget.high - total.low, Basis::analytic);
  if (!s.training) {
    Capacity c = tables->memory.capacity(r.plan);
    // What is uncertain of the pool is what is uncertain of everything beside the caches.
    double cache = base.memory[MemoryTerm::kv_cache];
    double pool = std::max(1.0, budget.value - (total.value - cache));
    double low = std::max(0.0, (budget.low - (total.high - cache)) / pool);
    double high = std::max(1.0, (budget.high - (total.low - cache)) / pool);
    low = std::min(low, 1.0);
    // A limit in tokens is certain.
    if (s.engine.pool_tokens > 0 && c.kv_tokens > 0)
      high = std::min(high, std::max(1.0, static_cast<double>(s.engine.pool_tokens) / c.kv_tokens));
    if (s.stack && s.stack->generates && s.engine.pool != PoolRule::none)
      set(Metric::kv_pool_bytes, c.pool_bytes, c.pool_bytes * low, c.pool_bytes * high,
          Basis::analytic);
    if (s.stack && s.stack->generates)
      set(Metric::kv_capacity_tokens, c.kv_tokens, c.kv_tokens * low, c.kv_tokens * high,
          Basis::analytic);
    set(Metric::max_sequences, c.max_sequences, std::floor(c.max_sequences * low),
        std::floor(c.max_sequences * high), Basis::analytic);
    double most =
        s.stack && s.stack->max_context ? static_cast<double>(*s.stack->max_context) : 1e18;
    if (s.stack)
      set(Metric::max_context_tokens, c.max_context,
          std::min(most, std::floor(c.max_context * low)),
          std::min(most, std::floor(c.max_context * high)), Basis::analytic);
    if (timed && std::holds_alternative<Serve>(s.job)) {
      double capacity = capacity_requests_per_second(*tables, plan);
      double up = 1, down = 1;
      if (const auto& step =
              r[s.stack && s.stack->generates ? Metric::decode_step_seconds : Metric::e2e_seconds];
          step && step->value > 0)
        up = step->high / step->value, down = step->low / step->value;
      set(Metric::capacity_requests_per_second, capacity, capacity / up, capacity / down,
          time_basis);
    }
  }
  return r;
}

MemoryTerm largest_term(const RankMemory& m) {
  std::size_t at = 0;
  for (std::size_t i = 1; i < kMemoryTerms; ++i)
    if (m.bytes[i] > m.bytes[at]) at = i;
  return static_cast<MemoryTerm>(at);
}

const char* memory_term_name(MemoryTerm t) {
  static constexpr const char* kNames[] = {
      "weights",      "kv_cache",       "activations", "logits",      "multimodal_profile",
      "gradients",    "master_weights", "optimizer",   "adapters",    "gathered",
      "workspaces",   "context",        "libraries",   "collectives", "graphs",
      "fragmentation"};
  static_assert(sizeof kNames / sizeof *kNames == kMemoryTerms);
  return kNames[static_cast<std::size_t>(t)];
}

}  // namespace trigon
