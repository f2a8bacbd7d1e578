#include "model/hf_config.hpp"

#include <gtest/gtest.h>

#include <cstdio>

#include "model/kv_cache.hpp"
#include "model/model.hpp"
#include "model/shared_facts_test.hpp"

namespace trigon {
namespace {

struct Known {
  const char* file;
  std::int64_t total;
};
// Names the tests; the default is the address of the text, another one in each run.
void PrintTo(const Known& known, std::ostream* out) { *out << known.file; }

// Totals: of the tensor indexes where one is there, else of the published checkpoints.
class KnownTotal : public testing::TestWithParam<Known> {};

TEST_P(KnownTotal, IsExact) {
  auto text = shared_file(std::string("data/models/configs/") + GetParam().file);
  if (!text) GTEST_SKIP() << "the shared facts are not here";
  auto spec = read_hf_config(*text, GetParam().file);
  ASSERT_TRUE(spec) << spec.error().where;
  auto model = build_decoder(*spec, GetParam().file);
  ASSERT_TRUE(model) << model.error().where;
  EXPECT_EQ(count_parameters(*model).total, GetParam().total);
}

INSTANTIATE_TEST_SUITE_P(
    Published, KnownTotal,
    testing::Values(Known{"index_WizardLM-2-8x22B.config.json", 140'620'634'112},
                    Known{"index_qianwen-72B.config.json", 72'287'920'128},
                    Known{"index_deepcogito-cogito-v1-preview-qwen-14B.config.json",
                          14'765'947'904},
                    Known{"index_falcon-180B-chat.config.json", 179'522'565'120},
                    Known{"index_granite-3b-code-instruct-128k.config.json", 3'482'503'680},
                    Known{"meta-llama--Meta-Llama-3.1-8B.config.json", 8'030'261'248},
                    Known{"meta-llama--Meta-Llama-3.1-70B.config.json", 70'553'706'496},
                    Known{"meta-llama--Meta-Llama-3.1-405B.config.json", 405'853'388'800},
                    Known{"llama-2-7b-hf.config.json", 6'738'415'616},
                    Known{"codellama-34b-instruct-hf.config.json", 33'743'970'304},
                    Known{"mistral-nemo-instruct-2407.config.json", 12'247'782'400},
                    Known{"yi-34b.config.json", 34'388'917'248},
                    Known{"qwen2.5-7b-instruct.config.json", 7'615'616'512},
                    Known{"Qwen--Qwen3-0.6B.config.json", 596'049'920},
                    Known{"Qwen--Qwen3-32B.config.json", 32'762'123'264},
                    Known{"Qwen--Qwen3-235B-A22B-FP8.config.json", 235'093'634'560},
                    Known{"mistralai--Mixtral-8x7B-v0.1.config.json", 46'702'792'704},
                    Known{"deepseek-v2-lite.config.json", 15'706'484'224},
                    Known{"deepseek-ai--DeepSeek-V3.config.json", 671'026'419'200},
                    Known{"nvidia--Llama-3_3-Nemotron-Super-49B-v1.config.json", 49'867'145'216},
                    Known{"openai--gpt-oss-120b.config.json", 116'829'156'672}));

TEST(HfConfig, EverySharedConfigLoads) {
  const auto folder = shared_directory() / "data/models/configs";
  std::error_code none;
  if (!std::filesystem::exists(folder, none)) GTEST_SKIP() << "the shared facts are not here";
  int loaded = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.size() < 12 || name.substr(name.size() - 12) != ".config.json") continue;
    auto spec = read_hf_config(*shared_file("data/models/configs/" + name), name);
    ASSERT_TRUE(spec) << name << " " << spec.error().where;
    auto model = build_decoder(*spec, name);
    ASSERT_TRUE(model) << name << " " << model.error().where;
    ++loaded;
    auto n = count_parameters(*model);
    if (std::getenv("TRIGON_PRINT"))
      std::printf("%-60s %16ld %16ld  %s %.0f\n", name.c_str(), static_cast<long>(n.total),
                  static_cast<long>(n.active), std::string(info(model->weight_format).name).c_str(),
                  kv_bytes_per_token(*language_stack(*model), Format::bf16));
  }
  EXPECT_GE(loaded, 24);
}

}  // namespace
}  // namespace trigon
