#include "memory/graph_bytes.hpp"

#include <gtest/gtest.h>

#include "network/builder.hpp"

namespace trigon {
namespace {

// One block as PyTorch trains it: convolution, batch norm, ReLU, and a second convolution.
Graph block() {
  NetworkBuilder b("test");
  ValueId x = b.input({8, 16, 16});
  x = b.activation("r1", b.batch_norm("n1", b.convolution("c1", x, 32)), Activation::relu);
  x = b.convolution("c2", x, 4);
  return b.finish({x});
}

TEST(GraphBytes, EachSavedValueCountsOnce) {
  const GraphBytes g = bytes_of_graph(block(), true, true);
  // c1 keeps its input, the norm its own input, the ReLU its output, which c2 keeps too.
  EXPECT_EQ(g.saved.floats, 8 * 256 + 32 * 256 + 32 * 256);
  EXPECT_EQ(g.saved.bytes, 0);
  EXPECT_EQ(g.parameters, 9 * 8 * 32 + 2 * 32 + 9 * 32 * 4);
  EXPECT_EQ(g.weight_floats, g.parameters + 2 * 32);  // running statistics
}

TEST(GraphBytes, ForwardHoldsOnlyWhatIsStillRead) {
  // The most is alive while the norm reads one map of 32 channels and writes another.
  EXPECT_EQ(bytes_of_graph(block(), true, true).forward.floats, 2 * 32 * 256);
  // A skip connection stays until it is added.
  NetworkBuilder b("test");
  ValueId x = b.input({8, 16, 16});
  ValueId y = b.convolution("c1", x, 64);
  y = b.convolution("c2", y, 8);
  y = b.add("add", y, x);
  const GraphBytes g = bytes_of_graph(b.finish({y}), true, true);
  EXPECT_EQ(g.forward.floats, (8 + 64 + 8) * 256);
}

// One attention of 10 tokens of width 32 behind a convolution-like projection, with a feed-forward.
TEST(GraphBytes, AdaptersStandOnAttentionAndKeepItsInputs) {
  NetworkBuilder b("test");
  ValueId x = b.linear("in", b.input({10, 16}), 32);
  AttentionOptions o;
  o.heads = 2;
  const ValueId y =
      b.attention("a", b.linear("q", x, 32), b.linear("k", x, 32), b.linear("v", x, 32), o);
  const ValueId z = b.linear("to_out", y, 32);
  const Graph g = b.finish({b.linear("up", z, 64)});
  const GraphAdapters four{4, kAttentionProjections};
  const GraphBytes with = bytes_of_graph(g, true, true, &four);
  EXPECT_EQ(with.adapted, 4);
  EXPECT_EQ(with.adapter_in_out, 4 * 64);
  // Input of q, k and v once; q, k, v and the result of attention, which to_out reads; four narrow
  // tensors. The projections before and after are frozen and keep nothing.
  EXPECT_EQ(with.saved.floats, 10 * 32 + 4 * 10 * 32 + 4 * 10 * 4);
  EXPECT_EQ(with.saved_casts.floats, 4 * 10 * 32 + 4 * 10 * 32 + 4 * 10 * 4);
  const GraphAdapters query{4, {AdapterTarget::query}};
  EXPECT_EQ(bytes_of_graph(g, true, true, &query).adapted, 1);
  // Every weight trains: the projections' inputs are kept too.
  EXPECT_EQ(bytes_of_graph(g, true, true).saved.floats, 10 * 16 + 10 * 32 + 5 * 10 * 32);
}

TEST(GraphBytes, MasksPositionsAndStatisticsHaveTheirOwnSizes) {
  NetworkBuilder b("test");
  ValueId x = b.input({4, 8, 8});
  x = b.convolution("c", x, 4);
  x = b.dropout("d", x);
  x = b.max_pool("m", x, 2, 2);
  const GraphBytes g = bytes_of_graph(b.finish({x}), true, true);
  // A byte an element of the mask, eight a maximum.
  EXPECT_EQ(g.saved.bytes, 256 + 8 * 4 * 16);
  EXPECT_EQ(g.saved.floats, 256 + 256);  // inputs of the convolution and of the pool
}

TEST(GraphBytes, AttentionKeepsScoresOnlyWithoutAFusedKernel) {
  NetworkBuilder b("test");
  ValueId x = b.linear("in", b.input({10, 32}), 32);
  AttentionOptions o;
  o.heads = 2;
  ValueId y = b.attention("a", b.linear("q", x, 32), b.linear("k", x, 32), b.linear("v", x, 32), o);
  const Graph g = b.finish({y});
  const double flash = bytes_of_graph(g, true, true).saved.floats;
  const double plain = bytes_of_graph(g, false, true).saved.floats;
  // Two heads of 10 x 10 scores instead of the 10 x 32 output.
  EXPECT_EQ(plain - flash, 2 * 100 - 320);
}

TEST(GraphBytes, NothingIsKeptBelowTheLowestTrainableLayer) {
  NetworkBuilder b("test");
  ConvolutionOptions frozen;
  frozen.trains = false;
  ValueId x = b.convolution("c1", b.input({8, 16, 16}), 16, frozen);
  x = b.activation("r", x, Activation::relu);
  x = b.convolution("c2", x, 4);
  // Only the input of what trains.
  EXPECT_EQ(bytes_of_graph(b.finish({x}), true, true).saved.floats, 16 * 256);
}

}  // namespace
}  // namespace trigon
