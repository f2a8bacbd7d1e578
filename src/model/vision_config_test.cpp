// Vision towers: parameters as published, and the largest image of a processor.
#include <gtest/gtest.h>

#include "base/facts.hpp"
#include "model/hf_config.hpp"
#include "model/model_catalog.hpp"

namespace trigon {
namespace {

const Stack* tower_of(const Model& m) {
  for (const Component& c : m.components)
    if (c.role == ComponentRole::vision_tower) return std::get_if<Stack>(&c.body);
  return nullptr;
}

Model catalogued(const char* id) {
  auto facts = FactStore::embedded();
  const FactSheet* sheet = facts->find("model", id);
  EXPECT_NE(sheet, nullptr) << id;
  return *build_model(*sheet);
}

// Totals of the safetensors indexes (the model cards' parameter counts).
TEST(VisionConfig, ParametersAreThosePublished) {
  EXPECT_EQ(count_parameters(catalogued("qwen2.5-vl-7b")).total, 8292166656);
  EXPECT_EQ(count_parameters(catalogued("qwen2.5-vl-3b")).total, 3754622976);
  EXPECT_EQ(count_parameters(catalogued("qwen2-vl-2b")).total, 2208985600);
  EXPECT_EQ(count_parameters(catalogued("qwen3-vl-8b")).total, 8767123696);
  EXPECT_EQ(count_parameters(catalogued("qwen3-vl-4b")).total, 4437815808);
  EXPECT_EQ(count_parameters(catalogued("qwen3-vl-2b")).total, 2127532032);
  // T5 1.1 XL and mT5 XXL.
  EXPECT_EQ(count_parameters(catalogued("t0-3b")).total, 2849757184);
  EXPECT_EQ(count_parameters(catalogued("mt0-xxl")).total, 12921057280);
}

// preprocessor_config.json: 12,845,056 pixels in squares of 28; 16,777,216 in squares of 32.
TEST(VisionConfig, TheLargestImageFollowsTheProcessor) {
  const Model qwen25 = catalogued("qwen2.5-vl-7b");
  ASSERT_NE(tower_of(qwen25), nullptr);
  const auto a = tower_of(qwen25)->media;
  ASSERT_TRUE(a.has_value());
  EXPECT_EQ(a->patches, 65536);
  EXPECT_EQ(a->tokens, 16384);
  EXPECT_EQ(a->token_width, 3584);
  EXPECT_EQ(a->frames_of_patch, 2);
  // Three deep stacks lie beside each token.
  const auto b = tower_of(catalogued("qwen3-vl-8b"))->media;
  ASSERT_TRUE(b.has_value());
  EXPECT_EQ(b->tokens, 16384);
  EXPECT_EQ(b->token_width, 4 * 4096);
  EXPECT_EQ(b->frames_of_patch, 0);
  // InternVL: twelve tiles and a thumbnail of 448 pixels, 256 tokens each.
  const auto c = tower_of(catalogued("internvl3.5-30b-a3b"))->media;
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(c->tokens, 13 * 256);
  EXPECT_EQ(c->patches, 13 * 1025);
}

// llava-hf/llava-v1.6-mistral-7b-hf: 672 x 672 is four tiles of 24 x 24 patches whose 48 rows end
// with a token, and the whole image: 2,928.
TEST(VisionConfig, TiledImagesCountTheirRows) {
  auto spec = read_hf_config(R"({
    "architectures": ["LlavaNextForConditionalGeneration"],
    "image_grid_pinpoints": [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]],
    "text_config": {"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
      "vocab_size": 32064, "max_position_embeddings": 32768},
    "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336,
      "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24,
      "patch_size": 14}})",
                             "config.json");
  ASSERT_TRUE(spec.has_value());
  ASSERT_TRUE(spec->vision && spec->vision->media);
  EXPECT_EQ(spec->vision->media->tokens, 2928);
  EXPECT_EQ(spec->vision->media->patches, 5 * 577);
}

}  // namespace
}  // namespace trigon
