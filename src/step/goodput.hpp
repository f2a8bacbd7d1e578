#pragma once
// What checkpoints and failures take from a long run.

#include "hardware/reliability.hpp"

namespace trigon {

struct Goodput {
  double share = 1;     // of the run that makes progress
  double interval = 0;  // seconds of work between two checkpoints; 0: none are written
  double write = 0, failure = 0,
         restart = 0;  // seconds: of a checkpoint, between failures, after one
};

// Runs of less than an hour write no checkpoints and count no failures. Longer ones checkpoint at
// the interval that wastes least, and lose on average what J. T. Daly ("A higher order estimate of
// the optimum checkpoint interval for restart dumps", Future Generation Computer Systems 22, 2006)
// gives for failures that come at random and may hit restarts too. `work`: seconds of the run
// without them; `bytes`: of one checkpoint, which all nodes write and read at once.
Goodput goodput_of(const Reliability& r, double work, double bytes, int cards, int nodes);

// The interval alone: sqrt(2 write failure) and the next two terms of its series, less the write.
double checkpoint_interval(double write, double failure);

}  // namespace trigon
