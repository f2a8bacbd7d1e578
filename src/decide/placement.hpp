#pragma once
// Where ggml's engines put a model: what their flags ask for, and how much of it fits.

#include <optional>

#include "base/result.hpp"
#include "engine/policy.hpp"
#include "plan/request.hpp"

namespace trigon {

// What is asked of cards and host memory that the engine or the number of cards does not allow.
std::optional<Error> refused_placement(const EnginePolicy& engine, const PlanRequest& asked,
                                       int cards);

}  // namespace trigon
