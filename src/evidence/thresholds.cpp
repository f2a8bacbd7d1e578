#include "evidence/thresholds.hpp"

#include <algorithm>

#include "evidence/messages.hpp"

namespace trigon {

namespace {

std::optional<std::string> text_of(const FactGroup& g, std::string_view key) {
  const Fact* f = find_fact(g.facts, key);
  if (const auto* s = f ? std::get_if<std::string>(&f->value) : nullptr) return *s;
  return std::nullopt;
}
std::optional<double> number_of(const FactGroup& g, std::string_view key) {
  const Fact* f = find_fact(g.facts, key);
  if (const auto* v = f ? std::get_if<double>(&f->value) : nullptr) return *v;
  return std::nullopt;
}

std::optional<double> figure(const ValidateAnswer& answer, const Threshold& t) {
  const KindFigures* kind = nullptr;
  for (std::size_t k = 0; k < kModelKinds; ++k)
    if (t.group == model_kind_name(static_cast<ModelKind>(k)) || (k == 0 && t.group == "overall"))
      kind = &answer.kinds[k];
  if (t.statistic == "median_of_group_medians")
    return kind ? kind->median_of_group_medians : answer.median_of_group_medians;
  const ValidateGroup* g = kind ? &kind->overall : &answer.overall;
  if (!kind) {
    const auto it = std::find_if(answer.groups.begin(), answer.groups.end(),
                                 [&](const ValidateGroup& x) { return x.group == t.group; });
    if (it == answer.groups.end()) return std::nullopt;
    g = &*it;
  }
  if (t.statistic == "median_error") return g->errors.median_error;
  if (t.statistic == "p90_error") return g->errors.p90_error;
  if (t.statistic == "mean_error") return g->errors.mean_error;
  if (t.statistic == "bias") return g->errors.bias;
  if (t.statistic == "inside_interval") return g->errors.inside_interval;
  if (t.statistic == "interval_ratio") return g->errors.interval_ratio;
  if (t.statistic == "predicted") return static_cast<double>(g->predicted);
  return std::nullopt;
}

}  // namespace

Result<std::vector<Threshold>> read_thresholds(const FactSheet& sheet) {
  std::vector<Threshold> limits;
  for (const FactGroup& g : sheet.groups) {
    if (g.name != "limit") continue;
    Threshold t;
    for (const char* key : {"schema", "statistic"})
      if (!text_of(g, key))
        return fail(ErrorCode::malformed, message(BaseMessage::missing_key, key), sheet.where);
    t.schema = *text_of(g, "schema");
    t.statistic = *text_of(g, "statistic");
    t.group = text_of(g, "group").value_or("overall");
    t.at_most = number_of(g, "at_most");
    t.at_least = number_of(g, "at_least");
    if (!t.at_most && !t.at_least)
      return fail(ErrorCode::malformed, message(BaseMessage::missing_key, "at_most"), sheet.where);
    limits.push_back(std::move(t));
  }
  return limits;
}

std::vector<Message> broken_thresholds(const std::vector<Threshold>& limits,
                                       const ValidateAnswer& answer) {
  std::vector<Message> broken;
  for (const Threshold& t : limits) {
    const bool looked_at = std::any_of(answer.rows.begin(), answer.rows.end(), [&](const auto& r) {
      return schema_name(r.schema) == t.schema;
    });
    if (!looked_at) continue;
    const auto value = figure(answer, t);
    if (!value) {
      broken.push_back(message(EvidenceMessage::figure_missing, t.statistic, t.group));
      continue;
    }
    if (t.at_most && *value > *t.at_most)
      broken.push_back(
          message(EvidenceMessage::above_threshold, t.statistic, t.group, *value, *t.at_most));
    if (t.at_least && *value < *t.at_least)
      broken.push_back(
          message(EvidenceMessage::below_threshold, t.statistic, t.group, *value, *t.at_least));
  }
  return broken;
}

}  // namespace trigon
