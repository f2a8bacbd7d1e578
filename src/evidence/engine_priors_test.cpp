// What is believed before rows are looked at, and what it does to a fit.

#include "evidence/engine_priors.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "evidence/engine_fit.hpp"

namespace trigon {
namespace {

TEST(EnginePriors, FinerEffectsAreHeldTighter) {
  const auto compute = [](EngineLevel level) {
    return hold_of(EngineKind::serve, level, EngineParameter::compute);
  };
  EXPECT_LT(compute(EngineLevel::engine), compute(EngineLevel::engine_class));
  EXPECT_LT(compute(EngineLevel::engine_class), compute(EngineLevel::engine_family));
  EXPECT_LT(compute(EngineLevel::engine_family), compute(EngineLevel::engine_device));
  // A server's host does not know the format of the weights.
  EXPECT_GT(hold_of(EngineKind::serve, EngineLevel::format, EngineParameter::step_overhead), 1e9);
}

TEST(EnginePriors, RatesOfNetworksThatTrainAreThoseOfTheTables) {
  const auto hold = [](EngineKind kind, EngineParameter p) {
    return hold_of(kind, EngineLevel::kind, p);
  };
  for (const auto p :
       {EngineParameter::compute, EngineParameter::stream, EngineParameter::convolution})
    EXPECT_GT(hold(EngineKind::train_graph, p), 30 * hold(EngineKind::serve_graph, p));
  // How long a host takes is in no table.
  EXPECT_LT(hold(EngineKind::train_graph, EngineParameter::operator_overhead), 1);
  EXPECT_TRUE(fitted_parameter(EngineKind::train_graph, EngineParameter::line_convolution));
  EXPECT_FALSE(fitted_parameter(EngineKind::serve_graph, EngineParameter::line_convolution));
}

// Forty rows of one engine on four cards, all three times slower than the tables say of products.
double factor_of(const char* vendor, bool own_products) {
  std::vector<Accelerator> cards(4);
  FitProblem problem;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    cards[i].id = "card" + std::to_string(i);
    cards[i].family = i < 2 ? "a" : "b";
    cards[i].vendor = vendor;
    for (int k = 0; k < 10; ++k) {
      problem.subjects.push_back(engine_subject("server", cards[i], false, "half", Format::bf16));
      problem.subjects.back().own_products = own_products;
      problem.weights.push_back(0.1);
    }
  }
  problem.log_error = [](std::size_t, const EngineCoefficients& c) {
    return std::log(1 / c.compute_factor / 3);
  };
  EngineTable t;
  t.effects = fit_effects(problem, EngineKind::serve,
                          std::vector<bool>(problem.subjects.size(), true), nullptr);
  return t.of(problem.subjects[0])->compute_factor;
}

TEST(EnginePriors, ManySmallEffectsDoNotAddUpWhereTablesTimedTheLibraries) {
  const double held = factor_of("nvidia", false);
  EXPECT_GT(held, 1.2 * factor_of("nvidia", true));
  EXPECT_GT(held, 1.2 * factor_of("maker", false));
  EXPECT_LT(factor_of("nvidia", true), 0.4);
}

TEST(EnginePriors, TablesTimedSixteenAndEightBitsOfServers) {
  Accelerator card;
  card.vendor = "nvidia";
  const auto timed = [&](const char* cls, EngineKind kind) {
    return timed_by_tables(kind, engine_subject("server", card, false, cls, Format::unknown));
  };
  EXPECT_TRUE(timed("half", EngineKind::serve));
  EXPECT_TRUE(timed("fp8", EngineKind::serve));
  EXPECT_FALSE(timed("int4", EngineKind::serve));
  EXPECT_FALSE(timed("half", EngineKind::train));
}

}  // namespace
}  // namespace trigon
