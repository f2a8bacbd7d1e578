#pragma once
// What was fixed of a plan before anything is chosen.

#include <optional>

#include "plan/plan.hpp"

namespace trigon {

// What the user (or an evidence row) fixed of a plan; the rest is chosen.
struct PlanRequest {
  std::optional<std::int32_t> tensor, pipeline, virtual_stages, data, context, expert, zero;
  std::optional<std::int32_t> micro_batch;  // sequences per micro-batch, or the decode batch
  std::optional<std::int32_t> expert_tensor, recompute_layers;
  std::optional<Recompute> recompute;
  std::optional<Optimizer> optimizer;
  std::optional<bool> reshard, offload_optimizer, offload_weights, offload_activations;
  std::optional<bool> sequence_parallel;
  std::optional<TrainRecipe> recipe;
  std::optional<Format> weights, kv, activations;
  std::optional<double> memory_fraction;
  // Switches of the engine, where its flags or a measured row state them.
  std::optional<bool> flash_attention;
  std::optional<bool> latent_cache;          // MLA: the latent is cached, not the heads
  std::optional<std::int64_t> chunk_tokens;  // tokens of one forward: llama.cpp's n_ubatch
};

// Copies what no search varies: optimizer, offloading, and how experts and recomputation are cut.
void take_switches(const PlanRequest& fixed, Plan& plan);

}  // namespace trigon
