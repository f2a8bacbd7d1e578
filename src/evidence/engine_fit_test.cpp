// The fit finds effects that made the times it is given, shares what it knows, and is not steered
// by wrong rows.

#include "evidence/engine_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "evidence/fit.hpp"

namespace trigon {
namespace {

// A time of three parts: arithmetic, bytes, and an overhead of the host.
double time_of(const EngineCoefficients& c, double compute, double stream) {
  return compute / c.compute_factor + stream / c.stream_factor + c.step_overhead_seconds;
}

struct World {
  std::vector<Accelerator> cards{4};
  std::vector<std::string> engines{"fast", "slow"};
  FitProblem problem;
  std::vector<double> compute, stream, measured;

  World() {
    const char* ids[] = {"a1", "a2", "b1", "b2"};
    for (std::size_t i = 0; i < cards.size(); ++i) {
      cards[i].id = ids[i];
      cards[i].family = i < 2 ? "a" : "b";
      cards[i].vendor = "maker";
    }
    SplitMix random(7);
    for (const std::string& engine : engines)
      for (const Accelerator& card : cards)
        for (int k = 0; k < 12; ++k) {
          problem.subjects.push_back(engine_subject(engine, card, false, "half", Format::bf16));
          problem.weights.push_back(1);
          compute.push_back(0.01 * std::exp(random.bell()));
          stream.push_back(0.01 * std::exp(random.bell()));
          measured.push_back(time_of(truth(engine, card), compute.back(), stream.back()));
        }
    problem.log_error = [this](std::size_t i, const EngineCoefficients& c) {
      return std::log(time_of(c, compute[i], stream[i]) / measured[i]);
    };
  }

  static EngineCoefficients truth(std::string_view engine, const Accelerator& card) {
    EngineCoefficients c;
    c.compute_factor = (engine == "fast" ? 0.9 : 0.45) * (card.family == "a" ? 1 : 0.8);
    c.stream_factor = engine == "fast" ? 0.95 : 0.8;
    c.step_overhead_seconds = engine == "fast" ? 5e-4 : 4e-3;
    return c;
  }

  EngineTable fit(const std::vector<bool>& seen) const {
    EngineTable t;
    t.effects = fit_effects(problem, EngineKind::serve, seen, nullptr);
    return t;
  }
  std::vector<bool> all() const { return std::vector<bool>(problem.subjects.size(), true); }
};

TEST(EngineFit, FindsTheEffectsThatMadeTheTimes) {
  World w;
  const EngineTable t = w.fit(w.all());
  for (std::size_t i = 0; i < w.measured.size(); ++i)
    EXPECT_NEAR(w.problem.log_error(i, *t.of(w.problem.subjects[i])), 0, 0.06) << i;
}

TEST(EngineFit, ADeviceNeverSeenBorrowsFromItsFamilyAndItsEngine) {
  World w;
  std::vector<bool> seen = w.all();
  for (std::size_t i = 0; i < seen.size(); ++i)
    seen[i] = !(w.problem.subjects[i].device == "b2" && w.problem.subjects[i].engine == "slow");
  const EngineTable t = w.fit(seen);
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (!seen[i]) {
      EXPECT_NEAR(w.problem.log_error(i, *t.of(w.problem.subjects[i])), 0, 0.1) << i;
    }
}

TEST(EngineFit, WrongRowsDoNotSteer) {
  World w;
  for (std::size_t i = 0; i < w.measured.size(); i += 10) w.measured[i] *= 30;
  const EngineTable t = w.fit(w.all());
  for (std::size_t i = 0; i < w.measured.size(); ++i)
    if (i % 10 != 0) {
      EXPECT_NEAR(w.problem.log_error(i, *t.of(w.problem.subjects[i])), 0, 0.15) << i;
    }
}

TEST(EngineFit, RowsWithoutAPredictionAreLeftOut) {
  World w;
  const auto inner = w.problem.log_error;
  w.problem.log_error = [&](std::size_t i, const EngineCoefficients& c) {
    return i % 7 == 0 ? std::nan("") : inner(i, c);
  };
  const EngineTable t = w.fit(w.all());
  for (std::size_t i = 0; i < w.measured.size(); ++i)
    EXPECT_NEAR(inner(i, *t.of(w.problem.subjects[i])), 0, 0.1) << i;
}

TEST(EngineFit, RepeatsToTheSameNumbers) {
  World w;
  const EngineTable a = w.fit(w.all()), b = w.fit(w.all());
  for (const auto& [key, effect] : a.effects) EXPECT_EQ(effect.factor, b.effects.at(key).factor);
}

// What a fit without some rows starts from is only what all engines share.
TEST(EngineFit, AStartRemembersNothingFiner) {
  World w;
  std::vector<bool> seen = w.all();
  for (std::size_t i = 0; i < seen.size(); ++i) seen[i] = w.problem.subjects[i].engine == "fast";
  auto start = fit_effects(w.problem, EngineKind::serve, w.all(), nullptr);
  for (auto& [key, effect] : start)
    if (key.find("/slow/") != std::string::npos) effect.factor.fill(50);
  const auto without = fit_effects(w.problem, EngineKind::serve, seen, &start);
  for (const auto& [key, effect] : without) EXPECT_EQ(key.find("/slow/"), std::string::npos) << key;
}

}  // namespace
}  // namespace trigon
