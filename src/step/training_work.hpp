#pragma once
// Internal to the step room: what each pipeline stage of a training step does, shared by the
// evaluation, its breakdown and its timeline.

#include "step/schedule.hpp"
#include "step/tables.hpp"

namespace trigon {

// One micro-batch on one stage, all its chunks.
struct StageWork {
  LayerWork work;
  double recompute = 0, sends = 0;
  double total() const { return work.total() + recompute + sends; }
};

struct StepPipeline {
  PipelineWork work;  // of `blocks`
  std::vector<BlockTime> blocks;
  std::vector<StageWork> stages;
  int slowest = 0;
  double covered = 1;  // part of the layers that full recomputation covers
};

const TrainPass& pass_of(const Tables& t, const Plan& plan);
void fill_pipeline(const Tables& t, const TrainPass& pass, const Plan& plan, StepPipeline& out);

}  // namespace trigon
