#pragma once
// The formulas of docs/memory.md, as derivations cite them. Every name in an expression is a symbol
// of the step, so that the numbers put in its place give the value.

#include "base/record.hpp"

namespace trigon::memory_formula {

inline constexpr Formula weights{"memory.weights", "kept + matrices + experts"};
inline constexpr Formula layer_weights{"memory.weights",
                                       "sets * (kept + matrices) + layers * experts * expert"};
inline constexpr Formula end_weights{"memory.weights", "embedding + head + others"};
inline constexpr Formula layer_cache{"memory.kv_cache",
                                     "layers * (tokens * token + sequences * state)"};
inline constexpr Formula cache_token{"memory.kv_cache", "heads * (key + value) * bits / 8"};
inline constexpr Formula saved_part{"memory.saved_activations", "width + keys * scores"};
inline constexpr Formula sharded_weights{
    "memory.weights", "dense / dense_shards + experts / expert_shards + kept_whole"};
inline constexpr Formula ggml_weights{"memory.weights", "layers + head"};
inline constexpr Formula host_weights{"memory.host_weights", "embedding + layers_and_experts"};
inline constexpr Formula kv_cache{"memory.kv_cache", "sequences * bytes_per_sequence"};
inline constexpr Formula forward_peak{"memory.forward_peak",
                                      "tokens * (layer_peak + copies * hidden * element)"};
inline constexpr Formula encoder_run{"memory.multimodal_profile",
                                     "items * patches * (layer_peak + input * element)"};
inline constexpr Formula encoder_cache{"memory.multimodal_profile",
                                       "items * tokens * width * element"};
inline constexpr Formula logits{"memory.logits", "rows * vocabulary * value_bytes"};
inline constexpr Formula compute_buffer{"memory.compute_buffer", "beside_logits + logits"};
inline constexpr Formula repacked{"memory.repacked", "copies"};
inline constexpr Formula row_scratch{"memory.compute_buffer", "4 * tokens * inputs_and_rows"};
inline constexpr Formula saved{"memory.saved_activations", "tokens * saved * in_flight + ends"};
inline constexpr Formula gradients{
    "memory.gradients", "(dense / dense_shards + experts / expert_shards) * gradient_bytes"};
inline constexpr Formula optimizer{
    "memory.optimizer",
    "(dense * master_bytes + dense_moments) / dense_shards + (experts * master_bytes + "
    "expert_moments) / expert_shards"};
inline constexpr Formula offloaded{"memory.offloaded", "(states + activations) * ranks_of_node"};
inline constexpr Formula adapters{"memory.adapters", "weights + gradients + states + deltas"};
inline constexpr Formula forward_caches{"memory.kv_cache", "micro_batches * bytes_per_micro_batch"};
inline constexpr Formula fragmentation{"memory.fragmentation", "share * (activations + logits)"};
inline constexpr Formula reference{"memory.weights", "dense + experts"};
inline constexpr Formula gathered{"memory.gathered",
                                  "units + gradient + dequantised + casts + buckets"};
inline constexpr Formula graph_weights{"memory.graph_weights", "trained / shards + frozen"};
inline constexpr Formula graph_activations{"memory.graph_activations", "items * item + largest"};
inline constexpr Formula runtime{"memory.runtime", "context + libraries + collectives + graphs"};

}  // namespace trigon::memory_formula
