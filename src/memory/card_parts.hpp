#pragma once
// How ggml deals layers, or the rows of one matrix, to cards.

#include <cstdint>

#include "plan/plan.hpp"
#include "plan/stages.hpp"

namespace trigon {

class CardParts {
 public:
  // Shares of all zero are equal ones.
  CardParts(const CardShares& shares, int cards);

  // Which of `units` layers, the head among them, lie on a card: layer i goes to the first card at
  // whose end the sum of shares is beyond i / units (llama-model.cpp, load_tensors).
  LayerRange layers(std::int64_t units, int card) const;

  // Which rows of a matrix lie on a card, in blocks of `rounding` (ggml-cuda.cu, get_row_split).
  LayerRange rows(std::int64_t rows, std::int64_t rounding, int card) const;

 private:
  float before(int card) const;  // sum of the shares of cards before it, of 1
  CardShares ends_{};            // sums of shares up to the end of each card, of 1
  int cards_;
  bool even_ = true;
};

// Rows of a block: the tile of ggml's products of quantised matrices, 64 rows before Volta and 128
// from there on and on AMD (mmq.cuh, get_mmq_y_host); of early releases by type, one row where
// weights are 16 or 32 bit (ggml-cuda.cu, get_row_rounding). `capability`: of an NVIDIA card, 0 of
// others.
std::int64_t row_block(Format format, double capability, bool by_type);

}  // namespace trigon
