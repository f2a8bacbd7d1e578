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

}  // namespace trigon
