#include "model/gguf_file_type.hpp"

#include <gtest/gtest.h>

namespace trigon {
namespace {

DecoderSpec llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                  std::int64_t kv_heads, std::int64_t ffn, std::int64_t vocabulary) {
  DecoderSpec s;
  s.id = "llama";
  s.architecture = "LlamaForCausalLM";
  s.hidden = hidden;
  s.vocabulary = vocabulary;
  LayerSpec l;
  l.heads = heads;
  l.kv_heads = kv_heads;
  l.head_dim = l.value_dim = hidden / heads;
  l.ffn = ffn;
  s.layers.assign(static_cast<std::size_t>(layers), l);
  return s;
}

double gib(DecoderSpec s, const char* type) {
  if (!apply_gguf_file_type(s, type)) return 0;
  const auto m = build_decoder(s, "test");
  return static_cast<double>(weight_bytes(*language_stack(*m)).value()) / (1024.0 * 1024 * 1024);
}

TEST(GgufFileType, SizesAreThoseThatLlamaCppPrints) {
  // "model size" lines of llama.cpp for Llama 3 8B and 70B (two decimals, tensors without header)
  // and for Llama 2 7B.
  const DecoderSpec small = llama(32, 4096, 32, 8, 14336, 128256);
  EXPECT_NEAR(gib(small, "Q4_K_M"), 4.58, 0.005);
  EXPECT_NEAR(gib(small, "F16"), 14.96, 0.005);
  EXPECT_NEAR(gib(llama(80, 8192, 64, 8, 28672, 128256), "Q4_K_M"), 39.59, 0.005);
  const DecoderSpec seven = llama(32, 4096, 32, 32, 11008, 32000);
  EXPECT_NEAR(gib(seven, "Q4_0"), 3.56, 0.005);
  EXPECT_NEAR(gib(seven, "Q4_K_M"), 3.80, 0.005);
  EXPECT_NEAR(gib(seven, "Q5_K_M"), 4.45, 0.005);
  EXPECT_NEAR(gib(seven, "Q8_0"), 6.67, 0.005);
}

TEST(GgufFileType, DynamicTypesKeepWhatEveryTokenReads) {
  // Qwen3.5-35B-A3B as far as its attention layers go: 256 experts of 512, one shared.
  DecoderSpec s = llama(40, 2048, 16, 2, 0, 248320);
  for (LayerSpec& l : s.layers) {
    l.mlp = MlpKind::experts;
    l.experts = 256;
    l.active = 8;
    l.expert_width = l.shared_width = 512;
  }
  ASSERT_TRUE(apply_gguf_file_type(s, "UD-Q4_K_XL"));
  const LayerFormats& f = s.layers[5].formats;
  EXPECT_EQ(f.expert_gate, Format::q4_k);
  EXPECT_EQ(f.expert_down, Format::q5_k);
  EXPECT_EQ(f.shared_down, Format::q8_0);
  EXPECT_EQ(f.q, Format::q8_0);
  EXPECT_EQ(s.head_format, Format::q8_0);
  // UD-Q6_K_XL: down projections in Q8_0 beside gates in Q6_K, as in the log of its loading.
  ASSERT_TRUE(apply_gguf_file_type(s, "UD-Q6_K_XL"));
  EXPECT_EQ(s.layers[5].formats.expert_up, Format::q6_k);
  EXPECT_EQ(s.layers[5].formats.expert_down, Format::q8_0);
  ASSERT_TRUE(apply_gguf_file_type(s, "UD-Q8_K_XL"));
  EXPECT_EQ(s.layers[5].formats.q, Format::bf16);
  // Without experts it is the medium type.
  DecoderSpec dense = llama(32, 4096, 32, 8, 14336, 128256);
  EXPECT_DOUBLE_EQ(gib(dense, "UD-Q4_K_XL"), gib(dense, "Q4_K_M"));
}

TEST(GgufFileType, ShortRowsFallBackToSmallBlocks) {
  DecoderSpec s = llama(4, 320, 5, 5, 832, 1000);
  ASSERT_TRUE(apply_gguf_file_type(s, "q4_k_m"));
  EXPECT_EQ(s.layers[0].formats.q, Format::q5_0);
  EXPECT_EQ(s.head_format, Format::q8_0);
  EXPECT_EQ(s.layers[0].formats.norm, Format::f32);
}

TEST(GgufFileType, BuiltModelsAreStoredAsTheirSpecs) {
  const DecoderSpec spec = llama(32, 4096, 32, 8, 14336, 128256);
  const auto plain = build_decoder(spec, "test");
  ASSERT_TRUE(plain.has_value());
  for (const std::string_view type : gguf_file_types()) {
    const auto mixed = in_gguf_file_type(*plain, type);
    ASSERT_TRUE(mixed.has_value());
    const double bytes = static_cast<double>(weight_bytes(*language_stack(*mixed)).value());
    EXPECT_NEAR(bytes / (1024.0 * 1024 * 1024), gib(spec, std::string(type).c_str()), 1e-6) << type;
    EXPECT_EQ(mixed->weight_format, gguf_base_format(type));
  }
  EXPECT_FALSE(in_gguf_file_type(*plain, "Q9_Z").has_value());
}

TEST(GgufFileType, UnknownTypesChangeNothing) {
  DecoderSpec s = llama(2, 256, 4, 4, 512, 1000);
  const auto before = s.layers;
  EXPECT_FALSE(apply_gguf_file_type(s, "Q9_Z"));
  EXPECT_EQ(s.layers, before);
}

}  // namespace
}  // namespace trigon
