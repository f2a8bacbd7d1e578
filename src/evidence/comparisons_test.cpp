#include "evidence/comparisons.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "evidence/fake_names_test.hpp"

namespace trigon {
namespace {

// Each measurement is of a plan of its own.
PlacedRow row(const char* job, double measured, double predicted) {
  return {{"o/r", job, std::to_string(measured), {}, 0}, measured, predicted};
}

TEST(Comparisons, RankCorrelationsByHand) {
  // Two of the ten pairs are out of order: tau is (8 - 2) / 10, rho 1 - 6 * 4 / (5 * 24).
  const std::vector<double> a = {1, 2, 3, 4, 5}, b = {20, 10, 30, 50, 40};
  EXPECT_NEAR(*kendall(a, b), 0.6, 1e-12);
  EXPECT_NEAR(*spearman(a, b), 0.8, 1e-12);
  // A tie: ranks 1, 2.5, 2.5, 4; of six pairs one is tied on one side.
  EXPECT_NEAR(*spearman({1, 2, 2, 3}, {1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5), 1e-12);
  EXPECT_NEAR(*kendall({1, 2, 2, 3}, {1, 2, 3, 4}), 5 / std::sqrt(5.0 * 6), 1e-12);
  EXPECT_FALSE(spearman({1, 1}, {1, 2}));
  EXPECT_FALSE(kendall({1, 2}, {3, 3}));
}

TEST(Comparisons, RegretIsOfThePlanThatIsPredictedFastest) {
  // Job a: the choice reaches 80 of 100; job b: it is the best. Job c has two plans, one measured
  // twice: too few.
  const auto choices = plan_choices(
      {row("a", 100, 5), row("a", 80, 6), row("a", 60, 4), row("b", 10, 30), row("b", 9, 20),
       row("b", 8, 10), row("c", 1, 1), row("c", 2, 1), row("c", 2, 1), row("", 7, 1)});
  ASSERT_EQ(choices.size(), 1u);
  EXPECT_EQ(choices[0].jobs, 2);
  EXPECT_EQ(choices[0].plans, 6);
  EXPECT_NEAR(choices[0].worst_regret, 0.25, 1e-12);
  EXPECT_NEAR(choices[0].median_regret, 0.125, 1e-12);
  EXPECT_EQ(choices[0].found, 0.5);
  EXPECT_NEAR(*choices[0].spearman, (0.5 + 1) / 2, 1e-12);
}

TEST(Comparisons, ScalingIsSpeedOfACardAgainstFewerCards) {
  std::vector<PlacedRow> rows;
  for (int i = 0; i < 5; ++i) {
    const std::string job = "job" + std::to_string(i);
    rows.push_back({{"o/r", {}, {}, job, 1}, 100, 200});
    rows.push_back({{"o/r", {}, {}, job, 8}, 90, i < 2 ? 182.0 : 170.0});
  }
  rows.push_back({{"o/r", {}, {}, "job0", 64}, 45, 100});
  const auto steps = scaling_steps(rows);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].from, 1);
  EXPECT_EQ(steps[0].to, 8);
  EXPECT_EQ(steps[0].pairs, 5);
  EXPECT_NEAR(steps[0].measured, 0.9, 1e-12);
  EXPECT_NEAR(steps[0].predicted, 0.85, 1e-12);
  EXPECT_NEAR(steps[0].median_distance, 0.05, 1e-9);
  EXPECT_NEAR(steps[0].within, 1, 1e-12);
  EXPECT_EQ(steps[1].pairs, 2);  // 1 to 64 and 8 to 64, put together
  EXPECT_EQ(steps[1].to, 0);
}

TEST(Comparisons, RowsOfOneJobDifferInTheirPlanAlone) {
  const CsvTable t = table_of(
      "source,gpu,n_gpus,model,tp,pp,dp,micro_batch,global_batch,seq_len,metric,value\n"
      "github:o/r a.md:L1@1,A,8,m,8,1,1,1,64,2048,step_s,1\n"
      "github:o/r a.md:L2@1,A,8,m,2,4,1,2,64,2048,step_s,1\n"
      "github:o/r a.md:L3@1,A,16,m,8,1,2,1,128,2048,step_s,1\n"
      "github:o/r a.md:L4@1,A,8,m,8,1,1,1,,2048,tokens_per_s_per_gpu,1\n");
  std::vector<RowPlace> p;
  for (const CsvRow& r : t.rows) p.push_back(place_of(Schema::train, Row(t, r)));
  EXPECT_EQ(p[0].job, p[1].job);
  EXPECT_NE(p[0].plan, p[1].plan);
  EXPECT_NE(p[0].share, p[1].share);
  EXPECT_NE(p[0].job, p[2].job);
  EXPECT_EQ(p[0].share, p[2].share);  // eight sequences for each card
  EXPECT_TRUE(p[3].job.empty());
  EXPECT_FALSE(p[3].share.empty());
  EXPECT_TRUE(place_of(Schema::infer, Row(t, t.rows[0])).job.empty());
}

}  // namespace
}  // namespace trigon
