#pragma once
// Bytes a parameter of weights, gradients and optimizer state, by recipe and optimizer.

#include "memory/layer_share.hpp"
#include "plan/plan.hpp"

namespace trigon {

struct StateBytes {
  double weight = 2, gradient = 2, master = 0;
  double moment = 4;     // one moment of a parameter
  double cast_copy = 0;  // 16-bit copies that autocast keeps through forward and backward
};

// Mixed precision: Rajbhandari et al. 2020 (arXiv:1910.02054), 2 + 2 + 4 and moments in fp32;
// Megatron-LM accumulates gradients in fp32 (accumulate_allreduce_grads_in_fp32): 2 + 4 + 4.
constexpr StateBytes state_bytes(TrainRecipe r) {
  switch (r) {
    case TrainRecipe::mixed_16bit:
      return {2, 2, 4, 4, 0};
    case TrainRecipe::mixed_fp32_grad:
      return {2, 4, 4, 4, 0};
    case TrainRecipe::pure_bf16:
      return {2, 2, 0, 2, 0};
    case TrainRecipe::autocast_fp32:
      return {4, 4, 0, 4, 2};
    case TrainRecipe::fp32:
      return {4, 4, 0, 4, 0};
  }
  return {};
}

// Of a gradient that an offloaded optimizer keeps on the host: in 32 bit beside 32-bit masters
// (deepspeed/runtime/zero/stage_1_and_2.py, whose estimate_zero2_model_states_mem_needs counts 16
// bytes a parameter).
constexpr double host_gradient_bytes(const StateBytes& s) { return s.master > 0 ? 4 : s.gradient; }

// Bytes of the moments that `optimizer` keeps for the parameters of `w`, each moment `moment` bytes
// wide where the recipe decides.
// - 8-bit (bitsandbytes, block-wise, arXiv:2110.02861): a byte for each of two moments and a 32-bit
//   scale for each block of 256; embeddings and tensors below 4,096 elements stay in 32 bit.
// - Adafactor (arXiv:1804.04235, without momentum): 32-bit row and column sums of a matrix.
// - Muon: one moment for the matrices of the layers, AdamW for embeddings, heads and vectors.
inline double moment_bytes(const WeightShare& w, Optimizer optimizer, double moment) {
  const double all = w.parameters();
  switch (optimizer) {
    case Optimizer::adamw:
      return 2 * moment * all;
    case Optimizer::adamw_8bit:
    case Optimizer::adamw_8bit_paged:
      return (2 + 2 * 4.0 / 256) * (all - w.tables - w.vectors) + 8 * (w.tables + w.vectors);
    case Optimizer::adafactor:
      return 4 * (w.edges + w.vectors);
    case Optimizer::lion:
    case Optimizer::sgd_momentum:
      return moment * all;
    case Optimizer::muon:
      return moment * (all + w.tables + w.heads + w.vectors);
    case Optimizer::sgd:
      return 0;
  }
  return 0;
}

}  // namespace trigon
