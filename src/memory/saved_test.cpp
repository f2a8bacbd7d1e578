#include "memory/saved.hpp"

#include <gtest/gtest.h>

#include "memory/test_models.hpp"

namespace trigon {
namespace {

// A GPT-3 layer: MLP of four times the hidden size without a gate, dropout.
Layer gpt_layer(std::int64_t hidden, std::int64_t heads) {
  Layer l = test::decoder_layer({1, hidden, heads, heads, hidden / heads, 4 * hidden, 1000});
  Mlp& m = std::get<Mlp>(l.parts[3]);
  m.gated = false;
  m.gate.reset();
  return l;
}

TEST(Saved, ReproducesKorthikanti) {
  const double h = 12288, a = 96;
  Layer l = gpt_layer(12288, 96);
  ActivationRules r;
  r.flash_attention = false;
  r.dropout = true;
  ActivationBytes b = saved_for_backward(l, 12288, r);
  EXPECT_DOUBLE_EQ(b.per_token, 34 * h);
  EXPECT_DOUBLE_EQ(b.per_token_and_key, 5 * a);
  r.tensor = 8;
  EXPECT_DOUBLE_EQ(saved_for_backward(l, 12288, r).per_token, h * (10 + 24.0 / 8));
  EXPECT_DOUBLE_EQ(saved_for_backward(l, 12288, r).per_token_and_key, 5 * a / 8);
  r.sequence_parallel = true;
  EXPECT_DOUBLE_EQ(saved_for_backward(l, 12288, r).per_token, h * 34 / 8);
  EXPECT_EQ(saved_selective(l, 12288, r).per_token_and_key, 0);
  EXPECT_DOUBLE_EQ(saved_full_recompute(12288, r).per_token, 2 * h / 8);
}

TEST(Saved, FrozenLinearsNeedNoInput) {
  Layer l = test::decoder_layer({1, 4096, 32, 8, 128, 14336, 1000});
  ActivationRules all, frozen, two;
  frozen.frozen = two.frozen = true;
  two.targets = kQueryValue;
  double whole = saved_for_backward(l, 4096, all).per_token;
  EXPECT_DOUBLE_EQ(saved_for_backward(l, 4096, frozen).per_token, whole);
  // The MLP's input (4096) and the down projection's input (14336) go.
  EXPECT_DOUBLE_EQ(saved_for_backward(l, 4096, two).per_token, whole - 2 * (4096 + 14336));
}

}  // namespace
}  // namespace trigon
