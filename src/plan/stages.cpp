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

LayerRange layers_of(const Plan& plan, std::int64_t layers, int stage, int chunk) {
  const int p = plan.pipeline, v = plan.virtual_stages > 1 ? plan.virtual_stages : 1;
  if (plan.last_stage_layers <= 0 || p < 2 || plan.last_stage_layers >= layers)
    return layers_of(layers, p, v, stage, chunk);
  // The last stage's share is stated; the others divide the rest evenly, and a stage's chunks its
  // own.
  auto part = [&](int s, int k) {
    const std::int64_t n = s == p - 1
                               ? plan.last_stage_layers
                               : layers_of(layers - plan.last_stage_layers, p - 1, 1, s, 0).count();
    return n * (k + 1) / v - n * k / v;
  };
  LayerRange r;
  for (int k = 0; k <= chunk; ++k)
    for (int s = 0; s < p && (k < chunk || s < stage); ++s) r.begin += part(s, k);
  r.end = r.begin + part(stage, chunk);
  return r;
}

}  // namespace trigon
