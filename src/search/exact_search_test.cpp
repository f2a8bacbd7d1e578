// The search over a judge made by hand: bounds change nothing, threads change nothing, and a stop
// leaves the best of what was looked at.

#include "search/exact_search.hpp"

#include <gtest/gtest.h>

namespace trigon {
namespace {

TrainingSpace some_space() {
  TrainingFacts f;
  f.cards = 16;
  f.per_node = 8;
  f.layers = 16;
  f.global_batch = 64;
  EnginePolicy e;
  e.interleaved_stages = e.gpipe = true;
  e.zero_groups = {false, true, false, true};
  return training_space({}, e, f, Plan{}, false, [](const Plan&) { return std::nullopt; });
}

// Seconds and bytes that follow no order of degrees.
std::uint64_t mixed(const Plan& p) {
  std::uint64_t h = 99;
  for (std::int32_t v :
       {p.tensor, p.pipeline, p.virtual_stages, p.data, p.zero, p.micro_batch, p.optimizer_groups,
        static_cast<std::int32_t>(p.schedule), static_cast<std::int32_t>(p.recompute)})
    h = (h ^ static_cast<std::uint64_t>(v)) * 6364136223846793005u + (h >> 31);
  return h;
}

struct Judge {
  std::atomic<std::int64_t>* calls = nullptr;
  std::int64_t stop_after = 0;
  std::atomic<bool>* stop = nullptr;

  double seconds_of(const Plan& p) const { return 1 + static_cast<double>(mixed(p) % 10007); }
  double bytes_of(const Plan& p) const { return 1 + static_cast<double>(mixed(p) / 7 % 9973); }
  Score scored(double seconds) const { return {0, 0, false, seconds}; }

  Score least(const Plan& p, double* seconds) const {
    if (calls && calls->fetch_add(1) + 1 == stop_after) *stop = true;
    return scored(*seconds = 0.7 * seconds_of(p));
  }
  Score nearly(const Plan& p, double* seconds) const {
    return scored(*seconds = 0.9 * seconds_of(p));
  }
  Score timed(const Plan& p, double* seconds) const { return scored(*seconds = seconds_of(p)); }
  double state_bytes(const Plan& p) const { return 0.4 * bytes_of(p); }
  double some_bytes(const Plan& p) const { return 0.8 * bytes_of(p); }
  Score at_least(Score s, const Plan&, double bytes) const {
    if (bytes > 5000) s.excess += bytes / 5000 - 1;
    return s;
  }
  Weight weight(const Plan& p) const {
    const double bytes = bytes_of(p);
    return {bytes, at_least({0, 0, false, 0}, p, bytes).excess, false};
  }
};

std::string written(const SearchOutcome& o) {
  std::string out = write_plan(o.incumbents.best().plan);
  for (std::size_t i = 0; i < kMostFamilies; ++i)
    out += '|' + write_plan(o.incumbents.of_family(i).plan) +
           std::to_string(o.incumbents.of_family(i).score.wish);
  for (const FrontPlan& p : o.incumbents.front())
    out += '/' + write_plan(p.plan) + std::to_string(p.seconds) + ',' + std::to_string(p.bytes);
  return out;
}

TEST(ExactSearch, BoundsAndThreadsChangeNothing) {
  const TrainingSpace space = some_space();
  SearchOptions options;
  options.families = options.front = true;
  options.bounds = false;
  const SearchOutcome whole = search_training(space, Judge{}, options);
  EXPECT_EQ(whole.tally.whole, whole.tally.decided);
  EXPECT_GT(whole.tally.decided, 1000);
  EXPECT_GT(whole.incumbents.front().size(), 2u);
  options.bounds = true;
  std::int64_t evaluated = 0;
  for (int threads : {1, 2, 5}) {
    options.threads = threads;
    const SearchOutcome quick = search_training(space, Judge{}, options);
    EXPECT_EQ(written(quick), written(whole));
    EXPECT_EQ(quick.tally.decided, whole.tally.decided);
    EXPECT_LT(quick.tally.whole, whole.tally.whole / 4);
    if (evaluated == 0) evaluated = quick.tally.whole;
    EXPECT_EQ(quick.tally.whole, evaluated) << threads;
  }
}

TEST(ExactSearch, EveryDivisionIsLookedAtOnce) {
  for (std::size_t n : {1u, 2u, 3u, 8u, 21u, 100u}) {
    std::vector<int> seen(n);
    for (std::size_t i = 0; i < n; ++i) ++seen[scattered(i, n)];
    for (int times : seen) EXPECT_EQ(times, 1);
  }
}

TEST(ExactSearch, AStopLeavesTheBestOfWhatWasLookedAt) {
  const TrainingSpace space = some_space();
  const SearchOutcome whole = search_training(space, Judge{}, {});
  std::atomic<std::int64_t> calls{0};
  std::atomic<bool> stop{false};
  SearchOptions options;
  options.stop = &stop;
  const SearchOutcome some = search_training(space, Judge{&calls, 50, &stop}, options);
  EXPECT_TRUE(some.partial);
  EXPECT_FALSE(whole.partial);
  ASSERT_TRUE(some.incumbents.best().found);
  EXPECT_GE(some.tally.decided, 50);
  EXPECT_LT(some.tally.decided, whole.tally.decided);
  EXPECT_GE(some.incumbents.best().score.wish, whole.incumbents.best().score.wish);
}

}  // namespace
}  // namespace trigon
