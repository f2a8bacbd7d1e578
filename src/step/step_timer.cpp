#include "step/step_timer.hpp"

#include <algorithm>
#include <limits>

#include "plan/stages.hpp"
#include "step/interleaved.hpp"
#include "step/training_seconds.hpp"

namespace trigon {
namespace {

// Sums are taken in another order than those they bound.
constexpr double kRounding = 1 - 1e-9;

PipelineKey key_of(const Plan& p) {
  return {p.tensor,       p.pipeline,         p.virtual_stages,   p.context,
          p.data,         p.expert,           p.expert_tensor,    p.micro_batch,
          p.accumulation, p.recompute_layers, p.interleave_group, p.last_stage_layers,
          p.schedule,     p.context_exchange, p.recompute,        p.sequence_parallel};
}

// One micro-batch in layers and what recomputation repeats of them; of a part that is not known
// without its stage, nothing.
double with_recompute(const LayerWork& w, const Plan& p) {
  if (p.recompute == Recompute::selective) return w.total() + w.again;
  if (p.recompute == Recompute::full && p.recompute_layers == 0) return w.total() + w.forward;
  return w.total();
}

// The pipeline takes no less than m times the mean over its stages, nor than the last stage's m
// micro-batches after the first has come down to it and before the last is back up.
double least_pipeline(const Tables& t, const TrainPass& pass, const Plan& plan) {
  const double m = std::max(1, plan.accumulation);
  const double all = with_recompute(pass.layers, plan) + pass.embedding.total() + pass.head.total();
  const int p = plan.pipeline;
  if (p <= 1) return m * all;
  const int v = std::max(1, plan.virtual_stages);
  const auto layers = static_cast<std::int64_t>(t.layers);
  double last = pass.head.total();
  for (int k = 0; k < v; ++k) {
    const LayerRange r = layers_of(plan, layers, p - 1, k);
    last += with_recompute(pass.of(r.begin, r.end, t.layers), plan);
  }
  const LayerWork before = pass.of(0, layers_of(plan, layers, p - 1, 0).begin, t.layers);
  // Gradients of weights may come after all else.
  const double around = plan.schedule == Schedule::zero_bubble
                            ? before.forward + pass.embedding.forward
                            : with_recompute(before, plan) + pass.embedding.total();
  return std::max(m * all / p, m * last + around);
}

}  // namespace

struct StepTimer::Kept {
  PipelineKey key;
  const TrainPass* pass = nullptr;
  double least = 0;
  bool filled = false, walked = false;
  StepPipeline pipe;
  double bound = 0, seconds = 0;  // of the pipeline
};

StepTimer::StepTimer(const Tables& tables) : tables_(tables), kept_(std::make_unique<Kept>()) {}
StepTimer::StepTimer(const StepTimer& o) : StepTimer(o.tables_) {}
StepTimer::~StepTimer() = default;

void StepTimer::at(const Plan& plan) {
  const PipelineKey key = key_of(plan);
  if (kept_->pass && key == kept_->key) return;
  kept_->key = key;
  kept_->pass = &pass_of(tables_, plan);
  kept_->least = least_pipeline(tables_, *kept_->pass, plan) * kRounding;
  kept_->filled = kept_->walked = false;
}

void StepTimer::fill(const Plan& plan) {
  at(plan);
  Kept& k = *kept_;
  if (k.filled) return;
  fill_pipeline(tables_, *k.pass, plan, k.pipe);
  k.filled = true;
  k.walked = !needs_walk(k.pipe.work);
  if (k.walked)
    k.seconds = pipeline_seconds(k.pipe.work);
  else
    k.bound = bound() * kRounding;
}

// Each stage runs all its passes after the first micro-batch has come down to it and before the
// last is back at the first stage.
double StepTimer::bound() const {
  const PipelineWork& w = kept_->pipe.work;
  double most = 0, before = 0;
  for (int s = 0; s < w.stages; ++s) {
    most = std::max(most, w.micro_batches * stage_seconds(w, s) + before);
    before += w.blocks[static_cast<std::size_t>(s)].total();
  }
  return most;
}

double StepTimer::least(const Plan& plan) {
  at(plan);
  return kept_->least + tables_.device.engine.step_overhead_seconds;
}

double StepTimer::nearly(const Plan& plan) {
  fill(plan);
  const Kept& k = *kept_;
  return step_seconds(tables_, plan, k.pipe, k.walked ? k.seconds : k.bound).step;
}

double StepTimer::seconds(const Plan& plan) {
  fill(plan);
  Kept& k = *kept_;
  if (!k.walked) {
    k.seconds = pipeline_seconds(k.pipe.work);
    k.walked = true;
  }
  return step_seconds(tables_, plan, k.pipe, k.seconds).step;
}

double StepTimer::run_seconds(const Plan& plan, double step) const {
  StepSeconds of;
  of.sequences = static_cast<double>(plan.micro_batch) * std::max(1, plan.accumulation) * plan.data;
  const int per_node = std::max(1, tables_.device.per_node);
  of.nodes = std::max(1, (plan.ranks() + tables_.device.per_node - 1) / per_node);
  of.step = step;
  return run_length(tables_, plan, of).seconds;
}

}  // namespace trigon
