#include "hardware/software.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "hardware/catalog.hpp"

namespace trigon {
namespace {

const FactStore& facts() {
  static const FactStore store = FactStore::embedded().value();
  return store;
}
Support supports(std::string_view card, std::string_view software, std::string_view feature) {
  static const AcceleratorCatalog cards = AcceleratorCatalog::from(facts()).value();
  static const SupportTable table = SupportTable::from(facts()).value();
  const Accelerator* a = cards.by_id(card);
  EXPECT_TRUE(a) << card;
  return a ? table.supports(*a, software, feature).support : Support::unknown;
}

TEST(Software, QuantisationOfVllm) {
  EXPECT_EQ(supports("h100-sxm-80gb", "vllm", "fp8_w8a8"), Support::yes);
  EXPECT_EQ(supports("rtx-4090", "vLLM", "fp8_w8a8"), Support::yes);
  EXPECT_EQ(supports("a100-sxm-80gb", "vllm", "fp8_w8a8"), Support::no);
  EXPECT_EQ(supports("a100-sxm-80gb", "vllm", "fp8_w8a16"), Support::yes);
  EXPECT_EQ(supports("v100-sxm-16gb", "vllm", "awq"), Support::no);
  EXPECT_EQ(supports("v100-sxm-16gb", "vllm", "gptq"), Support::yes);
  EXPECT_EQ(supports("mi300x", "vllm", "fp8_w8a8"), Support::yes);
  EXPECT_EQ(supports("mi300x", "vllm", "marlin"), Support::no);
}

TEST(Software, WhatNobodySaidIsUnknown) {
  EXPECT_EQ(supports("h100-sxm-80gb", "vllm", "telepathy"), Support::unknown);
  EXPECT_EQ(supports("h100-sxm-80gb", "no such engine", "awq"), Support::unknown);
  EXPECT_EQ(supports("b200-sxm", "vllm", "awq"), Support::unknown);  // the table ends at Hopper
}

TEST(Software, ANoAboutEverythingAnswersForEachFeature) {
  EXPECT_EQ(supports("t4", "tensorrt-llm", "precisions"), Support::no);
  EXPECT_EQ(supports("h100-sxm-80gb", "tensorrt-llm", "precisions"), Support::yes);
  EXPECT_EQ(supports("t4", "flashattention", "fwd_bwd_fp16"), Support::no);
  // Version 3 is for Hopper alone; version 2 is not.
  EXPECT_EQ(supports("a100-sxm-80gb", "flashattention", "fwd_bwd_fp16"), Support::yes);
}

TEST(Software, Ranges) {
  EXPECT_EQ(supports("gtx-1080-ti", "bitsandbytes", "llm_int8"), Support::unknown);
  EXPECT_EQ(supports("rtx-2080-ti", "bitsandbytes", "llm_int8"), Support::yes);
  EXPECT_EQ(supports("rx-7900-xtx", "bitsandbytes", "4_8_bit"), Support::yes);  // gfx11xx
  EXPECT_EQ(supports("mi100", "bitsandbytes", "4_8_bit"), Support::unknown);
  EXPECT_EQ(supports("m2-10core-8gb", "llama-cpp", "backend_metal"), Support::yes);
  EXPECT_EQ(supports("rtx-4090", "llama-cpp", "backend_metal"), Support::unknown);
  EXPECT_EQ(supports("a30", "mig", "instances"), Support::yes);
  EXPECT_EQ(supports("rtx-4090", "mig", "instances"), Support::no);
}

TEST(Software, StatementsCarryTheirSources) {
  AcceleratorCatalog cards = AcceleratorCatalog::from(facts()).value();
  SupportTable table = SupportTable::from(facts()).value();
  auto all = table.statements(*cards.by_id("h100-sxm-80gb"), "vllm");
  EXPECT_GE(all.size(), 10u);
  for (const auto& s : all) EXPECT_FALSE(s.source.empty()) << s.feature;
  EXPECT_GE(table.software().size(), 15u);
}

}  // namespace
}  // namespace trigon
