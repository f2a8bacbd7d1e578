#pragma once
// What training adapters on a frozen base takes beside the base: their weights, gradients and
// optimizer states.

#include "memory/recipe.hpp"

namespace trigon {

struct AdapterStates {
  double parameters = 0;
  double weights = 0, gradients = 0, states = 0;  // bytes on a rank
  double on_host = 0;                             // of it in host memory
  double stepped = 0;  // bytes of what the optimizer steps on this rank: its temporaries follow
  double total() const { return weights + gradients + states; }
};

// Whether adapters keep 32-bit weights beside a base in 16.
bool adapters_in_32_bit(TrainRecipe recipe);

// `adapters`: all of them, undivided. `ends`: parameters of embedding and head that train as copies
// in the base's 16 bit. `shards`: ranks over which the plan's ZeRO stage divides.
AdapterStates adapter_states(const WeightShare& adapters, const WeightShare& ends, const Plan& plan,
                             double shards);

}  // namespace trigon
