#include "evidence/calibrate_engines.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "decide/best_plan.hpp"
#include "evidence/engine_fit.hpp"
#include "evidence/engine_priors.hpp"
#include "step/pass_time.hpp"

namespace trigon {
namespace {

// Share of a step between nodes that may be communication in a row that steers.
constexpr double kMostLinks = 0.2;
// Rows of one source and metric that steer at most.
constexpr std::size_t kMostOfGroup = 160;
// Devices, sources and families of models are left out in so many groups.
constexpr int kParts = 5;
// Rows of a coarser key that weigh as much as those of a finer one in its error.
constexpr double kPriorRows = 10;
// No engine is known better: two runs of one program differ by as much.
constexpr double kLeastError = 0.02;
// Of a bell curve, the deviations within which four of five values lie.
constexpr double kFourOfFive = 1.2816;

struct Fitted {
  std::shared_ptr<const Model> model;  // the tables point into it
  Tables tables;
  Plan plan;
  std::optional<Tables> before;  // of the part of a prompt that is taken off
  Readout readout;
  double measured = 0;
  double weight = 1;
  int fold = 0;
  EngineSubject subject;
  std::string source, group, model_family;
  std::uint64_t draw = 0;  // hash of the row's id: its place in the draw of a sample
};

EstimateAnswer bare_answer(const Tables& t, const Plan& plan) {
  EstimateAnswer a;
  Evaluation e = evaluate(t, plan);
  for (std::size_t m = 0; m < kMetrics; ++m)
    if (std::isfinite(e.values[m])) a.report.metrics[m] = exactly(e.values[m]);
  a.report.plan = plan;
  return a;
}

double log_error(Fitted& f, const EngineCoefficients& c) {
  reprice(f.tables, c);
  if (f.before) {
    reprice(*f.before, c);
    const double rest = evaluate(f.tables, f.plan)[Metric::prefill_seconds] -
                        evaluate(*f.before, f.plan)[Metric::prefill_seconds];
    return rest > 0 ? std::log(f.readout.scale / rest / f.measured)
                    : std::numeric_limits<double>::quiet_NaN();
  }
  const auto v = read_out(f.readout, bare_answer(f.tables, f.plan));
  return v && v->value > 0 ? std::log(v->value / f.measured)
                           : std::numeric_limits<double>::quiet_NaN();
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t h = 0xCBF29CE484222325ULL;  // FNV-1a
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  // The last letters of an id barely reach the upper bits, so that an order by them would draw
  // whole blocks of a file (G. Steele et al., "Fast splittable pseudorandom number generators",
  // OOPSLA 2014: the finaliser of SplitMix64).
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ULL;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBULL;
  return h ^ (h >> 31);
}

// The share of a row's time that arithmetic binds: what a faster unit takes off it.
double compute_share(Fitted& f, const EngineCoefficients& c, double error) {
  constexpr double kFaster = 0.1;
  EngineCoefficients faster = c;
  faster.compute_factor *= std::exp(kFaster);
  faster.convolution_factor *= std::exp(kFaster);
  const double then = log_error(f, faster);
  return std::isfinite(then) ? std::clamp((std::fabs(error - then)) / kFaster, 0.0, 1.0) : 0.0;
}

// Plans are chosen and rows let in under these: what ships must not steer what it is fitted anew
// by.
EngineTable neutral_table() {
  EngineTable t;
  for (std::size_t k = 0; k < kEngineKinds; ++k) {
    const auto kind = static_cast<EngineKind>(k);
    const EngineCoefficients c = neutral_coefficients(kind);
    EngineSubject all;
    all.kind = kind;
    EngineEffect& e = t.effects[effect_key(all, EngineLevel::kind)];
    for (std::size_t p = 0; p < kEngineParameters; ++p)
      e.factor[p] = c.*engine_parameters()[p].field;
    t.errors[std::string(engine_kind_name(kind)) + "//"] = {0.3, 0.3, 0};
  }
  t.strange = t.errors;
  return t;
}

std::optional<Fitted> fitted_case(const Catalogues& all, const Calibration& neutral, const Case& c,
                                  const Row& row, std::set<std::string>& engines) {
  if (c.hardware.empty()) return std::nullopt;
  if (c.readout.kind == Readout::Kind::memory_terms || c.readout.kind == Readout::Kind::fits)
    return std::nullopt;
  const Cluster& cluster = c.hardware[c.hardware.size() / 2];
  Question q = c.question;
  q.calibration = &neutral;
  auto s = set_up(all, q, cluster);
  if (!s) return std::nullopt;
  // Under load a time says as much of queues as of kernels: such rows judge, they do not steer.
  if (auto serve = std::get_if<Serve>(&s->job); serve && serve->concurrency.value_or(2) > 1)
    return std::nullopt;
  // So does a batch of unstated size, unless it is the largest throughput that was found.
  if (auto batch = std::get_if<Batch>(&s->job);
      s->stack && batch && !c.question.plan.micro_batch && row.text("stat") != "max")
    return std::nullopt;
  Plan plan;
  if (c.tuned) {
    auto best = best_plan(*s, c.question.plan);
    if (!best || !best->best) return std::nullopt;
    plan = best->best->plan;
  } else {
    auto fixed = default_plan(*s, c.question.plan);
    if (!fixed) return std::nullopt;
    plan = *fixed;
  }
  if (illegal(*s, plan)) return std::nullopt;
  PlanDomain domain = domain_of(*s, c.question.plan, plan);
  double most = plan.micro_batch;
  if (auto serve = std::get_if<Serve>(&s->job))
    most = std::max(most, serve->concurrency.value_or(256));
  if (std::holds_alternative<Batch>(s->job)) {
    // A pipeline works on as many groups of sequences as it has stages; in a steady state prompts
    // come one by one, or as many as a pass holds.
    std::set<std::int32_t> batches{std::max(1, plan.micro_batch / std::max(1, plan.pipeline)),
                                   std::max(1, plan.micro_batch)};
    if (const auto& batch = std::get<Batch>(s->job);
        s->stack && (!batch.requests || *batch.requests > plan.micro_batch * plan.data)) {
      batches.insert(1);
      const double input = std::max<double>(1, static_cast<double>(batch.input_tokens));
      batches.insert(
          static_cast<std::int32_t>(std::clamp(pass_tokens(s->engine) / input, 1.0, 4096.0)));
    }
    domain.batches.assign(batches.begin(), batches.end());
  } else {
    for (std::int32_t b = 1; b < 2 * most && b <= 4096; b *= 2) domain.batches.push_back(b);
  }
  auto tables = prepare_for(*s, domain);
  if (!tables) return std::nullopt;
  std::optional<Tables> before;
  if (c.before) {
    Question part = *c.before;
    part.calibration = &neutral;
    auto taken_off = set_up(all, part, cluster);
    if (!taken_off) return std::nullopt;
    auto made = prepare_for(*taken_off, domain);
    if (!made) return std::nullopt;
    before = std::move(*made);
    before->time_steps = false;
  }
  // Where links between nodes take a good part of a step, its time says as much of a network that
  // nobody measured as of kernels.
  if (s->training && cluster.count() > cluster.per_node) {
    const Evaluation e = evaluate(*tables, plan);
    if (e[Metric::exposed_communication_seconds] > kMostLinks * e[Metric::step_seconds])
      return std::nullopt;
  }
  // Only what the row is read against is timed again for every trial.
  const bool metric_alone =
      c.readout.kind == Readout::Kind::metric || c.readout.kind == Readout::Kind::reciprocal;
  tables->time_prompts = !metric_alone || c.readout.metric != Metric::decode_step_seconds;
  tables->time_steps = !metric_alone || c.readout.metric != Metric::prefill_seconds;
  Fitted f;
  f.model = c.model;
  f.tables = std::move(*tables);
  f.plan = plan;
  f.before = std::move(before);
  f.readout = c.readout;
  f.measured = c.measured;
  f.fold = c.fold;
  f.subject = engine_subject(*engines.insert(s->engine.id).first, *cluster.accelerator, s->training,
                             weight_class(*s->model, domain), stored_format(*s->model, domain),
                             *engines.insert(s->engine.library).first);
  f.subject.own_products = s->engine.own_products;
  f.subject.eager = s->engine.launch == Launch::eager;
  f.source = row.repository();
  f.model_family = row.model_family();
  f.group = f.source + " / " + std::string(row.text("metric"));
  f.draw = hash_of(c.id);
  if (row.text("trust") == "low") f.weight = 0.1;
  return f;
}

// One row that its fit has not seen.
struct Unseen {
  std::size_t row = 0;
  double error = 0;    // log(predicted / measured)
  double compute = 0;  // share of its time that arithmetic binds
};

// Log errors, each with the weight of its row.
struct Errors {
  std::vector<std::pair<double, double>> of;
  double weight = 0;
  void add(double error, double w) {
    of.emplace_back(std::fabs(error), w);
    weight += w;
  }
  // One standard deviation of the bell curve that holds four of five of them.
  double spread() const {
    auto sorted = of;
    std::sort(sorted.begin(), sorted.end());
    double below = 0;
    for (const auto& [error, w] : sorted)
      if ((below += w) > 0.8 * weight) return error / kFourOfFive;
    return sorted.back().first / kFourOfFive;
  }
};

// Errors by kind, engine and family: those of unseen rows, the finer held to the coarser. In a
// family rows of one source and device tell as many times as the root of their number: a few odd
// ones do not make it.
std::map<std::string, EngineErrors, std::less<>> errors_of(const std::vector<Unseen>& unseen,
                                                           const std::vector<Fitted>& rows,
                                                           bool families) {
  struct Lists {
    Errors compute, stream;
    std::int64_t rows = 0;
  };
  using Alike = std::pair<std::string_view, std::string_view>;
  const auto alike = [&](const Unseen& u) {
    return Alike(rows[u.row].group, rows[u.row].subject.device);
  };
  std::map<Alike, double> count;
  for (const Unseen& u : unseen) ++count[alike(u)];
  std::array<std::map<std::string, Lists>, 3> levels;
  for (const Unseen& u : unseen) {
    const EngineSubject& s = rows[u.row].subject;
    const std::string kind = engine_kind_name(s.kind), engine = kind + "/" + std::string(s.engine);
    const std::string keys[] = {kind + "//", engine + "/", engine + "/" + std::string(s.family)};
    for (std::size_t l = 0; l < (families ? 3 : 2); ++l) {
      Lists& list = levels[l][keys[l]];
      (u.compute >= 0.5 ? list.compute : list.stream)
          .add(u.error, l < 2 ? 1 : 1 / std::sqrt(count[alike(u)]));
      ++list.rows;
    }
  }
  std::map<std::string, EngineErrors, std::less<>> out;
  for (std::size_t l = 0; l < levels.size(); ++l)
    for (const auto& [key, lists] : levels[l]) {
      const auto kind_end = key.find('/'), engine_end = key.rfind('/');
      const std::string parent =
          l == 1 ? key.substr(0, kind_end) + "//" : key.substr(0, engine_end) + "/";
      const EngineErrors* above = l == 0 ? nullptr : &out.at(parent);
      const auto held = [&](const Errors& own, double coarse) {
        if (own.of.empty()) return above ? coarse : 0.3;
        const double s = std::max(own.spread(), kLeastError);
        if (!above) return s;
        return std::exp((own.weight * std::log(s) + kPriorRows * std::log(coarse)) /
                        (own.weight + kPriorRows));
      };
      out[key] = {held(lists.compute, above ? above->compute : 0),
                  held(lists.stream, above ? above->stream : 0), lists.rows};
    }
  return out;
}

using Effects = std::map<std::string, EngineEffect, std::less<>>;

// All kinds of work, each fitted on its own.
class Fits {
 public:
  explicit Fits(std::vector<Fitted>& rows) : rows_(rows) {
    // A hundred rows of one source on one device say little more than ten. Where sources vary plans
    // (training of language models) or networks rather than cards, devices do not count apart.
    using Alike = std::pair<std::string_view, std::string_view>;
    const auto alike = [&](std::size_t i) {
      const EngineSubject& s = rows[i].subject;
      const bool apart = s.kind != EngineKind::train && s.kind != EngineKind::serve_graph;
      return Alike(rows[i].group, apart ? s.device : std::string_view());
    };
    std::map<Alike, double> known;
    for (std::size_t i = 0; i < rows.size(); ++i) known[alike(i)] += rows[i].weight;
    for (std::size_t k = 0; k < kEngineKinds; ++k) {
      std::map<std::string, std::vector<std::size_t>> groups;
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i].subject.kind == static_cast<EngineKind>(k)) groups[rows[i].group].push_back(i);
      // Of large groups the rows with the smallest hashes steer: a few rows more or less change
      // the sample by a few.
      for (auto& [group, all] : groups) {
        std::sort(all.begin(), all.end(), [&](std::size_t a, std::size_t b) {
          return std::pair(rows[a].draw, a) < std::pair(rows[b].draw, b);
        });
        all.resize(std::min(all.size(), kMostOfGroup));
        members_[k].insert(members_[k].end(), all.begin(), all.end());
      }
      std::sort(members_[k].begin(), members_[k].end());
      FitProblem& p = problems_[k];
      std::map<Alike, double> drawn;
      for (const std::size_t i : members_[k]) ++drawn[alike(i)];
      for (const std::size_t i : members_[k]) {
        p.subjects.push_back(rows[i].subject);
        p.weights.push_back(rows[i].weight * std::sqrt(known[alike(i)]) / drawn[alike(i)]);
      }
      p.log_error = [this, k](std::size_t row, const EngineCoefficients& c) {
        return log_error(rows_[members_[k][row]], c);
      };
    }
  }

  // `left_out(row)`: whether the fit may not see it.
  template <class LeftOut>
  EngineTable table(LeftOut&& left_out, const EngineTable* start) const {
    EngineTable out = neutral_table();
    for (std::size_t k = 0; k < kEngineKinds; ++k) {
      std::vector<bool> seen;
      bool any = false;
      for (const std::size_t i : members_[k]) {
        seen.push_back(!left_out(rows_[i]));
        any = any || seen.back();
      }
      if (!any) continue;
      for (auto& [key, effect] : fit_effects(problems_[k], static_cast<EngineKind>(k), seen,
                                             start ? &start->effects : nullptr))
        out.effects[key] = effect;
    }
    return out;
  }

  // What a table makes of rows that it has not seen.
  template <class LeftOut>
  void judge(const EngineTable& t, LeftOut&& left_out, std::vector<Unseen>& to) const {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!left_out(rows_[i])) continue;
      const auto c = t.of(rows_[i].subject);
      if (!c) continue;
      const double e = log_error(rows_[i], *c);
      if (std::isfinite(e)) to.push_back({i, e, compute_share(rows_[i], *c, e)});
    }
  }

 private:
  std::vector<Fitted>& rows_;
  std::array<std::vector<std::size_t>, kEngineKinds> members_;
  std::array<FitProblem, kEngineKinds> problems_;
};

double median_error(std::vector<double> e) {
  if (e.empty()) return 0;
  std::sort(e.begin(), e.end());
  return e[e.size() / 2];
}

// Median error of unseen rows by kind and, over all, the median of the medians of its groups.
std::vector<LeftOutFigures> figures(const std::string& what, const std::vector<Unseen>& unseen,
                                    const std::vector<Fitted>& rows) {
  std::map<std::string, std::map<std::string, std::vector<double>>> by_kind;
  for (const Unseen& u : unseen)
    by_kind[engine_kind_name(rows[u.row].subject.kind)][rows[u.row].group].push_back(
        std::fabs(std::exp(u.error) - 1));
  std::vector<LeftOutFigures> out;
  for (const auto& [kind, groups] : by_kind) {
    std::vector<double> all, medians;
    for (const auto& [group, errors] : groups) {
      all.insert(all.end(), errors.begin(), errors.end());
      if (errors.size() >= kSmallGroupRows) medians.push_back(median_error(errors));
    }
    out.push_back({what, kind, static_cast<std::int64_t>(all.size()), median_error(all),
                   median_error(medians)});
  }
  return out;
}

}  // namespace

Result<EngineFit> calibrate_engines(const Catalogues& all, const std::vector<CsvTable>& tables,
                                    const RowNames& names) {
  std::vector<Fitted> rows;
  std::set<std::string> engines;
  const Calibration neutral =
      all.calibration.with_engines(std::make_shared<const EngineTable>(neutral_table()));
  for (const CsvTable& table : tables) {
    auto schema = detect_schema(table);
    if (!schema) return tl::unexpected(schema.error());
    if (*schema != Schema::train && *schema != Schema::infer) continue;
    for (const CsvRow& fields : table.rows) {
      Row row(table, fields);
      auto read = read_case(*schema, row, names);
      auto c = std::get_if<Case>(&read);
      if (!c) continue;
      if (auto f = fitted_case(all, neutral, *c, row, engines)) rows.push_back(std::move(*f));
    }
  }
  const Fits fits(rows);
  EngineFit out;
  EngineTable shipped = fits.table([](const Fitted&) { return false; }, nullptr);
  std::vector<EngineTable> without;
  std::vector<Unseen> unseen, strange, foreign, unlike;
  for (int fold = 0; fold < kFolds; ++fold) {
    const auto left_out = [&](const Fitted& f) { return f.fold == fold; };
    without.push_back(fits.table(left_out, &shipped));
    fits.judge(without.back(), left_out, unseen);
  }
  for (int part = 0; part < kParts; ++part) {
    const auto in_part = [&](std::string_view name) {
      return static_cast<int>(hash_of(name) % kParts) == part;
    };
    const auto device = [&](const Fitted& f) { return in_part(f.subject.device); };
    fits.judge(fits.table(device, &shipped), device, strange);
    const auto source = [&](const Fitted& f) { return in_part(f.source); };
    fits.judge(fits.table(source, &shipped), source, foreign);
    const auto family = [&](const Fitted& f) { return in_part(f.model_family); };
    fits.judge(fits.table(family, &shipped), family, unlike);
  }
  // Every table, with or without a fold, states the same errors.
  const auto errors = errors_of(unseen, rows, true), of_strange = errors_of(strange, rows, false);
  const auto state = [&](EngineTable& t) {
    t.errors = errors;
    t.strange = of_strange;
    return std::make_shared<const EngineTable>(t);
  };
  out.shipped = state(shipped);
  for (EngineTable& t : without) out.unseen.push_back(state(t));
  for (const auto& [what, list] :
       {std::pair<const char*, const std::vector<Unseen>*>{"fold", &unseen},
        {"device", &strange},
        {"source", &foreign},
        {"model_family", &unlike}})
    for (LeftOutFigures& f : figures(what, *list, rows)) out.figures.push_back(std::move(f));
  return out;
}

}  // namespace trigon
