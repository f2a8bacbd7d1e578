#include "evidence/statistics.hpp"

#include <gtest/gtest.h>

namespace trigon {
namespace {

Compared row(double measured, double value, double low, double high) {
  return {measured, {value, low, high, Basis::analytic}};
}

TEST(Statistics, MatchValuesWorkedOutByHand) {
  // Errors 0.1, 0.2, 0.5, 0; signed +0.1, -0.2, +0.5, 0.
  const auto s = error_statistics(
      {row(10, 11, 9, 12), row(10, 8, 7, 9), row(10, 15, 10, 30), row(10, 10, 10, 10)});
  EXPECT_DOUBLE_EQ(*s.median_error, 0.15);
  EXPECT_NEAR(*s.p90_error, 0.2 + 0.7 * 0.3, 1e-12);  // position 2.7 of 0..3
  EXPECT_DOUBLE_EQ(*s.mean_error, 0.2);
  EXPECT_NEAR(*s.bias, 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(*s.inside_interval, 0.75);  // 10 is outside 7 to 9
  // high / low: 4/3, 9/7, 3, 1: the middle two are 9/7 and 4/3.
  EXPECT_NEAR(*s.interval_ratio, (9.0 / 7 + 4.0 / 3) / 2, 1e-12);
}

TEST(Statistics, NothingPredictedHasNoFigures) {
  const auto s = error_statistics({});
  EXPECT_FALSE(s.median_error || s.p90_error || s.mean_error || s.bias || s.inside_interval ||
               s.interval_ratio);
}

TEST(Statistics, VerdictsCountAsRightOrWrong) {
  EXPECT_EQ(relative_error(row(0, 0, 0, 0)), 0);
  EXPECT_EQ(relative_error(row(0, 1, 1, 1)), 1);
  EXPECT_EQ(relative_error(row(1, 0, 0, 0)), 1);
}

TEST(Statistics, QuantilesInterpolate) {
  EXPECT_FALSE(quantile({}, 0.5));
  EXPECT_EQ(*quantile({7}, 0.9), 7);
  EXPECT_EQ(*quantile({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(*quantile({0, 10}, 0.25), 2.5);
  EXPECT_EQ(*quantile({0, 10}, 1), 10);
}

}  // namespace
}  // namespace trigon
