#include "decide/best_plan.hpp"

namespace trigon {
namespace {

Result<EstimateAnswer> answer(const Catalogues& all, const Question& q, Setup s, const Plan& plan) {
  EstimateAnswer a;
  a.asked = q.job;
  a.job = s.job;
  if (auto why = illegal(s, plan)) return fail(ErrorCode::bad_argument, *why, flag_of(*why));
  Record record;
  auto report = make_report(s, q.plan, plan, q.explain ? &record : nullptr);
  if (!report) return tl::unexpected(report.error());
  a.report = std::move(*report);
  fill_money(a.report, s, money_of(all, s.cluster, Payment::any, {}));
  a.assumptions = std::move(s.assumptions);
  if (q.explain) a.derivation = std::move(record.derivation);
  return a;
}

}  // namespace

Result<EstimateAnswer> estimate(const Catalogues& all, const Question& q, const Cluster& cluster) {
  auto s = set_up(all, q, cluster);
  if (!s) return tl::unexpected(s.error());
  auto plan = default_plan(*s, q.plan);
  if (!plan) return tl::unexpected(plan.error());
  return answer(all, q, std::move(*s), *plan);
}

Result<EstimateAnswer> estimate_best(const Catalogues& all, const Question& q,
                                     const Cluster& cluster) {
  auto s = set_up(all, q, cluster);
  if (!s) return tl::unexpected(s.error());
  auto best = best_plan(*s, q.plan);
  if (!best) return tl::unexpected(best.error());
  if (!best->best) return tl::unexpected(no_plan(*s, q.plan, best->illegal));
  s->assumptions.push_back(
      {"plan", message(DecideMessage::assumed_best_plan, write_plan(best->best->plan))});
  return answer(all, q, std::move(*s), best->best->plan);
}

}  // namespace trigon
