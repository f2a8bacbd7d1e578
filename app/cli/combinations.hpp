#pragma once
// Flags that say nothing for the kind of job asked for: an answer that ignored them in silence
// would be read as one that took them into account.

#include "base/result.hpp"
#include "job/job.hpp"
#include "settings.hpp"

namespace trigon {

// Looks at what the command line itself gave; configuration serves jobs of all kinds.
Result<void> check_combinations(const CommandLine& line, JobKind kind);

}  // namespace trigon
