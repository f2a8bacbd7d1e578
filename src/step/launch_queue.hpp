#pragma once
// Micro-batches of a prompt that one host thread launches on the devices of a pipeline, one device
// after the other. A device takes so many launches ahead of what it has done; then the host waits,
// and what would run on the next devices is not launched either.

#include <vector>

namespace trigon {

struct LaunchQueue {
  // What each stage does of a pass, 1: the mean of all stages.
  std::vector<double> work = {1};
  double passes = 1;
  double inside = 1;  // passes that may be in the pipeline at once
  double share = 0;   // launches of a mean stage, of those that a device's queue holds
};

// From the first launch to the end of the last pass, in times of one pass on a mean stage.
double queued_span(const LaunchQueue& q);

}  // namespace trigon
