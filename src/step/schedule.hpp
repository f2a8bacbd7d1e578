#pragma once
// How long a pipeline takes for the micro-batches of one step: the exact makespan of each
// schedule under any stage times, without a simulation for each plan where a form is known.

#include <cstdint>
#include <span>

#include "plan/plan.hpp"

namespace trigon {

// Seconds of one micro-batch in the layers of one block: a stage has one, or one for each of its
// virtual stages. Sends count to the pass that makes them.
struct BlockTime {
  double forward = 0;
  double input = 0;   // backward: gradients of inputs, and what is recomputed for them
  double weight = 0;  // backward: gradients of weights
  double total() const { return forward + input + weight; }
  bool operator==(const BlockTime&) const = default;
};

// The pipeline as its schedule sees it. `blocks` are in the order of the layers, stages x
// virtual_stages of them: block chunk * stages + stage.
struct PipelineWork {
  Schedule schedule = Schedule::one_f_one_b;
  int stages = 1, virtual_stages = 1;
  int micro_batches = 1;
  int group = 0;  // interleaved: micro-batches that a virtual stage takes in a row; 0: `stages`
  std::span<const BlockTime> blocks;
};

// From the first forward to the end of the last backward pass, on every stage. Exact for
// - gpipe: all forward passes, then all backward passes;
// - one_f_one_b: warm-up of stages - 1 - stage forward passes, then one of each;
// - interleaved: Megatron-LM's order over virtual stages;
// - zero_bubble: ZB-H1 (arXiv:2401.10241), 1F1B in which stage s runs the weight gradients of a
//   micro-batch s micro-batches later.
// Interleaved pipelines of unequal blocks are walked once and remembered by thread.
double pipeline_seconds(const PipelineWork& work);

// The work of stage `s` alone, of one micro-batch.
double stage_seconds(const PipelineWork& work, int s);

}  // namespace trigon
