#include "step/goodput.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace trigon {
namespace {

// 54 days x 16,384 cards / 419 interruptions: one in 50,676 hours of a card.
const Reliability kLlama{54 * 86400.0 * 16384 / 419, 600, 2e12 / 2048};

TEST(Goodput, OfTheRunThatTheFactsAreOf) {
  // 405e9 parameters of 14 bytes over 2 TB/s: 2.8 s; a failure each 3.09 hours.
  const Goodput g = goodput_of(kLlama, 54 * 86400.0, 405e9 * 14, 16384, 2048);
  EXPECT_NEAR(g.failure / 3600, 3.093, 0.001);
  EXPECT_NEAR(g.write, 2.835, 0.001);
  // sqrt(2 x 2.835 x 11,135) = 251.3 s; its series adds 0.4 %, the write takes 2.8 s off.
  EXPECT_NEAR(g.interval, 251.3 * (1 + std::sqrt(2.835 / 22270) / 3) - 2.835, 0.2);
  // The report says more than 90 %: restarts cost 603 s in 11,135 s, checkpoints and lost work
  // 2.3 %.
  EXPECT_NEAR(g.share, 0.926, 0.005);
  EXPECT_GT(g.share, 0.9);
}

TEST(Goodput, ShortRunsAndSmallOnes) {
  EXPECT_EQ(goodput_of(kLlama, 3599, 1e11, 8, 1).share, 1);
  EXPECT_EQ(goodput_of(kLlama, 3599, 1e11, 8, 1).interval, 0);
  // Eight cards fail once in nine months.
  const Goodput g = goodput_of(kLlama, 10 * 86400.0, 7e9 * 14, 8, 1);
  EXPECT_GT(g.share, 0.99);
  EXPECT_LT(g.share, 1);
}

TEST(Goodput, TheIntervalIsTheBest) {
  const double write = 100, failure = 20000;
  auto wasted = [&](double t) { return std::expm1((t + write) / failure) / t; };
  const double best = checkpoint_interval(write, failure);
  EXPECT_NEAR(best, std::sqrt(2 * write * failure), 100);
  EXPECT_LT(wasted(best), wasted(0.9 * best));
  EXPECT_LT(wasted(best), wasted(1.1 * best));
  EXPECT_EQ(checkpoint_interval(2 * failure, failure), failure);
}

}  // namespace
}  // namespace trigon
