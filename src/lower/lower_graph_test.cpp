#include <gtest/gtest.h>

#include <algorithm>

#include "lower/lower.hpp"
#include "network/builder.hpp"

namespace trigon {
namespace {

const Operator* named(const OperatorList& ops, std::string_view name) {
  auto it =
      std::find_if(ops.begin(), ops.end(), [&](const Operator& op) { return name == op.name; });
  return it == ops.end() ? nullptr : &*it;
}

// 3 x 8 x 8 -> 16 channels, 3 x 3, batch norm, ReLU, twice; then a head of 10.
Graph small_network() {
  NetworkBuilder b("test");
  ValueId x = b.input({3, 8, 8});
  x = b.activation("r1", b.batch_norm("n1", b.convolution("c1", x, 16)), Activation::relu);
  x = b.activation("r2", b.batch_norm("n2", b.convolution("c2", x, 16)), Activation::relu);
  x = b.activation("r3", b.batch_norm("n3", b.convolution("c3", x, 16)), Activation::relu);
  x = b.linear("fc", b.global_average_pool("p", x), 10);
  return b.finish({x});
}

TEST(LowerGraph, ConvolutionsAreImplicitProducts) {
  OperatorList ops;
  ItemPass pass;
  pass.items = 4;
  lower_graph(small_network(), pass, ops);
  ASSERT_EQ(ops[0].kind, OperatorKind::convolution);
  EXPECT_EQ(ops[0].m, 4 * 64);
  EXPECT_EQ(ops[0].n, 16);
  EXPECT_EQ(ops[0].k, 27);
  EXPECT_EQ(ops[0].flops, 2.0 * 4 * 64 * 16 * 27);
  EXPECT_EQ(ops[0].weight_bytes, 2.0 * 16 * 27);
  EXPECT_FALSE(ops[0].input_gradient);  // nothing before it trains
  // The second and third are equal: one operator, twice.
  EXPECT_EQ(ops[1].kind, OperatorKind::convolution);
  EXPECT_EQ(ops[1].repeat, 2);
  EXPECT_TRUE(ops[1].input_gradient);
}

TEST(LowerGraph, FusedKernelsTakeNormsAndFunctionsAlong) {
  const Graph g = small_network();
  OperatorList fused, eager;
  ItemPass pass;
  lower_graph(g, pass, fused);
  pass.fusion = Fusion::none;
  lower_graph(g, pass, eager);
  auto launches = [](const OperatorList& ops) {
    double n = 0;
    for (const Operator& op : ops) n += op.repeat;
    return n;
  };
  EXPECT_EQ(launches(fused), 5);   // three convolutions, the mean, the head
  EXPECT_EQ(launches(eager), 11);  // and three norms and functions each
  // An eager ReLU reads and writes 16 x 8 x 8 values of two bytes.
  ASSERT_TRUE(named(eager, "relu"));
  EXPECT_EQ(named(eager, "relu")->data_bytes, 2.0 * 2 * 1024);
  // In training the batch's statistics are a pass of their own, which the function then joins.
  pass.fusion = Fusion::epilogue;
  pass.training = true;
  OperatorList training;
  lower_graph(g, pass, training);
  EXPECT_EQ(launches(training), 8);
  EXPECT_FALSE(named(training, "relu"));
}

TEST(LowerGraph, WorkIsThatOfTheGraphWhateverTheBatch) {
  const Graph g = small_network();
  for (double items : {1.0, 7.0, 256.0}) {
    OperatorList ops;
    ItemPass pass;
    pass.items = items;
    lower_graph(g, pass, ops);
    double products = 0;
    for (const Operator& op : ops)
      if (op.kind == OperatorKind::convolution || op.kind == OperatorKind::gemm)
        products += op.repeat * op.flops;
    EXPECT_DOUBLE_EQ(products, 2 * items * multiply_accumulates(g));
  }
}

TEST(LowerGraph, AttentionWithoutAFusedKernelWritesItsScores) {
  NetworkBuilder b("test");
  ValueId x = b.input({50, 64});
  AttentionOptions o;
  o.heads = 4;
  ValueId y = b.attention("a", b.linear("q", x, 64), b.linear("k", x, 64), b.linear("v", x, 64), o);
  const Graph g = b.finish({y});
  OperatorList flash, plain;
  ItemPass pass;
  pass.items = 2;
  lower_graph(g, pass, flash);
  pass.flash_attention = false;
  lower_graph(g, pass, plain);
  ASSERT_TRUE(named(flash, "attention"));
  EXPECT_EQ(named(flash, "attention")->flops, 2.0 * 2 * 4 * 50 * 50 * (16 + 16));
  ASSERT_TRUE(named(plain, "attention.scores"));
  const Operator& scores = *named(plain, "attention.scores");
  EXPECT_EQ(scores.groups, 2 * 4);
  EXPECT_EQ(scores.m / scores.groups, 50);
  // q, k and 4 heads of 50 x 50 scores, for two items of two bytes an element.
  EXPECT_EQ(scores.data_bytes, 2.0 * 2 * (2 * 50 * 64 + 4 * 50 * 50));
}

TEST(LowerGraph, StepsOfARecurrenceFollowEachOther) {
  NetworkBuilder b("test");
  ValueId x = b.input({30, 80});
  const Graph g = b.finish({b.recurrence("r", x, RecurrentCell::lstm, 128, true)});
  OperatorList ops;
  ItemPass pass;
  pass.items = 3;
  lower_graph(g, pass, ops);
  ASSERT_TRUE(named(ops, "recurrence.input"));
  EXPECT_EQ(named(ops, "recurrence.input")->m, 90);
  EXPECT_EQ(named(ops, "recurrence.input")->n, 2 * 4 * 128);
  const Operator& step = *named(ops, "recurrence.step");
  EXPECT_EQ(step.repeat, 60);  // 30 steps in each direction
  EXPECT_EQ(step.m, 3);
  EXPECT_EQ(step.k, 128);
}

}  // namespace
}  // namespace trigon
