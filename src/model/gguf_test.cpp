#include "model/gguf.hpp"

#include <gtest/gtest.h>

#include "model/gguf_model.hpp"
#include "model/gguf_writer_test.hpp"

namespace trigon {
namespace {

GgufWriter tiny(std::uint32_t version, bool big) {
  GgufWriter w(version, big);
  w.text("general.architecture", "llama");
  w.u32("llama.block_count", 1);
  w.u32("llama.embedding_length", 64);
  w.u32("llama.attention.head_count", 4);
  w.u32("llama.context_length", 2048);
  w.raw("llama.rope.freq_base", 6, 0x461c4000, 4);  // 10000.0f
  w.raw("some.i8", 1, 0xff, 1);
  w.raw("some.u64", 10, 1ull << 40, 8);
  w.boolean("some.flag", true);
  w.text_list("tokenizer.ggml.tokens", {"a", "bc", ""});
  w.i32_list("some.list", {1, -2, 3});
  w.tensor("token_embd.weight", {64, 96}, 12);
  w.tensor("output_norm.weight", {64}, 0);
  w.tensor("blk.0.attn_norm.weight", {64}, 0);
  w.tensor("blk.0.ffn_norm.weight", {64}, 0);
  w.tensor("blk.0.attn_q.weight", {64, 64}, 8);
  w.tensor("blk.0.attn_k.weight", {64, 32}, 8);
  w.tensor("blk.0.attn_v.weight", {64, 32}, 14);
  w.tensor("blk.0.attn_output.weight", {64, 64}, 8);
  w.tensor("blk.0.ffn_gate.weight", {64, 128}, 8);
  w.tensor("blk.0.ffn_up.weight", {64, 128}, 8);
  w.tensor("blk.0.ffn_down.weight", {128, 64}, 999);
  return w;
}

class EveryVersionAndOrder : public testing::TestWithParam<std::pair<int, bool>> {};

TEST_P(EveryVersionAndOrder, ReadsTheSame) {
  const auto [version, big] = GetParam();
  const std::string bytes = tiny(static_cast<std::uint32_t>(version), big).bytes();
  auto h = read_gguf(ByteSource::memory(bytes, "tiny.gguf"));
  ASSERT_TRUE(h) << h.error().where;
  EXPECT_EQ(h->version, version);
  EXPECT_EQ(h->big_endian, big);
  EXPECT_TRUE(h->header_only);
  EXPECT_EQ(h->text("general.architecture"), "llama");
  EXPECT_EQ(h->real("llama.rope.freq_base"), 10000.0);
  EXPECT_EQ(h->integer("some.i8"), -1);
  EXPECT_EQ(h->integer("some.u64"), std::int64_t{1} << 40);
  EXPECT_EQ(h->flag("some.flag"), true);
  EXPECT_EQ(h->list("tokenizer.ggml.tokens")->length, 3);
  EXPECT_EQ(h->list("some.list")->numbers, (std::vector<double>{1, -2, 3}));
  ASSERT_EQ(h->tensors.size(), 11u);
  EXPECT_EQ(h->tensors[0].shape, (std::vector<std::int64_t>{96, 64}));
  EXPECT_EQ(h->tensors[0].bytes->value(), 96 * 144);
  // A type newer than the table keeps its number, its shape and no bytes.
  EXPECT_EQ(h->tensors[10].stored_type, "type 999");
  EXPECT_FALSE(h->tensors[10].bytes);

  auto m = read_gguf_model(*h, h->tensors, "tiny.gguf");
  ASSERT_TRUE(m) << m.error().where;
  ASSERT_EQ(m->spec.layers.size(), 1u);
  const LayerSpec& l = m->spec.layers[0];
  EXPECT_EQ(l.heads, 4);
  EXPECT_EQ(l.kv_heads, 2);
  EXPECT_EQ(l.head_dim, 16);
  EXPECT_EQ(l.ffn, 128);
  EXPECT_TRUE(l.gated);
  EXPECT_EQ(l.formats.v, Format::q6_k);
  EXPECT_TRUE(m->spec.tied);
  auto model = build_decoder(m->spec, "tiny.gguf");
  ASSERT_TRUE(model);
  EXPECT_EQ(count_parameters(*model).total,
            96 * 64 + 64 + 2 * 64 + 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128);
}

INSTANTIATE_TEST_SUITE_P(Gguf, EveryVersionAndOrder,
                         testing::Values(std::pair{1, false}, std::pair{2, false},
                                         std::pair{3, false}, std::pair{2, true},
                                         std::pair{3, true}));

TEST(Gguf, EveryTruncationIsAnErrorWithAnOffset) {
  const std::string bytes = tiny(3, false).bytes();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    auto h = read_gguf(ByteSource::memory(std::string_view(bytes).substr(0, n), "cut.gguf"));
    ASSERT_FALSE(h) << n;
    EXPECT_EQ(h.error().code, ErrorCode::malformed) << n;
    EXPECT_EQ(h.error().where.rfind("cut.gguf:", 0), 0u) << h.error().where;
  }
}

TEST(Gguf, DataThatDoesNotFitIsRefused) {
  std::string bytes = tiny(3, false).bytes();
  bytes += std::string(200, '\0');
  auto h = read_gguf(ByteSource::memory(bytes, "short.gguf"));
  ASSERT_FALSE(h);
  EXPECT_EQ(h.error().code, ErrorCode::malformed);
  EXPECT_TRUE(h.error().hint);
}

TEST(Gguf, HugeCountsAreRefusedBeforeMemoryIsTaken) {
  for (std::size_t at : {8u, 16u}) {
    std::string bytes = tiny(3, false).bytes();
    for (std::size_t i = 0; i < 8; ++i) bytes[at + i] = '\xff';
    auto h = read_gguf(ByteSource::memory(bytes, "huge.gguf"));
    ASSERT_FALSE(h);
    EXPECT_EQ(h.error().where, "huge.gguf:" + std::to_string(at));
  }
}

TEST(Gguf, ControlBytesStayOutOfMessages) {
  GgufWriter w;
  w.tensor("bad\x1b[31m\n", {1, 2}, 0);
  w.tensor("bad\x1b[31m\n", {1, 2}, 0);
  auto h = read_gguf(ByteSource::memory(w.bytes(), "x.gguf"));
  ASSERT_FALSE(h);
  for (char c : std::get<std::string>(h.error().what.args[0])) EXPECT_GE(c, ' ');
}

TEST(Gguf, OverflowingShapesAndOffsetsAreRefused) {
  GgufWriter shape;
  shape.tensor("t", {INT64_MAX, 4}, 0);
  EXPECT_FALSE(read_gguf(ByteSource::memory(shape.bytes(), "x")));
  GgufWriter negative;
  negative.tensor("t", {-1, 4}, 0);
  EXPECT_FALSE(read_gguf(ByteSource::memory(negative.bytes(), "x")));
  GgufWriter offset;
  offset.tensor("t", {4, 4}, 0, ~0ull);
  EXPECT_FALSE(read_gguf(ByteSource::memory(offset.bytes(), "x")));
}

TEST(Gguf, SplitNamesGiveEveryPart) {
  auto s = split_name("DeepSeek-R1-00002-of-00030.gguf");
  ASSERT_TRUE(s);
  EXPECT_EQ(s->part, 2);
  EXPECT_EQ(s->parts, 30);
  EXPECT_EQ(s->of(7), "DeepSeek-R1-00007-of-00030.gguf");
  EXPECT_FALSE(split_name("model.gguf"));
  EXPECT_FALSE(split_name("m-00003-of-00002.gguf"));
  EXPECT_FALSE(split_name("m-0000a-of-00002.gguf"));
}

TEST(Gguf, ForeignArchitecturesAreRefusedByName) {
  GgufWriter w;
  w.text("general.architecture", "mamba");
  w.u32("mamba.block_count", 1);
  auto h = read_gguf(ByteSource::memory(w.bytes(), "x.gguf"));
  ASSERT_TRUE(h);
  auto m = read_gguf_model(*h, h->tensors, "x.gguf");
  ASSERT_FALSE(m);
  EXPECT_EQ(m.error().code, ErrorCode::unsupported);
  EXPECT_EQ(std::get<std::string>(m.error().what.args[0]), "mamba");
}

}  // namespace
}  // namespace trigon
