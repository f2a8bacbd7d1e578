#pragma once
// Bytes a parameter of weights, gradients and optimizer state, by recipe.

#include "plan/plan.hpp"

namespace trigon {

struct StateBytes {
  double weight = 2, gradient = 2, master = 0, moments = 0;
  double cast_copy = 0;  // 16-bit copies that autocast keeps through forward and backward
};

// Adam. Mixed precision: Rajbhandari et al. 2020 (arXiv:1910.02054), 2 + 2 + 12; Megatron-LM
// accumulates gradients in fp32 (accumulate_allreduce_grads_in_fp32): 2 + 4 + 12.
constexpr StateBytes state_bytes(TrainRecipe r) {
  switch (r) {
    case TrainRecipe::mixed_16bit:
      return {2, 2, 4, 8, 0};
    case TrainRecipe::mixed_fp32_grad:
      return {2, 4, 4, 8, 0};
    case TrainRecipe::pure_bf16:
      return {2, 2, 0, 4, 0};
    case TrainRecipe::autocast_fp32:
      return {4, 4, 0, 8, 2};
    case TrainRecipe::fp32:
      return {4, 4, 0, 8, 0};
  }
  return {};
}

}  // namespace trigon
