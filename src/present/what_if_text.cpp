// Before and after, with factors.

#include <algorithm>

#include "present/numbers.hpp"
#include "present/page.hpp"
#include "present/reports.hpp"

namespace trigon {
namespace {

constexpr int kWidest = 18;  // of a column's header

// What decides, and the passes that facts of the card work on.
std::vector<Metric> told(const Job& job) {
  std::vector<Metric> out;
  if (!is_training(job) && !item_of(job))
    out = {Metric::prefill_seconds, Metric::decode_step_seconds};
  for (Metric m : deciding_metrics(job)) out.push_back(m);
  return out;
}

std::string short_name(const WhatIfCase& c, std::size_t i) {
  return display_width(c.what.changes) <= kWidest ? printable(c.what.changes)
                                                  : "(" + std::to_string(i + 1) + ")";
}

}  // namespace

std::string what_if_text(const WhatIfAnswer& a, const Asked& asked, const TextStyle& style) {
  Language l = style.language;
  Page page(style);
  const PlanReport& now = a.now.report;
  std::string verdict = say(PresentMessage::verdict_what_if, l,
                            {job_in_words(a.now.job, asked.model, l),
                             hardware_in_words(now.cluster), plan_in_words(now)});
  if (!now.fits) verdict += " " + std::string(label(PresentMessage::what_if_does_not_fit, l));
  page.paragraph(verdict, is_yes(a.now) ? Tone::good : Tone::bad);
  const Metric deciding = !is_training(a.now.job) && !item_of(a.now.job)
                              ? Metric::tpot_seconds
                              : deciding_metrics(a.now.job).front();
  for (const WhatIfCase& c : a.cases) {
    auto factor = factor_of(now, c.answer.report, deciding);
    const std::string value = metric_in_words(c.answer.report, deciding, l);
    std::string text = factor ? say(PresentMessage::what_if_case, l,
                                    {printable(c.what.changes), value, trimmed_number(*factor)})
                              : printable(c.what.changes) + ": " + (value.empty() ? "-" : value);
    if (!c.answer.report.fits)
      text += " " + std::string(label(PresentMessage::what_if_does_not_fit, l));
    page.paragraph(text, c.answer.report.fits ? Tone::plain : Tone::bad, 2, 2);
  }
  if (style.one_line) return page.finish();
  page.blank();

  std::vector<Column> headers{{std::string(label(PresentMessage::col_quantity, l)), false, 0, 24},
                              {std::string(label(PresentMessage::col_now, l)), true}};
  for (std::size_t i = 0; i < a.cases.size(); ++i) {
    headers.push_back({short_name(a.cases[i], i), true, static_cast<int>(i)});
  }
  Table t(std::move(headers));
  for (Metric m : told(a.now.job)) {
    NumberColumn column(unit_in_words(m, item_of(a.now.job), l));
    bool known = false;
    auto see = [&](const PlanReport& r) {
      if (r[m]) column.see(r[m]->value), known = true;
    };
    see(now);
    for (const WhatIfCase& c : a.cases) see(c.answer.report);
    if (!known) continue;
    std::vector<Cell> cells{column.header(label_for(m, a.now.job, l)), column.cell(now[m])};
    for (const WhatIfCase& c : a.cases) {
      auto factor = factor_of(now, c.answer.report, m);
      std::string cell = column.cell(c.answer.report[m]);
      if (factor) cell += " (" + significant(*factor) + "x)";
      cells.emplace_back(std::move(cell));
    }
    t.row(std::move(cells));
  }
  page.table(t);
  for (std::size_t i = 0; i < a.cases.size(); ++i) {
    const WhatIfCase& c = a.cases[i];
    std::string line = plan_in_words(c.answer.report);
    if (line != plan_in_words(now) || short_name(c, i) != c.what.changes)
      page.paragraph(short_name(c, i) + ": " + printable(c.what.changes) + " (" + line + ")",
                     Tone::faint, 2, 2);
  }
  // What holds for a case alone is said with it.
  std::vector<Assumption> all = a.now.assumptions;
  for (const WhatIfCase& c : a.cases)
    for (const Assumption& x : c.answer.assumptions) {
      auto same = [&](const Assumption& y) {
        return y.what.id == x.what.id && y.what.args == x.what.args;
      };
      if (std::any_of(a.now.assumptions.begin(), a.now.assumptions.end(), same)) continue;
      all.push_back({c.what.changes, x.what});
    }
  put_assumptions(page, all);
  put_warnings(page, now.warnings);
  if (style.explain && put_steps(page, now, a.now.job) && !style.explain_term.empty())
    return page.finish();
  if (style.explain && a.now.derivation) put_derivation(page, *a.now.derivation);
  return page.finish();
}

JsonNode what_if_json(const WhatIfAnswer& a, const Asked& asked) {
  JsonNode cases = JsonNode::array();
  for (const WhatIfCase& c : a.cases) {
    JsonNode factors = JsonNode::object();
    for (std::size_t i = 0; i < kMetrics; ++i) {
      const auto m = static_cast<Metric>(i);
      if (auto f = factor_of(a.now.report, c.answer.report, m))
        factors.set(metric_info(m).json, *f);
    }
    cases.add(JsonNode::object()
                  .set("changes", c.what.changes)
                  .set("answer", is_yes(c.answer))
                  .set("factors", factors)
                  .set("report", report_json(c.answer.report)));
  }
  JsonNode results = JsonNode::object();
  results.set("answer", is_yes(a)).set("report", report_json(a.now.report)).set("what_if", cases);
  if (!a.now.report.steps.empty()) results.set("steps", steps_json(a.now.report.steps));
  return envelope(asked, &a.now.job, a.now.assumptions, results, a.now.report.warnings);
}

bool is_yes(const WhatIfAnswer& a) { return is_yes(a.now); }

}  // namespace trigon
