#include "memory/adapter_states.hpp"

namespace trigon {
namespace {

// Adapters train in 32 bit beside a 16-bit base (peft get_peft_model, autocast_adapter_dtype)
// unless everything is 16-bit or the optimizer keeps master weights.
StateBytes state_of_adapters(TrainRecipe r) {
  return state_bytes(adapters_in_32_bit(r) ? TrainRecipe::fp32 : r);
}
StateBytes state_of_ends(TrainRecipe r) {
  return state_bytes(r == TrainRecipe::mixed_16bit ? r : TrainRecipe::pure_bf16);
}

}  // namespace

bool adapters_in_32_bit(TrainRecipe r) {
  return r != TrainRecipe::pure_bf16 && r != TrainRecipe::mixed_16bit;
}

AdapterStates adapter_states(const WeightShare& adapters, const WeightShare& ends, const Plan& plan,
                             double shards) {
  const bool on_host = plan.offload_optimizer || plan.optimizer == Optimizer::adamw_8bit_paged;
  auto from = [&](int stage) { return plan.zero >= stage ? 1 / shards : 1; };
  AdapterStates s;
  auto add = [&](const WeightShare& w, const StateBytes& b) {
    const double n = w.parameters();
    s.parameters += n;
    s.weights += n * b.weight * from(3);
    s.gradients += n * b.gradient * from(2);
    (plan.offload_optimizer ? s.on_host : s.states) += n * b.master * from(1);
    (on_host ? s.on_host : s.states) += moment_bytes(w, plan.optimizer, b.moment) * from(1);
    if (plan.offload_optimizer) s.on_host += n * host_gradient_bytes(b) * from(1);
    s.stepped += n * (b.master > 0 ? b.master : b.weight) * from(1);
  };
  add(adapters, state_of_adapters(plan.recipe));
  add(ends, state_of_ends(plan.recipe));
  return s;
}

}  // namespace trigon
