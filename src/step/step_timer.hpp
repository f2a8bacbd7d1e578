#pragma once
// Times many training plans on one set of tables, for those who search: the pipeline of the last
// plan is kept for the next, which may differ only in what a step does beside it, and bounds are
// at hand before anything is walked. For one thread.

#include <memory>

#include "step/tables.hpp"

namespace trigon {

// What of a plan decides its pipeline.
struct PipelineKey {
  std::int32_t tensor = 0, pipeline = 0, virtual_stages = 0, context = 0, data = 0, expert = 0;
  std::int32_t expert_tensor = 0, micro_batch = 0, accumulation = 0, recompute_layers = 0;
  std::int32_t interleave_group = 0, last_stage_layers = 0;
  Schedule schedule = Schedule::one_f_one_b;
  ContextExchange context_exchange = ContextExchange::ring;
  Recompute recompute = Recompute::none;
  bool sequence_parallel = false;
  bool operator==(const PipelineKey&) const = default;
};

class StepTimer {
 public:
  explicit StepTimer(const Tables& tables);
  StepTimer(const StepTimer& o);  // starts with nothing kept
  StepTimer& operator=(const StepTimer&) = delete;
  ~StepTimer();

  // No more than the seconds of the step: the mean over stages and the last stage's own work,
  // without communication beside the layers.
  double least(const Plan& plan);
  // The same from the work of each stage and all that a step does beside its pipeline; what it
  // takes where the schedule has a closed form.
  double nearly(const Plan& plan);
  // As `evaluate` has them.
  double seconds(const Plan& plan);
  // Of the whole job at so many seconds a step: no less for a longer step.
  double run_seconds(const Plan& plan, double step) const;

 private:
  struct Kept;
  void at(const Plan& plan);
  void fill(const Plan& plan);
  double bound() const;

  const Tables& tables_;
  std::unique_ptr<Kept> kept_;
};

}  // namespace trigon
