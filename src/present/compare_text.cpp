#include <algorithm>

#include "present/numbers.hpp"
#include "present/page.hpp"
#include "present/reports.hpp"

namespace trigon {
namespace {

bool runs(const CompareRow& row) { return row.report.fits; }

// Seconds and dollars are better when fewer.
bool lower_is_better(Metric m) {
  std::string_view unit = metric_info(m).unit;
  return unit == "s" || unit == "USD" || unit == "USD/h" || unit == "J" || unit == "W";
}

std::vector<Metric> side_by_side(const Job& job, Metric deciding) {
  std::vector<Metric> out{deciding};
  for (Metric m : deciding_metrics(job))
    if (m != deciding) out.push_back(m);
  return out;
}

}  // namespace

std::string compare_text(const CompareAnswer& a, const Asked& asked, const TextStyle& style) {
  Language l = style.language;
  Page page(style);
  std::vector<const CompareRow*> order;
  for (const CompareRow& row : a.rows)
    if (runs(row) && row.report[a.deciding]) order.push_back(&row);
  double sign = lower_is_better(a.deciding) ? 1 : -1;
  std::stable_sort(order.begin(), order.end(), [&](const CompareRow* x, const CompareRow* y) {
    return sign * x->report[a.deciding]->value < sign * y->report[a.deciding]->value;
  });
  const std::string unit = unit_in_words(a.deciding, item_of(a.job), l);
  std::string deciding = metric_label(a.deciding, item_of(a.job), l);
  if (order.empty()) {
    page.paragraph(label(PresentMessage::verdict_compare_none, l), Tone::bad);
  } else {
    const PlanReport& best = order[0]->report;
    if (order.size() == 1) {
      page.paragraph(say(PresentMessage::verdict_compare_one, l,
                         {hardware_in_words(best.cluster), metric_in_words(best, a.deciding, l)}),
                     Tone::good);
    } else {
      const PlanReport& second = order[1]->report;
      page.paragraph(say(PresentMessage::verdict_compare, l,
                         {hardware_in_words(best.cluster), deciding,
                          in_words(*best[a.deciding], unit, label(PresentMessage::between, l)),
                          hardware_in_words(second.cluster),
                          trimmed_number(second[a.deciding]->value / best[a.deciding]->value),
                          in_words(*second[a.deciding], unit, label(PresentMessage::between, l))}),
                     Tone::good);
    }
  }
  if (style.one_line) return page.finish();
  page.paragraph(job_in_words(a.job, asked.model, l));
  page.blank();

  // Quantities down, hardware across: as many columns as things compared.
  std::vector<Column> headers{{std::string(label(PresentMessage::col_quantity, l)), false, 0, 18}};
  int priority = 0;
  for (const CompareRow& row : a.rows)
    headers.push_back({hardware_in_words(row.report.cluster), true, priority++ < 1 ? 0 : priority});
  Table t(std::move(headers));
  std::vector<Cell> ratios{label(PresentMessage::col_ratio, l)};
  for (const CompareRow& row : a.rows)
    ratios.emplace_back(runs(row) && row.ratio > 0 ? significant(row.ratio) : std::string("-"));
  for (Metric m : side_by_side(a.job, a.deciding)) {
    NumberColumn column(unit_in_words(m, item_of(a.job), l));
    bool known = false;
    for (const CompareRow& row : a.rows)
      if (row.report[m]) column.see(row.report[m]->value), known = true;
    if (!known) continue;
    std::vector<Cell> cells{column.header(label_for(m, a.job, l))};
    for (const CompareRow& row : a.rows) cells.emplace_back(column.cell(row.report[m]));
    t.row(std::move(cells));
    if (m != a.deciding) continue;
    t.row(ratios);
    for (const CompareAnswer& c : a.what_if) {
      std::vector<Cell> then{say(PresentMessage::what_if_row, l, {printable(c.changes)})};
      std::vector<Cell> factors{label(PresentMessage::what_if_factor, l)};
      for (std::size_t i = 0; i < a.rows.size(); ++i) {
        const PlanReport& r = c.rows[i].report;
        auto factor = factor_of(a.rows[i].report, r, m);
        then.emplace_back(r.fits ? column.cell(r[m]) : std::string("-"));
        factors.emplace_back(r.fits && factor ? significant(*factor) : std::string("-"));
      }
      t.row(std::move(then));
      t.row(std::move(factors));
    }
  }
  page.table(t);
  if (!a.rows.empty())
    page.paragraph(say(PresentMessage::ratio_basis, l,
                       {deciding, hardware_in_words(a.rows.front().report.cluster)}),
                   Tone::faint);

  page.heading(label(PresentMessage::col_binds, l));
  for (const CompareRow& row : a.rows)
    page.paragraph(hardware_in_words(row.report.cluster) + " (" + plan_in_words(row.report) +
                       "): " + render(row.binding, l),
                   Tone::plain, 2, 2);
  put_assumptions(page, a.assumptions);
  return page.finish();
}

bool is_yes(const CompareAnswer& a) { return std::any_of(a.rows.begin(), a.rows.end(), runs); }

}  // namespace trigon
