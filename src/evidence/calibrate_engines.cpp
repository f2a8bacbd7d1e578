#include "evidence/calibrate_engines.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "decide/best_plan.hpp"
#include "evidence/fit.hpp"

namespace trigon {
namespace {

// Log errors beyond this count no more: a wrong reading must not steer a fit.
constexpr double kCap = 1.0;
// Rows that a finer fit needs before it is half free of the coarser one; those of one source count
// as the square root of their number.
constexpr double kPriorRows = 6;
constexpr std::size_t kFewest = 4;
// Host work once a pass of a graph at most: scheduling and input take 0.5 to 2 ms. What a fit wants
// beyond that stands for something else, and would make every small network slow.
constexpr double kMostGraphStep = 2e-3;
// Share of a step between nodes that may be communication in a row that steers.
constexpr double kMostLinks = 0.2;
constexpr const char* kKindOfTraining = "#train";
constexpr const char* kKindOfServing = "#serve";

struct Fitted {
  std::shared_ptr<const Model> model;  // the tables point into it
  Tables tables;
  Plan plan;
  std::optional<Tables> before;
  Readout readout;
  double measured = 0;
  double weight = 1;
  int fold = 0;
  std::uint64_t draw = 0;  // hash of the row's id: its place in the draw of a sample
  std::string engine, family, vendor, cls, source;
  bool training = false;
};

EstimateAnswer bare_answer(const Tables& t, const Plan& plan) {
  EstimateAnswer a;
  Evaluation e = evaluate(t, plan);
  for (std::size_t m = 0; m < kMetrics; ++m)
    if (std::isfinite(e.values[m])) a.report.metrics[m] = exactly(e.values[m]);
  a.report.plan = plan;
  return a;
}

std::optional<double> predicted(Fitted& f, const EngineCoefficients& c) {
  reprice(f.tables, c);
  auto v = read_out(f.readout, bare_answer(f.tables, f.plan));
  if (!v || !(v->value > 0)) return std::nullopt;
  return v->value;
}

double log_error(Fitted& f, const EngineCoefficients& c) {
  auto v = predicted(f, c);
  return v ? std::log(*v / f.measured) : kCap;
}

// Plans are chosen and rows let in under these: what ships must not steer what it is fitted anew
// by.
EngineTable neutral_table() {
  EngineCoefficients n;
  n.error = 0.3;
  n.layer_overhead_seconds = 2e-5;
  n.operator_overhead_seconds = 5e-6;
  n.step_overhead_seconds = 5e-4;
  EngineTable t;
  t["any-serve//all"] = n;
  t["any-train//all"] = n;
  return t;
}

std::optional<Fitted> fitted_case(const Catalogues& all, const Calibration& neutral, const Case& c,
                                  const Row& row) {
  if (c.before || c.hardware.empty()) return std::nullopt;
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
  if (auto batch = std::get_if<Batch>(&s->job); s->stack && batch && !batch->requests &&
                                                !c.question.plan.micro_batch &&
                                                row.text("stat") != "max")
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
    // A pipeline works on as many groups of sequences as it has stages.
    domain.batches = {std::max(1, plan.micro_batch / std::max(1, plan.pipeline)),
                      std::max(1, plan.micro_batch)};
    if (domain.batches[0] == domain.batches[1]) domain.batches.pop_back();
  } else {
    for (std::int32_t b = 1; b < 2 * most && b <= 4096; b *= 2) domain.batches.push_back(b);
  }
  auto tables = prepare_for(*s, domain);
  if (!tables) return std::nullopt;
  // Where links between nodes take a good part of a step, its time says as much of a network that
  // nobody measured as of kernels.
  if (s->training && cluster.count() > cluster.per_node) {
    const Evaluation e = evaluate(*tables, plan);
    if (e[Metric::exposed_communication_seconds] > kMostLinks * e[Metric::step_seconds])
      return std::nullopt;
  }
  Fitted f;
  f.model = c.model;
  f.tables = std::move(*tables);
  f.plan = plan;
  f.readout = c.readout;
  f.measured = c.measured;
  f.fold = c.fold;
  f.engine = s->engine.id;
  f.family = cluster.accelerator->family;
  f.vendor = cluster.accelerator->vendor;
  f.cls = weight_class(*s->model, domain);
  f.training = s->training;
  f.source = row.repository();
  f.draw = 0xCBF29CE484222325ULL;  // FNV-1a, then mixed
  for (const char ch : c.id) f.draw = (f.draw ^ static_cast<unsigned char>(ch)) * 0x100000001B3ULL;
  f.draw = SplitMix(f.draw).next();
  if (row.text("trust") == "low") f.weight = 0.1;
  return f;
}

struct Fit {
  std::vector<Fitted>* rows;
  int without = -1;  // fold left out

  bool sees(const Fitted& f) const { return f.fold != without; }

  // Fits one node of the tree; `parent` is where it starts and what it is held to.
  std::optional<EngineCoefficients> node(const std::vector<std::size_t>& members,
                                         const EngineCoefficients& parent, std::size_t& used) {
    std::vector<std::size_t> seen;
    std::map<std::string, double> per_source;
    for (std::size_t i : members)
      if (sees((*rows)[i])) seen.push_back(i), per_source[(*rows)[i].source] += (*rows)[i].weight;
    used = seen.size();
    if (seen.size() < kFewest) return std::nullopt;
    // A thousand rows of one source say little more than a hundred: weights shrink with the root.
    // Those with the smallest hashes: a few rows more or less change the sample by a few.
    constexpr std::size_t kMost = 96;
    std::vector<std::size_t> sample = seen;
    std::stable_sort(sample.begin(), sample.end(), [&](std::size_t a, std::size_t b) {
      return (*rows)[a].draw < (*rows)[b].draw;
    });
    sample.resize(std::min(kMost, sample.size()));
    EngineCoefficients c = parent;
    bool training = (*rows)[seen[0]].training;
    const bool graph = all_classes((*rows)[seen[0]].cls) == "graph-all";
    auto weight = [&](const Fitted& f) { return f.weight / std::sqrt(per_source[f.source]); };
    double total = 0;
    for (const auto& [source, w] : per_source) total += std::sqrt(w);
    EngineCoefficients start = c;
    auto loss = [&] {
      double sum = 0, weights = 0;
      for (std::size_t i : sample) {
        Fitted& f = (*rows)[i];
        double w = weight(f);
        sum += w * std::min(kCap, std::fabs(log_error(f, c)));
        weights += w;
      }
      sum /= weights;
      double held = kPriorRows / (kPriorRows + total) * 0.3;
      auto away = [&](double a, double b) { return std::fabs(std::log(a / b)); };
      double penalty =
          away(c.compute_factor, start.compute_factor) +
          away(c.stream_factor, start.stream_factor) +
          0.5 * away(c.attention_factor, start.attention_factor) +
          0.05 * away(c.step_overhead_seconds, start.step_overhead_seconds) +
          (graph ? away(c.convolution_factor, start.convolution_factor) +
                       0.5 * away(c.cache_speedup, start.cache_speedup) +
                       0.05 * away(c.operator_overhead_seconds, start.operator_overhead_seconds)
                 : 0.05 * away(c.layer_overhead_seconds, start.layer_overhead_seconds)) +
          (training ? 0.3 * away(c.overlap + 0.1, start.overlap + 0.1) : 0);
      return sum + held * penalty;
    };
    std::vector<FitParameter> p{{&c.compute_factor, 0.02, 1.6},
                                {&c.stream_factor, 0.02, 1.25},
                                {&c.attention_factor, 0.01, 1.6}};
    if (graph) {
      p.push_back({&c.convolution_factor, 0.02, 1.6});
      p.push_back({&c.convolution_k_half, 1, 2000});
      p.push_back({&c.cache_speedup, 1, 5});
      p.push_back({&c.operator_overhead_seconds, 1e-8, 2e-4});
    } else {
      p.push_back({&c.layer_overhead_seconds, 1e-6, 5e-3});
    }
    if (training) p.push_back({&c.overlap, 0.05, 1});
    p.push_back({&c.step_overhead_seconds, 1e-5, graph ? kMostGraphStep : training ? 0.5 : 0.05});
    // Overheads are floors: below the time of a layer they change nothing, so a search that starts
    // there would never find them. A few starts do.
    EngineCoefficients best = c;
    double least = loss();
    double EngineCoefficients::*overhead = graph ? &EngineCoefficients::operator_overhead_seconds
                                                 : &EngineCoefficients::layer_overhead_seconds;
    const double grain = graph ? 0.02 : 1;  // an operator is a small part of a layer
    for (double each : {start.*overhead, 1e-4 * grain, 3e-4 * grain, 1e-3 * grain, 3e-3 * grain})
      for (double step : {start.step_overhead_seconds, 3e-3, 2e-2}) {
        c = start;
        c.*overhead = each;
        c.step_overhead_seconds = graph ? std::min(step, kMostGraphStep) : step;
        if (double l = loss(); l < least) least = l, best = c;
      }
    c = best;
    minimise(p, loss, graph ? 240 : 110, 41);
    std::vector<double> errors;
    for (std::size_t i : seen) errors.push_back(std::fabs(log_error((*rows)[i], c)));
    std::sort(errors.begin(), errors.end());
    c.error = errors[std::min(errors.size() - 1, errors.size() * 68 / 100)];
    c.end_to_end = true;
    return c;
  }

  EngineTable table(std::map<std::string, std::size_t>* counts) {
    EngineTable out;
    std::map<std::string, std::vector<std::size_t>> nodes;
    for (std::size_t i = 0; i < rows->size(); ++i) {
      const Fitted& f = (*rows)[i];
      const char* any = f.training ? "any-train" : "any-serve";
      for (const std::string& engine : {std::string(any), f.engine})
        for (const std::string& scope : {std::string(), f.vendor, f.family})
          for (const std::string& cls : {std::string(all_classes(f.cls)), f.cls})
            nodes[engine_key(engine, scope, cls)].push_back(i);
    }
    auto fit = [&](const std::string& key, const EngineCoefficients& parent) {
      auto it = nodes.find(key);
      if (it == nodes.end()) return;
      std::size_t used = 0;
      if (auto c = node(it->second, parent, used)) {
        c->sheet = key;
        out[key] = *c;
        if (counts) (*counts)[key] = used;
      }
    };
    EngineCoefficients neutral;
    neutral.error = 0.3;
    // Where the search for overheads starts: a launch or two a layer, half a millisecond a step.
    neutral.layer_overhead_seconds = 2e-5;
    neutral.step_overhead_seconds = 5e-4;
    // Training launches some thirty kernels a layer from the host, a few microseconds each.
    EngineCoefficients neutral_train = neutral;
    neutral_train.layer_overhead_seconds = 1.5e-4;
    EngineCoefficients neutral_graph = neutral;
    // A launch from the host takes a few microseconds.
    neutral_graph.layer_overhead_seconds = 0;
    neutral_graph.operator_overhead_seconds = 5e-6;
    neutral_graph.cache_speedup = 2;
    neutral_graph.step_overhead_seconds = 2e-4;
    // Coarse to fine. The parent is the nearest coarser node that exists.
    auto parent_of = [&](std::initializer_list<std::string> keys) {
      for (const std::string& k : keys)
        if (auto it = out.find(k); it != out.end()) return it->second;
      const std::string& key = *keys.begin();
      if (key.find("/graph-") != std::string::npos) return neutral_graph;
      return key.rfind("any-train", 0) == 0 ? neutral_train : neutral;
    };
    std::set<std::array<std::string, 5>> kinds;
    for (const Fitted& f : *rows)
      kinds.insert({f.training ? "any-train" : "any-serve", f.engine, f.vendor, f.family, f.cls});
    for (int level = 0; level < 6; ++level)
      for (const auto& [any, engine, vendor, family, cls] : kinds) {
        const std::string_view all_of = all_classes(cls);
        std::string a = engine_key(any, "", all_of), ac = engine_key(any, "", cls);
        std::string e = engine_key(engine, "", all_of), ec = engine_key(engine, "", cls);
        std::string vc = engine_key(engine, vendor, cls), dc = engine_key(engine, family, cls);
        const std::string key[] = {a, ac, e, ec, vc, dc};
        if (out.count(key[level])) continue;
        switch (level) {
          case 0:
            fit(a, all_of != "all" ? neutral_graph : any == "any-train" ? neutral_train : neutral);
            break;
          case 1:
            fit(ac, parent_of({a}));
            break;
          case 2:
            fit(e, parent_of({a}));
            break;
          case 3:
            fit(ec, parent_of({e, ac, a}));
            break;
          case 4:
            fit(vc, parent_of({ec, e, ac, a}));
            break;
          default:
            fit(dc, parent_of({vc, ec, e, ac, a}));
        }
      }
    if (!out.count("any-serve//all")) out["any-serve//all"] = neutral;
    if (!out.count("any-train//all")) out["any-train//all"] = neutral;
    return out;
  }
};

EngineTable::const_iterator entry_of(const EngineTable& t, const Fitted& f) {
  return find_engine(t, f.engine, *f.tables.cluster.accelerator, f.training, f.cls);
}

}  // namespace

Result<EngineFit> calibrate_engines(const Catalogues& all, const std::vector<CsvTable>& tables,
                                    const RowNames& names) {
  std::vector<Fitted> rows;
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
      if (auto f = fitted_case(all, neutral, *c, row)) rows.push_back(std::move(*f));
    }
  }
  EngineFit out;
  Fit whole{&rows, -1};
  auto shipped = std::make_shared<EngineTable>(whole.table(&out.rows));
  // Each fold's own table, and what it makes of the rows it has not seen. Folds are independent;
  // each thread works on a copy of the rows, because pricing writes into their tables.
  out.unseen.resize(kFolds);
  std::vector<std::vector<std::pair<std::string, double>>> found(kFolds);
  std::atomic<int> next{0};
  auto work = [&] {
    std::vector<Fitted> own = rows;
    for (int fold; (fold = next.fetch_add(1)) < kFolds;) {
      Fit without{&own, fold};
      auto t = std::make_shared<EngineTable>(without.table(nullptr));
      for (Fitted& f : own) {
        if (f.fold != fold) continue;
        auto own_entry = entry_of(*t, f);
        double e = std::fabs(log_error(f, own_entry->second));
        const std::string& shipped_key = entry_of(*shipped, f)->first;
        found[static_cast<std::size_t>(fold)].emplace_back(shipped_key, e);
        found[static_cast<std::size_t>(fold)].emplace_back(
            f.training ? kKindOfTraining : kKindOfServing, e);
      }
      out.unseen[static_cast<std::size_t>(fold)] = t;
    }
  };
  {
    std::vector<std::jthread> pool;
    for (unsigned n = std::max(1u, std::thread::hardware_concurrency()); n > 1; --n)
      pool.emplace_back(work);
    work();
  }
  std::map<std::string, std::vector<double>> unseen;  // by the shipped key that a row would use
  for (const auto& fold : found)
    for (const auto& [key, e] : fold) unseen[key].push_back(e);
  auto spread = [](std::vector<double> e) {
    std::sort(e.begin(), e.end());
    return e[std::min(e.size() - 1, e.size() * 68 / 100)];
  };
  // The error of a node is that of rows unseen where there are enough of them, else that of its
  // kind; every table, with or without a fold, states the same.
  auto state = [&](EngineTable& t) {
    for (auto& [key, c] : t) {
      bool training = key.rfind("any-train", 0) == 0;
      for (const Fitted& f : rows)
        if (f.engine + "/" == key.substr(0, f.engine.size() + 1)) training = f.training;
      auto it = unseen.find(key);
      const auto& kind = unseen[training ? kKindOfTraining : kKindOfServing];
      double all_of_kind = kind.empty() ? 0.3 : spread(kind);
      if (it != unseen.end() && it->second.size() >= 10) {
        c.error = spread(it->second);
      } else {
        double n = it == unseen.end() ? 0 : static_cast<double>(it->second.size());
        double own = n > 0 ? spread(it->second) : all_of_kind;
        c.error = (n * own + 10 * all_of_kind) / (n + 10);
      }
    }
  };
  state(*shipped);
  for (auto& t : out.unseen) {
    auto copy = std::make_shared<EngineTable>(*t);
    state(*copy);
    t = copy;
  }
  out.shipped = shipped;
  return out;
}

std::vector<std::pair<std::string, std::string>> write_engine_sheets(const EngineFit& fit,
                                                                     const std::string& source,
                                                                     const std::string& date,
                                                                     const std::string& command) {
  auto sheet = [&](const std::string& kind, const std::string& id, const EngineTable& t) {
    std::string out = "# Written by `" + command + "`; run it again instead of editing.\n";
    out += fmt::format("kind = \"{}\"\nid = \"{}\"\nsource = \"{}\"\ndate = \"{}\"\n", kind, id,
                       source, date);
    for (const auto& [key, c] : t) {
      auto a = key.find('/'), b = key.rfind('/');
      out += fmt::format("\n[[engine]]\nengine = \"{}\"\nscope = \"{}\"\nclass = \"{}\"\n",
                         key.substr(0, a), key.substr(a + 1, b - a - 1), key.substr(b + 1));
      out += fmt::format(
          "compute_factor = {:.4g}\nstream_factor = {:.4g}\nattention_factor = {:.4g}\n"
          "step_overhead_seconds = {:.4g}\n",
          c.compute_factor, c.stream_factor, c.attention_factor, c.step_overhead_seconds);
      if (key.find("/graph-") != std::string::npos)
        out += fmt::format(
            "convolution_factor = {:.4g}\nconvolution_k_half = {:.4g}\n"
            "cache_speedup = {:.4g}\n"
            "operator_overhead_seconds = {:.4g}\n",
            c.convolution_factor, c.convolution_k_half, c.cache_speedup,
            c.operator_overhead_seconds);
      else
        out += fmt::format("layer_overhead_seconds = {:.4g}\n", c.layer_overhead_seconds);
      auto rows = fit.rows.find(key);
      out += fmt::format("overlap = {:.4g}\nerror = {:.4g}\nrows = {}\n", c.overlap, c.error,
                         rows == fit.rows.end() ? 1 : rows->second);
    }
    return out;
  };
  std::vector<std::pair<std::string, std::string>> out;
  out.emplace_back("engines.toml", sheet("calibration", "engines", *fit.shipped));
  for (std::size_t k = 0; k < fit.unseen.size(); ++k)
    out.emplace_back(fmt::format("folds/engines-{}.toml", k),
                     sheet("calibration_fold", std::to_string(k), *fit.unseen[k]));
  return out;
}

}  // namespace trigon
