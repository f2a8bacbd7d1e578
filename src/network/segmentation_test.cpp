#include <gtest/gtest.h>

#include "network/network_testing.hpp"

namespace trigon {
namespace {

// The original with two classes has 31,030,658 parameters and maps 572 x 572 to 388 x 388.
TEST(Segmentation, TheOriginalHasItsPublishedParametersAndBorder) {
  EXPECT_EQ(network_parameters("UNet_Medical"), 31030658);
  const Graph g = network_graph("UNet_Medical");
  EXPECT_EQ(g.values[g.outputs[0]].shape, (TensorShape{2, 388, 388}));
}

// By hand: levels of two 3 x 3 x 3 convolutions without bias and two norms of width f; transposed
// 2 x 2 x 2 convolutions with bias; the output.
TEST(Segmentation, InThreeDimensionsCountsByHand) {
  const std::int64_t f[] = {32, 64, 128, 256, 320, 320};
  std::int64_t sum = 3 * 32 + 3, in = 1;
  for (int i = 0; i < 6; ++i) {
    sum += 27 * (in * f[i] + f[i] * f[i]) + 4 * f[i];
    in = f[i];
  }
  for (int i = 4; i >= 0; --i)
    sum += 8 * f[i + 1] * f[i] + f[i] + 27 * (2 * f[i] * f[i] + f[i] * f[i]) + 4 * f[i];
  EXPECT_EQ(network_parameters("unet3d-128"), sum);
}

TEST(Segmentation, BuildAtEveryAllowedSize) {
  for (const char* name : {"unet3d-128", "nnUNet:2", "nnUNet:3", "UNet_Medical"})
    for (std::int64_t size : {32, 64, 192, 200, 333, 512, 572}) {
      ItemOptions item;
      item.size = {size};
      (void)embedded_networks().find(name, item);
    }
}

}  // namespace
}  // namespace trigon
