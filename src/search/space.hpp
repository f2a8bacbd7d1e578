#pragma once
// The plans of a job on `count` cards: every combination of degrees that the fixed parts allow and
// that divides out. Legality (heads, experts, vocabulary) and memory are judged by the caller.

#include <vector>

#include "engine/policy.hpp"
#include "hardware/cluster.hpp"
#include "job/job.hpp"
#include "plan/request.hpp"
#include "search/messages.hpp"

namespace trigon {

// Tensor degrees worth a table on at most `count` cards of nodes with `per_node`: powers of two
// and the whole node, within what the request fixes. Tensor parallelism stays inside a node
// unless the request says otherwise.
std::vector<std::int32_t> tensor_degrees(const PlanRequest& fixed, int count, int per_node);

// Serving and batch: replicas x pipeline x tensor = count.
void serving_plans(const PlanRequest& fixed, const EnginePolicy& engine, bool mixture_of_experts,
                   int count, int per_node, std::int64_t layers, std::vector<Plan>& out);

// Micro-batches of training: divisors of the global batch up to 64 sequences.
std::vector<std::int32_t> micro_batches(const PlanRequest& fixed, std::int64_t global_batch);

// The recipe that an engine trains with unless told otherwise.
TrainRecipe recipe_of(const EnginePolicy& engine);

}  // namespace trigon
