#include "plan/stages.hpp"

namespace trigon {

LayerRange layers_of(std::int64_t layers, int pipeline, int virtual_stages, int stage, int chunk) {
  const std::int64_t blocks = static_cast<std::int64_t>(pipeline) * virtual_stages;
  const std::int64_t index = static_cast<std::int64_t>(chunk) * pipeline + stage;
  const std::int64_t base = layers / blocks, rest = layers % blocks;
  // Blocks [blocks - 1 - rest, blocks - 1) hold one more.
  const std::int64_t first_longer = blocks - 1 - rest;
  auto longer_before = [&](std::int64_t i) {
    std::int64_t n = i - first_longer;
    return n < 0 ? 0 : n > rest ? rest : n;
  };
  return {index * base + longer_before(index), (index + 1) * base + longer_before(index + 1)};
}

}  // namespace trigon
