#pragma once
// What to change after a job ran out of memory, in the words of the engine it ran on, with numbers
// computed from the log's own figures where it holds them.

#include <string>
#include <vector>

#include "decide/messages.hpp"
#include "engine/oom_report.hpp"

namespace trigon {

struct OomAdvice {
  std::string change;  // "--max-model-len 9344": a flag, a setting or a command, as it is typed
  Message why;
};

// The most effective first. `report` gives what the whole log says, `event` is one of its errors.
std::vector<OomAdvice> advise(const OomReport& report, const OomEvent& event);

}  // namespace trigon
