#pragma once
// Internal to the engine room: what a sheet says of an engine.

#include <vector>

#include "base/facts.hpp"
#include "engine/policy.hpp"

namespace trigon {

// The policy that the facts of the sheet make, with those of `entries` over them, later ones over
// earlier. Fails where a fact is of another kind than it should be or names no known choice.
Result<EnginePolicy> policy_from(const FactSheet& sheet,
                                 const std::vector<const FactGroup*>& entries);

}  // namespace trigon
