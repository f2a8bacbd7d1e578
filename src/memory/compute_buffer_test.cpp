#include "memory/compute_buffer.hpp"

#include <gtest/gtest.h>

#include "memory/test_models.hpp"

namespace trigon {
namespace {

double buffer_mib(const Model& m, ComputeBuffer b) {
  const Stack& s = *language_stack(m);
  return compute_buffer_bytes(compute_buffer_layer(s.runs[0].layer, s.hidden, b),
                              compute_buffer_head(s.hidden, s.vocabulary, b), s.hidden, b) /
         kMi;
}

TEST(ComputeBuffer, Llama8bWithoutFlashAttention) {
  Model m = test::llama31_8b();
  ComputeBuffer b;
  b.keys = 8192;
  // Scores 512, mask 16, embeddings 8, queries and two hidden copies 24 MiB: the 560 MiB that
  // start-up logs of the time show for one card.
  EXPECT_EQ(buffer_mib(m, b), 560);
  // Four copies of the inputs over several cards: 632 MiB against 640 in logs of two to eight.
  b.input_copies = 4;
  EXPECT_EQ(buffer_mib(m, b), 632);
}

TEST(ComputeBuffer, HeadWinsWithFlashAttention) {
  Model m = test::llama31_8b();
  ComputeBuffer b;
  b.flash_attention = true;
  b.keys = 8192;
  // 128,256 logits and the hidden state of 512 tokens, 258.5 MiB, and the embeddings.
  EXPECT_EQ(buffer_mib(m, b), 266.5);
}

TEST(ComputeBuffer, ExpandedLatentAttention) {
  Model m = test::deepseek_v3();
  ComputeBuffer b;
  b.flash_attention = b.latent_expanded = true;
  b.attention_chunk = 512 * kMi;
  b.keys = 32768;
  // 2,560 of 16-bit keys and values, 512 of the chunk, 64 of two masks, 48 of queries and the
  // embeddings of 14 MiB; start-up logs of -mla 3 -fa -amb 512 show 3,393 and 3,425.
  EXPECT_EQ(buffer_mib(m, b), 2560 + 512 + 64 + 48 + 14);
}

}  // namespace
}  // namespace trigon
