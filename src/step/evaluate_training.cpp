#include <algorithm>
#include <cmath>

#include "step/evaluate_parts.hpp"
#include "step/goodput.hpp"
#include "step/schedule.hpp"
#include "step/training_work.hpp"

namespace trigon {
namespace {

double gradient_bytes(TrainRecipe r) {
  return r == TrainRecipe::mixed_16bit || r == TrainRecipe::pure_bf16 ? 2 : 4;
}

// Bytes the optimizer step reads and writes for each parameter it owns: gradient read, master
// weight (or the weight itself) and moments read and written, the 16-bit copy of a master written.
double optimizer_bytes(const Plan& plan) {
  double gradient = 4, word = 4, copy = 0, moment = 4;
  if (plan.recipe == TrainRecipe::mixed_16bit) gradient = 2;
  if (plan.recipe == TrainRecipe::mixed_16bit || plan.recipe == TrainRecipe::mixed_fp32_grad)
    copy = 2;
  if (plan.recipe == TrainRecipe::pure_bf16) gradient = word = moment = 2;
  double moments = 2 * moment;
  if (plan.optimizer == Optimizer::adamw_8bit || plan.optimizer == Optimizer::adamw_8bit_paged)
    moments = 2;
  if (plan.optimizer == Optimizer::lion || plan.optimizer == Optimizer::muon ||
      plan.optimizer == Optimizer::sgd_momentum)
    moments = moment;
  if (plan.optimizer == Optimizer::sgd || plan.optimizer == Optimizer::adafactor) moments = 0;
  return gradient + 2 * (word + moments) + copy;
}

// Bytes of a parameter in a checkpoint: the weight as it trains, its 32-bit master and moments.
double checkpoint_bytes(const Plan& plan) {
  const double gradient = gradient_bytes(plan.recipe);
  double copy = 0;
  if (plan.recipe == TrainRecipe::mixed_16bit || plan.recipe == TrainRecipe::mixed_fp32_grad)
    copy = 2;
  // The optimizer reads and writes each of them once.
  return (optimizer_bytes(plan) - gradient - copy) / 2 + copy;
}

// Compute beside a collective is slower by this share on average: its kernels take multiprocessors
// and bandwidth (S. Lee et al., arXiv:2507.03114: 18.9 % over A100, H100, MI210 and MI250).
constexpr double kSlowedBeside = 0.189;

// Communication of data parallelism in one step.
struct Exchange {
  double seconds = 0;  // in all
  double hides = 0;    // compute that it may run beside
  double last = 0;     // of what is ready only when nothing is left to compute
};

// Gradients are summed by buckets of so many bytes (torch.nn.parallel.DistributedDataParallel,
// bucket_cap_mb=25: S. Li et al., "PyTorch Distributed", VLDB 2020).
constexpr double kBucket = 25 * 1048576.0;

// Parameters of one rank that are held whole by a group of ranks; experts by a smaller one.
struct Held {
  double dense = 0, experts = 0;
};

Exchange data_exchange(const Tables& t, const Plan& plan, const Held& held, const Held& trained,
                       double micro, double backward) {
  const DeviceModel& d = t.device;
  const double m = std::max(1, plan.accumulation);
  const int replicas = plan.data * plan.context;
  const int expert_replicas = std::max(1, replicas / std::max(1, plan.expert));
  const int expert_stride = plan.tensor * std::max(1, plan.expert);
  const double grad = gradient_bytes(plan.recipe);
  const double weight = bits_per_element(t.domain.weights.value_or(Format::bf16)) / 8;
  if (replicas < 2) return {};
  // Experts are the same on fewer ranks, an expert group apart. Partial groups divide among ranks
  // that stand together.
  const int groups = plan.zero > 0 ? std::clamp(plan.optimizer_groups, 1, replicas) : 1;
  const int expert_groups = std::min(groups, expert_replicas);
  const int inside = replicas / groups, expert_inside = expert_replicas / expert_groups;
  auto all = [&](Collective c, const Held& h, double bytes) {
    return collective_seconds(d, c, h.dense * bytes, replicas, plan.tensor) +
           collective_seconds(d, c, h.experts * bytes, expert_replicas, expert_stride);
  };
  auto in_group = [&](Collective c, const Held& h, double bytes) {
    return collective_seconds(d, c, h.dense * bytes, inside, plan.tensor) +
           collective_seconds(d, c, h.experts * bytes, expert_inside, expert_stride);
  };
  // What a group has summed is summed over the groups, each rank its own part.
  auto over_groups = [&](double bytes) {
    if (groups < 2) return 0.0;
    return collective_seconds(d, Collective::all_reduce, trained.dense / inside * bytes, groups,
                              plan.tensor * inside) +
           collective_seconds(d, Collective::all_reduce, trained.experts / expert_inside * bytes,
                              expert_groups, expert_stride * expert_inside);
  };
  if (plan.zero >= 3) {
    // Weights are gathered for the forward pass of each micro-batch and, where they were dropped
    // after it, again for the backward pass, which recomputes inside the same unit; gradients are
    // scattered after it.
    const double gathers = plan.reshard ? 2 : 1;
    return {m * (gathers * in_group(Collective::all_gather, held, weight) +
                 in_group(Collective::reduce_scatter, trained, grad) + over_groups(grad)),
            m * micro};
  }
  // Only the last micro-batch's backward can hide a reduction that happens once a step.
  if (plan.zero == 0) {
    // Gradients of the embedding come last, whole.
    const double bytes = trained.dense * grad;
    const double embedding = t.train.embedding_parameters * t.train.trainable_share / plan.tensor;
    const double last = std::min(bytes, std::max(kBucket, embedding * grad));
    return {all(Collective::all_reduce, trained, grad), backward,
            collective_seconds(d, Collective::all_reduce, last, replicas, plan.tensor)};
  }
  const double times = plan.zero == 2 ? m : 1;
  return {times * in_group(Collective::reduce_scatter, trained, grad) + over_groups(grad) +
              in_group(Collective::all_gather, trained, weight),
          backward * times};
}

}  // namespace

template <class Recorder>
void evaluate_train(const Tables& t, const Plan& plan, Evaluation& e, Recorder& recorder) {
  const TrainTables& tr = t.train;
  const TrainPass& pass = pass_of(t, plan);
  const DeviceModel& d = t.device;
  const double m = std::max(1, plan.accumulation);
  double sequence = 0, tokens = 0;
  if (auto j = std::get_if<Train>(&t.job))
    sequence = static_cast<double>(j->sequence), tokens = j->tokens;
  if (auto j = std::get_if<FineTune>(&t.job))
    sequence = static_cast<double>(j->sequence), tokens = j->tokens;

  // What each stage does, and how its schedule puts that together.
  static thread_local StepPipeline pipe;
  fill_pipeline(t, pass, plan, pipe);
  const int slowest = pipe.slowest;
  const LayerWork& work = pipe.stages[static_cast<std::size_t>(slowest)].work;
  const double recompute = pipe.stages[static_cast<std::size_t>(slowest)].recompute;
  double send = pipe.stages[static_cast<std::size_t>(slowest)].sends;
  double micro = work.total() + recompute + send;
  const double stages = plan.pipeline;
  double pipeline = pipeline_seconds(pipe.work);
  const double bubble = std::max(0.0, pipeline - m * micro);
  const double forward = work.forward, backward = work.backward();
  const int replicas = plan.data * plan.context;
  if (tr.exchanged_bytes > 0 && replicas > 1) {
    // Rows travel from the ranks that hold them and their gradients back.
    const double one = collective_seconds(
        d, Collective::all_to_all, tr.exchanged_bytes * plan.micro_batch, replicas, plan.tensor);
    send += 2 * one;
    micro += 2 * one;
    pipeline += m * 2 * one;
  }

  // Parameters of one rank. Experts are divided by the expert group, the rest by the tensor group.
  const Held held{(tr.parameters - tr.expert_parameters) / plan.tensor / stages,
                  tr.expert_parameters / plan.tensor / std::max(1, plan.expert) / stages};
  const double dense = held.dense, experts = held.experts;
  const int expert_replicas = std::max(1, replicas / std::max(1, plan.expert));
  const double grad = gradient_bytes(plan.recipe);
  const double overlap = d.engine.overlap;
  const double dense_trained = dense * tr.trainable_share,
               expert_trained = experts * tr.trainable_share;
  const Exchange exchange =
      data_exchange(t, plan, held, {dense_trained, expert_trained}, micro, backward);
  const double reduction = exchange.seconds, hides = exchange.hides;
  const double unhidden = std::max(std::min(exchange.last, reduction), reduction - overlap * hides);
  const double slowed = (reduction - unhidden) * kSlowedBeside / (1 + kSlowedBeside);
  const double groups = std::clamp(plan.optimizer_groups, 1, std::max(1, replicas));
  const double parts = replicas / groups;
  const double expert_parts = std::max(1.0, expert_replicas / groups);
  double owned = plan.zero >= 1 ? dense_trained / parts + expert_trained / expert_parts
                                : dense_trained + expert_trained;
  double sustained = d.bandwidth * d.operators.stream.ceiling * d.engine.stream_factor;
  // Gradients are copied into buckets and back (items.cpp).
  double copies = 0;
  if (plan.zero == 0 && replicas > 1 && t.engine.autograd == Autograd::eager)
    copies = t.stack ? 4 * grad * (dense_trained + expert_trained) / sustained : pass.buckets;
  const double exposed = unhidden + copies;
  // Offloaded states stay behind the host link: gradients go down and weights come up once a step,
  // offloaded weights come up for each pass of each micro-batch. The host's own work is not priced.
  double host_bytes = 0;
  if (plan.offload_optimizer) host_bytes += owned * (grad + 2);
  if (plan.offload_weights)
    host_bytes += 2 * m * (dense / parts + experts / expert_parts) *
                  bits_per_element(t.domain.weights.value_or(Format::bf16)) / 8;
  const auto& host_link = d.accelerator->pcie_one_way;
  double transfer = host_link ? host_bytes / host_link->in_base() : 0;
  double optimizer = owned * optimizer_bytes(plan) / sustained + transfer;
  double busy = pipeline + exposed + slowed + optimizer + d.engine.step_overhead_seconds;
  double sequences = static_cast<double>(plan.micro_batch) * m * plan.data;
  // Data loaders run ahead while the device is busy; where they cannot keep up they set the pace.
  const double nodes = std::max(1, (plan.ranks() + d.per_node - 1) / std::max(1, d.per_node));
  const double loader =
      t.cluster.host.items_per_second
          ? std::max(0.0, sequences / nodes / *t.cluster.host.items_per_second - busy)
          : 0;
  const double step = busy + loader;
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
  // What is less than a step takes one.
  const double steps = std::max(1.0, tokens / step_tokens);
  const double saved = tr.trainable_parameters * checkpoint_bytes(plan);
  Goodput good;
  if (t.cluster.reliability)
    good = goodput_of(*t.cluster.reliability, steps * step, saved, plan.ranks(),
                      static_cast<int>(nodes));
  e[Metric::goodput] = good.share;
  if (good.interval > 0) e[Metric::checkpoint_interval_seconds] = good.interval;
  e[Metric::time_to_train_seconds] = steps * step / good.share;
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
                            {{"copies", copies, "s"},
                             {"last_bucket", exchange.last, "s"},
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
                              "accelerator/" + d.accelerator->id + "#memory.bandwidth_gb_per_s"},
                             {"transfer", transfer, "s"}}};
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
