#include "evidence/csv.hpp"
#include "present/numbers.hpp"
#include "present/page.hpp"
#include "present/validate_report.hpp"

namespace trigon {
namespace {

std::string percent(const std::optional<double>& v) { return v ? significant(100 * *v) : "-"; }

std::vector<Cell> cells_of(const ValidateGroup& g, std::string_view name) {
  const ErrorStatistics& e = g.errors;
  return {printable(name),
          whole(g.rows),
          whole(g.predicted),
          percent(e.median_error),
          percent(e.p90_error),
          percent(e.mean_error),
          percent(e.bias),
          percent(e.inside_interval),
          e.interval_ratio ? significant(*e.interval_ratio) : std::string("-")};
}

JsonNode group_json(const ValidateGroup& g) {
  const ErrorStatistics& e = g.errors;
  return JsonNode::object()
      .set("group", g.group)
      .set("rows", g.rows)
      .set("in_scope", g.in_scope)
      .set("predicted", g.predicted)
      .set("refused", g.refused)
      .set("median_error", JsonNode(e.median_error))
      .set("p90_error", JsonNode(e.p90_error))
      .set("mean_error", JsonNode(e.mean_error))
      .set("bias", JsonNode(e.bias))
      .set("inside_interval", JsonNode(e.inside_interval))
      .set("interval_ratio", JsonNode(e.interval_ratio))
      .set("trusted", g.trusted)
      .set("trusted_median_error", JsonNode(g.trusted_median));
}

JsonNode choice_json(const PlanChoice& c) {
  return JsonNode::object()
      .set("source", c.source)
      .set("jobs", c.jobs)
      .set("plans", c.plans)
      .set("spearman", JsonNode(c.spearman))
      .set("kendall", JsonNode(c.kendall))
      .set("median_regret", c.median_regret)
      .set("worst_regret", c.worst_regret)
      .set("found", c.found);
}

JsonNode scaling_json(const ScalingStep& s) {
  return JsonNode::object()
      .set("from", s.from)
      .set("to", s.to)
      .set("pairs", s.pairs)
      .set("measured", s.measured)
      .set("predicted", s.predicted)
      .set("median_distance", s.median_distance)
      .set("within", s.within);
}

std::string ratio(const std::optional<double>& v) { return v ? significant(*v) : "-"; }

// Groups whose undoubted rows are further off than they should be.
void put_trusted(Page& page, const ValidateAnswer& a, Language l) {
  auto name = [&](PresentMessage id) { return std::string(label(id, l)); };
  Table groups({{name(PresentMessage::col_group), false, 0, 44},
                {name(PresentMessage::col_predicted), true},
                {name(PresentMessage::col_median), true}});
  bool any = false;
  for (const ValidateGroup& g : a.groups) {
    if (!above_trusted_limit(g)) continue;
    any = true;
    groups.row({printable(g.group), whole(g.trusted), percent(g.trusted_median)});
  }
  if (!any) return;
  page.heading(say(PresentMessage::heading_trusted, l, {percent(kMostTrusted)}));
  page.table(groups);
}

void put_choices(Page& page, const ValidateAnswer& a, Language l) {
  if (a.choices.empty()) return;
  auto name = [&](PresentMessage id) { return std::string(label(id, l)); };
  page.heading(label(PresentMessage::heading_choices, l));
  Table table({{name(PresentMessage::col_source), false, 0, 34},
               {name(PresentMessage::col_jobs), true},
               {name(PresentMessage::col_plans), true},
               {name(PresentMessage::col_spearman), true},
               {name(PresentMessage::col_kendall), true, 2},
               {name(PresentMessage::col_regret), true},
               {name(PresentMessage::col_worst_regret), true, 1}});
  for (const PlanChoice& c : a.choices)
    table.row({printable(c.source), whole(c.jobs), whole(c.plans), ratio(c.spearman),
               ratio(c.kendall), percent(c.median_regret), percent(c.worst_regret)});
  page.table(table);
}

void put_scaling(Page& page, const ValidateAnswer& a, Language l) {
  if (a.scaling.empty()) return;
  auto name = [&](PresentMessage id) { return std::string(label(id, l)); };
  page.heading(label(PresentMessage::heading_more_cards, l));
  Table table({{name(PresentMessage::col_cards)},
               {name(PresentMessage::col_pairs), true},
               {name(PresentMessage::col_measured), true},
               {name(PresentMessage::col_predicted), true},
               {name(PresentMessage::col_points), true},
               {name(PresentMessage::col_within), true, 1}});
  for (const ScalingStep& s : a.scaling)
    table.row({s.to > 0 ? whole(s.from) + " > " + whole(s.to)
                        : std::string(label(PresentMessage::other_steps, l)),
               whole(s.pairs), percent(s.measured), percent(s.predicted),
               percent(s.median_distance), percent(s.within)});
  page.table(table);
}

std::string csv_number(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", v);
  return text;
}

}  // namespace

std::string validate_text(const ValidateAnswer& a, const std::vector<Message>* broken,
                          const TextStyle& style) {
  Language l = style.language;
  Page page(style);
  const ValidateGroup& o = a.overall;
  if (o.predicted == 0)
    page.paragraph(say(PresentMessage::verdict_validate_none, l, {whole(o.rows)}), Tone::bad);
  else
    page.paragraph(
        say(PresentMessage::verdict_validate, l,
            {whole(o.predicted), whole(o.rows), whole(o.refused), whole(o.rows - o.in_scope),
             percent(o.errors.median_error), percent(o.errors.inside_interval)}),
        Tone::strong);
  if (a.median_of_group_medians)
    page.paragraph(
        say(PresentMessage::verdict_validate_medians, l, {percent(a.median_of_group_medians)}));
  if (broken && broken->empty())
    page.paragraph(label(PresentMessage::thresholds_hold, l), Tone::good);
  if (broken) put_messages(page, PresentMessage::heading_thresholds, *broken);

  auto name = [&](PresentMessage id) { return std::string(label(id, l)); };
  page.heading(label(PresentMessage::heading_groups, l));
  Table groups({{name(PresentMessage::col_group), false, 0, 28},
                {name(PresentMessage::col_rows), true, 2},
                {name(PresentMessage::col_predicted), true},
                {name(PresentMessage::col_median), true},
                {name(PresentMessage::col_p90), true, 1},
                {name(PresentMessage::col_mean), true, 3},
                {name(PresentMessage::col_bias), true},
                {name(PresentMessage::col_inside), true},
                {name(PresentMessage::col_interval), true, 1}});
  for (const ValidateGroup& g : a.groups) groups.row(cells_of(g, g.group));
  groups.row(cells_of(o, label(PresentMessage::overall, l)));
  page.table(groups);
  put_trusted(page, a, l);
  put_choices(page, a, l);
  put_scaling(page, a, l);
  if (!a.refusals.empty()) {
    page.heading(label(PresentMessage::heading_refusals, l));
    Table refusals({{name(PresentMessage::col_rows), true}, {name(PresentMessage::col_refusal)}});
    for (const RefusalCount& r : a.refusals) refusals.row({whole(r.rows), refusal_name(r.reason)});
    page.table(refusals);
  }
  return page.finish();
}

JsonNode validate_json(const ValidateAnswer& a, const std::vector<Message>* broken,
                       const Asked& asked) {
  JsonNode groups = JsonNode::array(), refusals = JsonNode::array();
  for (const ValidateGroup& g : a.groups) groups.add(group_json(g));
  for (const RefusalCount& r : a.refusals)
    refusals.add(JsonNode::object().set("reason", refusal_name(r.reason)).set("rows", r.rows));
  JsonNode overall = group_json(a.overall);
  overall.set("median_of_group_medians", JsonNode(a.median_of_group_medians));
  JsonNode results = JsonNode::object();
  JsonNode choices = JsonNode::array(), scaling = JsonNode::array(), trusted = JsonNode::array();
  for (const PlanChoice& c : a.choices) choices.add(choice_json(c));
  for (const ScalingStep& s : a.scaling) scaling.add(scaling_json(s));
  for (const ValidateGroup& g : a.groups)
    if (above_trusted_limit(g)) trusted.add(g.group);
  results.set("groups", groups).set("overall", overall).set("refusals", refusals);
  results.set("trusted_above_limit", trusted)
      .set("plan_choices", choices)
      .set("card_scaling", scaling);
  if (broken) {
    JsonNode list = JsonNode::array();
    for (const Message& m : *broken) list.add(message_json(m));
    results.set("broken_thresholds", list);
  }
  return envelope(asked, nullptr, {}, results);
}

std::string validate_rows_csv(const ValidateAnswer& a) {
  std::string out = "id,predicted,low,high,measured,basis,refusal,detail\n";
  for (const RowOutcome& r : a.rows) {
    out += csv_field(r.id);
    if (r.predicted)
      out += "," + csv_number(r.predicted->value) + "," + csv_number(r.predicted->low) + "," +
             csv_number(r.predicted->high) + "," + csv_number(r.measured) + "," +
             std::string(basis_name(r.predicted->basis)) + ",,";
    else
      out += ",,,,,," + std::string(r.refusal ? refusal_name(r.refusal->reason) : "") + "," +
             csv_field(r.error     ? render(r.error->what, Language::english)
                       : r.refusal ? r.refusal->subject
                                   : std::string());
    out += "\n";
  }
  return out;
}

}  // namespace trigon
