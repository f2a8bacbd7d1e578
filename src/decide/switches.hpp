#pragma once
// Flags of an engine's own that are stated for a plan: which engines have them.

#include <optional>

#include "base/result.hpp"
#include "engine/policy.hpp"
#include "plan/request.hpp"

namespace trigon {

// What is stated that this engine, or this kind of job, does not have.
std::optional<Error> refused_switches(const EnginePolicy& engine, const PlanRequest& asked,
                                      bool training);

// Sets in `engine` what `asked` states of its switches.
void take_engine_switches(const PlanRequest& asked, EnginePolicy& engine);

}  // namespace trigon
