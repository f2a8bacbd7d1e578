#include "evidence/validate.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <thread>

#include "evidence/messages.hpp"

namespace trigon {

namespace {

std::vector<std::string> default_groups(Schema s) {
  switch (s) {
    case Schema::train:
    case Schema::infer:
      return {"repository", "metric"};
    case Schema::memory:
      return {"component", "engine"};
    case Schema::serving:
      return {"gpu", "model", "engine", "mode", "metric"};
    case Schema::ops:
      return {"gpu", "op"};
    case Schema::comm:
      return {"gpu", "collective"};
    case Schema::matmul:
      return {"gpu", "precision"};
    case Schema::run:
      break;
  }
  return {};
}

Result<std::string> group_of(Schema schema, const Row& row, const ValidateOptions& options) {
  std::string name;
  for (const std::string& column :
       options.group_by.empty() ? default_groups(schema) : options.group_by) {
    std::string value;
    if (column == "repository")
      value = row.repository();
    else if (column == "schema")
      value = schema_name(schema);
    else if (column == "fold")
      value = std::to_string(row.fold());
    else if (row.has_column(column))
      value = std::string(row.text(column));
    else
      return fail(ErrorCode::bad_argument, message(EvidenceMessage::unknown_group_column, column),
                  "--group-by");
    if (!name.empty()) name += " / ";
    name += value.empty() ? "-" : value;
  }
  return name.empty() ? std::string(schema_name(schema)) : name;
}

Result<Estimate<double>> predict_on(const Case& c, const Cluster& hardware,
                                    const Predictor& predict) {
  if (c.timed) return predict_timed(*c.timed, hardware);
  auto answer = predict(c.question, hardware, c.tuned);
  if (!answer) return tl::unexpected(answer.error());
  if (!c.before) {
    if (const auto e = read_out(c.readout, *answer)) return *e;
    return fail(ErrorCode::unsupported, message(EvidenceMessage::metric_not_in_answer), c.where);
  }
  // The readout's seconds are those of the whole; `scale` turns what is left into a rate.
  auto before = predict(*c.before, hardware, c.tuned);
  if (!before) return tl::unexpected(before.error());
  Readout seconds = c.readout;
  seconds.kind = Readout::Kind::metric;
  seconds.scale = 1;
  const auto whole = read_out(seconds, *answer), part = read_out(seconds, *before);
  if (!whole || !part || !(whole->value > part->value))
    return fail(ErrorCode::unsupported, message(EvidenceMessage::metric_not_in_answer), c.where);
  // Both share what makes the range, so the difference has the range of the whole.
  const double value = c.readout.scale / (whole->value - part->value);
  return Estimate<double>{value, value * whole->value / whole->high,
                          value * whole->value / whole->low, worse(whole->basis, part->basis)};
}

void predict_all(std::vector<CaseOrRefusal>& cases, const Predictor& predict,
                 const ValidateOptions& options, std::vector<RowOutcome>& rows) {
  std::atomic<std::size_t> next{0};
  auto work = [&] {
    for (std::size_t i; (i = next.fetch_add(1)) < cases.size();) {
      auto* c = std::get_if<Case>(&cases[i]);
      if (!c) continue;
      // Judged unseen: with coefficients that were fitted without the fold of this row.
      if (!options.unseen.empty()) {
        const auto fold = static_cast<std::size_t>(c->fold) % options.unseen.size();
        c->question.calibration = &options.unseen[fold];
        if (c->before) c->before->calibration = &options.unseen[fold];
      }
      auto e = predict_case(*c, predict);
      if (e) {
        rows[i].predicted = *e;
        rows[i].measured = c->measured;
      } else {
        rows[i].refusal = Refusal{RefusalReason::prediction_failed, {}};
        rows[i].error = std::move(e.error());
      }
    }
  };
  const unsigned machine = std::max(1u, std::thread::hardware_concurrency());
  const auto count = options.threads > 0 ? static_cast<unsigned>(options.threads) : machine;
  std::vector<std::thread> pool;
  for (unsigned t = 1; t < count; ++t) pool.emplace_back(work);
  work();
  for (std::thread& t : pool) t.join();
}

struct Tally {
  ValidateGroup group;
  std::vector<Compared> compared, trusted;

  void add(const RowOutcome& row) {
    ++group.rows;
    if (row.refusal && out_of_scope(row.refusal->reason)) return;
    ++group.in_scope;
    if (!row.predicted) {
      ++group.refused;
      return;
    }
    ++group.predicted;
    compared.push_back({row.measured, *row.predicted});
    if (row.trusted) trusted.push_back(compared.back());
  }
  ValidateGroup finish(std::string name) {
    group.group = std::move(name);
    group.errors = error_statistics(compared);
    group.trusted = static_cast<std::int64_t>(trusted.size());
    group.trusted_median = error_statistics(trusted).median_error;
    return group;
  }
};

ModelKind kind_of(const Case& c) {
  if (c.timed) return ModelKind::language;  // of no model: the first kind holds the figures
  const Stack* s = c.model ? language_stack(*c.model) : nullptr;
  if (!s) return ModelKind::network;
  return s->generates ? ModelKind::language : ModelKind::encoder;
}

// Figures of one kind: its rows by their groups, small ones together.
KindFigures figures_of(const ValidateAnswer& answer, ModelKind kind) {
  std::map<std::string, Tally> tallies;
  Tally all;
  for (const RowOutcome& r : answer.rows) {
    if (r.kind != kind) continue;
    tallies[r.group].add(r);
    all.add(r);
  }
  Tally other;
  std::vector<double> medians;
  auto keep = [&](const ValidateGroup& g) {
    if (g.errors.median_error) medians.push_back(*g.errors.median_error);
  };
  const bool several = tallies.size() > 1;
  for (auto& [name, tally] : tallies) {
    if (!several || tally.group.rows >= kSmallGroup) {
      keep(tally.finish(name));
      continue;
    }
    other.group.rows += tally.group.rows;
    other.compared.insert(other.compared.end(), tally.compared.begin(), tally.compared.end());
  }
  if (other.group.rows > 0) keep(other.finish(kOtherGroup));
  KindFigures out;
  out.overall = all.finish(model_kind_name(kind));
  out.median_of_group_medians = quantile(medians, 0.5);
  return out;
}

// Rows of training that were predicted, as speeds.
std::vector<PlacedRow> placed_rows(const ValidateAnswer& answer,
                                   const std::vector<CaseOrRefusal>& cases,
                                   std::vector<RowPlace>& places) {
  std::vector<PlacedRow> out;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const RowOutcome& r = answer.rows[i];
    const auto* c = std::get_if<Case>(&cases[i]);
    if (!c || !r.predicted || places[i].source.empty()) continue;
    if (!(r.measured > 0) || !(r.predicted->value > 0)) continue;
    const bool seconds = c->readout.metric == Metric::step_seconds;
    out.push_back({std::move(places[i]), seconds ? 1 / r.measured : r.measured,
                   seconds ? 1 / r.predicted->value : r.predicted->value});
  }
  return out;
}

void summarise(ValidateAnswer& answer) {
  std::map<std::string, std::int64_t> sizes;
  for (const RowOutcome& r : answer.rows) ++sizes[r.group];
  std::map<std::string, Tally> tallies;
  Tally other, all;
  std::array<std::int64_t, kRefusalReasons> refused{};
  for (RowOutcome& r : answer.rows) {
    const bool small = sizes[r.group] < kSmallGroup && sizes.size() > 1;
    if (small) r.group = kOtherGroup;
    (small ? other : tallies[r.group]).add(r);
    all.add(r);
    if (r.refusal) ++refused[static_cast<std::size_t>(r.refusal->reason)];
  }
  std::vector<double> medians;
  auto keep = [&](ValidateGroup g) {
    if (g.errors.median_error) medians.push_back(*g.errors.median_error);
    answer.groups.push_back(std::move(g));
  };
  for (auto& [name, tally] : tallies) keep(tally.finish(name));
  if (other.group.rows > 0) keep(other.finish(kOtherGroup));
  answer.overall = all.finish("overall");
  answer.median_of_group_medians = quantile(medians, 0.5);
  for (std::size_t k = 0; k < kModelKinds; ++k)
    answer.kinds[k] = figures_of(answer, static_cast<ModelKind>(k));
  for (std::size_t i = 0; i < kRefusalReasons; ++i)
    if (refused[i] > 0) answer.refusals.push_back({static_cast<RefusalReason>(i), refused[i]});
  std::stable_sort(answer.refusals.begin(), answer.refusals.end(),
                   [](const RefusalCount& a, const RefusalCount& b) { return a.rows > b.rows; });
}

}  // namespace

bool above_trusted_limit(const ValidateGroup& g) {
  return g.trusted >= kFewestTrusted && g.trusted_median && *g.trusted_median > kMostTrusted;
}

const char* model_kind_name(ModelKind k) {
  constexpr std::array<const char*, kModelKinds> names = {"language", "encoder", "network"};
  return names[static_cast<std::size_t>(k)];
}

Result<Estimate<double>> predict_case(const Case& c, const Predictor& predict) {
  std::vector<Estimate<double>> of_cards;
  std::optional<Error> first_error;
  for (const Cluster& hardware : c.hardware) {
    auto e = predict_on(c, hardware, predict);
    if (e)
      of_cards.push_back(*e);
    else if (!first_error)
      first_error = std::move(e.error());
  }
  // A card that cannot run the row at all is not the one that it was measured on.
  if (of_cards.empty()) return tl::unexpected(std::move(*first_error));
  std::sort(of_cards.begin(), of_cards.end(),
            [](const auto& a, const auto& b) { return a.value < b.value; });
  const std::size_t n = of_cards.size();
  Estimate<double> e = of_cards[n / 2];
  if (n % 2 == 0) e.value = std::sqrt(of_cards[n / 2 - 1].value * of_cards[n / 2].value);
  for (const Estimate<double>& one : of_cards) {
    e.low = std::min(e.low, one.low);
    e.high = std::max(e.high, one.high);
    e.basis = worse(e.basis, one.basis);
  }
  return e;
}

Result<ValidateAnswer> validate(const std::vector<CsvTable>& tables, const RowNames& names,
                                const Predictor& predict, const ValidateOptions& options) {
  ValidateAnswer answer;
  std::vector<CaseOrRefusal> cases;
  std::vector<RowPlace> places;
  for (const CsvTable& table : tables) {
    const auto schema = detect_schema(table);
    if (!schema) return tl::unexpected(schema.error());
    for (const CsvRow& fields : table.rows) {
      const Row row(table, fields);
      auto group = group_of(*schema, row, options);
      if (!group) return tl::unexpected(group.error());
      RowOutcome outcome;
      outcome.schema = *schema;
      outcome.id = std::string(row.text("id"));
      outcome.group = std::move(*group);
      outcome.where = row.where();
      outcome.trusted = row.text("trust").empty();
      places.push_back(place_of(*schema, row));
      cases.push_back(read_case(*schema, row, names));
      if (const auto* refusal = std::get_if<Refusal>(&cases.back()))
        outcome.refusal = *refusal;
      else
        outcome.assumptions = std::get<Case>(cases.back()).assumptions;
      if (const auto* c = std::get_if<Case>(&cases.back())) outcome.kind = kind_of(*c);
      answer.rows.push_back(std::move(outcome));
    }
  }
  predict_all(cases, predict, options, answer.rows);
  summarise(answer);
  const std::vector<PlacedRow> placed = placed_rows(answer, cases, places);
  answer.choices = plan_choices(placed);
  answer.scaling = scaling_steps(placed);
  return answer;
}

}  // namespace trigon
