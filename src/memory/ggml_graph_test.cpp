#include "memory/ggml_graph.hpp"

#include <gtest/gtest.h>

namespace trigon {
namespace {

// Tensors without elements, as a shared expert of width 0 makes, take no place and free none.
TEST(GgmlGraph, TensorsWithoutElementsTakeNoPlace) {
  GgmlGraph g(2);
  const GgmlShape row{128}, none{0};
  GgmlId x = g.node(row, {g.outside(0)}, false, 0);
  for (int i = 0; i < 6; ++i) {
    const GgmlId empty = g.node(none, {x}, false, 0);
    x = g.node(row, {x, empty}, false, 0);
  }
  g.expand(x);
  EXPECT_EQ(g.buffers(1).front(), 2 * 512);
}

}  // namespace
}  // namespace trigon
