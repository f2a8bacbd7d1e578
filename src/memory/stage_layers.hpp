#pragma once
// How many layers of each kind a pipeline stage holds.

#include <algorithm>
#include <array>
#include <cmath>

#include "memory/card_parts.hpp"
#include "memory/memory_model.hpp"
#include "plan/stages.hpp"

namespace trigon {

// Tokens in whole pages.
inline double whole_blocks(double tokens, double block) {
  return block > 1 ? std::ceil(tokens / block) * block : tokens;
}

// Tokens that a sequence takes in a pool, those that its cross-attention reads among them.
inline double whole_pages(double context, double source, double page) {
  return std::max(1.0, std::ceil(context / page) + std::ceil(source / page)) * page;
}

struct MemoryModel::StageLayers {
  const MemoryModel* model = nullptr;
  int pipeline = 1, virtual_stages = 1, stage = 0, last = 0;
  std::int64_t gpu_layers = -1;
  const CardShares* shares = nullptr;  // of the plan
  // Rows are split and everything else is with the main card.
  bool all_on_main = false;
  int main_card = 0;

  // Of a kind among the layers [begin, end).
  int between(std::size_t kind, LayerRange r) const {
    const std::size_t kinds = model->kinds_.size();
    return model->kind_counts_[static_cast<std::size_t>(r.end) * kinds + kind] -
           model->kind_counts_[static_cast<std::size_t>(r.begin) * kinds + kind];
  }
  // ggml: the first of the layers, and the head behind them, that lies on a card.
  std::int64_t first_dealt() const {
    const std::int64_t behind = model->engine_.head_first ? 1 : 0;
    return gpu_layers < 0 ? 0 : std::max<std::int64_t>(model->layers_ + behind - gpu_layers, 0);
  }
  std::int64_t on_host() const { return std::min(first_dealt(), model->layers_); }
  // Of the layers and the head behind them that lie on cards, those of this card.
  LayerRange dealt() const {
    const std::int64_t first = first_dealt();
    const std::int64_t units =
        gpu_layers < 0 ? model->layers_ + 1 : std::min(gpu_layers, model->layers_ + 1);
    if (all_on_main) return {first, stage == main_card ? first + units : first};
    const LayerRange r = CardParts(*shares, pipeline).layers(units, stage);
    return {first + r.begin, first + r.end};
  }
  // The layers on a card of ggml, with their caches and what is not split by rows.
  LayerRange on_card() const {
    const LayerRange r = dealt();
    return {std::min(r.begin, model->layers_), std::min(r.end, model->layers_)};
  }
  bool head_on_card() const {
    if (gpu_layers < 0 || gpu_layers > model->layers_) return true;
    return model->engine_.head_first && gpu_layers > 0;
  }
  bool head_here() const {
    const LayerRange r = dealt();
    return r.begin <= model->layers_ && model->layers_ < r.end;
  }

  static constexpr std::size_t kCounted = 8;
  std::array<double, kCounted> counted{};  // of the first kinds

  double count(std::size_t kind) const { return kind < kCounted ? counted[kind] : found(kind); }
  double found(std::size_t kind) const {
    if (model->by_ggml()) return between(kind, on_card());
    const bool drafts = kind == model->draft_kind_ && stage == pipeline - 1;
    return in_stage(kind) + (drafts ? static_cast<double>(model->draft_layers_) : 0);
  }
  void count_first() {
    for (std::size_t k = 0; k < kCounted && k < model->kinds_.size(); ++k) counted[k] = found(k);
  }
  double in_stage(std::size_t kind) const {
    const std::int64_t layers = model->layers_;
    if (last > 0 && pipeline > 1 && last < layers)
      // The last stage's share is stated; the others divide the rest evenly.
      return stage == pipeline - 1
                 ? between(kind, {layers - last, layers})
                 : between(kind, layers_of(layers - last, pipeline - 1, 1, stage, 0));
    int n = 0;
    for (int c = 0; c < virtual_stages; ++c)
      n += between(kind, layers_of(layers, pipeline, virtual_stages, stage, c));
    return n;
  }
  // Sets of weights of the kind: one where its layers share them.
  double stored(std::size_t kind) const {
    double n = count(kind);
    return n > 1 && model->kind_shared_[kind] ? 1 : n;
  }
  double total() const {
    double n = 0;
    for (std::size_t k = 0; k < model->kinds_.size(); ++k) n += count(k);
    return n;
  }
};

inline MemoryModel::StageLayers MemoryModel::stage_layers(const Plan& plan, int stage) const {
  const int cards = std::max(plan.pipeline, 1);
  StageLayers out{this,
                  cards,
                  serving_ ? 1 : std::max(plan.virtual_stages, 1),
                  stage,
                  plan.last_stage_layers,
                  plan.gpu_layers,
                  &plan.card_shares,
                  by_rows(plan) && engine_.row_split == RowSplit::main_card,
                  std::min(plan.main_card, cards - 1)};
  out.count_first();
  return out;
}

}  // namespace trigon
