#include <algorithm>
#include <cmath>

#include "step/evaluate_parts.hpp"
#include "step/schedule.hpp"
#include "step/training_seconds.hpp"

namespace trigon {
template <class Recorder>
void evaluate_train(const Tables& t, const Plan& plan, Evaluation& e, Recorder& recorder) {
  const TrainTables& tr = t.train;
  const TrainPass& pass = pass_of(t, plan);
  const DeviceModel& d = t.device;
  const double m = std::max(1, plan.accumulation);

  // What each stage does, and how its schedule puts that together.
  static thread_local StepPipeline pipe;
  fill_pipeline(t, pass, plan, pipe);
  const int slowest = pipe.slowest;
  const LayerWork& work = pipe.stages[static_cast<std::size_t>(slowest)].work;
  const double recompute = pipe.stages[static_cast<std::size_t>(slowest)].recompute;
  const StepSeconds of = step_seconds(t, plan, pipe, pipeline_seconds(pipe.work));
  const RunLength run = run_length(t, plan, of);
  const double send = of.send, micro = of.micro, pipeline = of.pipeline, bubble = of.bubble;
  const double forward = work.forward, backward = work.backward();
  const double overlap = d.engine.overlap;
  const double reduction = of.reduction, hides = of.hides;
  const double exposed = of.exposed, slowed = of.slowed, owned = of.owned;
  const double sustained = of.sustained, transfer = of.transfer, optimizer = of.optimizer;
  const double sequences = of.sequences, loader = of.loader, step = of.step;
  double sequence = 0;
  if (auto j = std::get_if<Train>(&t.job)) sequence = static_cast<double>(j->sequence);
  if (auto j = std::get_if<FineTune>(&t.job)) sequence = static_cast<double>(j->sequence);
  double step_tokens = sequences * sequence;
  double cards = plan.ranks();
  // Model FLOPs: forward + 2 x forward for the backward, 1 x where weights are frozen; causal
  // attention counted at half, recomputation not at all.
  double backward_share = tr.frozen_base ? 1 + 2 * tr.trainable_share : 2;
  double model_flops = sequences * tr.forward_flops * (1 + backward_share);
  double repeated = plan.recompute == Recompute::full        ? tr.forward_flops - tr.head_flops
                    : plan.recompute == Recompute::selective ? tr.attention_forward_flops
                                                             : 0;
  double peak = d.unit[static_cast<std::size_t>(math_class(
                           d, t.domain.weights.value_or(Format::bf16), t.domain.activations))]
                    .peak;
  e[Metric::step_seconds] = step;
  e[Metric::forward_seconds] = m * forward;
  e[Metric::backward_seconds] = m * backward;
  e[Metric::recompute_seconds] = m * recompute;
  e[Metric::optimizer_seconds] = optimizer;
  TrainParts& p = e.train;
  p.slowest = slowest;
  p.pipeline = pipeline;
  p.sends = m * send;
  p.tensor = m * work.tensor;
  p.expert = m * work.expert;
  p.context = m * work.context;
  p.gradients = exposed;
  p.slowed = slowed;
  p.transfer = transfer;
  p.offloaded = of.waits;
  p.loader = loader;
  e[Metric::exposed_communication_seconds] =
      p.sends + p.tensor + p.expert + p.context + p.gradients;
  e[Metric::bubble_seconds] = bubble;
  if (t.stack) {
    e[Metric::train_tokens_per_second] = step_tokens / step;
    e[Metric::tokens_per_second_per_gpu] = step_tokens / step / cards;
  } else if (t.model->item->audio_seconds > 0) {
    e[Metric::audio_seconds_per_second] = sequences / step * t.model->item->audio_seconds;
  }
  e[Metric::samples_per_second_per_gpu] = sequences / step / cards;
  e[Metric::model_flops_per_gpu_second] = model_flops / step / cards;
  e[Metric::mfu] = model_flops / (step * cards * peak);
  e[Metric::hfu] = (model_flops + sequences * repeated * pipe.covered) / (step * cards * peak);
  const double steps = run.steps;
  const Goodput& good = run.goodput;
  e[Metric::goodput] = good.share;
  if (good.interval > 0) e[Metric::checkpoint_interval_seconds] = good.interval;
  e[Metric::time_to_train_seconds] = run.seconds;
  if constexpr (Recorder::on) {
    recorder.step([&] {
      return DerivationStep{&formulas::kMicroBatch,
                            micro,
                            "s",
                            "slowest stage",
                            {{"forward", forward, "s"},
                             {"backward", backward, "s"},
                             {"recompute", recompute, "s"},
                             {"send", send, "s"}}};
    });
    recorder.step([&] {
      return DerivationStep{
          &formulas::kBubble,
          bubble,
          "s",
          "pipeline",
          {{"pipeline", pipeline, "s"}, {"accumulation", m, ""}, {"micro_batch_time", micro, "s"}}};
    });
    recorder.step([&] {
      return DerivationStep{&formulas::kGradientReduction,
                            exposed,
                            "s",
                            "data parallel",
                            {{"copies", of.copies, "s"},
                             {"last_bucket", of.last, "s"},
                             {"reduction", reduction, "s"},
                             {"slowed", slowed, "s"},
                             {"overlap", overlap, "", "calibration/" + d.engine.sheet},
                             {"hidden_behind", hides, "s"}}};
    });
    recorder.step([&] {
      return DerivationStep{&formulas::kOptimizer,
                            optimizer,
                            "s",
                            "one rank",
                            {{"parameters", owned, ""},
                             {"bytes", optimizer_bytes(plan), "B"},
                             {"bandwidth", sustained, "B/s",
                              plan.offload_optimizer ? "host memory"
                                                     : "accelerator/" + d.accelerator->id +
                                                           "#memory.bandwidth_gb_per_s"},
                             {"transfer", transfer, "s"}}};
    });
    if (of.saved > 0)
      recorder.step([&] {
        return DerivationStep{&formulas::kOffloadedActivations,
                              of.waits,
                              "s",
                              "slowest stage",
                              {{"accumulation", m, ""},
                               {"bytes", of.saved, "B"},
                               {"link", d.accelerator->pcie_one_way->in_base(), "B/s"},
                               {"forward", forward, "s"},
                               {"backward", backward + recompute, "s"}}};
      });
    recorder.step([&] {
      return DerivationStep{
          &formulas::kStep,
          step,
          "s",
          "optimizer step",
          {{"accumulation", m, ""},
           {"micro_batch_time", micro, "s"},
           {"bubble", bubble, "s"},
           {"offloaded", of.waits, "s"},
           {"exposed", exposed, "s"},
           {"slowed", slowed, "s"},
           {"optimizer", optimizer, "s"},
           {"loader", loader, "s"},
           {"overhead", d.engine.step_overhead_seconds, "s", "calibration/" + d.engine.sheet}}};
    });
    recorder.step([&] {
      return DerivationStep{
          &formulas::kTimeToTrain,
          e[Metric::time_to_train_seconds],
          "s",
          "whole run",
          {{"steps", steps, ""}, {"step", step, "s"}, {"goodput", good.share, ""}}};
    });
    if (good.interval > 0)
      recorder.step([&] {
        return DerivationStep{
            &formulas::kGoodput,
            good.share,
            "",
            "checkpoints and failures",
            {{"interval", good.interval, "s"},
             {"write", good.write, "s"},
             {"failure", good.failure, "s", "reliability/default#interruptions"},
             {"restart", good.restart, "s", "reliability/default#restart_minutes"}}};
      });
    recorder.step([&] {
      return DerivationStep{&formulas::kMfu,
                            e[Metric::mfu],
                            "",
                            "causal attention at half",
                            {{"model_flops", model_flops, "FLOP"},
                             {"step", step, "s"},
                             {"cards", cards, ""},
                             {"peak", peak, "FLOP/s"}}};
    });
  }
}

template void evaluate_train<NoRecord>(const Tables&, const Plan&, Evaluation&, NoRecord&);
template void evaluate_train<Record>(const Tables&, const Plan&, Evaluation&, Record&);

}  // namespace trigon
