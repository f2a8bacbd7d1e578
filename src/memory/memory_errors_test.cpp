#include "memory/memory_errors.hpp"

#include <gtest/gtest.h>

namespace trigon {
namespace {

FactSheet sheet() {
  FactSheet s;
  auto group = [&](const char* engine, const char* phase, double counted, double estimated) {
    FactGroup g;
    g.name = "errors";
    g.facts = {{"engine", std::string(engine), "", ""},
               {"phase", std::string(phase), "", ""},
               {"counted", counted, "", ""},
               {"estimated", estimated, "", ""}};
    s.groups.push_back(g);
  };
  group("any", "serve", 0.01, 0.5);
  group("vllm", "serve", 0.004, 0.2);
  return s;
}

TEST(MemoryErrors, AnEngineHasItsOwnOrThoseOfAll) {
  const MemoryErrorTable table = read_memory_errors(sheet());
  EXPECT_EQ(find_memory_errors(table, "vllm", false).estimated, 0.2);
  EXPECT_TRUE(find_memory_errors(table, "vllm", false).validated);
  EXPECT_EQ(find_memory_errors(table, "tgi", false).estimated, 0.5);
  EXPECT_FALSE(find_memory_errors(table, "tgi", false).validated);
  EXPECT_EQ(find_memory_errors(table, "vllm", true).counted, MemoryErrors{}.counted);
  EXPECT_FALSE(find_memory_errors(table, "vllm", true).validated);
}

TEST(MemoryErrors, RangesAddUpOverTheTermsAskedFor) {
  RankMemory m;
  m[MemoryTerm::weights] = 1000;
  m[MemoryTerm::activations] = 100;
  m[MemoryTerm::context] = 10;
  const MemoryErrors e{0.01, 0.5, true};
  const Range all = range_of(m, e);
  EXPECT_DOUBLE_EQ(all.value, 1110);
  EXPECT_DOUBLE_EQ(all.high - all.value, 10 + 50 + 5);
  const Range some = range_of(m, e, bit(MemoryTerm::weights) | bit(MemoryTerm::context));
  EXPECT_DOUBLE_EQ(some.value, 1010);
  EXPECT_DOUBLE_EQ(some.value - some.low, 10 + 5);
  // An error above one does not make bytes negative.
  EXPECT_EQ(range_of(m, {0, 3, true}, bit(MemoryTerm::activations)).low, 0);
}

}  // namespace
}  // namespace trigon
