#include <algorithm>

#include "decide/best_plan.hpp"
#include "decide/report.hpp"
#include "hardware/parse.hpp"

namespace trigon {
namespace {

FitRow row_of(PlanReport r) {
  FitRow row;
  const auto& used = r[Metric::memory_bytes];
  const auto& usable = r[Metric::usable_bytes];
  if (!r.fits) {
    row.mark = FitMark::no;
    row.binding =
        r.violated.empty()
            ? message(DecideMessage::memory_binds, bytes(used ? used->value : 0),
                      bytes(usable ? usable->value : 0), memory_term_name(largest_term(r.memory)))
            : r.violated.front();
  } else if (auto lacks = host_lacks(r.cluster, r.memory.host)) {
    row.mark = FitMark::no;
    row.binding = std::move(lacks);
  } else {
    bool tight =
        used && usable && (used->value > kTightShare * usable->value || used->high > usable->low);
    row.mark = tight ? FitMark::tight : FitMark::fits;
  }
  row.report = std::move(r);
  return row;
}

}  // namespace

Result<FitAnswer> fit(const Catalogues& all, const Question& q, const Cluster& cluster) {
  auto s = set_up(all, q, cluster);
  if (!s) return tl::unexpected(s.error());
  auto best = best_plan(*s, q.plan, Filling::with_room);
  if (!best) return tl::unexpected(best.error());
  FitAnswer a;
  a.job = s->job;
  Plan plan;
  if (best->best) {
    plan = best->best->plan;
  } else {
    return tl::unexpected(no_plan(*s, q.plan, best->illegal));
  }
  Record record;
  auto report = make_report(*s, q.plan, plan, q.explain ? &record : nullptr);
  if (!report) return tl::unexpected(report.error());
  fill_money(*report, *s, money_of(all, cluster, Payment::any, {}));
  a.rows.push_back(row_of(std::move(*report)));
  a.assumptions = s->assumptions;
  if (q.explain) a.derivation = std::move(record.derivation);
  return a;
}

Result<FitAnswer> fit_everywhere(const Catalogues& all, const Question& q) {
  FitAnswer a;
  std::optional<Error> first_error;
  bool any = false;
  for (const Accelerator& card : all.hardware.accelerators.all()) {
    if (card.kind == DeviceKind::cpu) continue;  // fits what its machine has memory for
    Cluster one = make_cluster(all.hardware, card, 1, 1);
    auto single = fit(all, q, one);
    if (!single) {
      // The job or the model being wrong is wrong for every card; a card that cannot run it is
      // one that it does not fit.
      if (single.error().code != ErrorCode::missing_fact &&
          single.error().code != ErrorCode::unsupported)
        return single;
      if (!first_error) first_error = single.error();
      FitRow row;
      row.report.cluster = one;
      row.binding = single.error().what;
      a.rows.push_back(std::move(row));
      continue;
    }
    any = true;
    a.job = single->job;
    if (a.assumptions.empty()) a.assumptions = single->assumptions;
    a.rows.push_back(std::move(single->rows.front()));
  }
  if (!any && first_error) return tl::unexpected(*first_error);
  std::stable_sort(a.rows.begin(), a.rows.end(), [](const FitRow& x, const FitRow& y) {
    if (x.mark != y.mark) return x.mark < y.mark;
    auto memory = [](const FitRow& r) {
      return r.report.cluster.accelerator->memory_nominal.in_base();
    };
    if (memory(x) != memory(y)) return memory(x) < memory(y);
    return x.report.cluster.accelerator->id < y.report.cluster.accelerator->id;
  });
  return a;
}

Result<std::vector<ModelFitRow>> models_that_fit(const Catalogues& all, const Question& q,
                                                 const Cluster& cluster) {
  std::vector<ModelFitRow> rows;
  for (const FactSheet* sheet : all.models.all()) {
    auto model = build_model(*sheet);
    if (!model) continue;
    Question one = q;
    one.model = &*model;
    // A context that this model does not reach is cut to what it does.
    if (const Stack* stack = language_stack(*model); stack && stack->max_context && one.job.context)
      one.job.context = std::min(*one.job.context, *stack->max_context);
    auto answer = fit(all, one, cluster);
    if (!answer) continue;
    ModelFitRow row;
    row.model = sheet->id;
    row.parameters = static_cast<double>(count_parameters(*model).total);
    row.weights = answer->rows.front().report.plan.weights;
    row.fit = std::move(answer->rows.front());
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const ModelFitRow& x, const ModelFitRow& y) {
    if (x.fit.mark != y.fit.mark) return x.fit.mark < y.fit.mark;
    if (x.parameters != y.parameters) return x.parameters > y.parameters;
    return x.model < y.model;
  });
  return rows;
}

}  // namespace trigon
