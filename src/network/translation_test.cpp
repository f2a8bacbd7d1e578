#include <gtest/gtest.h>

#include "network/network_testing.hpp"

namespace trigon {
namespace {

// As the training scripts print them: 159,593,523 of GNMT, 191,948,759 and 519,963,095 of
// Transformer-XL with a softmax over all of 267,735 words.
TEST(Translation, HaveTheirPrintedParameters) {
  EXPECT_EQ(network_parameters("gnmt"), 159593523);
  EXPECT_EQ(network_parameters("transformer-xl-base"), 191948759);
  EXPECT_EQ(network_parameters("transformer-xl-large"), 519963095);
}

// 54,599,680 and 245,532,672 outside of the embedding; each token's scores take 512 a word.
TEST(Translation, AdaptiveSoftmaxLeavesMostWordsOut) {
  const double whole = network_gmacs("transformer-xl-base");
  const double adaptive = network_gmacs("transformer-xl-base-adaptive");
  EXPECT_NEAR(whole - adaptive, 192 * 512e-9 * (267735 - 20000), 0.01 * whole);
}

TEST(Translation, BuildsForEveryLength) {
  for (const char* name : {"gnmt", "transformer-xl-base", "transformer-xl-large-adaptive"})
    for (std::int64_t n : {1, 7, 1024}) {
      ItemOptions item;
      item.tokens = n;
      EXPECT_TRUE(embedded_networks().find(name, item)) << name;
    }
}

}  // namespace
}  // namespace trigon
