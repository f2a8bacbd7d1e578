#include "model/model_catalog.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "model/kv_cache.hpp"

namespace trigon {
namespace {

const FactStore& store() {
  static const FactStore s = *FactStore::embedded();
  return s;
}

TEST(ModelCatalog, EverySheetBuilds) {
  auto catalog = ModelCatalog::from(store());
  ASSERT_TRUE(catalog) << catalog.error().where;
  EXPECT_GE(catalog->all().size(), 200u);
  for (const FactSheet* sheet : catalog->all()) {
    auto m = build_model(*sheet);
    ASSERT_TRUE(m) << sheet->id << " " << m.error().where;
    EXPECT_GT(count_parameters(*m).total, 10'000'000) << sheet->id;
    if (std::getenv("TRIGON_PRINT"))
      std::printf("%-40s %9.3f %8.3f %8.0f %s\n", sheet->id.c_str(),
                  static_cast<double>(count_parameters(*m).total) / 1e9,
                  static_cast<double>(count_parameters(*m).active) / 1e9,
                  kv_bytes_per_token(*language_stack(*m), Format::bf16),
                  std::string(info(m->weight_format).name).c_str());
  }
}

struct Known {
  const char* name;
  std::int64_t total;
};

// Totals of the published checkpoints.
TEST(ModelCatalog, TotalsAreThoseOfThePublishedCheckpoints) {
  auto catalog = ModelCatalog::from(store());
  ASSERT_TRUE(catalog);
  for (const Known& k : std::initializer_list<Known>{{"llama-2-13b", 13'015'864'320},
                                                     {"llama-2-70b", 68'976'648'192},
                                                     {"llama-3.2-1b", 1'235'814'400},
                                                     {"llama-3.2-3b", 3'212'749'824},
                                                     {"mistral-7b-v0.1", 7'241'732'096},
                                                     {"mixtral-8x22b", 140'620'634'112},
                                                     {"gemma-2b", 2'506'172'416},
                                                     {"gemma-7b", 8'537'680'896},
                                                     {"gemma-2-2b", 2'614'341'888},
                                                     {"gemma-2-9b", 9'241'705'984},
                                                     {"gemma-2-27b", 27'227'128'320},
                                                     {"phi-2", 2'779'683'840},
                                                     {"phi-3-mini-4k", 3'821'079'552},
                                                     {"phi-4", 14'659'507'200},
                                                     {"qwen2.5-0.5b", 494'032'768},
                                                     {"qwen2.5-1.5b", 1'543'714'304},
                                                     {"qwen2.5-3b", 3'085'938'688},
                                                     {"qwen2.5-14b", 14'770'033'664},
                                                     {"qwen2.5-32b", 32'763'876'352},
                                                     {"qwen2.5-72b", 72'706'203'648},
                                                     {"qwen3-8b", 8'190'735'360},
                                                     {"qwen3-30b-a3b", 30'532'122'624},
                                                     {"pythia-6.9b", 6'857'302'016},
                                                     {"gpt-neox-20b", 20'554'567'680},
                                                     {"gpt2", 124'439'808},
                                                     {"gpt-j-6b", 6'050'882'784},
                                                     {"opt-6.7b", 6'658'473'984},
                                                     {"bloom-7b1", 7'069'016'064},
                                                     {"bloom-176b", 176'247'271'424},
                                                     {"falcon-7b", 7'217'189'760},
                                                     {"starcoder2-15b", 15'957'889'024},
                                                     {"stablelm-3b-4e1t", 2'795'443'200},
                                                     {"smollm2-135m", 134'515'008},
                                                     {"tinyllama-1.1b", 1'100'048'384},
                                                     {"olmo-2-7b", 7'298'617'344},
                                                     {"gpt-oss-20b", 20'914'757'184},
                                                     {"qwen1.5-moe-a2.7b", 14'315'784'192},
                                                     {"dbrx", 131'596'523'520},
                                                     {"deepseek-r1", 671'026'419'200}}) {
    auto m = catalog->find(k.name);
    ASSERT_TRUE(m) << k.name;
    const std::int64_t total = count_parameters(*m).total;
    EXPECT_EQ(total, k.total) << k.name;
  }
}

// Totals as llama.cpp prints them for these files, and of the model cards.
TEST(ModelCatalog, HybridsWeighWhatIsPublished) {
  auto catalog = ModelCatalog::from(store());
  ASSERT_TRUE(catalog);
  for (auto [name, billions] : std::initializer_list<std::pair<const char*, double>>{
           {"Qwen3.6-35B-A3B-UD-Q8_K_XL", 34.66},
           {"Qwen3.5-122B-A10B", 122.11},
           {"Qwen3.6-27B", 26.9},
           {"Qwen3.5-397B-A17B", 396},
           {"Qwen3-Next-80B-A3B-Instruct", 79.67},
           {"NVIDIA-Nemotron-3-Super-120B-A12B-UD-Q4_K_XL", 120.67},
           {"NVIDIA-Nemotron-3-Nano-30B-A3B", 31.58},
           {"Ministral-3-14B-Instruct-2512", 13.51},
           {"DeepSeek-V4-Flash", 284},
           {"GLM-4.6", 355},
           {"moss-moon 16b", 16.7},
           {"grok-1", 314},
           {"Moonlight-16B-A3B", 16},
           {"maxtext-128b", 125},
           {"maxtext-22b", 22},
           {"DeepSeek-33B", 33.3}}) {
    auto m = catalog->find(name);
    ASSERT_TRUE(m) << name;
    const double total = static_cast<double>(count_parameters(*m).total) / 1e9;
    EXPECT_NEAR(total / billions, 1, 0.012) << name << " " << total;
  }
}

TEST(ModelCatalog, NamesResolveByIdAliasAndRepository) {
  auto catalog = ModelCatalog::from(store());
  ASSERT_TRUE(catalog);
  for (auto [name, id] : std::initializer_list<std::pair<const char*, const char*>>{
           {"Llama-2-70B", "llama-2-70b"},
           {"llama2-70b-chat", "llama-2-70b"},
           {"meta-llama/Llama-3.1-8B", "llama-3.1-8b"},
           {"GPT-89B", "gpt-89b"},
           {"Qwen/Qwen3-32B", "qwen3-32b"},
           {"deepseek-ai/DeepSeek-V3", "deepseek-v3"},
           {"Mixtral-8x7B", "mixtral-8x7b"},
           {"gpt3-175b", "gpt3-175b"},
           {"DeepSeek R1 0528", "deepseek-r1"}}) {
    auto sheet = catalog->find_sheet(name);
    ASSERT_TRUE(sheet) << name;
    EXPECT_EQ((*sheet)->id, id);
  }
}

TEST(ModelCatalog, UnknownAndAmbiguousNamesHelp) {
  auto catalog = ModelCatalog::from(store());
  ASSERT_TRUE(catalog);
  auto unknown = catalog->find("llama-3.1-9b", "MODEL");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::unknown_name);
  EXPECT_EQ(unknown.error().where, "MODEL");
  ASSERT_TRUE(unknown.error().hint);
  EXPECT_EQ(std::get<std::string>(unknown.error().hint->args[0]), "llama-3.1-8b");
  auto ambiguous = catalog->find("llama-3");
  ASSERT_FALSE(ambiguous);
  EXPECT_EQ(ambiguous.error().code, ErrorCode::ambiguous_name);
  auto all = catalog->resolve_all("llama-3");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 2u);
  // Never by part of a name.
  EXPECT_FALSE(catalog->find("llama-3.1-8"));
}

TEST(ModelCatalog, QuantisedReleasesKeepWhatIsNotQuantised) {
  auto catalog = ModelCatalog::from(store());
  ASSERT_TRUE(catalog);
  auto spec = read_model_sheet(**catalog->find_sheet("deepseek-v3.1-nvfp4"));
  ASSERT_TRUE(spec);
  const LayerFormats& f = spec->layers.back().formats;
  EXPECT_EQ(f.expert_up, Format::nvfp4);
  EXPECT_EQ(f.o, Format::nvfp4);
  EXPECT_EQ(f.q, Format::bf16);
  EXPECT_EQ(f.kv_down, Format::bf16);
  EXPECT_EQ(f.router, Format::bf16);
  EXPECT_EQ(spec->head_format, Format::bf16);
  EXPECT_EQ(spec->embedding_format, Format::bf16);
  EXPECT_EQ(spec->kv_format, Format::f8_e4m3);
  auto kimi = read_model_sheet(**catalog->find_sheet("kimi-k2.5"));
  ASSERT_TRUE(kimi);
  EXPECT_EQ(kimi->layers[0].formats.up, Format::bf16);
  EXPECT_EQ(kimi->layers[1].formats.expert_up, Format::int4_g32);
  EXPECT_EQ(kimi->layers[1].formats.shared_up, Format::bf16);
  EXPECT_EQ(kimi->layers[1].formats.q, Format::bf16);
  auto oss = read_model_sheet(**catalog->find_sheet("gpt-oss-120b"));
  ASSERT_TRUE(oss);
  EXPECT_EQ(oss->layers[0].formats.expert_down, Format::mxfp4);
  EXPECT_EQ(oss->layers[0].formats.q, Format::bf16);
  EXPECT_EQ(oss->layers[0].window, 128);
  EXPECT_FALSE(oss->layers[1].window);
}

}  // namespace
}  // namespace trigon
