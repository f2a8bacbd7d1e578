#pragma once
// Bytes that one layer keeps for its backward pass, and the most it has alive in one forward,
// derived from its parts. Per token of one rank.

#include "engine/policy.hpp"
#include "job/job.hpp"
#include "model/model.hpp"

namespace trigon {

// How a layer runs on a rank.
struct ActivationRules {
  Autograd autograd = Autograd::fused;
  bool flash_attention = true;
  bool dropout = false;      // masks of one byte after attention and MLP
  double element_bytes = 2;  // of activations
  int tensor = 1;
  bool attention_output_copy = false;  // flash attention's output is kept in two layouts
  RecomputeModules selective;          // what `saved_selective` drops
  bool sequence_parallel = false;
  // Weights that do not train need no input kept, unless an adapter on them does.
  bool frozen = false;
  AdapterTargets targets = kAllLinears;
  AdapterForm form;
  double adapter_rank = 0;
  bool dora = false;
  bool quantised = false;  // the frozen base
  bool one_input = false;  // attention and MLP read the same normalised tensor
  EagerRules eager;
};

// `per_token` + `per_token_and_key` x the length of the sequence.
struct ActivationBytes {
  double per_token = 0;
  double per_token_and_key = 0;
  ActivationBytes& operator+=(ActivationBytes b) {
    per_token += b.per_token;
    per_token_and_key += b.per_token_and_key;
    return *this;
  }
  double at(double keys) const { return per_token + per_token_and_key * keys; }
};

// Without recomputation. Reproduces Korthikanti et al. 2022 (arXiv:2205.05198): 34 + 5 a s / h
// bytes per hidden element for a GPT layer with dropout, 10 + 24/t without sequence parallelism.
ActivationBytes saved_for_backward(const Layer& layer, std::int64_t hidden,
                                   const ActivationRules& rules);
// With selective recomputation: without what `rules.selective` names.
ActivationBytes saved_selective(const Layer& layer, std::int64_t hidden,
                                const ActivationRules& rules);
// With full recomputation: the layer's input.
ActivationBytes saved_full_recompute(std::int64_t hidden, const ActivationRules& rules);
// What routed experts keep, by token before it is routed: `hidden` once for each rank that shares
// an expert, `width` divided by them. Not in the sums above.
struct ExpertBytes {
  double hidden = 0, width = 0;
  // Of a rank's token: `inner` of its `tensor` ranks divide an expert and see the same tokens.
  double at(double inner, double tensor) const { return (hidden * inner + width) / tensor; }
};
ExpertBytes experts_saved(const Layer& layer, std::int64_t hidden, const ActivationRules& rules);
ExpertBytes experts_saved_selective(const Layer& layer, std::int64_t hidden,
                                    const ActivationRules& rules);
// The most alive at once while the layer runs forward without autograd, its input included.
ActivationBytes forward_peak(const Layer& layer, std::int64_t hidden, const ActivationRules& rules);

}  // namespace trigon
