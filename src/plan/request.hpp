#pragma once
// What was fixed of a plan before anything is chosen.

#include <optional>
#include <vector>

#include "engine/policy.hpp"
#include "plan/plan.hpp"

namespace trigon {

// What the user (or an evidence row) fixed of a plan; the rest is chosen.
struct PlanRequest {
  std::optional<std::int32_t> tensor, pipeline, virtual_stages, data, context, expert, zero;
  std::optional<std::int32_t> micro_batch;  // sequences per micro-batch, or the decode batch
  std::optional<std::int32_t> expert_tensor, recompute_layers;
  std::optional<std::int32_t> optimizer_groups, interleave_group, last_stage_layers;
  std::optional<Schedule> schedule;
  bool any_schedule = false;  // a search may take any, whatever the engine runs
  std::optional<ContextExchange> context_exchange;
  std::optional<double> expert_capacity;  // router's capacity factor; 0: tokens as they come
  std::optional<Recompute> recompute;
  std::optional<Optimizer> optimizer;
  std::optional<bool> reference;  // see Plan
  std::optional<bool> reshard, offload_optimizer, offload_weights, offload_activations;
  std::optional<bool> sequence_parallel;
  std::optional<TrainRecipe> recipe;
  std::optional<Format> weights, kv, kv_values, activations;
  std::optional<double> mean_bits;                          // see Plan
  std::optional<Format> beside_experts;                     // see Plan
  std::optional<std::int32_t> gpu_layers, experts_on_host;  // see Plan
  std::optional<CardSplit> card_split;                      // -sm
  std::optional<std::int32_t> main_card;                    // -mg
  std::optional<std::vector<float>> card_shares;            // -ts
  std::optional<double> memory_fraction;
  // Switches of the engine, where its flags or a measured row state them.
  std::optional<bool> flash_attention;
  std::optional<bool> channels_first;  // how images lie in memory
  std::optional<bool> dropout;         // masks are kept
  std::optional<bool> eight_bit_weights, trains_drafts, deterministic,
      grouped_experts;                                // see EnginePolicy
  std::optional<bool> fused_loss;                     // the engine's own fused cross entropy
  std::optional<std::int64_t> loss_chunks;            // parts that the loss is computed in
  std::optional<RecomputeModules> recompute_modules;  // of selective recomputation
  std::optional<std::int64_t> latent_mode;  // ik_llama.cpp's -mla: 0 caches heads, 1-3 the latent
  std::optional<double> attention_chunk_bytes;  // ik_llama.cpp's -amb; 0: no bound
  std::optional<bool> fused_experts;            // ik_llama.cpp's -fmoe
  std::optional<bool> attention_data;           // see EnginePolicy::attention_ranks
  // Tokens of one forward: llama.cpp's n_ubatch, the token budget of a server's step.
  std::optional<std::int64_t> chunk_tokens;
  std::optional<std::int64_t> max_sequences;              // that a server ever batches
  std::optional<std::int64_t> pool_tokens;                // most tokens of the pool of caches
  std::optional<std::int64_t> media_images, media_films;  // of a prompt; see EnginePolicy
  std::optional<std::int64_t> captured_graphs;            // how many decode batches are captured
};

// Copies what no search varies: optimizer, offloading, and how experts and recomputation are cut.
void take_switches(const PlanRequest& fixed, Plan& plan);

}  // namespace trigon
