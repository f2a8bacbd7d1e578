#pragma once
// How often hardware fails under a long run, and what that costs.

#include "base/facts.hpp"

namespace trigon {

struct Reliability {
  double card_failure_seconds = 0;  // mean time between failures that stop a run, of one card
  double restart_seconds = 0;       // from a failure to the next step, reading the checkpoint apart
  double write_bytes_per_second = 0;  // of checkpoints, by one node
};

// From the sheet "reliability/default"; absent where a fact is.
std::optional<Reliability> reliability_of(const FactStore& facts);

}  // namespace trigon
