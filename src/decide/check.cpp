#include "decide/check.hpp"

#include <algorithm>

#include "hardware/parse.hpp"

namespace trigon {
namespace {

using C = OomComponent;

std::optional<MemoryTerm> term_of(C c) {
  switch (c) {
    case C::weights:
      return MemoryTerm::weights;
    case C::kv_cache:
      return MemoryTerm::kv_cache;
    case C::activations:
    case C::attention_scores:
    case C::compute_buffer:
      return MemoryTerm::activations;
    case C::logits:
      return MemoryTerm::logits;
    case C::gradients:
      return MemoryTerm::gradients;
    case C::optimizer_state:
      return MemoryTerm::optimizer;
    case C::gathered_layers:
      return MemoryTerm::gathered;
    case C::graphs:
      return MemoryTerm::graphs;
    case C::collectives:
      return MemoryTerm::collectives;
    case C::fragmentation:
      return MemoryTerm::fragmentation;
    default:
      return std::nullopt;
  }
}

bool fits(const FitAnswer& a) { return !a.rows.empty() && a.rows.front().mark != FitMark::no; }

class Changes {
 public:
  Changes(const Catalogues& all, const Question& q, const Cluster& cluster)
      : all_(all), q_(q), cluster_(cluster) {}

  void attempt(std::string flags, const Question& q, const Cluster& cluster) {
    constexpr std::size_t kMost = 4;
    if (out.size() >= kMost) return;
    auto a = fit(all_, q, cluster);
    if (a && fits(*a)) out.push_back({std::move(flags), std::move(a->rows.front().report), {}});
  }

  void serving(const FitAnswer& now) {
    if (auto part = fit_on_host(all_, q_, cluster_, now)) out.push_back(std::move(*part));
    const auto& longest = now.rows.front().report[Metric::max_context_tokens];
    if (longest && q_.job.context && longest->low >= 256 &&
        longest->low < static_cast<double>(*q_.job.context)) {
      Question q = q_;
      // The low end of the range, in whole blocks of 256.
      const auto n = static_cast<std::int64_t>(longest->low / 256) * 256;
      q.job.context = n;
      attempt("--context " + std::to_string(n), q, cluster_);
    }
    if (!q_.plan.kv) {
      Question q = q_;
      q.plan.kv = Format::f8_e4m3;
      attempt("--kv fp8", q, cluster_);
    }
    if (!q_.plan.weights) {
      Question q = q_;
      q.plan.weights = Format::int4_g128;
      attempt("--quant int4", q, cluster_);
    }
    more_cards();
  }

  void training() {
    if (!q_.plan.recompute || *q_.plan.recompute != Recompute::full) {
      Question q = q_;
      q.plan.recompute = Recompute::full;
      q.plan.micro_batch = 1;
      attempt("--recompute full --micro-batch 1", q, cluster_);
    }
    if (!q_.plan.zero && cluster_.count() > 1) {
      Question q = q_;
      q.plan.zero = 3;
      attempt("--zero 3", q, cluster_);
    }
    if (q_.job.kind == JobKind::finetune &&
        (!q_.job.method || *q_.job.method != TuneMethod::qlora)) {
      Question q = q_;
      q.job.method = TuneMethod::qlora;
      attempt("--method qlora", q, cluster_);
    }
    more_cards();
  }

  std::vector<FittingChange> out;

 private:
  void more_cards() {
    for (int times : {2, 4, 8}) {
      if (cluster_.nodes > 1 || cluster_.per_node * times > 8 || !cluster_.accelerator) return;
      Cluster more = make_cluster(all_.hardware, *cluster_.accelerator, cluster_.per_node * times);
      Question q = q_;
      const std::size_t before = out.size();
      attempt("--on " + write_hardware(more), q, more);
      if (out.size() > before) return;
    }
  }

  const Catalogues& all_;
  const Question& q_;
  const Cluster& cluster_;
};

}  // namespace

Result<CheckAnswer> check_log(std::string_view text, const std::string& where) {
  CheckAnswer a;
  a.report = read_oom_log(text);
  if (a.report.events.empty() && a.report.estimates.empty())
    return fail(ErrorCode::unsupported, message(DecideMessage::oom_nothing_known, a.report.lines),
                where, message(DecideMessage::oom_looked_for));
  for (const OomEvent& e : a.report.events) a.advice.push_back(advise(a.report, e));
  return a;
}

std::vector<Assumption> take_from_log(const OomReport& report, const Catalogues& all, Question& q) {
  std::vector<Assumption> out;
  if (report.events.empty()) return out;
  const OomEvent& e = report.events.front();
  if (q.engine.empty()) {
    std::string name(oom_tool_name(e.tool));
    if (report.engine && !all.engines.find(name, "", "")) name = oom_tool_name(*report.engine);
    if (all.engines.find(name, "", "")) {
      q.engine = name;
      out.push_back({"--engine", message(DecideMessage::oom_taken_from_log, name)});
    }
  }
  if (!q.job.context && !q.job.input_tokens && !q.job.sequence && !e.training) {
    auto n = e.figures[OomFigure::length_asked];
    if (!n) n = e.figures[OomFigure::context];
    if (n && *n >= 1 && *n < 1e9) {
      auto tokens = static_cast<std::int64_t>(*n);
      if (const Stack* s = q.model ? language_stack(*q.model) : nullptr; s && s->max_context)
        tokens = std::min(tokens, *s->max_context);
      q.job.context = tokens;
      out.push_back({"--context", message(DecideMessage::oom_taken_from_log, tokens)});
    }
  }
  if (auto u = e.figures[OomFigure::fraction]; u && !q.plan.memory_fraction && *u > 0 && *u <= 1) {
    q.plan.memory_fraction = *u;
    out.push_back({"--memory-fraction", message(DecideMessage::oom_taken_from_log, *u)});
  }
  return out;
}

Result<OomPrediction> predict(const Catalogues& all, const Question& q, const Cluster& cluster,
                              const OomReport& report) {
  auto now = fit(all, q, cluster);
  if (!now) return tl::unexpected(now.error());
  OomPrediction p;
  p.now = std::move(*now);
  if (!report.events.empty()) {
    const OomEvent& e = report.events.front();
    p.term = term_of(e.component);
    if (!p.term) p.term = term_of(e.asked_for);
    if (p.term) {
      const RankMemory& m = p.now.rows.front().report.memory;
      p.term_bytes = m[*p.term];
      if (*p.term == MemoryTerm::optimizer) p.term_bytes += m[MemoryTerm::master_weights];
    }
  }
  Changes changes(all, q, cluster);
  if (q.job.kind == JobKind::train || q.job.kind == JobKind::finetune)
    changes.training();
  else
    changes.serving(p.now);
  p.changes = std::move(changes.out);
  return p;
}

}  // namespace trigon
