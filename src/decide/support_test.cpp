#include "decide/support.hpp"

#include <gtest/gtest.h>

#include "decide/setup.hpp"
#include "decide/test_questions.hpp"
#include "plan/messages.hpp"

namespace trigon {
namespace {

EnginePolicy engine(const char* name) {
  auto e = test::catalogues().engines.find(name, "", "");
  EXPECT_TRUE(e) << name;
  return e ? *e : EnginePolicy{};
}
const Accelerator& card(const char* name) {
  return **test::catalogues().hardware.accelerators.find(name, "test");
}
bool runs(const char* name, const char* on, Format f) {
  return !unsupported(test::catalogues(), engine(name), card(on), f);
}
bool keeps(const char* name, const char* on, Format f) {
  return !unsupported_cache(engine(name), card(on), f);
}

TEST(Support, FilesOfLlamaCppAreReadByItsFamily) {
  EXPECT_TRUE(runs("llama.cpp", "rtx-4090", Format::q4_k));
  EXPECT_TRUE(runs("vllm", "rtx-4090", Format::q4_k));  // experimental there
  EXPECT_FALSE(runs("tensorrt-llm", "rtx-4090", Format::q4_k));
  EXPECT_FALSE(runs("transformers", "rtx-4090", Format::q4_k));
  EXPECT_FALSE(runs("llama.cpp", "rtx-4090", Format::int4_g128));
  EXPECT_FALSE(runs("llama.cpp", "rtx-4090", Format::nf4));
}

TEST(Support, FormatsNeedTheirCards) {
  // Eight floating bits: weight-only on Turing and Ampere under vLLM, not under TensorRT-LLM.
  EXPECT_TRUE(runs("vllm", "a100-sxm-80gb", Format::fp8_tensor));
  EXPECT_FALSE(runs("tensorrt-llm", "a100-sxm-80gb", Format::fp8_tensor));
  EXPECT_TRUE(runs("tensorrt-llm", "l40s", Format::fp8_tensor));
  EXPECT_FALSE(runs("vllm", "v100-sxm-32gb", Format::fp8_tensor));
  // Four floating bits.
  EXPECT_FALSE(runs("sglang", "h100-sxm", Format::nvfp4));
  EXPECT_TRUE(runs("sglang", "b200", Format::nvfp4));
  EXPECT_FALSE(runs("vllm", "v100-sxm-32gb", Format::nvfp4));
  EXPECT_FALSE(runs("vllm", "mi300x", Format::nf4));
}

TEST(Support, CachesHaveFormatsOfTheirOwn) {
  EXPECT_TRUE(keeps("vllm", "rtx-4090", Format::f8_e4m3));
  EXPECT_FALSE(keeps("vllm", "rtx-4090", Format::q4_0));
  EXPECT_TRUE(keeps("llama.cpp", "rtx-4090", Format::q8_0));
  EXPECT_FALSE(keeps("llama.cpp", "rtx-4090", Format::f8_e4m3));
  EXPECT_FALSE(keeps("tensorrt-llm", "a100-sxm-80gb", Format::f8_e4m3));
}

TEST(Support, TheNearestChoiceRuns) {
  auto hint = [](const char* name, const char* on, Format f) {
    auto m = nearest_supported(test::catalogues(), engine(name), card(on), f);
    return m ? std::get<std::string>(m->args[0]) : std::string();
  };
  EXPECT_EQ(hint("llama.cpp", "rtx-4090", Format::fp8_tensor), "q8_0");
  EXPECT_EQ(hint("llama.cpp", "rtx-4090", Format::int4_g128), "q4_k");
  EXPECT_EQ(hint("tensorrt-llm", "a100-sxm-80gb", Format::fp8_tensor), "int8");
  EXPECT_EQ(hint("tensorrt-llm", "rtx-4090", Format::q4_k), "int4");
  EXPECT_EQ(hint("vllm", "v100-sxm-32gb", Format::fp8_tensor), "int8");
  EXPECT_EQ(hint("vllm", "v100-sxm-32gb", Format::nvfp4), "int4");
  auto cache = nearest_cache(engine("vllm"), card("rtx-4090"), Format::q8_0);
  ASSERT_TRUE(cache);
  EXPECT_EQ(std::get<std::string>(cache->args[0]), "fp8");
}

TEST(Support, AReasonNamesItsFlag) {
  EXPECT_STREQ(flag_of(message(PlanMessage::heads_do_not_divide, 40, 16, 8)), "--tp");
  EXPECT_STREQ(flag_of(message(PlanMessage::experts_do_not_divide, 8, 3, 2)), "--ep");
  EXPECT_STREQ(flag_of(message(PlanMessage::fewer_layers_than_stages, 32, 64)), "--pp");
}

}  // namespace
}  // namespace trigon
