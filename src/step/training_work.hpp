#pragma once
// Internal to the step room: what each pipeline stage of a training step does, shared by the
// evaluation, its breakdown and its timeline.

#include "step/schedule.hpp"
#include "step/tables.hpp"

namespace trigon {

// Compute beside a collective is slower by this share on average: its kernels take multiprocessors
// and bandwidth (S. Lee et al., arXiv:2507.03114: 18.9 % over A100, H100, MI210 and MI250).
constexpr double kSlowedBeside = 0.189;
// Seconds that compute loses for each second of communication beside it.
constexpr double kSlowing = kSlowedBeside / (1 + kSlowedBeside);

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
  double buckets = 0;  // TrainPass::buckets
};

const TrainPass& pass_of(const Tables& t, const Plan& plan);
void fill_pipeline(const Tables& t, const TrainPass& pass, const Plan& plan, StepPipeline& out);

}  // namespace trigon
