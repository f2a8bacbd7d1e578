#include "memory/card_parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace trigon {
namespace {

CardShares shares(std::initializer_list<float> list) {
  CardShares s{};
  std::copy(list.begin(), list.end(), s.begin());
  return s;
}

std::vector<std::int64_t> layers(const CardShares& s, int cards, std::int64_t units) {
  const CardParts parts(s, cards);
  std::vector<std::int64_t> out;
  for (int c = 0; c < cards; ++c) out.push_back(parts.layers(units, c).count());
  return out;
}

using Counts = std::vector<std::int64_t>;

// Llama-3-8B in Q4_K_M on four cards: the buffers of weights in the log are those of 9, 8 and 8
// layers, and of 7 with the head.
TEST(CardParts, EqualCardsTakeEqualParts) {
  EXPECT_EQ(layers({}, 4, 33), (Counts{9, 8, 8, 8}));
  EXPECT_EQ(layers({}, 2, 33), (Counts{17, 16}));
  EXPECT_EQ(layers({}, 1, 33), (Counts{33}));
}

// i / 33 < 3/4 up to i = 24.
TEST(CardParts, UnevenSharesEndWhereTheSumOfSharesDoes) {
  EXPECT_EQ(layers(shares({3, 1}), 2, 33), (Counts{25, 8}));
  EXPECT_EQ(layers(shares({60, 20}), 2, 33), (Counts{25, 8}));
  EXPECT_EQ(layers(shares({1, 2, 1}), 3, 41), (Counts{11, 20, 10}));
  EXPECT_EQ(layers(shares({1, 0}), 2, 33), (Counts{33, 0}));
  EXPECT_EQ(layers(shares({0, 1}), 2, 33), (Counts{0, 33}));
  EXPECT_EQ(layers(shares({1, 0, 1}), 3, 10), (Counts{5, 0, 5}));
}

TEST(CardParts, EveryLayerHasOneCard) {
  for (int cards = 1; cards <= 16; ++cards)
    for (std::int64_t units : {1, 2, 3, 29, 33, 62, 81, 127}) {
      CardShares s{};
      for (int c = 0; c < cards; ++c)
        s[static_cast<std::size_t>(c)] = static_cast<float>((7 * c + 3) % 5);
      for (const CardShares& one : {CardShares{}, s}) {
        const CardParts parts(one, cards);
        std::int64_t next = 0;
        for (int c = 0; c < cards; ++c) {
          const LayerRange r = parts.layers(units, c);
          EXPECT_EQ(r.begin, next);
          EXPECT_LE(r.begin, r.end);
          next = r.end;
        }
        EXPECT_EQ(next, units);
      }
    }
}

// 4096 / 3 = 1365.3, rounded down to 1280 = 10 * 128; 2 * 4096 / 3 = 2730.7 to 2688 = 21 * 128.
TEST(CardParts, RowsAreSplitInWholeBlocks) {
  const CardParts three({}, 3);
  EXPECT_EQ(three.rows(4096, 128, 0).end, 1280);
  EXPECT_EQ(three.rows(4096, 128, 1).end, 2688);
  EXPECT_EQ(three.rows(4096, 128, 2).end, 4096);
  EXPECT_EQ(CardParts({}, 2).rows(128, 128, 0).count(), 0);  // too small: the last card has all
  EXPECT_EQ(CardParts(shares({3, 1}), 2).rows(1024, 64, 0).count(), 768);
  EXPECT_EQ(CardParts(shares({0, 1}), 2).rows(1024, 64, 0).count(), 0);
}

TEST(CardParts, BlocksOfRowsFollowCardAndRelease) {
  EXPECT_EQ(row_block(Format::q4_k, 8.6, false), 128);
  EXPECT_EQ(row_block(Format::f16, 6.1, false), 64);
  EXPECT_EQ(row_block(Format::f16, 0, false), 128);
  EXPECT_EQ(row_block(Format::f16, 8.6, true), 1);
  EXPECT_EQ(row_block(Format::q6_k, 8.6, true), 64);
  EXPECT_EQ(row_block(Format::q4_k, 6.1, true), 64);
  EXPECT_EQ(row_block(Format::q4_k, 8.6, true), 128);
}

}  // namespace
}  // namespace trigon
