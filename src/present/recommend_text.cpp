#include <algorithm>
#include <map>

#include "present/numbers.hpp"
#include "present/page.hpp"
#include "present/reports.hpp"

namespace trigon {
namespace {

Table ranked_table(const RecommendAnswer& a, Language l) {
  bool training = is_training(a.job);
  struct Shown {
    PresentMessage name;
    Metric metric;
    int priority;
    NumberColumn column;
  };
  std::vector<Shown> shown;
  auto show = [&](PresentMessage name, Metric m, int priority) {
    shown.push_back({name, m, priority, NumberColumn(unit_in_words(m, item_of(a.job), l))});
  };
  show(PresentMessage::col_free, Metric::headroom_bytes, 4);
  if (training) {
    show(PresentMessage::col_time, Metric::time_to_train_seconds, 0);
    show(PresentMessage::col_train_speed,
         item_of(a.job) ? Metric::samples_per_second_per_gpu : Metric::train_tokens_per_second, 3);
  } else if (item_of(a.job)) {
    if (std::holds_alternative<Serve>(a.job)) {
      show(PresentMessage::col_latency, Metric::e2e_percentile_seconds, 2);
      show(PresentMessage::col_capacity, Metric::capacity_requests_per_second, 3);
    }
    show(PresentMessage::col_throughput, Metric::requests_per_second, 4);
    show(PresentMessage::col_million_items, Metric::usd_per_million_items, 5);
  } else {
    if (std::holds_alternative<Serve>(a.job)) {
      show(PresentMessage::col_ttft, Metric::ttft_percentile_seconds, 2);
      show(PresentMessage::col_tpot, Metric::tpot_percentile_seconds, 2);
      show(PresentMessage::col_capacity, Metric::capacity_requests_per_second, 3);
    }
    show(PresentMessage::col_output_speed, Metric::output_tokens_per_second, 6);
    show(PresentMessage::col_million, Metric::usd_per_million_tokens, 5);
  }
  show(PresentMessage::col_price, Metric::usd_per_hour, 0);
  if (!std::holds_alternative<Serve>(a.job))
    show(PresentMessage::col_total, Metric::usd_total, training ? 1 : 6);
  show(PresentMessage::col_purchase, Metric::usd_purchase, 5);
  show(PresentMessage::col_power, Metric::power_watts, 6);
  for (Shown& s : shown)
    for (const Candidate& c : a.ranked)
      if (c.report[s.metric]) s.column.see(c.report[s.metric]->value);
  std::vector<Column> headers{{std::string(label(PresentMessage::col_number, l)), true},
                              {std::string(label(PresentMessage::col_hardware, l)), false, 0, 16},
                              {std::string(label(PresentMessage::col_plan, l)), false, 1, 8}};
  for (const Shown& s : shown)
    headers.push_back({s.column.header(label(s.name, l)), true, s.priority});
  Table t(std::move(headers));
  for (std::size_t i = 0; i < a.ranked.size(); ++i) {
    const PlanReport& r = a.ranked[i].report;
    std::string plan = write_plan(r.plan);
    if (r.narrowed) plan += " " + std::string(info(*r.narrowed).name);
    std::vector<Cell> cells{std::to_string(a.ranked[i].rank), hardware_in_words(r.cluster), plan};
    for (const Shown& s : shown) cells.emplace_back(s.column.cell(r[s.metric]));
    t.row(std::move(cells));
  }
  return t;
}

std::string reasons(const std::vector<Message>& why, Language l) {
  std::string out;
  for (const Message& m : why) out += (out.empty() ? "" : "; ") + render(m, l);
  return out;
}

std::string headline(const PlanReport& r, const Job& job, Payment payment, Language l) {
  std::string out = cost_in_words(r, payment, l);
  for (Metric m : is_training(job)
                      ? std::vector<Metric>{Metric::time_to_train_seconds, Metric::usd_total}
                      : std::vector<Metric>{item_of(job) ? Metric::usd_per_million_items
                                                         : Metric::usd_per_million_tokens,
                                            Metric::capacity_requests_per_second}) {
    std::string text = metric_in_words(r, m, l);
    if (!text.empty()) out += ", " + text;
  }
  return out;
}

// Rejections by reason, the commonest first.
void put_rejected(Page& page, const RecommendAnswer& a) {
  Language l = page.language();
  if (a.rejected.empty()) return;
  page.heading(label(PresentMessage::heading_rejected, l));
  struct Group {
    std::size_t count = 0;
    const Rejection* example = nullptr;
  };
  std::map<MessageId, Group> by_reason;
  for (const Rejection& r : a.rejected) {
    Group& g = by_reason[r.reason.id];
    ++g.count;
    if (!g.example) g.example = &r;
  }
  std::vector<Group> groups;
  for (const auto& [id, g] : by_reason) groups.push_back(g);
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& x, const Group& y) { return x.count > y.count; });
  for (const Group& g : groups)
    page.paragraph(
        say(PresentMessage::rejected_group, l,
            {std::to_string(g.count), g.example->hardware, render(g.example->reason, l)}),
        Tone::plain, 2, 2);
  page.paragraph(say(PresentMessage::rejected_counts, l, {std::to_string(a.rejected.size())}),
                 Tone::faint, 2, 2);
}

void put_why_not(Page& page, const RecommendAnswer& a, const std::string& name) {
  Language l = page.language();
  page.blank();
  for (std::size_t i = 0; i < a.ranked.size(); ++i) {
    const Candidate& c = a.ranked[i];
    if (!c.report.cluster.accelerator || c.report.cluster.accelerator->id != name) continue;
    std::string why = reasons(c.why, l);
    page.paragraph(say(PresentMessage::why_not_ranked, l,
                       {hardware_in_words(c.report.cluster), std::to_string(c.rank),
                        std::to_string(a.feasible), why.empty() ? plan_in_words(c.report) : why}),
                   Tone::strong);
    put_metrics(page, c.report, deciding_metrics(a.job), a.job);
    return;
  }
  for (const Rejection& r : a.rejected) {
    if (r.hardware != name) continue;
    page.paragraph(say(PresentMessage::why_not_rejected, l, {name, render(r.reason, l)}),
                   Tone::strong);
    if (!r.nearest) return;
    page.paragraph(say(PresentMessage::why_not_nearest, l,
                       {hardware_in_words(r.nearest->cluster), plan_in_words(*r.nearest)}));
    put_metrics(page, *r.nearest, deciding_metrics(a.job), a.job);
    return;
  }
  page.paragraph(say(PresentMessage::why_not_unknown, l, {name}), Tone::warning);
}

void put_none(Page& page, const RecommendAnswer& a, Payment payment) {
  Language l = page.language();
  std::string text(label(PresentMessage::verdict_none, l));
  if (a.nearest)
    text += " " + say(PresentMessage::nearest_plan, l,
                      {hardware_in_words(a.nearest->cluster), plan_in_words(*a.nearest),
                       headline(*a.nearest, a.job, payment, l)});
  page.paragraph(text, Tone::bad);
  if (page.style().one_line) return;
  if (a.nearest) {
    page.blank();
    put_metrics(page, *a.nearest, deciding_metrics(a.job), a.job);
    for (const Message& m : a.nearest->violated)
      page.paragraph("- " + render(m, l), Tone::bad, 2, 2);
  }
  put_messages(page, PresentMessage::heading_relax, a.relax);
}

}  // namespace

std::string recommend_text(const RecommendAnswer& a, const Asked& asked, const TextStyle& style) {
  Language l = style.language;
  Payment payment = asked.objective.payment;
  Page page(style);
  if (a.partial && a.ranked.empty() && !a.nearest) {
    page.paragraph(label(PresentMessage::verdict_partial_none, l), Tone::bad);
    return page.finish();
  }
  if (a.partial) page.paragraph(label(PresentMessage::verdict_partial, l), Tone::warning);
  if (a.ranked.empty()) {
    put_none(page, a, payment);
    if (style.one_line) return page.finish();
  } else {
    const PlanReport& best = a.ranked.front().report;
    PresentMessage verdict = payment == Payment::rent  ? PresentMessage::verdict_rent
                             : payment == Payment::buy ? PresentMessage::verdict_buy
                                                       : PresentMessage::verdict_choose;
    page.paragraph(say(verdict, l,
                       {hardware_in_words(best.cluster), job_in_words(a.job, asked.model, l),
                        plan_in_words(best), headline(best, a.job, payment, l)}),
                   Tone::good);
    if (style.one_line) return page.finish();
    page.blank();
    put_metrics(page, best, deciding_metrics(a.job), a.job);
    page.blank();
    if (a.ranked.size() < 2) {
      page.paragraph(label(PresentMessage::only_candidate, l));
    } else {
      const Candidate& second = a.ranked[1];
      std::string text =
          say(PresentMessage::runner_up, l,
              {hardware_in_words(second.report.cluster), plan_in_words(second.report),
               headline(second.report, a.job, payment, l)});
      std::string why = reasons(second.why, l);
      if (!why.empty()) text += " " + say(PresentMessage::why_lost, l, {why});
      page.paragraph(text);
    }
    page.heading(label(PresentMessage::heading_ranked, l));
    page.table(ranked_table(a, l), 0, style.top);
  }
  if (!style.why_not.empty())
    put_why_not(page, a, style.why_not);
  else
    put_rejected(page, a);
  put_messages(page, PresentMessage::heading_would_change, a.would_change);
  put_assumptions(page, a.assumptions);
  if (!a.ranked.empty()) put_warnings(page, a.ranked.front().report.warnings);
  page.blank();
  page.paragraph(
      say(PresentMessage::search_counts, l,
          {whole(a.counts.cards), whole(a.counts.counts), whole(a.counts.plans_considered),
           whole(a.counts.plans_pruned), whole(a.counts.plans_evaluated)}),
      Tone::faint);
  if (style.explain && a.derivation) put_derivation(page, *a.derivation);
  return page.finish();
}

bool is_yes(const RecommendAnswer& a) { return !a.ranked.empty(); }

}  // namespace trigon
