#include "step/schedule.hpp"

#include <gtest/gtest.h>

#include <random>

#include "step/schedule_events.hpp"

namespace trigon {
namespace {

double played(const PipelineWork& w) {
  double end = 0;
  for (const StageEvent& e : play_pipeline(w)) end = std::max(end, e.end);
  return end;
}

PipelineWork even(Schedule s, int p, int v, int m, std::vector<BlockTime>& blocks, BlockTime one) {
  blocks.assign(static_cast<std::size_t>(p * v), one);
  return {s, p, v, m, 0, blocks};
}

// Passes of 1, 1 and 1: the figures of arXiv:2401.10241, table 1: 1F1B idles for
// (p - 1)(F + B + W), ZB-H1 for (p - 1)(F + B - W).
TEST(Schedule, EvenStages) {
  std::vector<BlockTime> b;
  const BlockTime one{1, 1, 1};
  EXPECT_DOUBLE_EQ(pipeline_seconds(even(Schedule::gpipe, 4, 1, 8, b, one)), 3 * (8 + 3));
  EXPECT_DOUBLE_EQ(pipeline_seconds(even(Schedule::one_f_one_b, 4, 1, 8, b, one)), 3 * (8 + 3));
  EXPECT_DOUBLE_EQ(pipeline_seconds(even(Schedule::zero_bubble, 4, 1, 8, b, one)), 3 * 8 + 3 * 1);
  // Two virtual stages halve the idle time (arXiv:2104.04473): (p - 1)(F + B) / v.
  EXPECT_DOUBLE_EQ(pipeline_seconds(even(Schedule::interleaved, 4, 2, 8, b, {0.5, 0.5, 0.5})),
                   3 * 8 + 3 * 1.5);
  EXPECT_DOUBLE_EQ(pipeline_seconds(even(Schedule::one_f_one_b, 1, 1, 8, b, one)), 24);
}

// Two stages, worked by hand: F 1 and 2, B 1 and 3. Stage 1 is busy from 1 on for 3 x 5; stage 0
// then has one backward pass left.
TEST(Schedule, UnevenByHand) {
  std::vector<BlockTime> b{{1, 1, 0}, {2, 3, 0}};
  EXPECT_DOUBLE_EQ(pipeline_seconds({Schedule::one_f_one_b, 2, 1, 3, 0, b}), 1 + 3 * 5 + 1);
  // GPipe: forward passes end at 1 + 3 x 2, backward passes 3 x 3 later, and one more on stage 0.
  EXPECT_DOUBLE_EQ(pipeline_seconds({Schedule::gpipe, 2, 1, 3, 0, b}), 7 + 9 + 1);
}

class RandomPipelines : public testing::TestWithParam<Schedule> {};

// The forms against the play of events, on thousands of pipelines of any stage times: even ones,
// a heavy last stage, free ones.
TEST_P(RandomPipelines, EqualThePlayOfEvents) {
  std::mt19937 random(7);
  auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  auto real = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random() % 1000003) / 1000003;
  };
  const bool chunks = GetParam() == Schedule::interleaved;
  std::vector<BlockTime> blocks;
  const int cases = chunks ? 1500 : 4000;
  for (int n = 0; n < cases; ++n) {
    const int p = pick(1, 9), v = chunks ? pick(2, 4) : 1;
    int m = pick(1, 40), group = 0;
    if (chunks && p > 1) {
      if (pick(0, 3) == 0) group = p * pick(1, 2);
      m = p * pick(1, 14);
      if (group > 0) m = group * pick(1, 10);
    }
    blocks.assign(static_cast<std::size_t>(p * v), {1, real(0.5, 2), real(0, 2)});
    const int kind = pick(0, 3);
    for (BlockTime& b : blocks) {
      if (kind == 1 && pick(0, 1)) b.forward *= 1.25, b.input *= 1.25, b.weight *= 1.25;
      if (kind == 2) b = {real(0.1, 2), real(0.1, 2), real(0, 2)};
      if (kind == 3) b = {real(0.9, 1.1), real(0.9, 1.1), real(0, 0.1)};
    }
    if (pick(0, 1)) blocks.back().forward += 0.5, blocks.back().input += 0.7;
    if (pick(0, 1)) blocks.front().forward += 0.1, blocks.front().weight += 0.2;
    const PipelineWork w{GetParam(), p, v, m, group, blocks};
    const double expected = played(w);
    ASSERT_NEAR(pipeline_seconds(w), expected, 1e-9 * expected)
        << "p " << p << " v " << v << " m " << m << " group " << group << " kind " << kind;
    // Remembered pipelines give the same.
    ASSERT_EQ(pipeline_seconds(w), pipeline_seconds(w));
    // No stage finishes before its own work, and the order of micro-batches costs nothing less.
    for (int s = 0; s < p; ++s) ASSERT_GE(expected, m * stage_seconds(w, s) * (1 - 1e-12));
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, RandomPipelines,
                         testing::Values(Schedule::gpipe, Schedule::one_f_one_b,
                                         Schedule::interleaved, Schedule::zero_bubble),
                         [](const auto& s) {
                           std::string name(schedule_name(s.param));
                           name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
                           return name;
                         });

}  // namespace
}  // namespace trigon
