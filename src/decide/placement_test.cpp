// What may be asked of where ggml's engines put a model.

#include "decide/placement.hpp"

#include <gtest/gtest.h>

#include "decide/messages.hpp"

namespace trigon {
namespace {

EnginePolicy dealing() {
  EnginePolicy e;
  e.id = "llama.cpp";
  e.host_layers = e.card_shares = true;
  e.row_split = RowSplit::main_card;
  return e;
}

std::string flag_of_refusal(const EnginePolicy& e, const PlanRequest& asked, int cards) {
  const auto refused = refused_placement(e, asked, cards);
  return refused ? refused->where : "";
}

TEST(Placement, EnginesWithoutAHostPartRefuseOne) {
  EnginePolicy plain;
  plain.id = "vllm";
  PlanRequest asked;
  EXPECT_EQ(flag_of_refusal(plain, asked, 2), "");
  asked.gpu_layers = 10;
  EXPECT_EQ(flag_of_refusal(plain, asked, 2), "--gpu-layers");
  EXPECT_EQ(flag_of_refusal(dealing(), asked, 2), "");
  asked = {};
  asked.experts_on_host = 3;
  EXPECT_EQ(flag_of_refusal(plain, asked, 2), "--experts-on-host");
}

TEST(Placement, RowsNeedAnEngineThatSplitsThem) {
  EnginePolicy e = dealing();
  PlanRequest asked;
  asked.card_split = CardSplit::row;
  EXPECT_EQ(flag_of_refusal(e, asked, 2), "");
  e.row_split = RowSplit::never;
  EXPECT_EQ(flag_of_refusal(e, asked, 2), "--split-mode");
}

TEST(Placement, TheMainCardIsOneOfTheCardsAndNeedsRowsOrOneCard) {
  PlanRequest asked;
  asked.card_split = CardSplit::row;
  asked.main_card = 2;
  EXPECT_EQ(flag_of_refusal(dealing(), asked, 2), "--main-gpu");
  EXPECT_EQ(flag_of_refusal(dealing(), asked, 3), "");
  asked.card_split = CardSplit::layer;
  EXPECT_EQ(flag_of_refusal(dealing(), asked, 3), "--main-gpu");
}

TEST(Placement, SharesAreAsManyAsTheCardsOfAReplica) {
  PlanRequest asked;
  asked.card_shares = std::vector<float>{3, 1};
  EXPECT_EQ(flag_of_refusal(dealing(), asked, 2), "");
  EXPECT_EQ(flag_of_refusal(dealing(), asked, 4), "--tensor-split");
  asked.data = 2;  // two replicas of two cards
  EXPECT_EQ(flag_of_refusal(dealing(), asked, 4), "");
  asked.card_split = CardSplit::none;
  EXPECT_EQ(flag_of_refusal(dealing(), asked, 4), "--tensor-split");
}

}  // namespace
}  // namespace trigon
