#pragma once
// Which layers a pipeline stage holds.

#include <cstdint>

#include "plan/plan.hpp"

namespace trigon {

struct LayerRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
};

// Chunk `chunk` of `stage`: with `virtual_stages` v > 1 the layers form pipeline x v blocks and a
// stage holds every pipeline-th of them. Layers left over go one each to the last blocks before
// the very last, which carries the head (as vLLM's partition of layers does).
LayerRange layers_of(std::int64_t layers, int pipeline, int virtual_stages, int stage, int chunk);

// The same for a plan, whose last stage may be stated.
LayerRange layers_of(const Plan& plan, std::int64_t layers, int stage, int chunk);

}  // namespace trigon
