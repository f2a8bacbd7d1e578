// What a server runs through a vision tower at start, against start-up logs of vLLM.
#include <gtest/gtest.h>

#include <cmath>

#include "memory/memory_model.hpp"
#include "memory/test_models.hpp"
#include "model/decoder_spec.hpp"
#include "model/hf_config.hpp"

namespace trigon {
namespace {

// config.json of Qwen/Qwen2.5-VL-7B-Instruct.
Model qwen25_vl_7b() {
  auto spec = read_hf_config(R"({
    "architectures": ["Qwen2_5_VLForConditionalGeneration"], "hidden_size": 3584,
    "intermediate_size": 18944, "max_position_embeddings": 128000, "num_attention_heads": 28,
    "num_hidden_layers": 28, "num_key_value_heads": 4, "tie_word_embeddings": false,
    "torch_dtype": "bfloat16", "vocab_size": 152064,
    "vision_config": {"depth": 32, "hidden_size": 1280, "in_chans": 3, "intermediate_size": 3420,
      "model_type": "qwen2_5_vl", "num_heads": 16, "out_hidden_size": 3584, "patch_size": 14,
      "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112}})",
                             "config.json");
  return *build_decoder(*spec, "config.json");
}

EnginePolicy vllm(MediaProfile profile, std::int64_t frames) {
  EnginePolicy e;
  e.id = "test";
  e.serves = true;
  e.pool = PoolRule::total_fraction;
  e.autograd = Autograd::fused;
  e.max_batched_tokens = 2048;
  e.chunked_prefill = true;
  e.max_sequences = 256;
  e.logits_bytes_per_value = 8;
  e.media_profile = profile;
  e.media_frames = frames;
  return e;
}

struct Seen {
  RankMemory memory;
  double items = 0, tokens = 0, patches = 0, cache = 0, encoder = 0;
};

Seen seen(const EnginePolicy& engine, std::int64_t context, int tensor = 1) {
  const Model model = qwen25_vl_7b();
  auto m = MemoryModel::prepare(model, test::serve(context - 1, 1), test::cluster(8), engine,
                                test::exactly_gib(80));
  Plan plan;
  plan.tensor = tensor;
  Record record;
  Seen s;
  s.memory = m->evaluate(plan, 0, record);
  for (const DerivationStep& step : record.derivation.steps) {
    if (std::string_view(step.formula->name) != "memory.multimodal_profile") continue;
    auto symbol = [&](std::string_view name) {
      for (const Symbol& x : step.symbols)
        if (x.name == name) return x.value;
      return 0.0;
    };
    if (symbol("width") > 0) {
      s.items = symbol("items");
      s.tokens = symbol("tokens");
      s.cache = step.value;
    } else {
      s.patches = symbol("patches");
      s.encoder = step.value;
    }
  }
  return s;
}

// vLLM 0.8.1: "a budget of 98304 tokens, and profiled with 1 video items": the context of 128,000
// less an image of 16,384 tokens holds six pairs of frames of that size.
TEST(MediaProfile, AFilmTakesWhatAnImageLeavesOfTheContext) {
  EnginePolicy e = vllm(MediaProfile::budget, 16);
  e.media_takes_images = true;
  const Seen s = seen(e, 128000);
  EXPECT_EQ(s.items, 1);
  EXPECT_EQ(s.tokens, 98304);
  EXPECT_EQ(s.cache, 98304.0 * 3584 * 2);
}

// Since 0.21: "a budget of 114688 tokens, 1 video items", fourteen frames. The log of that start on
// a card of 79.2 GiB: 15.67 GiB of weights, 0.53 of graphs, -14.28 left of 22 % of the card, so
// 15.5 GiB in activations and what libraries took.
TEST(MediaProfile, TheEncodersPeakIsWhatALogLeavesForIt) {
  EnginePolicy e = vllm(MediaProfile::budget, 14);
  e.media_images = e.media_films = 0;
  const Seen s = seen(e, 128000);
  EXPECT_EQ(s.tokens, 114688);
  EXPECT_EQ(s.patches, 4 * 114688);
  const double profiled = s.memory[MemoryTerm::media] + s.memory[MemoryTerm::activations] +
                          s.memory[MemoryTerm::logits];
  EXPECT_EQ(profiled, s.encoder);
  EXPECT_NEAR(profiled / kGi, 15.5, 3.1);
}

TEST(MediaProfile, LimitsOfAPromptChooseTheItem) {
  EnginePolicy e = vllm(MediaProfile::budget, 14);
  e.media_films = -1;
  Seen s = seen(e, 32768);
  EXPECT_EQ(s.tokens, 16384);
  EXPECT_EQ(s.items, 1);
  // A larger budget takes more of them, up to what the limit and the sequences allow.
  e.max_batched_tokens = 65536;
  EXPECT_EQ(seen(e, 32768).items, 4);
  e.max_sequences = 2;
  EXPECT_EQ(seen(e, 32768).items, 2);
  e.media_images = 2;
  EXPECT_EQ(seen(e, 32768).items, 4);
  e.media_images = -1;
  EXPECT_EQ(seen(e, 32768).memory[MemoryTerm::media], 0);
}

// V0: prompts of one image and one film each; nothing is kept, so the term is what the encoder
// holds beyond the language model.
TEST(MediaProfile, PromptsShareTheTokenBudget) {
  EnginePolicy e = vllm(MediaProfile::prompts, 16);
  e.media_films = -1;
  const Seen s = seen(e, 32768);
  EXPECT_EQ(s.cache, 0);
  EXPECT_EQ(s.patches, 65536);
  EXPECT_DOUBLE_EQ(s.memory[MemoryTerm::media],
                   s.encoder - s.memory[MemoryTerm::activations] - s.memory[MemoryTerm::logits]);
  // Two prompts in 40,000 tokens, whose own activations are more than the encoder's.
  e.max_batched_tokens = 40000;
  const Seen two = seen(e, 32768);
  EXPECT_DOUBLE_EQ(two.encoder, 2 * s.encoder);
  EXPECT_EQ(two.memory[MemoryTerm::media], 0);
  e.media_profile = MediaProfile::none;
  EXPECT_EQ(seen(e, 32768).memory[MemoryTerm::media], 0);
}

// Heads and MLPs of the tower are divided; what is kept of each token is not.
TEST(MediaProfile, TensorRanksDivideTheEncodersLayers) {
  const EnginePolicy e = vllm(MediaProfile::budget, 14);
  const Seen one = seen(e, 128000), two = seen(e, 128000, 2);
  EXPECT_LT(two.encoder, one.encoder);
  EXPECT_GT(two.encoder, one.encoder / 2);
  EXPECT_EQ(two.cache, one.cache);
}

// server_args.py: ViT of Qwen2.5-VL, 32 layers of 1,280: 2.083 times ViT-L/14, so 0.95 * 0.8917 of
// the fraction.
TEST(MediaProfile, SglangKeepsAShareOfItsFractionForTheTower) {
  EnginePolicy e = vllm(MediaProfile::none, 16);
  e.pool = PoolRule::static_fraction;
  e.memory_fraction = 0;
  e.reserve_base = gibibytes(8);
  e.media_reserve = true;
  const Model model = qwen25_vl_7b();
  auto budget = [&](bool kept) {
    e.media_reserve = kept;
    auto m = MemoryModel::prepare(model, test::serve(1000, 1), test::cluster(1), e,
                                  test::exactly_gib(80));
    NoRecord quiet;
    const RankMemory r = m->evaluate(Plan{}, 0, quiet);
    return m->budget_bytes(Plan{}, r).value -
           (r.total() - r[MemoryTerm::kv_cache] - r[MemoryTerm::weights]);
  };
  const double size = 32.0 * 1280 * 1280 / (24.0 * 1024 * 1024);
  EXPECT_NEAR(budget(true) / budget(false), 0.95 * (1 - 0.1 * (size - 1)), 1e-9);
}

// TGI: 0.95 of what is free of the granted share of the card.
TEST(MediaProfile, AGrantedShareLeavesAPartOfWhatIsFree) {
  EnginePolicy e = vllm(MediaProfile::none, 16);
  e.pool = PoolRule::granted_share;
  e.memory_fraction = 0.5;
  e.pool_share = 0.95;
  const Model model = test::llama2_7b();
  auto m =
      MemoryModel::prepare(model, test::serve(1000, 1), test::cluster(1), e, test::exactly_gib(80));
  NoRecord quiet;
  const RankMemory r = m->evaluate(Plan{}, 0, quiet);
  const double rest = r.total() - r[MemoryTerm::kv_cache];
  EXPECT_NEAR(m->budget_bytes(Plan{}, r).value - rest, 0.95 * (40 * kGi - rest), 1);
}

}  // namespace
}  // namespace trigon
