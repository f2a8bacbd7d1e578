#include "search/training_space.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace trigon {
namespace {

EnginePolicy engine() {
  EnginePolicy e;
  e.expert_parallel = true;
  return e;
}

using Degrees = std::tuple<int, int, int, int>;  // tensor, pipeline, data, expert

std::set<Degrees> listed(const PlanRequest& fixed, const EnginePolicy& e, bool experts, int count,
                         int per_node, int layers) {
  std::vector<Plan> plans;
  serving_plans(fixed, e, experts, count, per_node, layers, plans);
  std::set<Degrees> found;
  for (const Plan& p : plans) {
    EXPECT_EQ(p.ranks(), count);
    EXPECT_TRUE(found.insert({p.tensor, p.pipeline, p.data, p.expert}).second) << write_plan(p);
  }
  return found;
}

TEST(Space, ServingListsEveryDivision) {
  for (int count : {1, 2, 3, 4, 6, 8, 12, 16, 24})
    for (int per_node : {1, 2, 6, 8})
      for (bool experts : {false, true}) {
        // Independently: all quadruples, kept when they fit the rules.
        std::set<Degrees> expected;
        for (int t = 1; t <= count; ++t)
          for (int p = 1; p <= count; ++p)
            for (int d = 1; d <= count; ++d)
              for (int e = 1; e <= count; ++e) {
                bool power = (t & (t - 1)) == 0;
                bool whole_node = t == std::min(per_node, count);
                if (t * p * d != count || p > 10 || t > per_node) continue;
                if (!power && !whole_node) continue;
                if (e != 1 && (e != t || !experts)) continue;
                expected.insert({t, p, d, e});
              }
        EXPECT_EQ(listed({}, engine(), experts, count, per_node, 10), expected)
            << count << " cards, " << per_node << " to a node";
      }
}

TEST(Space, WhatIsFixedStays) {
  PlanRequest fixed;
  fixed.tensor = 4;
  EXPECT_EQ(listed(fixed, engine(), false, 16, 8, 99),
            (std::set<Degrees>{{4, 1, 4, 1}, {4, 2, 2, 1}, {4, 4, 1, 1}}));
  fixed.pipeline = 2;
  EXPECT_EQ(listed(fixed, engine(), false, 16, 8, 99), (std::set<Degrees>{{4, 2, 2, 1}}));
  fixed.data = 1;
  EXPECT_TRUE(listed(fixed, engine(), false, 16, 8, 99).empty());
  // A tensor group across nodes only where asked.
  PlanRequest wide;
  wide.tensor = 16;
  EXPECT_EQ(listed(wide, engine(), false, 16, 8, 99), (std::set<Degrees>{{16, 1, 1, 1}}));
  // Experts between sliced and whole, where asked.
  PlanRequest experts;
  experts.tensor = 8;
  experts.expert = 2;
  EXPECT_EQ(listed(experts, engine(), true, 8, 8, 99), (std::set<Degrees>{{8, 1, 1, 2}}));
  EXPECT_TRUE(listed(experts, engine(), false, 8, 8, 99).empty());
}

TEST(Space, EnginesWithoutADegreeDoNotListIt) {
  EnginePolicy e = engine();
  e.tensor_parallel = false;
  for (const auto& [t, p, d, x] : listed({}, e, false, 8, 8, 99)) EXPECT_EQ(t, 1);
  e = engine();
  e.pipeline_parallel = false;
  for (const auto& [t, p, d, x] : listed({}, e, false, 8, 8, 99)) EXPECT_EQ(p, 1);
}

std::optional<Message> all_legal(const Plan&) { return std::nullopt; }

std::vector<Plan> training_plans(const PlanRequest& fixed, const TrainingFacts& facts,
                                 const EnginePolicy& e, bool offload = false) {
  std::vector<Plan> plans;
  const TrainingSpace space = training_space(fixed, e, facts, {}, offload, all_legal);
  for (const Division& d : space.divisions)
    for_each_plan(space, d, [&](const Plan& p, FamilySet families) {
      EXPECT_EQ(families, space.families.of(p));
      plans.push_back(p);
    });
  return plans;
}

TrainingFacts facts(int cards, std::int64_t layers, std::int64_t batch) {
  TrainingFacts f;
  f.cards = cards;
  f.per_node = 8;
  f.layers = layers;
  f.global_batch = batch;
  f.sequence = 2048;
  return f;
}

TEST(Space, TrainingPlansMultiplyOut) {
  for (int count : {1, 4, 6, 16})
    for (std::int64_t batch : {1, 12, 64})
      for (bool experts : {false, true})
        for (bool adapters : {false, true}) {
          TrainingFacts f = facts(count, 12, batch);
          f.experts = experts;
          f.adapters = adapters;
          EnginePolicy e = engine();
          e.context_parallel = e.interleaved_stages = true;
          std::set<std::string> seen;
          std::vector<Plan> plans = training_plans({}, f, e);
          for (std::size_t i = 0; i < plans.size(); ++i) {
            const Plan& p = plans[i];
            EXPECT_EQ(p.ranks(), count);
            EXPECT_EQ(std::int64_t{1} * p.micro_batch * p.accumulation * p.data, batch);
            EXPECT_LE(p.pipeline * p.virtual_stages, 14);
            EXPECT_TRUE(p.virtual_stages == 1 || p.accumulation % p.pipeline == 0);
            EXPECT_EQ(p.data * p.context % p.expert, 0);
            EXPECT_TRUE(experts || p.expert == 1);
            EXPECT_TRUE(p.zero < 2 || p.pipeline == 1);
            EXPECT_TRUE(p.zero == 0 || p.data * p.context > 1);
            EXPECT_TRUE(!adapters || p.zero == 0 || p.zero == 3);
            EXPECT_EQ(p.sequence_parallel, p.tensor > 1);
            EXPECT_EQ(offloads_of(p), 0);
            std::string name = write_plan(p) + " mb" + std::to_string(p.micro_batch) + " r" +
                               std::to_string(static_cast<int>(p.recompute)) + " etp" +
                               std::to_string(p.expert_tensor);
            EXPECT_TRUE(seen.insert(name).second) << name;
            // The order of plans is total: no two are the same to it.
            if (i > 0) {
              EXPECT_NE(plan_before(plans[i - 1], p), plan_before(p, plans[i - 1]));
            }
          }
        }
}

TEST(Space, TrainingCountsByHand) {
  // Two cards, two sequences, no experts. tp2: micro-batch 1 or 2, three recomputations, no
  // ZeRO: 6. pp2: the same: 6. dp2: one sequence each, 3 recomputations x 4 stages: 12.
  EXPECT_EQ(training_plans({}, facts(2, 12, 2), engine()).size(), 24u);
  // Context parallelism: cp2 with 3 recomputations x 2 micro-batches x 4 stages: 24 more.
  EnginePolicy e = engine();
  e.context_parallel = true;
  EXPECT_EQ(training_plans({}, facts(2, 12, 2), e).size(), 48u);
  // Interleaved: 2 stages hold 2 to 7 chunks each while two micro-batches go round: 6 x 3 more.
  e.context_parallel = false;
  e.interleaved_stages = true;
  EXPECT_EQ(training_plans({}, facts(2, 12, 2), e).size(), 42u);
  PlanRequest fixed;
  fixed.recompute = Recompute::full;
  fixed.zero = 3;
  fixed.micro_batch = 1;
  const std::vector<Plan> plans = training_plans(fixed, facts(2, 12, 2), engine());
  EXPECT_EQ(plans.size(), 3u);
  for (const Plan& p : plans) EXPECT_EQ(p.zero, 3);
}

TEST(Space, OffloadsOnlyWhatTheEngineCanAndOnlyWhereAllowed) {
  EnginePolicy e = engine();
  e.offloads_optimizer = e.offloads_weights = true;
  EXPECT_EQ(training_plans({}, facts(2, 12, 2), e).size(), 24u);
  // With or without the optimizer: 48; with the weights too where ZeRO-3 is: 3 x 2 more, and for
  // them alone on the one replica of tp2: 6 x 2.
  EXPECT_EQ(training_plans({}, facts(2, 12, 2), e, true).size(), 66u);
  PlanRequest fixed;
  fixed.offload_optimizer = true;
  for (const Plan& p : training_plans(fixed, facts(2, 12, 2), e)) EXPECT_TRUE(p.offload_optimizer);
}

TEST(Space, SchedulesExchangesAndGroupsByHand) {
  // pp2 has 6 plans with 1F1B; GPipe and zero bubble are as many each.
  EnginePolicy e = engine();
  e.gpipe = true;
  EXPECT_EQ(training_plans({}, facts(2, 12, 2), e).size(), 30u);
  PlanRequest any;
  any.any_schedule = true;
  // ... and interleaved ones 18, whatever the engine runs.
  EXPECT_EQ(training_plans(any, facts(2, 12, 2), engine()).size(), 24u + 6 + 6 + 18);
  PlanRequest fixed;
  fixed.schedule = Schedule::one_f_one_b;
  e.interleaved_stages = true;
  for (const Plan& p : training_plans(fixed, facts(2, 12, 2), e)) EXPECT_EQ(p.virtual_stages, 1);
  // Each way to exchange has the 24 plans of cp2; three heads' worth of parts need no turns.
  e = engine();
  e.context_parallel = e.context_all_to_all = true;
  EXPECT_EQ(training_plans({}, facts(2, 12, 2), e).size(), 24u + 2 * 24);
  TrainingFacts odd = facts(2, 12, 2);
  odd.sequence = 2050;  // divides by two, not by four
  for (const Plan& p : training_plans({}, odd, e))
    EXPECT_TRUE(p.context == 1 || p.context_exchange == ContextExchange::all_to_all);
  // Eight replicas in one group, in two or in four; with ZeRO-3 alone.
  e = engine();
  e.zero_groups[3] = true;
  fixed = {};
  fixed.data = 8;
  fixed.recompute = Recompute::none;
  fixed.micro_batch = 1;
  EXPECT_EQ(training_plans(fixed, facts(8, 12, 8), e).size(), 4u + 2);
  fixed.optimizer_groups = 4;
  for (const Plan& p : training_plans(fixed, facts(8, 12, 8), e)) EXPECT_EQ(p.optimizer_groups, 4);
}

TEST(Space, MicroBatchesDivideTheBatch) {
  EXPECT_EQ(micro_batches({}, 12), (std::vector<std::int32_t>{1, 2, 3, 4, 6, 12}));
  EXPECT_EQ(micro_batches({}, 1000).back(), 50);
  PlanRequest fixed;
  fixed.micro_batch = 5;
  EXPECT_EQ(micro_batches(fixed, 12), (std::vector<std::int32_t>{5}));
}

}  // namespace
}  // namespace trigon
