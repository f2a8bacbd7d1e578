#include "evidence/readout.hpp"

#include <algorithm>
#include <cmath>

namespace trigon {

namespace {

using Number = std::optional<Estimate<double>>;

Number metric_of(const EstimateAnswer& a, Metric m) {
  const auto& e = a.report[m];
  if (!e || !std::isfinite(e->value)) return std::nullopt;
  return e;
}

Number scaled(Number e, double k) {
  if (e) e = Estimate<double>{e->value * k, e->low * k, e->high * k, e->basis};
  return e;
}

Number inverted(const Number& e, double k) {
  if (!e || !(e->value > 0)) return std::nullopt;
  // A range that reaches zero has no upper end when inverted; it stays wide but finite.
  const double low = e->low > 0 ? e->low : e->value * 1e-3;
  return Estimate<double>{k / e->value, k / e->high, k / low, e->basis};
}

Number static_seconds(const Readout& r, const EstimateAnswer& a) {
  Number prefill;
  if (r.batch == 1) {
    prefill = metric_of(a, Metric::prefill_seconds);
  } else {
    prefill = inverted(metric_of(a, Metric::prefill_tokens_per_second), r.batch * r.input);
    if (!prefill) prefill = scaled(metric_of(a, Metric::prefill_seconds), r.batch);
  }
  const Number step = metric_of(a, Metric::decode_step_seconds);
  if (!prefill || !step) return std::nullopt;
  const double steps = r.output > 1 ? r.output - 1 : 0;
  return Estimate<double>{prefill->value + steps * step->value, prefill->low + steps * step->low,
                          prefill->high + steps * step->high, worse(prefill->basis, step->basis)};
}

Number memory_sum(const Readout& r, const EstimateAnswer& a) {
  MemoryTerms terms = 0;
  for (const MemoryTerm t : r.terms) terms |= bit(t);
  const PlanReport& p = a.report;
  RankMemory memory = p.memory;
  double k = r.scale;
  if (r.last_stage) memory = p.last_stage();
  if (r.first_stage && !p.stages.empty()) memory = p.stages.front();
  if (r.over_ranks) {
    k *= p.plan.ranks();
    if (!p.stages.empty()) {
      // Stages need not hold the same.
      memory = {};
      const double share = 1.0 / static_cast<double>(p.stages.size());
      for (const RankMemory& stage : p.stages)
        for (std::size_t i = 0; i < kMemoryTerms; ++i) memory.bytes[i] += share * stage.bytes[i];
    }
  }
  const Range sum = range_of(memory, p.memory_errors, terms);
  const HostMemory& host = a.report.memory.host;
  double beside = r.plus;
  if (r.host == Readout::Host::weights) beside += host.weights - host.twice;
  if (r.host == Readout::Host::kv_cache) beside += host.kv_cache;
  if (r.host == Readout::Host::buffers_alone || r.host == Readout::Host::largest_forward) {
    // A buffer of the CPU follows the same rules as one of a card.
    double buffer = host.buffers;
    if (r.host == Readout::Host::largest_forward) {
      auto forward = [](const RankMemory& m) {
        return m[MemoryTerm::activations] + m[MemoryTerm::logits];
      };
      buffer = forward(a.report.memory);
      for (const RankMemory& m : a.report.stages) buffer = std::max(buffer, forward(m));
    }
    const double share = a.report.memory_errors.estimated;
    return Estimate<double>{buffer, buffer * (1 - share), buffer * (1 + share), Basis::analytic};
  }
  return Estimate<double>{k * sum.value + beside, k * sum.low + beside, k * sum.high + beside,
                          Basis::analytic};
}

}  // namespace

std::optional<Estimate<double>> read_out(const Readout& r, const EstimateAnswer& answer) {
  switch (r.kind) {
    case Readout::Kind::metric:
      return scaled(metric_of(answer, r.metric), r.scale);
    case Readout::Kind::reciprocal:
      return inverted(metric_of(answer, r.metric), r.scale);
    case Readout::Kind::static_seconds:
      return static_seconds(r, answer);
    case Readout::Kind::static_rate:
      return inverted(static_seconds(r, answer), r.scale);
    case Readout::Kind::memory_terms:
      return memory_sum(r, answer);
    case Readout::Kind::fits:
      return exactly(answer.report.fits ? 1.0 : 0.0);
  }
  return std::nullopt;
}

}  // namespace trigon
