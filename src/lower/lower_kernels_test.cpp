// What an engine's kernels do with a matrix or a cache beyond the arithmetic.

#include <gtest/gtest.h>

#include <string_view>

#include "lower/lower.hpp"
#include "memory/test_models.hpp"

namespace trigon {
namespace {

OperatorList layer_of(const Model& m, const Pass& p) {
  OperatorList ops;
  const Stack& s = *language_stack(m);
  lower_layer(s, s.runs[0].layer, p, ops);
  return ops;
}

const Operator* find(const OperatorList& ops, std::string_view name) {
  for (const Operator& op : ops)
    if (op.name == name) return &op;
  return nullptr;
}

Model quantised() {
  test::Shape shape{32, 4096, 32, 8, 128, 14336, 128256};
  shape.format = Format::int4_g128;
  return test::decoder("awq", shape);
}

TEST(Kernels, AutocastConvertsEachMatrixOnceAPass) {
  const Model m = test::llama31_8b();
  Pass p;
  p.new_tokens = 64;
  p.replace_weights = Format::f32;
  p.activations = Format::f16;
  auto sum = [](const OperatorList& ops, std::string_view name) {
    double bytes = 0;
    for (const Operator& op : ops)
      if (op.name == name) bytes += op.data_bytes * op.repeat;
    return bytes;
  };
  auto weights = [](const OperatorList& ops) {
    double bytes = 0;
    for (const Operator& op : ops) bytes += op.weight_bytes * op.repeat;
    return bytes;
  };
  const OperatorList wide = layer_of(m, p);
  EXPECT_EQ(sum(wide, "cast"), 0);
  p.autocast = true;
  const OperatorList cast = layer_of(m, p);
  // Four bytes read and two written of each parameter, which products read in 16 bit.
  EXPECT_DOUBLE_EQ(weights(cast), weights(wide) / 2);
  EXPECT_DOUBLE_EQ(sum(cast, "cast"), weights(wide) / 4 * 6);
}

TEST(Kernels, MaterialisedScoresAreWrittenAndRead) {
  const Model m = test::llama31_8b();
  Pass p;
  p.new_tokens = 512;
  p.cached_tokens = 1024;
  const Operator flash = *find(layer_of(m, p), "attention.scores");
  p.score_bytes = 20;
  const OperatorList ops = layer_of(m, p);
  const Operator& plain = *find(ops, "attention.scores");
  // Every one of 512 queries meets all 1,536 keys in each of 32 heads.
  EXPECT_DOUBLE_EQ(plain.key_tokens, 1536);
  EXPECT_DOUBLE_EQ(plain.flops, 4.0 * 512 * 1536 * 32 * 128);
  EXPECT_DOUBLE_EQ(plain.data_bytes - flash.data_bytes, 512.0 * 1536 * 32 * 20);
}

TEST(Kernels, AGrowingCacheIsCopiedAndItsHeadsRepeated) {
  const Model m = test::llama31_8b();
  Pass p;
  p.cached_tokens = 999;
  EXPECT_EQ(find(layer_of(m, p), "attention.cache_copy"), nullptr);
  const Operator shared = *find(layer_of(m, p), "attention.scores");
  p.cache_copied = p.heads_expanded = true;
  const OperatorList ops = layer_of(m, p);
  const double cache = 1000.0 * 8 * 256 * 2;  // keys and values of 8 heads in 16 bit
  EXPECT_DOUBLE_EQ(find(ops, "attention.cache_copy")->data_bytes, 2 * cache);
  // Four query heads share a key: read once, written and read for each.
  EXPECT_DOUBLE_EQ(find(ops, "attention.expand")->data_bytes, 5 * cache);
  EXPECT_DOUBLE_EQ(find(ops, "attention.scores")->data_bytes - shared.data_bytes, 3 * cache);
  p.cached_tokens = 0;  // nothing to copy
  EXPECT_EQ(find(layer_of(m, p), "attention.cache_copy"), nullptr);
}

TEST(Kernels, QuantisedMatricesAreWidenedForManyRows) {
  const Model m = quantised();
  Pass p;
  p.widened_rows = 50;
  p.new_tokens = 49;
  EXPECT_EQ(find(layer_of(m, p), "widen"), nullptr);
  p.new_tokens = 50;
  const OperatorList ops = layer_of(m, p);
  const double elements = 4096.0 * 4096;
  const Operator& q = *find(ops, "attention.q");
  EXPECT_EQ(q.weights, Format::f16);
  EXPECT_DOUBLE_EQ(q.weight_bytes, 2 * elements);
  EXPECT_DOUBLE_EQ(find(ops, "widen")->data_bytes,
                   elements * (2 + bits_per_element(Format::int4_g128) / 8));
  // 16-bit matrices are as they are.
  EXPECT_EQ(find(layer_of(test::llama31_8b(), p), "widen"), nullptr);
}

TEST(Kernels, MatrixVectorKernelsReadTheMatrixForEachRow) {
  Pass p;
  p.new_tokens = 64;
  const Operator shared = *find(layer_of(quantised(), p), "attention.q");
  p.row_products = true;
  const Operator alone = *find(layer_of(quantised(), p), "attention.q");
  EXPECT_DOUBLE_EQ(alone.weight_bytes, shared.weight_bytes);
  EXPECT_DOUBLE_EQ(alone.again_bytes, 63 * shared.weight_bytes);
  EXPECT_DOUBLE_EQ(alone.row_bytes, shared.weight_bytes);
}

TEST(Kernels, ExpertsAreGatheredLoopedOverOrGrouped) {
  const Model m = test::mixtral_8x7b();
  Pass p;
  const Operator grouped = *find(layer_of(m, p), "moe.up");
  EXPECT_EQ(grouped.kind, OperatorKind::grouped_gemm);
  p.gathered_rows = 8;
  OperatorList ops = layer_of(m, p);
  const Operator& gathered = *find(ops, "moe.up");
  EXPECT_EQ(gathered.kind, OperatorKind::gemm);
  EXPECT_DOUBLE_EQ(gathered.groups, 2);  // one token, two experts
  EXPECT_DOUBLE_EQ(gathered.weight_bytes, grouped.weight_bytes);
  EXPECT_EQ(find(ops, "moe.permute"), nullptr);
  // Many tokens: the same work, one expert after the other.
  p.new_tokens = 512;
  const Operator together = *find(layer_of(m, p), "moe.up");
  p.expert_loop = true;
  ops = layer_of(m, p);
  const Operator& single = *find(ops, "moe.up");
  EXPECT_EQ(single.kind, OperatorKind::gemm);
  EXPECT_NEAR(single.repeat, 8, 1e-9);
  EXPECT_NEAR(single.m, 512 * 2 / 8.0, 1e-9);
  EXPECT_NEAR(single.repeat * single.flops, together.flops, 1e-3);
  EXPECT_NEAR(single.repeat * single.weight_bytes, together.weight_bytes, 1e-3);
  EXPECT_NEAR(find(ops, "moe.gather")->repeat, 8, 1e-9);
}

TEST(Kernels, TrainingRoundsWhatNarrowProductsRead) {
  Model m = test::llama31_8b();
  Pass p;
  p.new_tokens = 1000;
  p.training = p.trains_matrices = true;
  p.replace_weights = Format::fp8_tensor;
  p.fused_elementwise = false;
  OperatorList ops = layer_of(m, p);
  // Values between products stay in 16 bit; a product reads one byte a value and writes two.
  const Operator q = *find(ops, "attention.q");
  EXPECT_EQ(q.weights, Format::fp8_tensor);
  EXPECT_EQ(q.activations, Format::bf16);
  EXPECT_DOUBLE_EQ(q.data_bytes, 1000 * (4096 * 1 + 4096 * 2));
  Pass wide;
  wide.new_tokens = 1000;
  EXPECT_DOUBLE_EQ(find(ops, "attention.scores")->data_bytes,
                   find(layer_of(m, wide), "attention.scores")->data_bytes);
  // Four inputs are rounded (of q, k and v at once, of up and gate at once): 2 bytes read, 1 + 1
  // written; the gradients of all seven outputs.
  double forward = 0, backward = 0, inputs = 0;
  for (const Operator& op : ops)
    if (std::string_view(op.name) == "quantise") {
      ++inputs;
      forward += op.data_bytes;
      backward += op.backward_bytes;
    }
  EXPECT_EQ(inputs, 4);
  EXPECT_DOUBLE_EQ(forward, 1000.0 * 4 * (4096 + 4096 + 4096 + 14336));
  EXPECT_DOUBLE_EQ(backward, 1000.0 * 4 * (4096 + 2 * 1024 + 4096 + 2 * 14336 + 4096));
  // A fused norm writes the rounded copies instead of its result.
  p.fused_elementwise = true;
  forward = 0;
  for (const Operator& op : layer_of(m, p))
    if (std::string_view(op.name) == "quantise") forward += op.data_bytes;
  EXPECT_DOUBLE_EQ(forward, 1000.0 * 4 * (4096 + 14336));
  // The head multiplies in 16 bit.
  OperatorList head;
  lower_head(*language_stack(m), p, head);
  EXPECT_EQ(find(head, "head")->weights, Format::bf16);
}

TEST(Kernels, WhatIsTrainedWholeLeavesTheFormatOfItsCheckpoint) {
  test::Shape shape{32, 4096, 32, 8, 128, 14336, 128256};
  shape.format = Format::mxfp4;
  Pass p;
  p.training = true;
  EXPECT_EQ(find(layer_of(test::decoder("narrow", shape), p), "mlp.up")->weights, Format::mxfp4);
  p.trains_matrices = true;
  EXPECT_EQ(find(layer_of(test::decoder("narrow", shape), p), "mlp.up")->weights, Format::bf16);
}

}  // namespace
}  // namespace trigon
