#include "evidence/calibrate_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "evidence/catalogue_names.hpp"
#include "evidence/statistics.hpp"

namespace trigon {
namespace {

constexpr double kHeld = 0.8;  // of the measurements lie inside a range
// Rounding in a log's last digit: no range is narrower.
constexpr double kLeastError = 0.001;
// A row tells of the estimated terms when they are at least this share of its sum.
constexpr double kTells = 0.02;

struct Residual {
  std::string engine;
  bool training = false;
  int fold = 0;
  double counted = 0, estimated = 0, off = 0;  // bytes: of the sum, and measured - predicted
};

std::optional<Residual> residual_of(const Catalogues& all, const Case& c) {
  if (c.readout.kind != Readout::Kind::memory_terms || c.hardware.empty()) return std::nullopt;
  const Cluster& cluster = c.hardware[c.hardware.size() / 2];
  const auto answer = estimate(all, c.question, cluster);
  if (!answer) return std::nullopt;
  const double cards = c.readout.over_ranks ? answer->report.plan.ranks() : 1;
  Residual r;
  r.engine = answer->report.engine.substr(0, answer->report.engine.find(' '));
  r.training = c.question.job.kind == JobKind::train || c.question.job.kind == JobKind::finetune;
  r.fold = c.fold;
  const RankMemory& memory =
      c.readout.last_stage ? answer->report.last_stage() : answer->report.memory;
  for (const MemoryTerm t : c.readout.terms)
    (counted_exactly(t) ? r.counted : r.estimated) += c.readout.scale * cards * memory[t];
  r.counted += c.readout.plus;
  r.off = std::abs(c.measured - r.counted - r.estimated);
  return r;
}

// Of the rows that `take` lets in, the error that holds for `kHeld` of them.
template <class Take, class Error>
std::optional<double> held(const std::vector<Residual>& rows, std::size_t least, Take&& take,
                           Error&& error) {
  std::vector<double> values;
  for (const Residual& r : rows)
    if (take(r)) values.push_back(error(r));
  if (values.size() < least) return std::nullopt;
  return std::max(kLeastError, *quantile(values, kHeld));
}

MemoryErrorTable fit(const std::vector<Residual>& rows, int without,
                     std::map<std::string, std::size_t>* counts) {
  MemoryErrorTable table;
  auto tells = [](const Residual& r) { return r.estimated > kTells * (r.counted + r.estimated); };
  auto state = [&](const std::string& key, std::size_t least, auto&& mine) {
    MemoryErrors e = find_memory_errors(table, "any", key.find("/train") != key.npos);
    const auto counted = held(
        rows, least, [&](const Residual& r) { return mine(r) && !tells(r) && r.counted > 0; },
        [](const Residual& r) { return r.off / (r.counted + r.estimated); });
    if (counted) e.counted = *counted;
    const auto estimated = held(
        rows, least, [&](const Residual& r) { return mine(r) && tells(r); },
        [&](const Residual& r) {
          return std::max(0.0, r.off - e.counted * r.counted) / r.estimated;
        });
    if (estimated) e.estimated = *estimated;
    if (!counted && !estimated) return;
    table[key] = e;
    if (counts)
      (*counts)[key] = static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), mine));
  };
  for (const bool training : {false, true}) {
    auto seen = [&](const Residual& r) { return r.training == training && r.fold != without; };
    state(memory_error_key("any", training), 1, seen);
    std::map<std::string, int> engines;
    for (const Residual& r : rows)
      if (r.training == training) ++engines[r.engine];
    for (const auto& engine : engines)
      state(memory_error_key(engine.first, training), kOwnRows,
            [&](const Residual& r) { return seen(r) && r.engine == engine.first; });
  }
  return table;
}

}  // namespace

Result<MemoryErrorFit> calibrate_memory(const Catalogues& all, const std::vector<CsvTable>& tables,
                                        const RowNames& names) {
  std::vector<Residual> rows;
  for (const CsvTable& table : tables) {
    auto schema = detect_schema(table);
    if (!schema) return tl::unexpected(schema.error());
    if (*schema != Schema::memory) continue;
    for (const CsvRow& fields : table.rows) {
      Row row(table, fields);
      auto read = read_case(*schema, row, names);
      auto c = std::get_if<Case>(&read);
      if (!c) continue;
      if (auto r = residual_of(all, *c)) rows.push_back(std::move(*r));
    }
  }
  MemoryErrorFit out;
  out.shipped = fit(rows, -1, &out.rows);
  for (int fold = 0; fold < kFolds; ++fold) out.unseen.push_back(fit(rows, fold, nullptr));
  return out;
}

std::vector<std::pair<std::string, std::string>> write_memory_sheets(const MemoryErrorFit& fit,
                                                                     const std::string& source,
                                                                     const std::string& date,
                                                                     const std::string& command) {
  auto sheet = [&](const std::string& id, const MemoryErrorTable& table) {
    std::string out = "# Written by `" + command + "`; run it again instead of editing.\n";
    out += fmt::format("kind = \"memory_errors\"\nid = \"{}\"\nsource = \"{}\"\ndate = \"{}\"\n",
                       id, source, date);
    for (const auto& [key, e] : table) {
      const auto slash = key.rfind('/');
      out += fmt::format(
          "\n[[errors]]\nengine = \"{}\"\nphase = \"{}\"\ncounted = {:.4g}\nestimated = {:.4g}\n",
          key.substr(0, slash), key.substr(slash + 1), e.counted, e.estimated);
      if (const auto n = fit.rows.find(key); n != fit.rows.end())
        out += fmt::format("rows = {}\n", n->second);
    }
    return out;
  };
  std::vector<std::pair<std::string, std::string>> out;
  out.emplace_back("memory.toml", sheet("shipped", fit.shipped));
  for (std::size_t k = 0; k < fit.unseen.size(); ++k)
    out.emplace_back(fmt::format("folds/memory-{}.toml", k),
                     sheet("without-" + std::to_string(k), fit.unseen[k]));
  return out;
}

}  // namespace trigon
