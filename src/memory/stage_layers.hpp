#pragma once
// How many layers of each kind a pipeline stage holds.

#include "memory/memory_model.hpp"
#include "plan/stages.hpp"

namespace trigon {

struct MemoryModel::StageLayers {
  const MemoryModel* model = nullptr;
  int pipeline = 1, virtual_stages = 1, stage = 0;

  double count(std::size_t kind) const {
    const std::size_t kinds = model->kinds_.size();
    const std::int64_t layers = model->layers_;
    int n = 0;
    for (int c = 0; c < virtual_stages; ++c) {
      LayerRange r = layers_of(layers, pipeline, virtual_stages, stage, c);
      n += model->kind_counts_[static_cast<std::size_t>(r.end) * kinds + kind] -
           model->kind_counts_[static_cast<std::size_t>(r.begin) * kinds + kind];
    }
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
  return {this, std::max(plan.pipeline, 1), serving_ ? 1 : std::max(plan.virtual_stages, 1), stage};
}

}  // namespace trigon
