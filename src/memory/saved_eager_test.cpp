#include "memory/saved_eager.hpp"

#include <gtest/gtest.h>

#include "memory/test_models.hpp"

namespace trigon {
namespace {

ActivationRules eager_rules() {
  ActivationRules r;
  r.autograd = Autograd::eager;
  r.frozen = true;
  r.targets = kQueryValue;
  return r;
}

// litgpt tutorials/resource-tables.md: Llama 2 7B with LoRA on queries and values takes 21.30 GB
// for one sample of 1,304 tokens and 29.07 GB for two.
TEST(SavedEager, ReproducesLitgptLoraOnLlama) {
  const double h = 4096, w = 11008;
  const Layer layer = test::decoder_layer({1, 4096, 32, 32, 128, 11008, 32000});
  ActivationRules r = eager_rules();
  r.eager.fused_qkv = true;
  r.eager.expanded_kv = true;
  r.eager.adapter_input_bytes = 3;
  r.eager.adapter_shared_qkv = true;
  r.eager.adapter_padding = true;
  // Two norms of 4; a dropped copy and its mask; padded outputs of q and v; the projection of q, k
  // and v, rotated q and k, the output, a log-sum-exp a head; three tensors of the MLP.
  const double layer_bytes = saved_for_backward(layer, 4096, r).per_token;
  EXPECT_DOUBLE_EQ(layer_bytes, (8 + 3 + 4 + 6 + 4 + 2) * h + 4 * 32 + 6 * w);
  const double logits = 8 * 32000;
  EXPECT_NEAR((32 * layer_bytes + logits) * 1304, 29.07e9 - 21.30e9, 0.03 * 7.77e9);
}

TEST(SavedEager, GroupedKeysAreRepeatedAndEachAdapterCopiesItsInput) {
  const double h = 3072, w = 8192;
  const Layer layer = test::decoder_layer({1, 3072, 24, 8, 128, 8192, 128256});
  ActivationRules r = eager_rules();
  r.eager.expanded_kv = true;
  r.eager.adapter_input_bytes = 4;
  const double two = saved_for_backward(layer, 3072, r).per_token;
  EXPECT_DOUBLE_EQ(two, 8 * h + 2 * 4 * h + 4 * 2 * h + 4 * 24 + 6 * w);
  r.targets = kAllLinears;
  EXPECT_DOUBLE_EQ(saved_for_backward(layer, 3072, r).per_token,
                   two + 4 * (h + h) + 4 * (2 * h) + 4 * w);
  r.form.input = false;
  EXPECT_DOUBLE_EQ(saved_for_backward(layer, 3072, r).per_token, two - 8 * h);
  r.targets = kQueryValue;
  r.form.output = true;  // results of q and v
  EXPECT_DOUBLE_EQ(saved_for_backward(layer, 3072, r).per_token, two - 8 * h + 2 * (h + 1024));
}

TEST(SavedEager, QuantisedLinearsMayKeepTheirInput) {
  const double h = 4096, w = 11008;
  const Layer layer = test::decoder_layer({1, 4096, 32, 32, 128, 11008, 32000});
  ActivationRules r = eager_rules();
  r.eager.adapter_input_bytes = 3;
  const double plain = saved_for_backward(layer, 4096, r).per_token;
  r.quantised = true;
  EXPECT_DOUBLE_EQ(saved_for_backward(layer, 4096, r).per_token, plain);
  r.eager.quantised_input = true;  // of attention, of the MLP, of its down projection
  const double kept = saved_for_backward(layer, 4096, r).per_token;
  EXPECT_DOUBLE_EQ(kept, plain + 2 * (h + h + w));
  r.eager.graph_outlives_step = true;  // the same again and the output projection's
  EXPECT_DOUBLE_EQ(saved_for_backward(layer, 4096, r).per_token, kept + 2 * (h + h + h + w));
}

TEST(SavedEager, TrainedWeightsKeepTheirInputsOnce) {
  const double h = 2048, w = 5632;
  const Layer layer = test::decoder_layer({1, 2048, 32, 32, 64, 5632, 32000});
  ActivationRules r = eager_rules();
  r.frozen = false;
  EXPECT_DOUBLE_EQ(saved_for_backward(layer, 2048, r).per_token,
                   2 * 6 * h + 2 * h + 4 * 2 * h + 4 * 32 + 2 * h + 4 * 2 * w);
}

// Without a fused kernel the backward of the softmax has its gradient and its result, 32 bit each,
// for every score.
TEST(SavedEager, TheSoftmaxBackwardIsFullerThanTheMlps) {
  const Layer layer = test::decoder_layer({1, 4096, 32, 32, 128, 11008, 32000});
  ActivationRules r = eager_rules();
  EXPECT_EQ(eager_backward(layer, 4096, r).per_token_and_key, 0);
  r.flash_attention = false;
  EXPECT_EQ(eager_backward(layer, 4096, r).per_token_and_key, 32 * 8);
}

}  // namespace
}  // namespace trigon
