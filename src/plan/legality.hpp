#pragma once
// Whether a model can be divided as a plan asks: a pre-check before anything is counted or timed.

#include <optional>

#include "base/message.hpp"
#include "model/model.hpp"
#include "plan/plan.hpp"

namespace trigon {

// The reason why `plan` cannot divide `stack`, with the offending number and the nearest degree
// that can, or nothing. `serving` decides where experts are divided: inside the tensor group when
// serving, across data and context ranks when training.
std::optional<Message> check_split(const Stack& stack, const Plan& plan, bool serving);
// The same where either place of the experts will do.
inline std::optional<Message> check_split(const Stack& stack, const Plan& plan) {
  auto reason = check_split(stack, plan, true);
  return reason ? check_split(stack, plan, false) : reason;
}

// Ranks that divide one expert. Serving: what the expert degree leaves of the tensor group.
// Training: the tensor group while data and context ranks hold the expert group (Megatron's default
// of --expert-tensor-parallel-size), else one: the expert group then spans tensor ranks too.
inline int expert_tensor_ranks(const Plan& p, bool serving) {
  const int e = p.expert > 1 ? p.expert : 1;
  if (serving) return p.tensor / e > 1 ? p.tensor / e : 1;
  if (p.expert_tensor > 0) return p.expert_tensor;
  return p.data * p.context % e == 0 ? p.tensor : 1;
}
// The same in training, 0 for the tensor group whatever its size: what tables are made by.
inline std::int32_t expert_slices(const Plan& p) {
  const int inner = expert_tensor_ranks(p, false);
  return inner == p.tensor ? 0 : inner;
}

}  // namespace trigon
