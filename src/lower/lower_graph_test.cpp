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

// Of 16 x 8 x 8 values of two bytes: a ReLU's backward pass reads the gradient and what it made and
// writes a gradient; a norm's reads values and gradients twice; a sum's does nothing, but what it
// shares with a convolution gets two gradients, which are added.
TEST(LowerGraph, BackwardPassesMoveGradientsAndWhatWasKept) {
  NetworkBuilder b("test");
  const ValueId x = b.input({3, 8, 8});
  const ValueId y =
      b.activation("r", b.batch_norm("n", b.convolution("c1", x, 16)), Activation::relu);
  const ValueId sum = b.add("sum", y, b.convolution("c2", y, 16));
  OperatorList ops;
  ItemPass pass;
  pass.fusion = Fusion::none;
  pass.training = true;
  lower_graph(b.finish({sum}), pass, ops);
  const double value = 2.0 * 1024;
  ASSERT_TRUE(named(ops, "normalization") && named(ops, "relu") && named(ops, "add"));
  EXPECT_EQ(named(ops, "normalization")->backward_bytes, 5 * value);
  EXPECT_EQ(named(ops, "relu")->backward_bytes, 3 * value + 3 * value);
  EXPECT_EQ(named(ops, "add")->backward_bytes, 0);
}

TEST(LowerGraph, ConvolutionsSayOverHowManyAxesTheyRun) {
  for (const auto& shape : {TensorShape{4, 8}, TensorShape{4, 8, 8}, TensorShape{4, 8, 8, 8}}) {
    NetworkBuilder b("test");
    OperatorList ops;
    lower_graph(b.finish({b.convolution("c", b.input(shape), 8)}), {}, ops);
    ASSERT_EQ(ops.size(), 1u);
    EXPECT_EQ(ops[0].axes, static_cast<int>(shape.size()) - 1);
  }
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

double launches(const OperatorList& ops, std::string_view name) {
  double n = 0;
  for (const Operator& op : ops)
    if (name == op.name) n += op.repeat;
  return n;
}
double bytes(const OperatorList& ops, std::string_view name) {
  double n = 0;
  for (const Operator& op : ops)
    if (name == op.name) n += op.repeat * op.data_bytes;
  return n;
}

TEST(LowerGraph, CompilersFuseFunctionsBesideTheProducts) {
  OperatorList ops;
  ItemPass pass;
  pass.fusion = Fusion::pointwise;
  lower_graph(small_network(), pass, ops);
  // A norm does not join the convolution, but the function joins the norm.
  EXPECT_EQ(launches(ops, "convolution"), 3);
  EXPECT_EQ(launches(ops, "normalization"), 3);
  EXPECT_FALSE(named(ops, "relu"));
  EXPECT_EQ(bytes(ops, "normalization"), 3 * 2 * 2.0 * 1024);

  // What two read is written still: of a sum and its norm one read is saved.
  NetworkBuilder b("test");
  ValueId x = b.input({50, 64});
  ValueId sum = b.add("sum", b.linear("a", x, 64), b.linear("b", x, 64));
  ValueId y = b.add("out", b.linear("c", b.layer_norm("norm", sum), 64), sum);
  OperatorList residual;
  lower_graph(b.finish({y}), pass, residual);
  EXPECT_EQ(launches(residual, "normalization"), 0);
  EXPECT_EQ(launches(residual, "add"), 2);
  const double one = 2.0 * 50 * 64, norm_weights = 2.0 * 2 * 64;
  EXPECT_EQ(bytes(residual, "add"), (4 * one + norm_weights) + 3 * one);

  // What a kernel has read it keeps: both factors of x (x w) are one read of x.
  NetworkBuilder again("test");
  ValueId p = again.linear("p", again.input({50, 64}), 64);
  ValueId twice = again.multiply("second", p, again.scale("first", p));
  OperatorList held;
  lower_graph(again.finish({twice}), pass, held);
  EXPECT_EQ(launches(held, "projection"), 1);
  double rest = 0;
  for (const Operator& op : held)
    if (op.kind == OperatorKind::elementwise) rest += op.data_bytes;
  EXPECT_EQ(rest, 2 * one);
}

TEST(LowerGraph, AutocastConvertsBetweenItsFormats) {
  NetworkBuilder b("test");
  ValueId x = b.input({50, 64});
  const Graph g = b.finish({b.layer_norm("norm", b.linear("fc", x, 64))});
  ItemPass pass;
  pass.fusion = Fusion::none;
  pass.weights = Format::f32;
  pass.autocast = true;
  pass.items = 3;
  OperatorList ops;
  lower_graph(g, pass, ops);
  // The matrix, its bias and the input to 16 bit; what the product wrote back to 32.
  EXPECT_EQ(launches(ops, "cast"), 4);
  EXPECT_EQ(bytes(ops, "cast"), 6.0 * (64 * 64 + 64 + 3 * 50 * 64 + 3 * 50 * 64));
  EXPECT_EQ(named(ops, "projection")->data_bytes, 3 * 2 * 2.0 * 50 * 64);
  EXPECT_EQ(named(ops, "projection")->weight_bytes, 2.0 * (64 * 64 + 64));
  EXPECT_EQ(named(ops, "normalization")->data_bytes, 3 * 2 * 4.0 * 50 * 64);
  // A compiler converts inside the kernels; weights are converted still.
  pass.fusion = Fusion::pointwise;
  OperatorList fused;
  lower_graph(g, pass, fused);
  EXPECT_EQ(launches(fused, "cast"), 2);
  EXPECT_EQ(named(fused, "normalization")->data_bytes, 3 * 2 * 2.0 * 50 * 64);
}

TEST(LowerGraph, ImagesStayChannelsLastAfterANormOfTheirChannels) {
  NetworkBuilder b("test");
  ConvolutionOptions point;
  point.kernel = 1;
  const ValueId x = b.convolution("stem", b.input({16, 8, 8}), 32, point);
  const ValueId y = b.convolution("first", b.layer_norm("norm", x, true, true), 32, point);
  // A view of positions as tokens and back moves nothing and lies channels last too.
  const ValueId tokens = b.linear("fc", b.reshape("tokens", y, {64, 32}), 32);
  const ValueId image = b.reshape("image", tokens, {32, 8, 8});
  const Graph g = b.finish({b.convolution("second", b.add("add", image, y), 32, point)});
  ItemPass pass;
  pass.fusion = Fusion::none;
  pass.channels_first = true;
  OperatorList ops;
  lower_graph(g, pass, ops);
  // The stem's input for its product and its output for the norm.
  EXPECT_EQ(launches(ops, "layout"), 2);
  EXPECT_EQ(bytes(ops, "layout"), 2 * 2.0 * (16 + 32) * 64);
}

TEST(LowerGraph, MatrixUnitsTakeInputsChannelsLast) {
  OperatorList ops;
  ItemPass pass;
  pass.channels_first = true;
  lower_graph(small_network(), pass, ops);
  EXPECT_EQ(launches(ops, "layout"), 3);
  EXPECT_EQ(bytes(ops, "layout"), 2 * 2.0 * (3 * 64 + 2 * 1024));
  EXPECT_TRUE(named(ops, "layout")->in_library);
  // Both passes of training turn inputs and outputs twice: the forward one has a third of it.
  pass.training = true;
  OperatorList trained;
  lower_graph(small_network(), pass, trained);
  EXPECT_DOUBLE_EQ(bytes(trained, "layout"), 2 * 2 * 2.0 * (3 * 64 + 5 * 1024) / 3);
  pass.training = false;
  // Depthwise kernels take either order; what one position reads is turned as well.
  NetworkBuilder b("test");
  ValueId x = b.input({8, 16, 16});
  ConvolutionOptions depthwise;
  depthwise.groups = 8;
  depthwise.kernel = {3};
  ConvolutionOptions pointwise;
  pointwise.kernel = {1};
  OperatorList one;
  lower_graph(b.finish({b.convolution("p", b.convolution("d", x, 8, depthwise), 32, pointwise)}),
              pass, one);
  EXPECT_EQ(launches(one, "layout"), 1);
  EXPECT_EQ(bytes(one, "layout"), 2 * 2.0 * 8 * 256);
  // Vector units take any order: 16 bit without matrix units, and 32 bit.
  pass.matrix_units = false;
  OperatorList vector;
  lower_graph(small_network(), pass, vector);
  EXPECT_EQ(launches(vector, "layout"), 0);
  pass.matrix_units = true;
  pass.activations = pass.weights = Format::f32;
  OperatorList plain;
  lower_graph(small_network(), pass, plain);
  EXPECT_EQ(launches(plain, "layout"), 0);
}

TEST(LowerGraph, WindowsOfThreeInStepsOfOneHaveMinimalFilters) {
  NetworkBuilder b("test");
  ConvolutionOptions strided;
  strided.stride = 2;
  const ValueId x = b.convolution("plain", b.input({16, 8, 8}), 16);
  const Graph g = b.finish({b.convolution("strided", x, 32, strided)});
  ItemPass pass;
  pass.activations = pass.weights = Format::f32;
  OperatorList ops;
  lower_graph(g, pass, ops);
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_TRUE(ops[0].minimal_filtering);
  EXPECT_FALSE(ops[1].minimal_filtering);
  pass.activations = pass.weights = Format::f16;
  OperatorList half;
  lower_graph(g, pass, half);
  EXPECT_FALSE(half[0].minimal_filtering);
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

TEST(LowerGraph, LongRowsOfScoresAreReadThrice) {
  for (std::int64_t keys : {1024, 1025}) {
    NetworkBuilder b("test");
    ValueId q = b.input({8, 64}), k = b.input({keys, 64});
    AttentionOptions o;
    o.heads = 4;
    const Graph g = b.finish({b.attention("a", q, k, k, o)});
    ItemPass pass;
    pass.fusion = Fusion::none;
    pass.flash_attention = false;
    OperatorList ops;
    lower_graph(g, pass, ops);
    ASSERT_TRUE(named(ops, "attention.softmax"));
    EXPECT_EQ(named(ops, "attention.softmax")->data_bytes,
              (keys > 1024 ? 4 : 2) * 2.0 * 4 * 8 * static_cast<double>(keys));
  }
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
  // The framework calls the layer, the library its steps.
  EXPECT_FALSE(named(ops, "recurrence.input")->in_library);
  EXPECT_TRUE(step.in_library);
}

}  // namespace
}  // namespace trigon
