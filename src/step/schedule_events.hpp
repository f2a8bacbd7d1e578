#pragma once
// A pipeline played event by event: what a timeline shows, and what the forms of schedule.hpp are
// held to. Shares no code with them.

#include <vector>

#include "step/schedule.hpp"

namespace trigon {

enum class PassKind : std::uint8_t { forward, backward, weight };

struct StageEvent {
  PassKind kind = PassKind::forward;
  int stage = 0, chunk = 0, micro_batch = 0;
  double begin = 0, end = 0;
};

// Every pass of every stage, in the order in which they start; those of one stage never overlap.
// Empty when the order of the schedule cannot be run to its end.
std::vector<StageEvent> play_pipeline(const PipelineWork& work);

}  // namespace trigon
