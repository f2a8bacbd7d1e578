#pragma once
// What rows of one source say of each other: plans of one job in order of speed, and how speed
// grows with the number of cards.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evidence/row.hpp"

namespace trigon {

// Where a row stands among its neighbours.
struct RowPlace {
  std::string source;
  // `job` is equal for rows that differ in their plan alone, empty where the batch of a step is not
  // stated.
  std::string job, plan;
  // Equal for rows that differ in the number of cards alone, with as much work for each; empty
  // where that is not stated.
  std::string share;
  std::int64_t cards = 0;
};
// Of rows of training; others have no place.
RowPlace place_of(Schema schema, const Row& row);

// A predicted row. Speeds are in any unit that grows with speed.
struct PlacedRow {
  RowPlace place;
  double measured = 0, predicted = 0;
};

// Rank correlations with ties: of average ranks (Spearman) and tau-b (M. Kendall, "Rank Correlation
// Methods"). Empty where one side does not vary.
std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b);
std::optional<double> kendall(const std::vector<double>& a, const std::vector<double>& b);

// Jobs of one source that were run under several plans.
struct PlanChoice {
  std::string source;
  std::int64_t jobs = 0, plans = 0;
  std::optional<double> spearman, kendall;  // mean over jobs
  // How much longer the plan that is predicted to be fastest takes than the fastest measured one:
  // 0.1 is a tenth. Of jobs; `found` is the share without any.
  double median_regret = 0, worst_regret = 0, found = 0;
};
// By source. A job has at least `kFewestPlans` plans; rows of one plan are one.
constexpr std::size_t kFewestPlans = 3;
std::vector<PlanChoice> plan_choices(const std::vector<PlacedRow>& rows);

// From so many cards to so many, over all jobs that were run on both.
struct ScalingStep {
  std::int64_t from = 0, to = 0, pairs = 0;
  // Median speed of a card against what it had on fewer, 1 is linear.
  double measured = 0, predicted = 0;
  double median_distance = 0;  // of predicted from measured, in points of that: 0.05
  double within = 0;           // share of pairs not further than `kScalingPoints`
};
constexpr double kScalingPoints = 0.05;
// Steps of fewer pairs are put together as 0 to 0, last.
constexpr std::int64_t kFewestPairs = 5;
std::vector<ScalingStep> scaling_steps(const std::vector<PlacedRow>& rows);

}  // namespace trigon
