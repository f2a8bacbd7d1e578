#include <gtest/gtest.h>

#include "onnx/onnx_model.hpp"
#include "onnx/onnx_writer_test.hpp"
#include "onnx/op.hpp"

namespace trigon {
namespace {

using onnx::OnnxWriter;

Result<Model> read(const OnnxWriter& w, const ItemOptions& item = {}) {
  const std::string bytes = w.file();
  return read_onnx(ByteSource::memory(bytes, "m.onnx"), item);
}

const Graph& graph_of(const Result<Model>& m) { return std::get<Graph>(m->components[0].body); }
const TensorShape& first_output(const Graph& g) { return g.values[g.outputs.at(0)].shape; }

TEST(Onnx, AConvolutionCountsItsKernelAtEachPosition) {
  OnnxWriter w;
  w.input("x", {std::string("N"), 3, 224, 224}).output("y").weight("w", {64, 3, 7, 7});
  w.node("Conv", {"x", "w"}, {"y"},
         {{"strides", OnnxWriter::Sizes{2, 2}}, {"pads", OnnxWriter::Sizes{3, 3, 3, 3}}});
  auto m = read(w);
  ASSERT_TRUE(m);
  const Graph& g = graph_of(m);
  EXPECT_EQ(first_output(g), (TensorShape{64, 112, 112}));
  EXPECT_EQ(count_parameters(g), 9408);
  EXPECT_EQ(multiply_accumulates(g), 112.0 * 112 * 64 * 147);
  EXPECT_EQ(m->item->unit, WorkUnit::image);
  EXPECT_EQ(m->item->size, (std::vector<std::int64_t>{224, 224}));
}

TEST(Onnx, AGroupedAndATransposedConvolution) {
  OnnxWriter w;
  w.input("x", {1, 32, 10, 10}).output("z").weight("d", {32, 1, 3, 3}).weight("t", {32, 8, 2, 2});
  w.node("Conv", {"x", "d"}, {"y"},
         {{"group", std::int64_t{32}}, {"pads", OnnxWriter::Sizes{1, 1, 1, 1}}});
  w.node("ConvTranspose", {"y", "t"}, {"z"}, {{"strides", OnnxWriter::Sizes{2, 2}}});
  auto m = read(w);
  ASSERT_TRUE(m);
  EXPECT_EQ(first_output(graph_of(m)), (TensorShape{8, 20, 20}));
  // 9 products for each of 32 x 100 outputs; each of 100 positions meets 32 x 8 x 4 weights.
  EXPECT_EQ(multiply_accumulates(graph_of(m)), 32 * 100 * 9 + 100 * 32 * 8 * 4);
}

// A video model merges pictures into the batch: each is convolved.
TEST(Onnx, SeveralPicturesOfOneItemAreEachConvolved) {
  OnnxWriter w;
  w.input("x", {1, 5, 3, 8, 8}).output("z").weight("k", {4, 3, 3, 3}).weight("t", {4, 2, 2, 2});
  w.integers("s", {4}, {5, 3, 8, 8});
  w.node("Reshape", {"x", "s"}, {"p"}).node("Conv", {"p", "k"}, {"y"});
  w.node("ConvTranspose", {"y", "t"}, {"z"});
  auto m = read(w);
  ASSERT_TRUE(m);
  EXPECT_EQ(multiply_accumulates(graph_of(m)), 5 * (36 * 4 * 27 + 36 * 4 * 2 * 4));
}

TEST(Onnx, ProductsWithStoredMatricesAreProjections) {
  OnnxWriter w;
  w.input("ids", {std::string("batch"), std::string("length")}, 7).output("logits");
  w.weight("table", {100, 16}).weight("up", {16, 32}).weight("down", {16, 32});
  w.node("Gather", {"table", "ids"}, {"x"}).node("MatMul", {"x", "up"}, {"h"});
  // A turned matrix is the stored one, and so is a tied head.
  w.node("Transpose", {"down"}, {"turned"}, {{"perm", OnnxWriter::Sizes{1, 0}}});
  w.node("MatMul", {"h", "turned"}, {"o"});
  w.node("Transpose", {"table"}, {"head"}).node("MatMul", {"o", "head"}, {"logits"});
  ItemOptions item;
  item.tokens = 7;
  auto m = read(w, item);
  ASSERT_TRUE(m);
  const Graph& g = graph_of(m);
  EXPECT_EQ(first_output(g), (TensorShape{7, 100}));
  EXPECT_EQ(count_parameters(g), 100 * 16 + 2 * 16 * 32);
  EXPECT_EQ(multiply_accumulates(g), 7.0 * (2 * 16 * 32 + 16 * 100));
  EXPECT_EQ(m->item->unit, WorkUnit::sequence);
}

TEST(Onnx, StoredFormatsAreKept) {
  OnnxWriter w;
  w.input("x", {1, 4, 64}).output("y").weight("q", {64, 32}, 3).weight("scale", {32});
  w.weight("packed", {16, 1, 16}, 2).weight("scales", {16});
  w.node("DequantizeLinear", {"q", "scale"}, {"d"}, {{"axis", std::int64_t{1}}});
  w.node("MatMul", {"x", "d"}, {"h"});
  w.node("MatMulNBits", {"h", "packed", "scales"}, {"y"},
         {{"K", std::int64_t{32}},
          {"N", std::int64_t{16}},
          {"bits", std::int64_t{4}},
          {"block_size", std::int64_t{32}}},
         "com.microsoft");
  auto m = read(w);
  ASSERT_TRUE(m);
  const Graph& g = graph_of(m);
  EXPECT_EQ(first_output(g), (TensorShape{4, 16}));
  // 64 x 32 bytes and 32 scales; 16 x 32 half bytes, a scale and half a byte a group of 32.
  EXPECT_EQ(weight_bytes(g).value(), 2048 + 128 + 256 + 16 * 2 + 8);
  EXPECT_EQ(count_parameters(g), 64 * 32 + 16 * 32);
  EXPECT_EQ(multiply_accumulates(g), 4 * (64 * 32 + 32 * 16));
  EXPECT_EQ(m->weight_format, Format::i8);
}

TEST(Onnx, ARecurrenceRunsItsSteps) {
  OnnxWriter w;
  w.input("x", {20, 1, 10}).output("y");
  w.weight("w", {2, 32, 10}).weight("r", {2, 32, 8}).weight("b", {2, 64});
  w.node("LSTM", {"x", "w", "r", "b"}, {"y"},
         {{"hidden_size", std::int64_t{8}}, {"direction", std::string("bidirectional")}});
  auto m = read(w);
  ASSERT_TRUE(m);
  EXPECT_EQ(multiply_accumulates(graph_of(m)), 2 * 20 * 32 * 18);
  EXPECT_EQ(count_parameters(graph_of(m)), 2 * (320 + 256 + 64));
}

TEST(Onnx, FusedAttentionIsAProjectionAndItsCore) {
  OnnxWriter w;
  w.input("x", {1, 12, 32}).output("y").weight("w", {32, 96}).weight("b", {96});
  w.node("Attention", {"x", "w", "b"}, {"y"}, {{"num_heads", std::int64_t{4}}}, "com.microsoft");
  auto m = read(w);
  ASSERT_TRUE(m);
  EXPECT_EQ(first_output(graph_of(m)), (TensorShape{12, 32}));
  EXPECT_EQ(multiply_accumulates(graph_of(m)), 12 * 32 * 96 + 2 * 12 * 12 * 32);
  EXPECT_EQ(count_parameters(graph_of(m)), 32 * 96 + 96);
}

TEST(Onnx, AttentionWrittenOutBecomesOneNode) {
  OnnxWriter w;
  w.input("x", {1, 10, 32}).output("y").integers("to", {4}, {1, 10, 4, 8});
  w.integers("back", {3}, {1, 10, 32}).weight("scale", {}).weight("w", {32, 32});
  w.node("MatMul", {"x", "w"}, {"p"}).node("Reshape", {"p", "to"}, {"h"});
  w.node("Transpose", {"h"}, {"q"}, {{"perm", OnnxWriter::Sizes{0, 2, 1, 3}}});
  w.node("Transpose", {"h"}, {"k"}, {{"perm", OnnxWriter::Sizes{0, 2, 3, 1}}});
  w.node("MatMul", {"q", "k"}, {"s"}).node("Mul", {"s", "scale"}, {"t"});
  w.node("Softmax", {"t"}, {"a"}, {{"axis", std::int64_t{-1}}});
  w.node("MatMul", {"a", "q"}, {"o"});
  w.node("Transpose", {"o"}, {"u"}, {{"perm", OnnxWriter::Sizes{0, 2, 1, 3}}});
  w.node("Reshape", {"u", "back"}, {"y"});
  auto m = read(w);
  ASSERT_TRUE(m);
  const Graph& g = graph_of(m);
  int cores = 0;
  for (const GraphNode& n : g.nodes)
    if (auto a = std::get_if<AttentionCore>(&n.operation)) {
      ++cores;
      EXPECT_EQ(a->heads, 4);
      EXPECT_EQ(a->sequences, 1);
      EXPECT_EQ(a->queries, 10);
      EXPECT_EQ(a->keys, 10);
      EXPECT_EQ(a->head_dim, 8);
      EXPECT_TRUE(a->fused);
    }
  EXPECT_EQ(cores, 1);
  EXPECT_EQ(multiply_accumulates(g), 10 * 32 * 32 + 2 * 10 * 10 * 32);
}

TEST(Onnx, WhatNoOutputNeedsIsLeftOut) {
  OnnxWriter w;
  w.input("x", {1, 8}).output("y").weight("w", {8, 8}).weight("v", {8, 1000});
  w.node("MatMul", {"x", "v"}, {"unused"}).node("Shape", {"unused"}, {"s"});
  w.node("MatMul", {"x", "w"}, {"h"}).node("ConstantOfShape", {"s"}, {"zeros"});
  w.node("Size", {"zeros"}, {"n"}).node("Cast", {"n"}, {"f"}, {{"to", std::int64_t{1}}});
  w.node("Mul", {"h", "f"}, {"y"});
  auto m = read(w);
  ASSERT_TRUE(m);
  EXPECT_EQ(count_parameters(graph_of(m)), 64);
  EXPECT_EQ(graph_of(m).nodes.size(), 2u);
}

TEST(Onnx, AFixedBatchIsReadAsOne) {
  OnnxWriter w;
  w.input("x", {16, 3, 8, 8}).output("y");
  w.node("Flatten", {"x"}, {"y"});
  auto m = read(w);
  ASSERT_TRUE(m);
  EXPECT_EQ(first_output(graph_of(m)), (TensorShape{192}));
  EXPECT_EQ(m->notes.size(), 1u);
  // Baked into a shape, it cannot be.
  OnnxWriter baked;
  baked.input("x", {16, 3, 8, 8}).output("y").integers("s", {2}, {16, 192});
  baked.node("Reshape", {"x", "s"}, {"y"});
  auto refused = read(baked);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().hint);
}

TEST(Onnx, SymbolsAddUp) {
  OnnxWriter w;
  w.input("ids", {std::string("b"), std::string("new")}, 7);
  w.input("past", {std::string("b"), 2, std::string("old"), 4});
  w.input("mask", {std::string("b"), std::string("old + new")}, 7).output("y");
  w.node("Cast", {"mask"}, {"y"}, {{"to", std::int64_t{1}}});
  ItemOptions item;
  item.shapes["past"] = {1, 2, 30, 4};
  item.tokens = 1;
  auto m = read(w, item);
  ASSERT_TRUE(m);
  EXPECT_EQ(first_output(graph_of(m)), (TensorShape{31}));
}

TEST(Onnx, OperatorsAreFoundByDomain) {
  for (const char* op : {"Abs", "Conv", "LSTM", "Loop", "If", "Scan", "Einsum", "STFT"})
    EXPECT_TRUE(onnx::find_operator("", op)) << op;
  EXPECT_FALSE(onnx::find_operator("", "Frobnicate"));
  EXPECT_FALSE(onnx::find_operator("com.acme", "Conv"));
}

}  // namespace
}  // namespace trigon
