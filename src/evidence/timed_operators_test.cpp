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

TEST(TimedOperators, WindowsBindOnlyLongerContexts) {
  const auto short_ones = timed_operators("attention_decode", "bf16/kv=bfloat16",
                                          TimedShape("b=1;kvlen=100;h=8;w=128"));
  EXPECT_EQ(short_ones->front().window, 0);
  EXPECT_EQ(short_ones->front().key_tokens, 100);
  const auto far = timed_operators("attention_decode", "bf16/kv=bfloat16",
                                   TimedShape("b=1;kvlen=900;h=8;w=128"));
  EXPECT_EQ(far->front().window, 128);
  EXPECT_EQ(far->front().key_tokens, 128);
  EXPECT_EQ(far->front().data_bytes, 128.0 * 8 * 2 * 128 * 2 + 8 * 256 * 2);
  const auto prompt = timed_operators("attention_prefill_causal", "bf16/kv=bfloat16",
                                      TimedShape("b=1;isl=4;h=1;w=2"));
  EXPECT_EQ(prompt->front().key_tokens, (1 + 2 + 2 + 2) / 4.0);
}

TEST(TimedOperators, NormsAndWideSoftmaxReadRowsAgain) {
  const auto norm = timed_operators("layernorm", "fp32", TimedShape("b=10;h=1000"));
  EXPECT_EQ(norm->front().data_bytes, 10.0 * 1000 * 8);
  EXPECT_EQ(norm->front().again_bytes, 10.0 * 1000 * 4);
  EXPECT_EQ(norm->front().row_bytes, 4000);
  EXPECT_EQ(timed_operators("softmax", "fp32", TimedShape("b=10;h=1024"))->front().again_bytes, 0);
  EXPECT_EQ(timed_operators("softmax", "fp32", TimedShape("b=10;h=2048"))->front().again_bytes,
            2 * 10.0 * 2048 * 4);
  EXPECT_EQ(
      timed_operators("elementwise", "fp32", TimedShape("b=2;h=8;fn=add"))->front().data_bytes,
      2.0 * 8 * 3 * 4);
  EXPECT_EQ(
      timed_operators("elementwise", "fp32", TimedShape("b=2;h=8;fn=addu"))->front().data_bytes,
      2.0 * 8 * 2 * 4);
}

TEST(TimedOperators, KernelsForExperts) {
  const TimedShape shape("tokens=128;hidden=7168;topk=8;experts=256;sms=20");
  const auto x = timed_exchange("deepep_dispatch", "fp8", shape);
  ASSERT_TRUE(x);
  EXPECT_EQ(x->kind, ExchangeKind::dispatch);
  EXPECT_EQ(x->multiprocessors, 20);
  EXPECT_EQ(x->value_bytes, kFp8DispatchBytes);
  EXPECT_EQ(exchange_shape(*x), "tokens=128;hidden=7168;topk=8;experts=256;sms=20");
  EXPECT_EQ(timed_exchange("deepep_combine_low_latency", "bfloat16", shape)->kind,
            ExchangeKind::combine_low_latency);
  EXPECT_FALSE(timed_exchange("deepep_barrier", "fp8", shape));
  EXPECT_FALSE(timed_exchange("deepep_dispatch", "fp8", TimedShape("tokens=1;hidden=8;topk=2")));
  EXPECT_FALSE(
      timed_exchange("deepep_dispatch", "fp8", TimedShape("tokens=1;hidden=8;topk=9;experts=8")));
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
