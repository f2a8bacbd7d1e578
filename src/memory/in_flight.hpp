#pragma once
// How many micro-batches a rank of a pipeline keeps activations of.

#include <algorithm>

#include "plan/plan.hpp"

namespace trigon {

// Micro-batches whose activations a stage keeps, in whole stages. 1F1B: as many as stages follow
// (Narayanan et al. 2021, arXiv:2104.04473, sections 2.2 and 3.1). Interleaved: Megatron-LM warms
// up with 2 (p - stage - 1) + (v - 1) p chunks and runs one more, each 1/v of a stage; the first
// stage then keeps 1 + (p - 1) / (p v) times the activations of a model (arXiv:2205.05198).
inline double in_flight(const Plan& plan, int stage) {
  const double p = plan.pipeline, v = plan.virtual_stages, m = plan.accumulation;
  if (p <= 1) return 1;
  // All forward passes come first.
  if (plan.pipeline_schedule() == Schedule::gpipe) return m;
  // Stage s runs the gradients of weights s micro-batches after the rest of the backward pass, and
  // keeps the inputs of its matrices for them: as much as the first stage of 1F1B
  // (arXiv:2401.10241, section 2).
  if (plan.pipeline_schedule() == Schedule::zero_bubble) return std::min(m, p);
  if (v <= 1) return std::min(m, p - stage);
  const double group = plan.interleave_group > 0 ? plan.interleave_group : p;
  return std::min(m * v, 2 * (p - stage - 1) + (v - 1) * group + 1) / v;
}

}  // namespace trigon
