#include "engine/catalog.hpp"

#include <gtest/gtest.h>

namespace trigon {
namespace {

class Engines : public testing::Test {
 protected:
  void SetUp() override {
    auto store = FactStore::embedded();
    ASSERT_TRUE(store);
    store_ = std::move(*store);
    auto c = EngineCatalog::from(store_);
    ASSERT_TRUE(c);
    catalog_ = std::move(*c);
  }
  EnginePolicy get(std::string_view name, std::string_view version = {},
                   std::string_view date = {}) {
    auto p = catalog_.find(name, version, date);
    EXPECT_TRUE(p.has_value()) << name;
    return p ? *p : EnginePolicy{};
  }
  FactStore store_;
  EngineCatalog catalog_;
};

TEST_F(Engines, AliasesLeadToOneEngine) {
  EXPECT_EQ(get("trtllm").id, "tensorrt-llm");
  EXPECT_EQ(get("TensorRT-LLM").id, "tensorrt-llm");
  EXPECT_EQ(get("Hugging Face").id, "transformers");
  EXPECT_EQ(get("transformers+peft").id, "peft");
  EXPECT_EQ(get("transformers+deepspeed").id, "deepspeed");
  EXPECT_EQ(get("ik_llama.cpp").id, "ik_llama.cpp");
  EXPECT_EQ(get("SGLang").id, "sglang");
}

TEST_F(Engines, UnknownIsRefusedWithTheNearest) {
  auto p = catalog_.find("vlm");
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().code, ErrorCode::unknown_name);
  ASSERT_TRUE(p.error().hint);
  EXPECT_EQ(std::get<std::string>(p.error().hint->args[0]), "vllm");
  // Never by substring.
  EXPECT_FALSE(catalog_.find("vllm-something-else"));
  EXPECT_FALSE(catalog_.find(""));
}

TEST_F(Engines, NoTwoEnginesShareAName) {
  std::vector<std::string> seen;
  for (const FactSheet* s : store_.of_kind("engine")) {
    auto names = s->texts("aliases");
    names.push_back(s->id);
    for (const auto& n : names) EXPECT_EQ(get(n).id, s->id) << n;
  }
}

TEST_F(Engines, VersionsOverrideEachOther) {
  EXPECT_EQ(get("vllm", "0.6.3").memory_fraction, 0.9);
  EXPECT_FALSE(get("vllm", "0.6.3").chunked_prefill);
  EXPECT_TRUE(get("vllm", "0.6.3").context_inside_fraction);
  EXPECT_FALSE(get("vllm", "0.7.3").context_inside_fraction);
  EXPECT_TRUE(get("vllm", "v0.8.5").context_inside_fraction);
  EXPECT_FALSE(get("vllm", "0.10.2").context_inside_fraction);
  EXPECT_TRUE(get("vllm", "v0.8.5").chunked_prefill);
  EXPECT_FALSE(get("vllm", "0.15.1").graphs_inside_fraction);
  EXPECT_TRUE(get("vllm", "0.24.0").graphs_inside_fraction);
  EXPECT_EQ(get("vllm", "V0").max_sequences, 256);
  EXPECT_EQ(get("vllm", "0.10.2").capture_batches.size(), 67u);
  // 0.10 comes after 0.9: numbers, not text.
  EXPECT_EQ(get("vllm", "0.10").large_card_sequences, 1024);
  EXPECT_EQ(get("llama.cpp", "b2833").flash_attention, false);
  EXPECT_EQ(get("llama.cpp", "b9187").flash_attention, true);
}

// What is kept for images, by release: one of a kind in a prompt up to 0.9, no limit since; films
// of 16 frames, of 14 since 0.21.
TEST_F(Engines, ReleasesProfileImagesDifferently) {
  EXPECT_EQ(get("vllm", "0.5").media_profile, MediaProfile::none);
  EXPECT_EQ(get("vllm", "0.7.3").media_profile, MediaProfile::prompts);
  EXPECT_EQ(get("vllm", "0.8.1").media_profile, MediaProfile::budget);
  EXPECT_TRUE(get("vllm", "0.8.1").media_takes_images);
  EXPECT_EQ(get("vllm", "0.8.1").media_images, 1);
  EXPECT_EQ(get("vllm", "0.10.2").media_images, 0);
  EXPECT_EQ(get("vllm", "0.10.2").media_frames, 16);
  EXPECT_EQ(get("vllm", "0.24.0").media_frames, 14);
  EXPECT_FALSE(get("vllm", "0.24.0").media_takes_images);
  EXPECT_TRUE(get("sglang", "0.5.5").media_reserve);
  EXPECT_EQ(get("tensorrt-llm", "1.0").media_profile, MediaProfile::none);
}

TEST_F(Engines, ReleasesShareOutWhatIsFreeDifferently) {
  EXPECT_EQ(get("tensorrt-llm", "0.6").memory_fraction, 0.85);
  EXPECT_EQ(get("tensorrt-llm", "0.12").memory_fraction, 0.9);
  EXPECT_EQ(get("tensorrt-llm", "0.12").block_tokens, 64);
  EXPECT_EQ(get("tensorrt-llm", "1.0").block_tokens, 32);
  const EnginePolicy tgi = get("tgi", "2.2");
  EXPECT_EQ(tgi.pool, PoolRule::granted_share);
  EXPECT_EQ(tgi.memory_fraction, 1);
  EXPECT_EQ(tgi.pool_share, 0.95);
  EXPECT_EQ(tgi.block_tokens, 16);
  EXPECT_FALSE(tgi.chunked_prefill);
  EXPECT_EQ(get("tgi", "3.1").block_tokens, 1);
  EXPECT_TRUE(get("tgi", "3.1").chunked_prefill);
}

TEST_F(Engines, BlankVersionFollowsTheDate) {
  EnginePolicy p = get("vllm", "", "2024-06");
  EXPECT_FALSE(p.chunked_prefill);
  ASSERT_EQ(p.assumptions.size(), 1u);
  EXPECT_EQ(p.assumptions[0].id, message_id(EngineMessage::version_current_at_date));
  EXPECT_TRUE(get("vllm", "", "2026-06-01").graphs_inside_fraction);
  EXPECT_EQ(get("vllm").assumptions.size(), 1u);
  EXPECT_TRUE(get("vllm", "0.24.0").assumptions.empty());
  // A commit is not a version.
  p = get("litgpt", "8641822x");
  ASSERT_FALSE(p.assumptions.empty());
  EXPECT_EQ(p.assumptions[0].id, message_id(EngineMessage::version_not_understood));
}

TEST_F(Engines, CardsChooseTheirDefaults) {
  EnginePolicy p = get("vllm", "0.11.0");
  EXPECT_EQ(p.on_card(gibibytes(23.5), "ada").max_batched_tokens, 2048);
  EXPECT_EQ(p.on_card(mebibytes(81559), "hopper").max_batched_tokens, 8192);
  EXPECT_EQ(p.on_card(mebibytes(81559), "hopper").max_sequences, 1024);
  EXPECT_EQ(p.on_card(mebibytes(81920), "ampere_ga100").max_batched_tokens, 2048);
  EnginePolicy s = get("sglang", "0.5.5").on_card(mebibytes(81559), "hopper");
  EXPECT_EQ(s.max_batched_tokens, 8192);
  // 512 + 1.5 * 8192 + 2 * 256 + 1024 / 8 MiB.
  EXPECT_EQ(s.reserve(1, 1, mebibytes(81559)).in_base(), (512 + 12288 + 512 + 128) * kMi);
  EXPECT_EQ(s.reserve(8, 1, mebibytes(81559)).in_base(), (512 + 12288 + 1024 + 1024) * kMi);
  EXPECT_TRUE(s.derives_fraction());
  EnginePolicy older = get("sglang", "0.4.6.post1");
  EXPECT_FALSE(older.derives_fraction());
  EXPECT_EQ(older.fraction(1), 0.88);
  EXPECT_EQ(older.fraction(6), 0.85);
  older.memory_fraction = 0.7;
  EXPECT_EQ(older.fraction(8), 0.7);
}

TEST_F(Engines, DefaultsRunOnTheCard) {
  Model model;
  Accelerator h100, m3;
  h100.vendor = "nvidia";
  m3.vendor = "apple";
  m3.unified_memory = true;
  EXPECT_EQ(catalog_.default_for(EngineTask::serve, h100, model)->id, "vllm");
  EXPECT_EQ(catalog_.default_for(EngineTask::serve, m3, model)->id, "llama.cpp");
  EXPECT_EQ(catalog_.default_for(EngineTask::train, h100, model)->id, "megatron-lm");
  EXPECT_EQ(catalog_.default_for(EngineTask::finetune, h100, model)->id, "transformers");
  model.weight_format = Format::q4_k;
  EXPECT_EQ(catalog_.default_for(EngineTask::serve, h100, model)->id, "llama.cpp");
  // vLLM is made for compute capability 7.0 and later.
  Accelerator pascal = h100;
  pascal.compute_capability = 6.1;
  EXPECT_NE(catalog_.default_for(EngineTask::serve, pascal, Model{})->id, "vllm");
  h100.compute_capability = 7.0;
  EXPECT_EQ(catalog_.default_for(EngineTask::serve, h100, Model{})->id, "vllm");
  Accelerator unknown;
  unknown.vendor = "nobody";
  EXPECT_FALSE(catalog_.default_for(EngineTask::train, unknown, model));
}

TEST_F(Engines, NothingIsSaidOfAVersionNobodyDated) {
  for (const std::string& id : catalog_.ids()) {
    auto p = catalog_.find(id);
    ASSERT_TRUE(p);
    for (const Message& m : p->assumptions)
      for (const auto& arg : m.args) EXPECT_NE(arg, MessageArg(std::string())) << id;
  }
}

TEST(Versions, OrderByNumbers) {
  EXPECT_LT(parse_version("0.9"), parse_version("0.10"));
  EXPECT_LT(parse_version("b2833"), parse_version("b6325"));
  EXPECT_EQ(parse_version("v0.8.1.post2"), (std::vector<std::int64_t>{0, 8, 1}));
  EXPECT_EQ(parse_version("1.2.0rc6.post3"), (std::vector<std::int64_t>{1, 2, 0}));
  EXPECT_TRUE(parse_version("core-dev").empty());
  EXPECT_TRUE(parse_version("c264f65ff").empty());
}

// Entries of a sheet stand in any order; the newest names what is assumed, each sets what it knows.
TEST_F(Engines, TheNewestEntryOfASheetIsNamed) {
  const EnginePolicy newest = get("llama.cpp");
  EXPECT_EQ(newest.version, "b8140");
  EXPECT_TRUE(newest.flash_attention);
  EXPECT_TRUE(newest.head_first);
  EXPECT_EQ(newest.row_split, RowSplit::by_layer);
  EXPECT_FALSE(newest.repacks_beside_cards);
  EXPECT_EQ(get("llama.cpp-vulkan").version, "b7475");
  EXPECT_EQ(get("llama.cpp-vulkan").row_split, RowSplit::never);
}

TEST_F(Engines, ReleasesOfLlamaCppDealLayersDifferently) {
  auto at = [&](const char* version) { return get("llama.cpp", version); };
  EXPECT_EQ(at("b1500").row_split, RowSplit::never);
  EXPECT_EQ(at("b2833").row_split, RowSplit::main_card);
  EXPECT_TRUE(at("b2833").rounds_by_type);
  EXPECT_FALSE(at("b3500").rounds_by_type);
  EXPECT_EQ(at("b4000").row_split, RowSplit::by_layer);
  EXPECT_TRUE(at("b4000").repacked_formats.empty());
  EXPECT_TRUE(at("b4300").repacks_beside_cards);
  EXPECT_FALSE(at("b5000").repacks_beside_cards);
  EXPECT_FALSE(at("b7000").head_first);
  EXPECT_FALSE(get("ik_llama.cpp").head_first);
}

}  // namespace
}  // namespace trigon
