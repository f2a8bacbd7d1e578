#include "step/training_seconds.hpp"

#include <algorithm>
#include <cmath>

#include "memory/in_flight.hpp"
#include "plan/legality.hpp"

namespace trigon {

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

namespace {

// Bytes of a parameter in a checkpoint: the weight as it trains, its 32-bit master and moments.
double checkpoint_bytes(const Plan& plan) {
  const double gradient = gradient_bytes(plan.recipe);
  double copy = 0;
  if (plan.recipe == TrainRecipe::mixed_16bit || plan.recipe == TrainRecipe::mixed_fp32_grad)
    copy = 2;
  // The optimizer reads and writes each of them once.
  return (optimizer_bytes(plan) - gradient - copy) / 2 + copy;
}

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

// Ranks that hold the same experts.
int expert_copies(const Plan& plan) {
  const int ranks = plan.data * plan.context * plan.tensor;
  return std::max(1, ranks / (expert_tensor_ranks(plan, false) * std::max(1, plan.expert)));
}

Exchange data_exchange(const Tables& t, const Plan& plan, const Held& held, const Held& trained,
                       double micro, double backward) {
  const DeviceModel& d = t.device;
  const double m = std::max(1, plan.accumulation);
  const int replicas = plan.data * plan.context;
  const int expert_replicas = expert_copies(plan);
  const int expert_stride = expert_tensor_ranks(plan, false) * std::max(1, plan.expert);
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
            m * micro, 0};
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
          backward * times, 0};
}

// A host's optimizer streams through its memory as DeepSpeed's CPU-Adam does: 10 billion
// parameters, 28 bytes each, in 2.57 s on twelve channels of DDR4-2666 (J. Ren et al.,
// "ZeRO-Offload", USENIX ATC 2021, table 4, on a DGX-2).
constexpr double kHostShare = 10e9 * 28 / 2.57 / kUsualHostBandwidth.in_base();

// What lies in host memory goes through the host link: weights come up for each pass of each
// micro-batch and gradients go down after it; beside weights that stay on the card gradients are
// added up there and go down once, and the stepped weights come up once. Activations go down
// beside the forward pass and come up beside the backward pass.
void take_offloaded(const Tables& t, const Plan& plan, const StageWork& work, const Held& held,
                    double parts, double expert_parts, StepSeconds& out) {
  const double m = std::max(1, plan.accumulation);
  const double weight = bits_per_element(t.domain.weights.value_or(Format::bf16)) / 8;
  const double neighbours = std::clamp(plan.ranks(), 1, std::max(1, t.cluster.per_node));
  double bytes = 0;
  if (plan.offload_optimizer) {
    const auto& stated = t.cluster.host.bandwidth;
    out.sustained = stated.value_or(kUsualHostBandwidth).in_base() * kHostShare / neighbours;
    if (!plan.offload_weights) bytes += out.owned * (gradient_bytes(plan.recipe) + weight);
  }
  if (plan.offload_weights)
    bytes +=
        m * (out.owned * gradient_bytes(plan.recipe) +
             (plan.reshard ? 2 : 1) * weight * (held.dense / parts + held.experts / expert_parts));
  const auto& link = t.device.accelerator->pcie_one_way;
  if (!link) return;
  out.transfer = bytes / link->in_base();
  if (!plan.offload_activations) return;
  NoRecord quiet;
  // Of a stage as full as the first, whose micro-batches in flight are most.
  out.saved = t.memory.evaluate(plan, 0, quiet).host.activations / neighbours / in_flight(plan, 0);
  const double each = out.saved / link->in_base();
  out.waits = m * (std::max(0.0, each - work.work.forward) +
                   std::max(0.0, each - work.work.backward() - work.recompute));
}

}  // namespace

StepSeconds step_seconds(const Tables& t, const Plan& plan, const StepPipeline& pipe,
                         double schedule) {
  StepSeconds out;
  const TrainTables& tr = t.train;
  const DeviceModel& d = t.device;
  const double m = std::max(1, plan.accumulation);
  const StageWork& slowest = pipe.stages[static_cast<std::size_t>(pipe.slowest)];
  out.send = slowest.sends;
  out.micro = slowest.work.total() + slowest.recompute + out.send;
  out.pipeline = schedule;
  out.bubble = std::max(0.0, out.pipeline - m * out.micro);
  const int replicas = plan.data * plan.context;
  if (tr.exchanged_bytes > 0 && replicas > 1) {
    // Rows travel from the ranks that hold them and their gradients back.
    const double one = collective_seconds(
        d, Collective::all_to_all, tr.exchanged_bytes * plan.micro_batch, replicas, plan.tensor);
    out.send += 2 * one;
    out.micro += 2 * one;
    out.pipeline += m * 2 * one;
  }

  // Parameters of one rank. Experts are divided by the expert group, the rest by the tensor group.
  const double stages = plan.pipeline;
  const Held held{
      (tr.parameters - tr.expert_parameters) / plan.tensor / stages,
      tr.expert_parameters / expert_tensor_ranks(plan, false) / std::max(1, plan.expert) / stages};
  const Held trained{held.dense * tr.trainable_share, held.experts * tr.trainable_share};
  const Exchange exchange =
      data_exchange(t, plan, held, trained, out.micro, slowest.work.backward());
  out.reduction = exchange.seconds, out.hides = exchange.hides;
  out.last = std::min(exchange.last, out.reduction);
  out.exposed = std::max(out.last, out.reduction - d.engine.overlap * out.hides);
  out.slowed = (out.reduction - out.exposed) * kSlowing;
  const double groups = std::clamp(plan.optimizer_groups, 1, std::max(1, replicas));
  const double parts = replicas / groups;
  const double expert_parts = std::max(1.0, expert_copies(plan) / groups);
  out.owned = plan.zero >= 1 ? trained.dense / parts + trained.experts / expert_parts
                             : trained.dense + trained.experts;
  out.sustained = d.bandwidth * d.operators.stream.ceiling * d.engine.stream_factor;
  // Gradients are copied into buckets and back (items.cpp).
  if (plan.zero == 0 && replicas > 1 && t.engine.autograd == Autograd::eager)
    out.copies = t.stack ? 4 * gradient_bytes(plan.recipe) * (trained.dense + trained.experts) /
                               out.sustained
                         : pipe.buckets;
  out.exposed += out.copies;
  take_offloaded(t, plan, slowest, held, parts, expert_parts, out);
  out.optimizer = out.owned * optimizer_bytes(plan) / out.sustained + out.transfer;
  const double busy = out.pipeline + out.waits + out.exposed + out.slowed + out.optimizer +
                      d.engine.step_overhead_seconds;
  out.sequences = static_cast<double>(plan.micro_batch) * m * plan.data;
  // Data loaders run ahead while the device is busy; where they cannot keep up they set the pace.
  out.nodes = std::max(1, (plan.ranks() + d.per_node - 1) / std::max(1, d.per_node));
  out.loader =
      t.cluster.host.items_per_second
          ? std::max(0.0, out.sequences / out.nodes / *t.cluster.host.items_per_second - busy)
          : 0;
  out.step = busy + out.loader;
  return out;
}

RunLength run_length(const Tables& t, const Plan& plan, const StepSeconds& of) {
  double sequence = 0, tokens = 0;
  if (auto j = std::get_if<Train>(&t.job))
    sequence = static_cast<double>(j->sequence), tokens = j->tokens;
  if (auto j = std::get_if<FineTune>(&t.job))
    sequence = static_cast<double>(j->sequence), tokens = j->tokens;
  RunLength out;
  // What is less than a step takes one.
  out.steps = std::max(1.0, tokens / (of.sequences * sequence));
  const double saved = t.train.trainable_parameters * checkpoint_bytes(plan);
  if (t.cluster.reliability)
    out.goodput = goodput_of(*t.cluster.reliability, out.steps * of.step, saved, plan.ranks(),
                             static_cast<int>(of.nodes));
  out.seconds = out.steps * of.step / out.goodput.share;
  return out;
}

}  // namespace trigon
