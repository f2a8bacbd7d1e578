#include "step/launch_queue.hpp"

#include <gtest/gtest.h>

namespace trigon {
namespace {

double span(std::size_t stages, double passes, double share, double inside = 4) {
  return queued_span({std::vector<double>(stages, 1), passes, inside, share});
}

TEST(LaunchQueue, ShortQueuesOfLaunchesDoNotHold) {
  // Passes follow each other stage by stage: n + p - 1.
  EXPECT_DOUBLE_EQ(span(4, 1, 0.01), 4);
  EXPECT_DOUBLE_EQ(span(4, 8, 0.01), 11);
  EXPECT_DOUBLE_EQ(span(1, 8, 3), 8);
  // Four of them at once in eight stages: the sixth enters when the first is through.
  EXPECT_DOUBLE_EQ(span(8, 6, 0.01), 16);
}

TEST(LaunchQueue, AHostThatWaitsLaunchesTheNextPassLate) {
  // Twice as many launches as the queue holds: on each card the host waits for half of the pass,
  // so the second pass starts when the fourth card is half way through the first, at 3.5.
  EXPECT_DOUBLE_EQ(span(4, 2, 2), 7.5);
  // Nine tenths: two passes are launched before the host waits, on the last card at most; it is
  // there until 0.8 / 0.9 of its first pass, and the third starts then.
  EXPECT_NEAR(span(4, 3, 0.9), 3 + 0.8 / 0.9 + 4, 1e-9);
}

TEST(LaunchQueue, TheLongestStageSetsThePace) {
  EXPECT_NEAR(queued_span({{1.2, 0.8}, 8, 4, 0}), 8 * 1.2 + 0.8, 1e-12);
}

TEST(LaunchQueue, LongPromptsGoOnAsTheyBegan) {
  const double step = span(4, 64, 1.7) - span(4, 63, 1.7);
  EXPECT_NEAR(span(4, 200, 1.7), span(4, 64, 1.7) + 136 * step, 1.0);
  EXPECT_LT(span(4, 200, 1.7), 800);
}

}  // namespace
}  // namespace trigon
