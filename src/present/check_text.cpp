#include <algorithm>

#include "present/check_report.hpp"
#include "present/numbers.hpp"
#include "present/page.hpp"

namespace trigon {
namespace {

using F = OomFigure;
using P = PresentMessage;

P component_label(OomComponent c) {
  return static_cast<P>(static_cast<std::size_t>(P::oom_weights) + static_cast<std::size_t>(c));
}
P figure_label(OomFigure f) {
  return static_cast<P>(static_cast<std::size_t>(P::figure_tried) + static_cast<std::size_t>(f));
}

std::string size(double bytes) { return in_words(bytes, "B"); }
std::string component_in_words(OomComponent c, Language l) {
  return std::string(label(component_label(c), l));
}

// "tokens" of a figure in words, its own unit else.
std::string figure_in_words(OomFigure f, double v) {
  if (f == F::fraction) return trimmed_number(v, 4);
  if (oom_figure_unit(f).empty()) return whole(static_cast<std::int64_t>(v));
  return in_words(v, oom_figure_unit(f));
}

std::string verdict(const OomEvent& e, Language l) {
  const std::string what = component_in_words(e.component, l);
  const std::string tool(oom_tool_name(e.tool));
  const OomFigures& f = e.figures;
  if (e.component == OomComponent::fragmentation)
    return say(P::check_fragmented, l,
               {tool, size(f[F::tried].value_or(0)), size(f[F::reserved_unallocated].value_or(0))});
  if (e.component == OomComponent::other_process)
    return f[F::other_processes] ? say(P::check_others, l, {tool, size(*f[F::other_processes])})
                                 : say(P::check_others_unknown, l, {tool});
  if (e.kind == OomKind::host_killed) return std::string(label(P::check_killed, l));
  if (e.component == OomComponent::host_memory)
    return f[F::tried] ? say(P::check_host_size, l, {tool, size(*f[F::tried])})
                       : say(P::check_host, l, {tool});
  if (e.kind == OomKind::no_kv_blocks && f[F::weights])
    return say(P::check_no_blocks, l, {tool, size(*f[F::weights])});
  if (e.kind == OomKind::kv_too_short && f[F::length_asked]) {
    const std::string asked = whole(static_cast<std::int64_t>(*f[F::length_asked]));
    if (f[F::kv_needed] && f[F::kv_available])
      return say(P::check_length_sizes, l,
                 {tool, asked, size(*f[F::kv_needed]), size(*f[F::kv_available])});
    if (f[F::length_fits])
      return say(P::check_length, l,
                 {tool, asked, whole(static_cast<std::int64_t>(*f[F::length_fits]))});
  }
  if (e.component == OomComponent::unknown)
    return f[F::tried] ? say(P::check_unknown_size, l, {tool, size(*f[F::tried])})
                       : say(P::check_unknown, l, {tool});
  if (f[F::tried] && f[F::device_free] && *f[F::tried] > *f[F::device_free] &&
      e.kind == OomKind::allocation && f[F::device_total])
    return say(
        P::check_asked_free, l,
        {tool, what, size(*f[F::tried]), size(*f[F::device_free]), size(*f[F::device_total])});
  if (f[F::tried]) return say(P::check_asked, l, {tool, what, size(*f[F::tried])});
  return say(P::check_plain, l, {tool, what});
}

std::string at_line(std::int64_t line, Language l) {
  return say(P::check_line, l, {std::to_string(line)});
}

void put_event(Page& page, const OomEvent& e, const std::vector<OomAdvice>& advice) {
  Language l = page.language();
  page.heading(label(P::heading_evidence, l));
  page.paragraph(at_line(e.line, l) + " " + printable(e.quoted), Tone::plain, 2, 2);
  for (const OomEvidence& x : e.evidence)
    page.paragraph(at_line(x.line, l) + " " + render(x.what, l), Tone::plain, 2, 2);
  if (e.evidence.empty() && e.component == OomComponent::unknown)
    page.paragraph(label(P::check_no_evidence, l), Tone::plain, 2, 2);
  if (e.asked_for != OomComponent::unknown && e.asked_for != e.component)
    page.paragraph(say(P::check_asked_for, l, {component_in_words(e.asked_for, l)}), Tone::plain, 2,
                   2);
  Table figures(
      {{std::string(label(P::col_figure, l))}, {std::string(label(P::col_value, l)), true}});
  for (std::size_t i = 0; i < kOomFigures; ++i)
    if (e.figures.values[i])
      figures.row({label(figure_label(static_cast<OomFigure>(i)), l),
                   figure_in_words(static_cast<OomFigure>(i), *e.figures.values[i])});
  if (!figures.empty()) {
    page.heading(label(P::heading_figures, l));
    page.table(figures, 2);
  }
  if (advice.empty()) return;
  page.heading(label(P::heading_changes, l));
  for (const OomAdvice& a : advice) {
    page.paragraph(a.change, Tone::strong, 2, 4);
    page.paragraph(render(a.why, l), Tone::plain, 6, 0);
  }
}

void put_estimates(Page& page, const CheckAnswer& a) {
  if (a.report.estimates.empty()) return;
  Language l = page.language();
  page.heading(label(P::heading_estimates, l));
  Table t({{std::string(label(P::col_host_memory, l)) + " GiB", true},
           {std::string(label(P::col_each_card, l)) + " GiB", true},
           {std::string(label(P::col_options, l)), false, 0, 20}});
  for (const OomEstimate& e : a.report.estimates)
    t.row({significant(e.host_bytes / kGi), significant(e.card_bytes / kGi), printable(e.options)});
  page.table(t, 2);
}

void put_prediction(Page& page, const CheckAnswer& a, const Asked& asked) {
  if (!a.prediction) return;
  const OomPrediction& p = *a.prediction;
  Language l = page.language();
  const FitRow& row = p.now.rows.front();
  page.heading(label(P::heading_prediction, l));
  const std::string job = job_in_words(p.now.job, asked.model, l),
                    hardware = hardware_in_words(row.report.cluster);
  const auto& needed = row.report[Metric::memory_bytes];
  const auto& usable = row.report[Metric::usable_bytes];
  if (needed && usable)
    page.paragraph(say(row.mark == FitMark::no ? P::check_needs_more : P::check_needs, l,
                       {job, size(needed->value), size(usable->value), hardware}),
                   Tone::plain, 2, 0);
  if (p.term) {
    std::optional<double> logged;
    if (!a.report.events.empty()) {
      const OomEvent& e = a.report.events.front();
      logged = *p.term == MemoryTerm::kv_cache && e.figures[F::kv_needed] ? e.figures[F::kv_needed]
               : *p.term == MemoryTerm::weights && e.figures[F::weights]  ? e.figures[F::weights]
                                                                          : e.figures[F::tried];
    }
    const std::string term(label(memory_term_label(*p.term), l));
    page.paragraph(logged ? say(P::check_term_logged, l, {term, size(p.term_bytes), size(*logged)})
                          : say(P::check_term, l, {term, size(p.term_bytes)}),
                   Tone::plain, 2, 0);
  }
  if (!p.changes.empty()) {
    page.paragraph(label(P::check_would_fit, l), Tone::plain, 2, 0);
    Table t({{std::string(label(P::col_change, l))},
             {std::string(label(P::memory_bytes, l)) + " GiB", true},
             {std::string(label(P::usable_bytes, l)) + " GiB", true}});
    for (const FittingChange& c : p.changes)
      t.row(
          {printable(c.flags),
           c.report[Metric::memory_bytes] ? significant(c.report[Metric::memory_bytes]->value / kGi)
                                          : std::string("-"),
           c.report[Metric::usable_bytes] ? significant(c.report[Metric::usable_bytes]->value / kGi)
                                          : std::string("-")});
    page.table(t, 4);
  }
  put_memory(page, row.report, trains(p.now.job));
}

JsonNode figures_json(const OomFigures& f) {
  JsonNode out = JsonNode::object();
  for (std::size_t i = 0; i < kOomFigures; ++i) {
    if (!f.values[i]) continue;
    const auto figure = static_cast<OomFigure>(i);
    const std::string_view unit = oom_figure_unit(figure);
    std::string name(oom_figure_name(figure));
    if (unit == "B") name += "_bytes";
    if (unit == "tokens") name += "_tokens";
    out.set(name, *f.values[i]);
  }
  return out;
}

}  // namespace

bool is_yes(const CheckAnswer& a) { return a.report.events.empty(); }

std::string check_text(const CheckAnswer& a, const Asked& asked, const TextStyle& style) {
  Language l = style.language;
  Page page(style);
  if (a.report.events.empty()) {
    page.paragraph(label(P::check_only_estimate, l), Tone::good);
    if (style.one_line) return page.finish();
    put_estimates(page, a);
    put_prediction(page, a, asked);
    put_assumptions(page, a.assumptions);
    return page.finish();
  }
  const OomEvent& first = a.report.events.front();
  std::string text = verdict(first, l);
  if (style.one_line && !a.advice.front().empty())
    text += " " + say(P::check_first_change, l, {a.advice.front().front().change});
  page.paragraph(text, Tone::bad);
  if (style.one_line) return page.finish();
  put_event(page, first, a.advice.front());
  if (a.report.events.size() > 1) {
    page.heading(label(P::heading_also, l));
    for (std::size_t i = 1; i < a.report.events.size(); ++i) {
      const OomEvent& e = a.report.events[i];
      page.paragraph(at_line(e.line, l) + " " + verdict(e, l), Tone::plain, 2, 2);
    }
  }
  put_estimates(page, a);
  put_prediction(page, a, asked);
  put_assumptions(page, a.assumptions);
  return page.finish();
}

JsonNode check_json(const CheckAnswer& a, const Asked& asked) {
  JsonNode events = JsonNode::array(), estimates = JsonNode::array();
  for (std::size_t i = 0; i < a.report.events.size(); ++i) {
    const OomEvent& e = a.report.events[i];
    JsonNode evidence = JsonNode::array(), changes = JsonNode::array();
    for (const OomEvidence& x : e.evidence)
      evidence.add(JsonNode::object().set("line", x.line).set("what", message_json(x.what)));
    for (const OomAdvice& c : a.advice[i])
      changes.add(JsonNode::object().set("change", c.change).set("why", message_json(c.why)));
    events.add(JsonNode::object()
                   .set("kind", oom_kind_name(e.kind))
                   .set("tool", oom_tool_name(e.tool))
                   .set("component", oom_component_name(e.component))
                   .set("asked_for", oom_component_name(e.asked_for))
                   .set("training", e.training)
                   .set("device", e.device.empty() ? JsonNode() : JsonNode(e.device))
                   .set("line", e.line)
                   .set("times", e.times)
                   .set("quoted", e.quoted)
                   .set("figures", figures_json(e.figures))
                   .set("evidence", evidence)
                   .set("changes", changes));
  }
  for (const OomEstimate& e : a.report.estimates)
    estimates.add(JsonNode::object()
                      .set("line", e.line)
                      .set("host_bytes", e.host_bytes)
                      .set("card_bytes", e.card_bytes)
                      .set("options", e.options));
  JsonNode prediction;
  if (a.prediction) {
    const OomPrediction& p = *a.prediction;
    JsonNode changes = JsonNode::array();
    for (const FittingChange& c : p.changes)
      changes.add(JsonNode::object().set("change", c.flags).set("report", report_json(c.report)));
    const FitRow& row = p.now.rows.front();
    prediction = JsonNode::object();
    prediction.set("fits", row.mark != FitMark::no)
        .set("term", p.term ? JsonNode(memory_term_json(*p.term)) : JsonNode())
        .set("term_bytes", p.term ? JsonNode(p.term_bytes) : JsonNode())
        .set("report", report_json(row.report))
        .set("would_fit", changes);
  }
  JsonNode results = JsonNode::object();
  results.set("out_of_memory", !a.report.events.empty())
      .set("lines", a.report.lines)
      .set("events", events)
      .set("estimates", estimates)
      .set("prediction", prediction);
  return envelope(asked, a.prediction ? &a.prediction->now.job : nullptr, a.assumptions, results);
}

}  // namespace trigon
