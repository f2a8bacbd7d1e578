// The committed evidence through the catalogues and the estimator: what can be predicted is, what
// cannot has a reason, and threads change nothing.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "evidence/catalogue_names.hpp"
#include "evidence/thresholds.hpp"

namespace trigon {
namespace {

const Catalogues& catalogues() {
  static const auto all = Catalogues::load();
  if (!all) ADD_FAILURE() << all.error().where;
  return **all;
}

// Every `step`-th row of a table under data/measured/.
CsvTable evidence(const std::string& name, std::size_t step = 1) {
  auto table =
      read_csv(std::filesystem::path(TRIGON_SOURCE_DIR) / "data" / "measured" / (name + ".csv"));
  if (!table) ADD_FAILURE() << table.error().where;
  std::vector<CsvRow> kept;
  for (std::size_t i = 0; i < table->rows.size(); i += step)
    kept.push_back(std::move(table->rows[i]));
  table->rows = std::move(kept);
  return std::move(*table);
}

ValidateAnswer answer_to(const std::vector<CsvTable>& tables, int threads) {
  ValidateOptions options;
  options.threads = threads;
  auto answer =
      validate(tables, row_names_unseen(catalogues()), catalogue_predictor(catalogues()), options);
  if (!answer) ADD_FAILURE() << answer.error().where;
  return std::move(*answer);
}

TEST(EvidencePredictions, AreTheSameForAnyNumberOfThreads) {
  const std::vector<CsvTable> tables = {evidence("memory", 3), evidence("train", 11),
                                        evidence("infer", 41)};
  const ValidateAnswer one = answer_to(tables, 1), three = answer_to(tables, 3);
  ASSERT_EQ(one.rows.size(), three.rows.size());
  for (std::size_t i = 0; i < one.rows.size(); ++i) {
    const auto &a = one.rows[i].predicted, &b = three.rows[i].predicted;
    ASSERT_EQ(a.has_value(), b.has_value()) << one.rows[i].id;
    if (!a) continue;
    EXPECT_EQ(a->value, b->value) << one.rows[i].id;
    EXPECT_EQ(a->low, b->low) << one.rows[i].id;
    EXPECT_EQ(a->high, b->high) << one.rows[i].id;
  }
}

TEST(EvidencePredictions, EveryRowIsPredictedOrRefusedWithAReason) {
  const ValidateAnswer answer = answer_to({evidence("memory"), evidence("train", 5)}, 0);
  std::int64_t predicted = 0, refused = 0;
  for (const RowOutcome& r : answer.rows) {
    EXPECT_NE(r.predicted.has_value(), r.refusal.has_value()) << r.where;
    if (r.predicted) {
      ++predicted;
      EXPECT_LE(r.predicted->low, r.predicted->value) << r.id;
      EXPECT_LE(r.predicted->value, r.predicted->high) << r.id;
      EXPECT_GE(r.predicted->low, 0) << r.id;
    } else if (r.refusal->reason == RefusalReason::prediction_failed) {
      EXPECT_TRUE(r.error) << r.id;
    }
  }
  for (const RefusalCount& r : answer.refusals) refused += r.rows;
  EXPECT_EQ(predicted, answer.overall.predicted);
  EXPECT_EQ(predicted + refused, answer.overall.rows);
  EXPECT_GT(predicted, answer.overall.in_scope / 2);
}

// What does not need a model of speed has to be right: bytes of known tensors and caches.
TEST(EvidencePredictions, CachesAndFilesOfLlamaCppAreExact) {
  const ValidateAnswer answer = answer_to({evidence("memory")}, 0);
  std::map<std::string, const ValidateGroup*> groups;
  for (const ValidateGroup& g : answer.groups) groups[g.group] = &g;
  for (const char* name : {"kv_cache / ik_llama.cpp", "weights / llama.cpp"}) {
    ASSERT_TRUE(groups.count(name)) << name;
    ASSERT_TRUE(groups[name]->errors.p90_error) << name;
    EXPECT_LT(*groups[name]->errors.p90_error, 0.005) << name;
  }
}

TEST(EvidencePredictions, KeepTheCommittedThresholds) {
  const FactSheet* sheet = catalogues().facts.find("thresholds", "validate");
  if (!sheet) GTEST_SKIP() << "no thresholds yet";
  const auto limits = read_thresholds(*sheet);
  ASSERT_TRUE(limits);
  for (const char* name : {"memory", "train", "infer"}) {
    const ValidateAnswer answer = answer_to({evidence(name)}, 0);
    EXPECT_TRUE(broken_thresholds(*limits, answer).empty()) << name;
  }
}

}  // namespace
}  // namespace trigon
