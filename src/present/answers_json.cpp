#include "present/page.hpp"
#include "present/reports.hpp"

namespace trigon {
namespace {

JsonNode messages_json(const std::vector<Message>& list) {
  JsonNode out = JsonNode::array();
  for (const Message& m : list) out.add(message_json(m));
  return out;
}

JsonNode derivation_json(const std::optional<Derivation>& d) {
  if (!d) return {};
  JsonNode out = JsonNode::array();
  for (const DerivationStep& s : d->steps) {
    JsonNode symbols = JsonNode::array();
    for (const Symbol& symbol : s.symbols) {
      JsonNode entry = JsonNode::object();
      entry.set("name", symbol.name).set("value", symbol.value).set("unit", symbol.unit);
      if (!symbol.fact.empty()) entry.set("fact", symbol.fact);
      symbols.add(entry);
    }
    out.add(JsonNode::object()
                .set("formula", s.formula->name)
                .set("expression", s.formula->expression)
                .set("subject", s.subject)
                .set("value", s.value)
                .set("unit", s.unit)
                .set("symbols", symbols));
  }
  return out;
}

const char* mark_name(FitMark m) {
  return m == FitMark::fits ? "fits" : m == FitMark::tight ? "tight" : "no";
}

JsonNode fit_row_json(const FitRow& row) {
  return JsonNode::object()
      .set("answer", mark_name(row.mark))
      .set("binding", row.binding ? message_json(*row.binding) : JsonNode())
      .set("report", report_json(row.report));
}

JsonNode triangle_json(const Triangle& t) {
  JsonNode parts = JsonNode::array();
  for (const TrianglePart& p : t.parts)
    parts.add(JsonNode::object().set("what", message_json(p.what)).set("value", p.value));
  return JsonNode::object()
      .set("score", t.score)
      .set("compute_density", t.compute_density)
      .set("memory", t.memory)
      .set("ecosystem", t.ecosystem)
      .set("parts", parts);
}

}  // namespace

JsonNode estimate_json(const EstimateAnswer& a, const Asked& asked) {
  JsonNode results = JsonNode::object();
  results.set("answer", is_yes(a)).set("report", report_json(a.report));
  if (!a.report.steps.empty()) results.set("steps", steps_json(a.report.steps));
  if (a.derivation) results.set("derivation", derivation_json(a.derivation));
  return envelope(asked, &a.job, a.assumptions, results, a.report.warnings);
}

JsonNode fit_json(const FitAnswer& a, const Asked& asked) {
  JsonNode rows = JsonNode::array();
  for (const FitRow& row : a.rows) rows.add(fit_row_json(row));
  JsonNode results = JsonNode::object();
  results.set("answer", is_yes(a)).set("rows", rows);
  if (a.on_host) {
    JsonNode part = JsonNode::object();
    part.set("flags", a.on_host->flags).set("report", report_json(a.on_host->report));
    if (!a.on_host->roomier.empty()) part.set("roomier_flags", a.on_host->roomier);
    results.set("in_part", part);
  }
  if (a.smallest) results.set("smallest_card", a.smallest->report.cluster.accelerator->id);
  if (a.derivation) results.set("derivation", derivation_json(a.derivation));
  return envelope(asked, &a.job, a.assumptions, results);
}

JsonNode model_fit_json(const std::vector<ModelFitRow>& models, const Asked& asked) {
  JsonNode rows = JsonNode::array();
  for (const ModelFitRow& m : models)
    rows.add(JsonNode::object()
                 .set("model", m.model)
                 .set("parameters", m.parameters)
                 .set("weights", info(m.weights).name)
                 .set("fit", fit_row_json(m.fit)));
  JsonNode results = JsonNode::object();
  results.set("answer", is_yes(models)).set("models", rows);
  return envelope(asked, nullptr, {}, results);
}

JsonNode recommend_json(const RecommendAnswer& a, const Asked& asked) {
  JsonNode ranked = JsonNode::array(), rejected = JsonNode::array();
  for (const Candidate& c : a.ranked)
    ranked.add(JsonNode::object()
                   .set("report", report_json(c.report))
                   .set("triangle", triangle_json(c.triangle))
                   .set("why", messages_json(c.why)));
  for (const Rejection& r : a.rejected)
    rejected.add(JsonNode::object()
                     .set("hardware", r.hardware)
                     .set("reason", message_json(r.reason))
                     .set("nearest", r.nearest ? report_json(*r.nearest) : JsonNode()));
  JsonNode counts = JsonNode::object();
  counts.set("cards", a.counts.cards)
      .set("machine_sizes", a.counts.counts)
      .set("plans_considered", a.counts.plans_considered)
      .set("plans_pruned", a.counts.plans_pruned)
      .set("plans_evaluated", a.counts.plans_evaluated);
  JsonNode results = JsonNode::object();
  results.set("answer", is_yes(a))
      .set("partial", a.partial)
      .set("ranked", ranked)
      .set("rejected", rejected)
      .set("nearest", a.nearest ? report_json(*a.nearest) : JsonNode())
      .set("relax", messages_json(a.relax))
      .set("would_change", messages_json(a.would_change))
      .set("search", counts);
  if (a.derivation) results.set("derivation", derivation_json(a.derivation));
  return envelope(asked, &a.job, a.assumptions, results);
}

JsonNode compare_json(const CompareAnswer& a, const Asked& asked) {
  JsonNode rows = JsonNode::array();
  for (const CompareRow& row : a.rows)
    rows.add(JsonNode::object()
                 .set("ratio", row.ratio)
                 .set("binding", message_json(row.binding))
                 .set("report", report_json(row.report)));
  JsonNode results = JsonNode::object();
  results.set("answer", is_yes(a)).set("deciding", metric_info(a.deciding).json).set("rows", rows);
  if (!a.what_if.empty()) {
    JsonNode cases = JsonNode::array();
    for (const CompareAnswer& c : a.what_if) {
      JsonNode then = JsonNode::array();
      for (std::size_t i = 0; i < c.rows.size(); ++i)
        then.add(JsonNode::object()
                     .set("factor", factor_of(a.rows[i].report, c.rows[i].report, a.deciding))
                     .set("report", report_json(c.rows[i].report)));
      cases.add(JsonNode::object().set("changes", c.changes).set("rows", then));
    }
    results.set("what_if", cases);
  }
  return envelope(asked, &a.job, a.assumptions, results);
}

}  // namespace trigon
