// ResNet-50 written as an ONNX file is the network of that name.

#include <gtest/gtest.h>

#include "network/catalog.hpp"
#include "onnx/onnx_model.hpp"
#include "onnx/onnx_writer_test.hpp"

namespace trigon {
namespace {

using onnx::OnnxWriter;

class ResNet50 {
 public:
  // In the first publication the stride lies on the first 1 x 1 convolution of a block, in what
  // frameworks ship ("v1.5") on the 3 x 3 one.
  explicit ResNet50(bool stride_first) : stride_first_(stride_first) {
    w_.input("x", {std::string("N"), 3, std::string("H"), std::string("W")}).output("y");
    std::string x = relu(unit("x", 3, 64, 7, 2));
    w_.node("MaxPool", {x}, {"pooled"},
            {{"kernel_shape", OnnxWriter::Sizes{3, 3}},
             {"strides", OnnxWriter::Sizes{2, 2}},
             {"pads", OnnxWriter::Sizes{1, 1, 1, 1}}});
    x = "pooled";
    std::int64_t in = 64, width = 64;
    for (int depth : {3, 4, 6, 3}) {
      for (int i = 0; i < depth; ++i) {
        x = block(x, in, width, i == 0 && width > 64 ? 2 : 1);
        in = 4 * width;
      }
      width *= 2;
    }
    w_.node("GlobalAveragePool", {x}, {"mean"}).node("Flatten", {"mean"}, {"flat"});
    w_.weight("fc.w", {1000, 2048}).weight("fc.b", {1000});
    w_.node("Gemm", {"flat", "fc.w", "fc.b"}, {"y"}, {{"transB", std::int64_t{1}}});
  }
  std::string file() const { return w_.file(); }

 private:
  std::string fresh() { return "v" + std::to_string(count_++); }
  std::string unit(const std::string& x, std::int64_t in, std::int64_t out, std::int64_t k,
                   std::int64_t stride) {
    const std::string c = fresh(), n = fresh();
    const std::int64_t p = k / 2;
    w_.weight(c + ".w", {out, in, k, k});
    w_.node(
        "Conv", {x, c + ".w"}, {c},
        {{"strides", OnnxWriter::Sizes{stride, stride}}, {"pads", OnnxWriter::Sizes{p, p, p, p}}});
    OnnxWriter::Names inputs{c};
    for (const char* part : {".scale", ".shift", ".mean", ".var"}) {
      w_.weight(n + part, {out});
      inputs.push_back(n + part);
    }
    w_.node("BatchNormalization", inputs, {n});
    return n;
  }
  std::string relu(const std::string& x) {
    const std::string y = fresh();
    w_.node("Relu", {x}, {y});
    return y;
  }
  std::string block(const std::string& x, std::int64_t in, std::int64_t width,
                    std::int64_t stride) {
    std::string y = relu(unit(x, in, width, 1, stride_first_ ? stride : 1));
    y = relu(unit(y, width, width, 3, stride_first_ ? 1 : stride));
    y = unit(y, width, 4 * width, 1, 1);
    const std::string shortcut =
        in == 4 * width && stride == 1 ? x : unit(x, in, 4 * width, 1, stride);
    const std::string sum = fresh();
    w_.node("Add", {y, shortcut}, {sum});
    return relu(sum);
  }

  bool stride_first_;
  OnnxWriter w_;
  int count_ = 0;
};

Graph read(const ResNet50& net, std::int64_t side) {
  ItemOptions item;
  item.size = {side};
  const std::string bytes = net.file();
  auto m = read_onnx(ByteSource::memory(bytes, "resnet50.onnx"), item);
  EXPECT_TRUE(m);
  return m ? std::get<Graph>(m->components[0].body) : Graph();
}

TEST(OnnxNetworks, ResNet50IsTheNetworkOfThatName) {
  auto store = FactStore::embedded();
  ASSERT_TRUE(store);
  auto networks = NetworkCatalog::from(*store);
  ASSERT_TRUE(networks);
  for (std::int64_t side : {224, 320}) {
    ItemOptions item;
    item.size = {side};
    auto named = networks->find("resnet50", item);
    ASSERT_TRUE(named);
    const Graph& want = std::get<Graph>(named->components[0].body);
    const Graph got = read(ResNet50(false), side);
    EXPECT_EQ(count_parameters(got), 25557032);  // torchvision's count
    EXPECT_EQ(count_parameters(got), count_parameters(want));
    EXPECT_EQ(weight_bytes(got), weight_bytes(want));
    EXPECT_EQ(multiply_accumulates(got), multiply_accumulates(want));
    EXPECT_EQ(flops(got), flops(want));
  }
}

// He et al. 2015, table 1: 3.8e9 multiply-adds; torchvision's v1.5 has 4.09e9.
TEST(OnnxNetworks, TheStrideDecidesTheWorkOfResNet50) {
  const Graph first = read(ResNet50(true), 224), shipped = read(ResNet50(false), 224);
  EXPECT_EQ(count_parameters(first), count_parameters(shipped));
  EXPECT_NEAR(multiply_accumulates(first), 3.86e9, 0.01e9);
  EXPECT_NEAR(multiply_accumulates(shipped), 4.09e9, 0.005e9);
}

}  // namespace
}  // namespace trigon
