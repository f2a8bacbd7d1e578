#include "present/numbers.hpp"
#include "present/page.hpp"
#include "present/reports.hpp"

namespace trigon {
namespace {

// The one or two numbers of a sentence: how fast, and what it costs.
std::string headline(const PlanReport& r, const Job& job, Language l) {
  std::vector<Metric> order =
      item_of(job) && !is_training(job)
          ? std::vector<Metric>{Metric::requests_per_second, Metric::e2e_seconds}
      : is_training(job)
          ? std::vector<Metric>{Metric::time_to_train_seconds,
                                item_of(job) ? Metric::samples_per_second_per_gpu
                                             : Metric::train_tokens_per_second}
          : std::vector<Metric>{Metric::output_tokens_per_second, Metric::tpot_seconds};
  std::string out;
  for (Metric m : order) {
    std::string text = metric_in_words(r, m, l);
    if (!text.empty()) out += (out.empty() ? "" : ", ") + text;
  }
  // Without times what is left to say is the memory.
  return out.empty() ? metric_in_words(r, Metric::memory_bytes, l) : out;
}

std::string limits(const PlanReport& r, Language l) {
  if (r.meets_limits) return say(PresentMessage::verdict_limits_hold, l, {});
  std::string list;
  for (const Message& m : r.violated) list += (list.empty() ? "" : "; ") + render(m, l);
  return list.empty() ? list : say(PresentMessage::verdict_limits_missed, l, {list});
}

bool has_limits(const Job& job) {
  if (auto s = std::get_if<Serve>(&job)) return s->limits.ttft || s->limits.tpot || s->limits.e2e;
  return std::visit(
      [](const auto& j) {
        if constexpr (requires { j.deadline; })
          return j.deadline.has_value();
        else
          return false;
      },
      job);
}

}  // namespace

std::string estimate_text(const EstimateAnswer& a, const Asked& asked, const TextStyle& style) {
  Language l = style.language;
  const PlanReport& r = a.report;
  Page page(style);
  std::string verdict = say(PresentMessage::verdict_estimate, l,
                            {job_in_words(a.job, asked.model, l), hardware_in_words(r.cluster),
                             plan_in_words(r), headline(r, a.job, l)});
  if (!r.fits && r[Metric::memory_bytes] && r[Metric::usable_bytes])
    verdict += " " + say(PresentMessage::verdict_estimate_memory, l,
                         {in_words(r[Metric::memory_bytes]->value, "B"),
                          in_words(r[Metric::usable_bytes]->value, "B")});
  else if (has_limits(a.job) || !r.violated.empty())
    verdict += " " + limits(r, l);
  page.paragraph(verdict, is_yes(a) ? Tone::good : Tone::bad);
  if (style.one_line) return page.finish();

  std::vector<Metric> all;
  for (std::size_t i = 0; i < kMetrics; ++i) all.push_back(static_cast<Metric>(i));
  page.heading(label(PresentMessage::heading_numbers, l));
  put_metrics(page, r, all, a.job);
  put_memory(page, r, trains(a.job));
  put_assumptions(page, a.assumptions);
  put_warnings(page, r.warnings);
  if (style.explain && a.derivation) {
    const bool operators = put_steps(page, r, a.job);
    if (!operators || style.explain_term.empty()) put_derivation(page, *a.derivation);
  }
  if (!style.explain)
    page.blank(), page.paragraph(label(PresentMessage::explain_more, l), Tone::faint);
  return page.finish();
}

bool is_yes(const EstimateAnswer& a) { return a.report.fits && a.report.violated.empty(); }

}  // namespace trigon
