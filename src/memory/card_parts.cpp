#include "memory/card_parts.hpp"

#include <algorithm>

namespace trigon {

CardParts::CardParts(const CardShares& shares, int cards) : cards_(std::max(cards, 1)) {
  // In 32 bit and in this order, as ggml adds them: the last bit decides where a layer goes.
  float sum = 0;
  for (std::size_t i = 0; i < kMostShares && i < static_cast<std::size_t>(cards_); ++i) {
    sum += shares[i];
    ends_[i] = sum;
  }
  even_ = !(sum > 0);
  if (!even_)
    for (float& end : ends_) end /= sum;
}

LayerRange CardParts::layers(std::int64_t units, int card) const {
  if (even_) {
    auto from = [&](std::int64_t c) { return (c * units + cards_ - 1) / cards_; };
    return {from(card), from(card + 1)};
  }
  auto from = [&](int c) {
    if (c <= 0) return std::int64_t{0};
    const float end = ends_[static_cast<std::size_t>(c - 1)];
    std::int64_t i = 0;
    while (i < units && static_cast<float>(i) / static_cast<float>(units) < end) ++i;
    return i;
  };
  return {from(card), card + 1 >= cards_ ? units : from(card + 1)};
}

float CardParts::before(int card) const {
  if (card <= 0) return 0;
  if (even_) return static_cast<float>(card) / static_cast<float>(cards_);
  return ends_[static_cast<std::size_t>(card - 1)];
}

LayerRange CardParts::rows(std::int64_t rows, std::int64_t rounding, int card) const {
  auto from = [&](int c) {
    if (c <= 0) return std::int64_t{0};
    if (c >= cards_) return rows;
    const auto at = static_cast<std::int64_t>(static_cast<float>(rows) * before(c));
    return at - at % rounding;
  };
  return {from(card), from(card + 1)};
}

std::int64_t row_block(Format format, double capability, bool by_type) {
  const bool before_volta = capability > 0 && capability < 7;
  if (!by_type) return before_volta ? 64 : 128;
  switch (format) {
    case Format::f32:
    case Format::f16:
    case Format::bf16:
      return 1;
    case Format::q5_0:
    case Format::q5_1:
    case Format::q8_0:
    case Format::q6_k:
      return 64;
    default:
      return before_volta ? 64 : 128;
  }
}

}  // namespace trigon
