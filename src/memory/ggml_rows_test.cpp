// Cards of one process of llama.cpp, by hand.
#include <gtest/gtest.h>

#include "memory/memory_model.hpp"
#include "memory/test_models.hpp"

namespace trigon {
namespace {

EnginePolicy ggml() {
  EnginePolicy e;
  e.id = "llama.cpp";
  e.serves = true;
  e.compute_buffer = e.embedding_on_host = true;
  e.micro_batch_tokens = 512;
  e.row_split = RowSplit::by_layer;
  return e;
}

struct Cards {
  std::vector<RankMemory> of;
  int fullest = 0;
};

Cards on_cards(const Model& model, const EnginePolicy& engine, Plan plan, int cards) {
  plan.pipeline = cards;
  plan.weights = model.weight_format;
  auto m = MemoryModel::prepare(model, test::serve(2047, 1), test::cluster(cards), engine,
                                test::exactly_gib(80));
  Cards out;
  NoRecord quiet;
  for (int c = 0; c < cards; ++c) out.of.push_back(m->evaluate(plan, c, quiet));
  out.fullest = m->fullest(plan).stage;
  return out;
}

// Of Llama-2-7B: four matrices of 4096 x 4096 and three of 4096 x 11008 a layer, in 16 bit; two
// norms, in 32; a head of 32000 x 4096.
constexpr double kMatrices = 2.0 * (4 * 4096 * 4096 + 3 * 4096 * 11008);
constexpr double kNorms = 2 * 4 * 4096, kFinal = 4 * 4096;
constexpr double kHead = 2.0 * 32000 * 4096;
// 11008 columns are 21.5 times 512: the last row of each part of a down projection is padded.
constexpr double kPadding = 256 * 2;
constexpr double kCache = 2048.0 * 2 * 4096 * 2;  // of one layer

// 2048, 5504 and 16000 rows are whole blocks of 128. 33 parts: 17 layers, and 15 with the head.
TEST(GgmlRows, MatricesAreHalvedAndTheRestIsDealtAsLayers) {
  Plan p;
  p.card_split = CardSplit::row;
  const Cards c = on_cards(test::llama2_7b(), ggml(), p, 2);
  const double half = 16 * kMatrices + 32 * kPadding + kHead / 2;
  EXPECT_EQ(c.of[0][MemoryTerm::weights], half + 17 * kNorms);
  EXPECT_EQ(c.of[1][MemoryTerm::weights], half + 15 * kNorms + kFinal);
  EXPECT_EQ(c.of[0][MemoryTerm::kv_cache], 17 * kCache);
  EXPECT_EQ(c.of[1][MemoryTerm::kv_cache], 15 * kCache);
}

TEST(GgmlRows, EarlyReleasesLeaveTheRestWithTheMainCard) {
  EnginePolicy e = ggml();
  e.row_split = RowSplit::main_card;
  Plan p;
  p.card_split = CardSplit::row;
  p.main_card = 1;
  const Cards c = on_cards(test::llama2_7b(), e, p, 2);
  const double half = 16 * kMatrices + 32 * kPadding + kHead / 2;
  EXPECT_EQ(c.of[0][MemoryTerm::weights], half);
  EXPECT_EQ(c.of[1][MemoryTerm::weights], half + 32 * kNorms + kFinal);
  EXPECT_EQ(c.of[0][MemoryTerm::kv_cache], 0);
  EXPECT_EQ(c.of[1][MemoryTerm::kv_cache], 32 * kCache);
  // The other card takes the widest input and its rows of one product from its pool: of the down
  // projection 11008 inputs and 2048 rows, in 32 bit, for 512 tokens.
  EXPECT_EQ(c.of[0][MemoryTerm::activations], 4.0 * 512 * (11008 + 2048));
  EXPECT_EQ(c.fullest, 1);
}

// Three parts of four: 3072 and 8256 - 64 = 8192 rows in blocks of 128, and 24000 - 64 of the head.
TEST(GgmlRows, SharesSplitRowsInWholeBlocks) {
  Plan p;
  p.card_split = CardSplit::row;
  p.card_shares = {3, 1};
  const Cards c = on_cards(test::llama2_7b(), ggml(), p, 2);
  const double layer = 2.0 * (4 * 3072 * 4096 + 2 * 8192 * 4096 + 3072.0 * 11008);
  EXPECT_EQ(c.of[0][MemoryTerm::weights],
            32 * (layer + kPadding) + 25 * kNorms + 2.0 * 23936 * 4096);
  EXPECT_EQ(c.of[0][MemoryTerm::weights] + c.of[1][MemoryTerm::weights],
            32 * (kMatrices + kNorms + 2 * kPadding) + kFinal + kHead);
}

TEST(GgmlRows, PartsArePaddedToWholeRows) {
  Plan p;
  p.card_split = CardSplit::row;
  Model m = test::decoder("even", {1, 4096, 32, 32, 128, 11264, 32000});
  const Cards even = on_cards(m, ggml(), p, 2);
  EXPECT_EQ(even.of[0][MemoryTerm::weights] + even.of[1][MemoryTerm::weights],
            2.0 * (4 * 4096 * 4096 + 3 * 4096 * 11264) + kNorms + kFinal + kHead);
  m = test::decoder("odd", {1, 4096, 32, 32, 128, 11264 - 128, 32000});
  const Cards odd = on_cards(m, ggml(), p, 2);
  const double width = 11264 - 128;  // 384 beyond 21 times 512
  EXPECT_EQ(odd.of[0][MemoryTerm::weights] + odd.of[1][MemoryTerm::weights],
            2.0 * (4 * 4096 * 4096 + 3 * 4096 * width) + kNorms + kFinal + kHead + 2 * 2 * 128);
}

// However cards share them, weights and caches are the same in sum; 4096 and 11264 columns need no
// padding.
TEST(GgmlRows, NothingIsLostOrCountedTwice) {
  const Model m = test::decoder("even", {6, 4096, 32, 8, 128, 11264, 32000});
  EnginePolicy main_card = ggml();
  main_card.row_split = RowSplit::main_card;
  for (int cards = 1; cards <= 5; ++cards)
    for (int pattern = 0; pattern < 6; ++pattern)
      for (std::int32_t gpu_layers : {-1, 0, 3, 6, 7}) {
        Plan p;
        p.gpu_layers = gpu_layers;
        p.main_card = pattern % cards;
        double sum[3] = {}, cache[3] = {}, host[3] = {};
        for (int c = 0; pattern > 0 && c < cards; ++c)
          p.card_shares[static_cast<std::size_t>(c)] =
              static_cast<float>((pattern * (c + 1) + c * c) % 7);
        for (int way = 0; way < 3; ++way) {
          p.card_split = way == 0 ? CardSplit::layer : CardSplit::row;
          const Cards all = on_cards(m, way == 2 ? main_card : ggml(), p, cards);
          for (const RankMemory& r : all.of) {
            sum[way] += r[MemoryTerm::weights];
            cache[way] += r[MemoryTerm::kv_cache];
          }
          host[way] = all.of[0].host.weights + all.of[0].host.kv_cache;
        }
        for (int way = 1; way < 3; ++way) {
          EXPECT_DOUBLE_EQ(sum[way], sum[0]) << cards << " " << pattern << " " << gpu_layers;
          EXPECT_DOUBLE_EQ(cache[way], cache[0]) << cards << " " << pattern << " " << gpu_layers;
          EXPECT_DOUBLE_EQ(host[way], host[0]) << cards << " " << pattern << " " << gpu_layers;
        }
      }
}

// Experts are no matrices of two dimensions: they stay with their layers.
TEST(GgmlRows, ExpertsAreNotSplit) {
  Plan p;
  p.card_split = CardSplit::row;
  const Cards c = on_cards(test::mixtral_8x7b(), ggml(), p, 2);
  const double experts = 2.0 * 8 * 3 * 4096 * 14336;
  EXPECT_GT(c.of[0][MemoryTerm::weights], 17 * experts);
  EXPECT_LT(c.of[0][MemoryTerm::weights], 18 * experts);
  EXPECT_GT(c.of[1][MemoryTerm::weights], 15 * experts);
  EXPECT_LT(c.of[1][MemoryTerm::weights], 16 * experts);
}

// -ts 3,1 deals 25 layers, and 7 with the head.
TEST(GgmlShares, LayersFollowTheShares) {
  Plan p;
  p.card_shares = {3, 1};
  const Cards c = on_cards(test::llama2_7b(), ggml(), p, 2);
  EXPECT_EQ(c.of[0][MemoryTerm::weights], 25 * (kMatrices + kNorms));
  EXPECT_EQ(c.of[1][MemoryTerm::weights], 7 * (kMatrices + kNorms) + kFinal + kHead);
  EXPECT_EQ(c.of[0][MemoryTerm::kv_cache], 25 * kCache);
  EXPECT_EQ(c.fullest, 0);
  EXPECT_EQ(c.of[0][MemoryTerm::logits], 0);
  EXPECT_GT(c.of[1][MemoryTerm::logits], 0);
}

// -ngl 8 of 32 layers: eight of them, or the head and seven (llama.cpp pull 18148).
TEST(GgmlLayers, TheHeadIsLastOrFirst) {
  EnginePolicy e = ggml();
  Plan p;
  p.gpu_layers = 8;
  const RankMemory last = on_cards(test::llama2_7b(), e, p, 1).of[0];
  EXPECT_EQ(last[MemoryTerm::weights], 8 * (kMatrices + kNorms));
  EXPECT_EQ(last[MemoryTerm::kv_cache], 8 * kCache);
  EXPECT_EQ(last.host.kv_cache, 24 * kCache);
  e.head_first = true;
  const RankMemory first = on_cards(test::llama2_7b(), e, p, 1).of[0];
  EXPECT_EQ(first[MemoryTerm::weights], 7 * (kMatrices + kNorms) + kFinal + kHead);
  EXPECT_EQ(first[MemoryTerm::kv_cache], 7 * kCache);
  EXPECT_EQ(first.host.kv_cache, 25 * kCache);
  EXPECT_EQ(last.host.weights + last[MemoryTerm::weights],
            first.host.weights + first[MemoryTerm::weights]);
  p.gpu_layers = 33;
  EXPECT_EQ(on_cards(test::llama2_7b(), e, p, 1).of[0].host.kv_cache, 0);
  p.gpu_layers = 0;
  EXPECT_EQ(on_cards(test::llama2_7b(), e, p, 1).of[0][MemoryTerm::weights], 0);
}

// A card without a share has nothing, and the head goes where the last layer does.
TEST(GgmlShares, ACardMayHaveNothing) {
  Plan p;
  p.card_shares = {1, 0};
  const Cards c = on_cards(test::llama2_7b(), ggml(), p, 2);
  EXPECT_EQ(c.of[0][MemoryTerm::weights], 32 * (kMatrices + kNorms) + kFinal + kHead);
  EXPECT_EQ(c.of[1][MemoryTerm::weights], 0);
  EXPECT_EQ(c.of[1][MemoryTerm::kv_cache], 0);
  EXPECT_EQ(c.of[1][MemoryTerm::activations], 0);
}

TEST(GgmlShares, EqualSharesAreTheDefault) {
  for (int cards : {2, 3, 4, 7}) {
    Plan p;
    const Cards even = on_cards(test::llama31_8b(), ggml(), p, cards);
    for (int i = 0; i < cards; ++i) p.card_shares[static_cast<std::size_t>(i)] = 24;
    const Cards same = on_cards(test::llama31_8b(), ggml(), p, cards);
    for (int i = 0; i < cards; ++i)
      EXPECT_EQ(even.of[static_cast<std::size_t>(i)].total(),
                same.of[static_cast<std::size_t>(i)].total());
  }
}

}  // namespace
}  // namespace trigon
