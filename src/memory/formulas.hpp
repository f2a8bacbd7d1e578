#pragma once
// The formulas of docs/memory.md, as derivations cite them.

#include "base/record.hpp"

namespace trigon::memory_formula {

inline constexpr Formula weights{"memory.weights",
                                 "(kept + matrices) / zero_shards + experts / expert_shards"};
inline constexpr Formula kv_cache{"memory.kv_cache",
                                  "sequences * sum over layers(kept tokens in blocks * "
                                  "bytes per token)"};
inline constexpr Formula forward_peak{"memory.forward_peak",
                                      "tokens * (layer peak + copies * hidden * element)"};
inline constexpr Formula logits{"memory.logits", "rows * vocabulary * bytes per value"};
inline constexpr Formula compute_buffer{"memory.compute_buffer",
                                        "max(attention, mlp, head) of one micro-batch"};
inline constexpr Formula saved{"memory.saved_activations",
                               "tokens * layers in flight * saved bytes per token"};
inline constexpr Formula gradients{"memory.gradients", "trainable * gradient bytes / shards"};
inline constexpr Formula optimizer{"memory.optimizer",
                                   "trainable * (master + moment bytes) / shards"};
inline constexpr Formula adapters{"memory.adapters",
                                  "rank * sum over adapted matrices(in + out) * state bytes"};
inline constexpr Formula gathered{"memory.gathered", "whole units at once"};
inline constexpr Formula runtime{"memory.runtime", "context + collectives + graphs"};

}  // namespace trigon::memory_formula
