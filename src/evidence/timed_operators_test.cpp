#include "evidence/timed_operators.hpp"

#include <gtest/gtest.h>

namespace trigon {
namespace {

TEST(TimedOperators, AProductMovesItsWeightsAndActivations) {
  const auto ops = timed_operators("gemm", "fp8", TimedShape("m=16;n=4096;k=8192"));
  ASSERT_TRUE(ops);
  ASSERT_EQ(ops->size(), 1u);
  const Operator& op = ops->front();
  EXPECT_EQ(op.flops, 2.0 * 16 * 4096 * 8192);
  EXPECT_EQ(op.weight_bytes, 4096.0 * 8192);
  EXPECT_EQ(op.data_bytes, 2.0 * 16 * (4096 + 8192));
  EXPECT_TRUE(op.timed_alone);
}

TEST(TimedOperators, EightBitWeightsAloneAreWidened) {
  EXPECT_TRUE(timed_format("int8_wo")->widened);
  EXPECT_FALSE(timed_format("sq")->widened);
  EXPECT_FALSE(timed_format("int3"));
}

TEST(TimedOperators, CausalPrefillSeesHalf) {
  const auto ops = timed_operators("attention_prefill_causal", "bf16/kv=fp8",
                                   TimedShape("b=2;isl=1023;h=32;kv=8;d=128"));
  ASSERT_TRUE(ops);
  EXPECT_EQ(ops->front().key_tokens, 512);
  EXPECT_EQ(ops->front().flops, 2.0 * 2 * 1023 * 512 * 32 * 256);
  EXPECT_EQ(ops->front().weights, Format::fp8_tensor);
}

TEST(TimedOperators, LatentDecodeReadsOneLatentForAllHeads) {
  const auto ops = timed_latent_decode(4, 1000, 16, false);
  EXPECT_EQ(ops[0].n, 1);
  EXPECT_EQ(ops[0].group_size, 16);
  EXPECT_EQ(ops[0].data_bytes, 4.0 * 1000 * 576 * 2 + 4.0 * 16 * (576 + 512) * 2);
}

TEST(TimedOperators, ExpertsHit) {
  TimedExperts e;
  e.tokens = 1, e.top_k = 8, e.experts = 128;
  EXPECT_EQ(timed_experts_hit(e), 8);
  e.tokens = 4096;
  EXPECT_EQ(timed_experts_hit(e), 128);
  e.experts = 256;
  EXPECT_NEAR(timed_experts_hit(e), 140.8, 1e-9);  // what "balanced" tables of 256 reach
  e.skew = 1.2;
  const double skewed = timed_experts_hit(e);
  EXPECT_GT(skewed, 100);
  EXPECT_LE(skewed, 256);
  e.tokens = 1;
  EXPECT_LE(timed_experts_hit(e), 8);
}

TEST(TimedOperators, WhatIsNotModelledIsAbsent) {
  EXPECT_FALSE(timed_operators("flagperf_benchmarks_interconnect-h2d", "h2d", TimedShape("")));
  EXPECT_FALSE(timed_operators("gemm", "bfloat16", TimedShape("m=1;n=2")));
}

TEST(TimedOperators, FoldsAreThoseOfTheImportScript) {
  // tools/import_measured_ops.py: fnv1a("gemm|m=8192;n=12288;k=4096|1") % 4.
  EXPECT_EQ(timed_fold("gemm", "m=8192;n=12288;k=4096", 1), 1);
}

}  // namespace
}  // namespace trigon
