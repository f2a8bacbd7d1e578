#include <algorithm>

#include "decide/best_plan.hpp"
#include "step/breakdown.hpp"

namespace trigon {
namespace {

Message binding_of(const Tables& tables, const PlanReport& r) {
  if (!r.violated.empty()) return r.violated.front();
  // Of tokens the decode step, which comes last.
  const StepBreakdown step = break_down(tables, r.plan, evaluate(tables, r.plan)).back();
  double by[4] = {};
  for (std::size_t b = 0; b < 4; ++b) by[b] = step.bound_by(static_cast<Bound>(b));
  std::size_t most = static_cast<std::size_t>(std::max_element(by, by + 4) - by);
  constexpr DecideMessage kBinds[] = {DecideMessage::compute_binds, DecideMessage::bandwidth_binds,
                                      DecideMessage::link_binds, DecideMessage::launch_binds};
  return message(kBinds[most]);
}

}  // namespace

Result<CompareAnswer> compare(const Catalogues& all, const Question& q,
                              const std::vector<Cluster>& clusters, const Objective& objective) {
  CompareAnswer a;
  for (const Cluster& cluster : clusters) {
    auto s = set_up(all, q, cluster);
    if (!s) return tl::unexpected(s.error());
    auto best = best_plan(*s, q.plan, Filling::with_room);
    if (!best) return tl::unexpected(best.error());
    if (!best->best) return tl::unexpected(no_plan(*s, q.plan, best->illegal));
    auto report = make_report(*s, q.plan, best->best->plan, nullptr);
    if (!report) return tl::unexpected(report.error());
    fill_money(*report, *s, money_of(all, cluster, objective.payment, objective.as_of));
    auto tables = prepare_for(*s, domain_of(*s, q.plan, report->plan));
    if (!tables) return tl::unexpected(tables.error());
    CompareRow row;
    row.binding = binding_of(*tables, *report);
    if (a.rows.empty()) {
      a.job = s->job;
      a.assumptions = s->assumptions;
      a.deciding = q.model->item && !s->stack ? (s->training ? Metric::samples_per_second_per_gpu
                                                             : Metric::requests_per_second)
                   : s->training              ? Metric::train_tokens_per_second
                   : std::holds_alternative<Serve>(s->job) ? Metric::capacity_requests_per_second
                                                           : Metric::output_tokens_per_second;
    } else {
      for (const Assumption& x : s->assumptions) {
        auto same = [&](const Assumption& y) {
          return y.input == x.input && y.what.id == x.what.id && y.what.args == x.what.args;
        };
        if (std::none_of(a.assumptions.begin(), a.assumptions.end(), same))
          a.assumptions.push_back(x);
      }
    }
    row.report = std::move(*report);
    a.rows.push_back(std::move(row));
  }
  auto value = [&](const CompareRow& r) {
    const auto& e = r.report[a.deciding];
    return e ? e->value : 0;
  };
  for (CompareRow& r : a.rows) {
    double first = value(a.rows.front());
    r.ratio = first > 0 ? value(r) / first : 0;
  }
  return a;
}

}  // namespace trigon
