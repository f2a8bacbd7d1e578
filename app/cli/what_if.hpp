#pragma once
// --what-if: each time it is given a case of its own, with commas between what changes together.

#include "decide/what_if.hpp"
#include "session.hpp"

namespace trigon {

// The cases of a call, none without the flag. Unknown keys are errors that name the nearest.
Result<std::vector<WhatIf>> what_if_cases(const Call& call, const Session& s,
                                          const Cluster& cluster, bool side_by_side = false);

}  // namespace trigon
