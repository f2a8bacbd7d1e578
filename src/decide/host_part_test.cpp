// What of a model that does not fit whole does fit on the cards, against trying everything.

#include <gtest/gtest.h>

#include "decide/report.hpp"
#include "decide/setup.hpp"
#include "decide/test_questions.hpp"

namespace trigon {
namespace {

using test::catalogues;

std::optional<FittingChange> part_of(const Question& q, const char* hardware) {
  const Cluster c = test::machine(hardware);
  auto a = fit(catalogues(), q, c);
  return a ? fit_on_host(catalogues(), q, c, *a) : std::nullopt;
}

bool fits(Question q, const char* hardware, std::optional<std::int32_t> layers,
          std::optional<std::int32_t> experts) {
  q.plan.gpu_layers = layers;
  q.plan.experts_on_host = experts;
  auto a = fit(catalogues(), q, test::machine(hardware));
  return a && a->rows.front().mark != FitMark::no;
}

Question serve(const Model& model, Format weights, std::int64_t context) {
  Question q = test::question(model, JobKind::serve);
  q.engine = "llama.cpp";
  q.job.context = context;
  q.plan.weights = weights;
  return q;
}

// Llama-2-13B in Q8_0 is 12.9 GiB: part of its 40 layers on a card of 12 GiB.
TEST(HostPart, TheLargestNumberOfLayersThatFits) {
  auto model = catalogues().models.find("llama-2-13b");
  ASSERT_TRUE(model);
  for (const std::int64_t context : {512, 4096})
    for (const char* hardware : {"rtx-3060-12gb", "rtx-3080-10gb", "rtx-3060-8gb"}) {
      const Question q = serve(*model, Format::q8_0, context);
      std::int32_t most = -1;
      for (std::int32_t n = 0; n <= 40; ++n)
        if (fits(q, hardware, n, std::nullopt)) most = n;
      const auto part = part_of(q, hardware);
      ASSERT_TRUE(part) << hardware;
      EXPECT_EQ(part->report.plan.gpu_layers, most) << hardware << " " << context;
      EXPECT_EQ(part->flags, "--gpu-layers " + std::to_string(most));
      EXPECT_TRUE(part->report.fits);
      EXPECT_GT(part->report.memory.host.total(), 0);
    }
}

// A mixture of experts leaves the experts of as few layers as it can.
TEST(HostPart, TheFewestLayersOfExperts) {
  auto model = catalogues().models.find("qwen3-30b-a3b");
  ASSERT_TRUE(model);
  const Question q = serve(*model, Format::q8_0, 4096);
  std::int32_t least = 100;
  for (std::int32_t n = 48; n > 0; --n)
    if (fits(q, "rtx-4090", std::nullopt, n)) least = n;
  const auto part = part_of(q, "rtx-4090");
  ASSERT_TRUE(part);
  EXPECT_EQ(part->report.plan.experts_on_host, least);
  EXPECT_EQ(part->report.plan.gpu_layers, -1);
  EXPECT_EQ(part->flags, "--experts-on-host " + std::to_string(least));
}

TEST(HostPart, SeveralCardsShareWhatIsLeft) {
  auto model = catalogues().models.find("llama-3.1-70b");
  ASSERT_TRUE(model);
  const Question q = serve(*model, Format::q4_k, 8192);
  const char* hardware = "2xrtx-3060-12gb";
  std::int32_t most = -1;
  for (std::int32_t n = 0; n <= 80; ++n)
    if (fits(q, hardware, n, std::nullopt)) most = n;
  const auto part = part_of(q, hardware);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->report.plan.gpu_layers, most);
}

// Asked of vLLM nothing is left on the host; where no engine was asked for, another one does it.
TEST(HostPart, OnlyEnginesThatCanAreOffered) {
  auto model = catalogues().models.find("llama-2-13b");
  ASSERT_TRUE(model);
  Question q = serve(*model, Format::q8_0, 4096);
  q.engine = "vllm";
  EXPECT_FALSE(part_of(q, "rtx-3060-12gb"));
  q.engine.clear();
  const auto part = part_of(q, "rtx-3060-12gb");
  ASSERT_TRUE(part);
  EXPECT_EQ(part->flags.rfind("--engine llama.cpp --gpu-layers ", 0), 0U) << part->flags;
  // What fits needs no part.
  EXPECT_FALSE(part_of(q, "h100-sxm-80gb"));
}

TEST(HostPart, TheHostMustHoldTheRest) {
  auto model = catalogues().models.find("llama-2-13b");
  ASSERT_TRUE(model);
  const Question q = serve(*model, Format::q8_0, 4096);
  Cluster c = test::machine("rtx-3060-12gb");
  auto a = fit(catalogues(), q, c);
  ASSERT_TRUE(a);
  const auto part = fit_on_host(catalogues(), q, c, *a);
  ASSERT_TRUE(part);
  c.host.memory = bytes(0.9 * part->report.memory.host.total());
  EXPECT_FALSE(fit_on_host(catalogues(), q, c, *a));
}

// Card and host of one memory hold the model once between them: 16 GiB have no room for 24 GiB of
// weights, however they are dealt.
TEST(HostPart, OneMemoryIsNotCountedTwice) {
  auto model = catalogues().models.find("llama-2-13b");
  ASSERT_TRUE(model);
  const Question q = serve(*model, Format::bf16, 512);
  ASSERT_NE(test::machine("m2-10core-16gb").accelerator, nullptr);
  EXPECT_FALSE(part_of(q, "m2-10core-16gb"));
  ASSERT_NE(test::machine("rtx-4060-ti-16gb").accelerator, nullptr);
  EXPECT_TRUE(part_of(q, "rtx-4060-ti-16gb"));
}

Result<FitAnswer> asked(const Question& q, const char* hardware) {
  return fit(catalogues(), q, test::machine(hardware));
}

TEST(Placement, WhatEnginesCannotDoIsRefused) {
  auto model = catalogues().models.find("llama-3.1-8b");
  ASSERT_TRUE(model);
  Question q = test::question(*model, JobKind::serve);
  q.engine = "vllm";
  auto refused = [&](const char* flag, ErrorCode code, const char* hardware = "2xrtx-4090") {
    auto a = asked(q, hardware);
    EXPECT_FALSE(a) << flag;
    if (!a) {
      EXPECT_EQ(a.error().where, flag);
      EXPECT_EQ(a.error().code, code);
    }
    q.plan = {};
  };
  q.plan.gpu_layers = 10;
  refused("--gpu-layers", ErrorCode::unsupported);
  q.plan.card_split = CardSplit::row;
  refused("--split-mode", ErrorCode::unsupported);
  q.plan.card_shares = {{3, 1}};
  refused("--tensor-split", ErrorCode::unsupported);
  q.plan.latent_mode = 1;
  refused("--mla", ErrorCode::unsupported);
  q.plan.flash_attention = false;
  refused("--flash-attention", ErrorCode::unsupported);
  q.plan.recipe = TrainRecipe::pure_bf16;
  refused("--recipe", ErrorCode::unsupported);
  q.engine = "llama.cpp-vulkan";
  q.plan.card_split = CardSplit::row;
  refused("--split-mode", ErrorCode::unsupported);
  q.plan.max_sequences = 8;
  refused("--max-num-seqs", ErrorCode::unsupported);
  for (const char* engine : {"vllm", "llama.cpp", "tgi"}) {
    q.engine = engine;
    q.plan.pool_tokens = 4096;
    refused("--kv-cache-tokens", ErrorCode::unsupported);
  }
  for (CardSplit parts : {CardSplit::tensor, CardSplit::graph})
    for (const char* engine : {"llama.cpp", "ik_llama.cpp"}) {
      q.engine = engine;
      q.plan.card_split = parts;
      refused("--split-mode", ErrorCode::unsupported);
    }
  q.engine = "llama.cpp";
  q.plan.card_shares = {{3, 1, 1}};
  refused("--tensor-split", ErrorCode::bad_argument);
  q.plan.main_card = 2;
  q.plan.card_split = CardSplit::row;
  refused("--main-gpu", ErrorCode::bad_argument);
  q.plan.main_card = 1;
  refused("--main-gpu", ErrorCode::bad_argument);
  q.plan.card_split = CardSplit::none;
  q.plan.card_shares = {{3, 1}};
  refused("--tensor-split", ErrorCode::bad_argument);
}

// Shares are judged by the fullest card: 60 and 5 of 65 put nearly everything on the first.
TEST(Placement, TheFullestCardDecides) {
  auto model = catalogues().models.find("llama-3.1-8b");
  ASSERT_TRUE(model);
  Question q = serve(*model, Format::q8_0, 8192);
  const char* hardware = "2xrtx-3060-8gb";
  auto even = asked(q, hardware);
  q.plan.card_shares = {{60, 5}};
  auto uneven = asked(q, hardware);
  q.plan.card_shares = {{1, 1}};
  auto same = asked(q, hardware);
  ASSERT_TRUE(even && uneven && same);
  EXPECT_NE(even->rows.front().mark, FitMark::no);
  EXPECT_EQ(uneven->rows.front().mark, FitMark::no);
  EXPECT_EQ(uneven->rows.front().report.fullest_stage, 0);
  EXPECT_EQ(uneven->rows.front().report.plan.pipeline, 2);
  EXPECT_EQ(same->rows.front().report.memory.total(), even->rows.front().report.memory.total());
}

TEST(Placement, OneOfSeveralCards) {
  auto model = catalogues().models.find("llama-3.1-8b");
  ASSERT_TRUE(model);
  Question q = serve(*model, Format::q8_0, 8192);
  auto one = asked(q, "rtx-4090");
  q.plan.card_split = CardSplit::none;
  auto none = asked(q, "4xrtx-4090");
  ASSERT_TRUE(one && none);
  EXPECT_EQ(none->rows.front().report.memory.total(), one->rows.front().report.memory.total());
  EXPECT_EQ(none->rows.front().report.plan.ranks(), 1);
}

}  // namespace
}  // namespace trigon
