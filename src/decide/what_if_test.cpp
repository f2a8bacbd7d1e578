// Cases of a question: only what was changed moves.

#include "decide/what_if.hpp"

#include <gtest/gtest.h>

#include "decide/test_questions.hpp"
#include "hardware/change.hpp"

namespace trigon {
namespace {

WhatIf case_of(const Question& q, const Cluster& c, const char* key, const char* value) {
  WhatIf out;
  out.changes = std::string(key) + "=" + value;
  out.question = q;
  const std::vector<HardwareChange> list{*parse_hardware_change(key, value)};
  auto hardware = changed(c, list, test::catalogues().hardware);
  EXPECT_TRUE(hardware);
  out.cluster = hardware->cluster;
  out.accelerator = hardware->accelerator;
  return out;
}

double factor(const WhatIfAnswer& a, std::size_t i, Metric m) {
  return factor_of(a.now.report, a.cases[i].answer.report, m).value_or(0);
}

TEST(WhatIf, ADecodeStepFollowsTheBandwidthAndAPromptThePeak) {
  const Model model = test::llama31_8b();
  const Question q = test::serving(model, 1, 2000, 200);
  const Cluster c = test::machine("a100-sxm-80gb");
  auto a = what_if(test::catalogues(), q, c,
                   {case_of(q, c, "bandwidth", "2x"), case_of(q, c, "peak", "2x"),
                    case_of(q, c, "bandwidth", "1x")});
  ASSERT_TRUE(a);
  // Its cores keep no more bytes in flight than before.
  EXPECT_LT(factor(*a, 0, Metric::decode_step_seconds), 0.9);
  EXPECT_GT(factor(*a, 0, Metric::prefill_seconds), 0.85);
  EXPECT_LT(factor(*a, 1, Metric::prefill_seconds), 0.75);
  EXPECT_GT(factor(*a, 1, Metric::decode_step_seconds), 0.85);
  // A change that changes nothing is the question itself.
  for (std::size_t m = 0; m < kMetrics; ++m)
    if (auto f = factor_of(a->now.report, a->cases[2].answer.report, static_cast<Metric>(m))) {
      EXPECT_EQ(*f, 1) << metric_info(static_cast<Metric>(m)).json;
    }
}

TEST(WhatIf, SparseWeightsTakeNineSixteenthsAndNeedUnits) {
  const Model model = test::llama31_8b();
  Question q = test::serving(model, 1, 1000, 200);
  const Cluster ampere = test::machine("a100-sxm-80gb");
  auto dense = estimate(test::catalogues(), q, ampere);
  ASSERT_TRUE(make_sparse(q.plan, model, "test"));
  auto sparse = estimate(test::catalogues(), q, ampere);
  ASSERT_TRUE(dense && sparse);
  // Two of four values of 16 bit and an index of two bits each: 9 bits for 16. Norms stay.
  const double share =
      sparse->report.memory[MemoryTerm::weights] / dense->report.memory[MemoryTerm::weights];
  EXPECT_GE(share, 9.0 / 16);
  EXPECT_LT(share, 0.66);
  // No faster than half the time, no slower than dense.
  const double prompt = *factor_of(dense->report, sparse->report, Metric::prefill_seconds);
  EXPECT_GT(prompt, 0.5);
  EXPECT_LT(prompt, 0.8);
  EXPECT_FALSE(estimate(test::catalogues(), q, test::machine("v100-sxm-32gb")));
  Question train = test::training(model, 1e9, 64);
  train.plan.weights = q.plan.weights;
  EXPECT_FALSE(estimate(test::catalogues(), train, test::machine("8xa100-sxm-80gb")));
}

TEST(WhatIf, EightBitSparseWeightsTakeFiveEighths) {
  EXPECT_DOUBLE_EQ(bits_per_element(Format::bf16_2to4), 9);
  EXPECT_DOUBLE_EQ(bits_per_element(Format::fp8_2to4), 5);
  EXPECT_EQ(sparse_of(Format::q4_k), std::nullopt);
  EXPECT_EQ(dense_of(*sparse_of(Format::int8)), Format::int8);
  EXPECT_EQ(dense_of(Format::bf16), Format::bf16);
}

TEST(WhatIf, ACaseThatCannotRunSaysWhich) {
  const Model model = test::llama31_8b();
  const Question q = test::serving(model, 1, 1000, 200);
  const Cluster c = test::machine("v100-sxm-32gb");
  WhatIf one;
  one.changes = "quant=bf16_2to4";
  one.question = q;
  one.question.plan.weights = Format::bf16_2to4;
  one.cluster = c;
  auto a = what_if(test::catalogues(), q, c, {one});
  ASSERT_FALSE(a);
  EXPECT_EQ(a.error().where, "--what-if quant=bf16_2to4");
}

TEST(WhatIf, AFasterNetworkOnlyHelpsWhereItIsTheLimit) {
  const Model model = test::llama2_7b();
  Question q = test::training(model, 1e9, 64);
  q.plan.zero = 3;
  const Cluster slow = test::machine("4x8xh100-sxm@eth25");
  auto a = what_if(test::catalogues(), q, slow, {case_of(q, slow, "network", "1.6Tb/s")});
  ASSERT_TRUE(a);
  EXPECT_LT(factor(*a, 0, Metric::step_seconds), 0.95);
  EXPECT_GT(factor(*a, 0, Metric::mfu), 1.05);
}

}  // namespace
}  // namespace trigon
