// Encoders and encoder-decoders in GGUF files.

#include <gtest/gtest.h>

#include "model/gguf_model.hpp"
#include "model/gguf_writer_test.hpp"

namespace trigon {
namespace {

Model read(const GgufWriter& w) {
  const std::string bytes = w.bytes();
  auto h = read_gguf(ByteSource::memory(bytes, "tiny.gguf"));
  if (!h) {
    ADD_FAILURE() << h.error().where;
    return {};
  }
  auto m = read_gguf_model(*h, h->tensors, "tiny.gguf");
  if (!m) {
    ADD_FAILURE() << m.error().where;
    return {};
  }
  auto model = build_decoder(m->spec, "tiny.gguf");
  if (!model) {
    ADD_FAILURE() << model.error().where;
    return {};
  }
  return *model;
}

void attention(GgufWriter& w, const std::string& prefix, const char* out, bool bias) {
  for (const char* part : {"attn_q", "attn_k", "attn_v", out}) {
    w.tensor(prefix + part + ".weight", {64, 64}, 1);
    if (bias) w.tensor(prefix + part + ".bias", {64}, 0);
  }
}

TEST(GgufEncoder, BertNormalisesAfterAndDoesNotDecode) {
  GgufWriter w;
  w.text("general.architecture", "bert");
  w.u32("bert.block_count", 1);
  w.u32("bert.embedding_length", 64);
  w.u32("bert.attention.head_count", 4);
  w.u32("bert.context_length", 32);
  w.tensor("token_embd.weight", {64, 96}, 1);
  w.tensor("position_embd.weight", {64, 32}, 1);
  w.tensor("token_types.weight", {64, 2}, 1);
  w.tensor("token_embd_norm.weight", {64}, 0);
  w.tensor("token_embd_norm.bias", {64}, 0);
  attention(w, "blk.0.", "attn_output", true);
  for (const char* norm : {"attn_output_norm", "layer_output_norm"}) {
    w.tensor(std::string("blk.0.") + norm + ".weight", {64}, 0);
    w.tensor(std::string("blk.0.") + norm + ".bias", {64}, 0);
  }
  w.tensor("blk.0.ffn_up.weight", {64, 128}, 1);
  w.tensor("blk.0.ffn_up.bias", {128}, 0);
  w.tensor("blk.0.ffn_down.weight", {128, 64}, 1);
  w.tensor("blk.0.ffn_down.bias", {64}, 0);
  const Model m = read(w);
  const Stack* s = language_stack(m);
  ASSERT_TRUE(s);
  EXPECT_FALSE(s->generates);
  EXPECT_FALSE(has_vocabulary_head(*s));
  EXPECT_EQ(count_parameters(m).total,
            (96 + 32 + 2) * 64 + 128 + 4 * (64 * 64 + 64) + 2 * 128 + 2 * 64 * 128 + 128 + 64);
}

TEST(GgufEncoder, T5HasTwoStacksAndAttentionBetweenThem) {
  GgufWriter w;
  w.text("general.architecture", "t5");
  w.u32("t5.block_count", 1);
  w.u32("t5.embedding_length", 64);
  w.u32("t5.attention.head_count", 4);
  w.tensor("token_embd.weight", {64, 96}, 1);
  for (const char* side : {"enc.", "dec."}) {
    const std::string prefix = std::string(side) + "blk.0.";
    attention(w, prefix, "attn_o", false);
    w.tensor(prefix + "attn_rel_b.weight", {4, 32}, 0);
    w.tensor(prefix + "attn_norm.weight", {64}, 0);
    w.tensor(prefix + "ffn_norm.weight", {64}, 0);
    for (const char* up : {"ffn_gate", "ffn_up"}) w.tensor(prefix + up + ".weight", {64, 128}, 1);
    w.tensor(prefix + "ffn_down.weight", {128, 64}, 1);
    w.tensor(std::string(side) + "output_norm.weight", {64}, 0);
  }
  attention(w, "dec.blk.0.cross_", "attn_o", false);
  w.tensor("dec.blk.0.cross_attn_norm.weight", {64}, 0);
  const Model m = read(w);
  const Stack *encoder = source_stack(m), *decoder = language_stack(m);
  ASSERT_TRUE(encoder && decoder);
  EXPECT_FALSE(encoder->generates);
  const std::int64_t layer = 4 * 64 * 64 + 3 * 64 * 128 + 2 * 64 + 4 * 32 + 64;
  EXPECT_EQ(count_parameters(m).total, 96 * 64 + 2 * layer + 4 * 64 * 64 + 64);
}

}  // namespace
}  // namespace trigon
