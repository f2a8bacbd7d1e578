#pragma once
// Internal to the step room: a training step put together from its parts, for the evaluation and
// for those who time many plans.

#include "step/goodput.hpp"
#include "step/training_work.hpp"

namespace trigon {

// Bytes of a gradient, and what the optimizer step reads and writes for each parameter it owns.
double gradient_bytes(TrainRecipe r);
double optimizer_bytes(const Plan& plan);

// Seconds of one step on the ranks of the slowest stage, and what they follow from.
struct StepSeconds {
  double send = 0, micro = 0;  // of a micro-batch: sends; all of it
  double pipeline = 0;         // from the first forward to the last backward pass
  double bubble = 0;
  double reduction = 0, hides = 0;  // of data parallelism; compute that it may run beside
  double last = 0;                  // of the reduction: ready only when nothing is left to compute
  double copies = 0;                // of gradients into buckets and back
  double exposed = 0, slowed = 0;
  double owned = 0,
         sustained = 0;  // parameters that a rank steps; bytes a second, host's or card's
  double transfer = 0, optimizer = 0;
  double saved = 0, waits = 0;  // offloaded activations: bytes of a micro-batch; what they delay
  double sequences = 0, nodes = 1;
  double loader = 0;
  double step = 0;
};

// `schedule`: seconds of the pipeline of `pipe` as its schedule runs it.
StepSeconds step_seconds(const Tables& t, const Plan& plan, const StepPipeline& pipe,
                         double schedule);

// How long the job takes at so many seconds a step.
struct RunLength {
  double steps = 1;
  Goodput goodput;
  double seconds = 0;
};
RunLength run_length(const Tables& t, const Plan& plan, const StepSeconds& of);

}  // namespace trigon
