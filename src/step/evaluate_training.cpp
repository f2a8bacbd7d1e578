#include <algorithm>
#include <cmath>

#include "step/evaluate_parts.hpp"

namespace trigon {
namespace {

const TrainPass& pass_of(const Tables& t, const Plan& p) {
  std::size_t i = index_in(t.domain.tensor, p.tensor);
  i = i * t.domain.expert.size() + index_in(t.domain.expert, p.expert);
  i = i * t.domain.context.size() + index_in(t.domain.context, p.context);
  i = i * 2 + (p.sequence_parallel ? 1 : 0);
  i = i * t.domain.micro_batch.size() + index_in(t.domain.micro_batch, p.micro_batch);
  return t.train.pass[i];
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

double gradient_bytes(TrainRecipe r) {
  return r == TrainRecipe::mixed_16bit || r == TrainRecipe::pure_bf16 ? 2 : 4;
}

}  // namespace

template <class Recorder>
void evaluate_train(const Tables& t, const Plan& plan, Evaluation& e, Recorder& recorder) {
  const TrainTables& tr = t.train;
  const TrainPass& pass = pass_of(t, plan);
  const DeviceModel& d = t.device;
  double stages = plan.pipeline, v = plan.virtual_stages;
  double m = std::max(1, plan.accumulation);
  double sequence = 0, tokens = 0;
  if (auto j = std::get_if<Train>(&t.job))
    sequence = static_cast<double>(j->sequence), tokens = j->tokens;
  if (auto j = std::get_if<FineTune>(&t.job))
    sequence = static_cast<double>(j->sequence), tokens = j->tokens;
  // The slowest stage sets the pace: layers are dealt out evenly, rounded up.
  double share = std::ceil(t.layers / stages) / t.layers;
  double recompute_layers = plan.recompute == Recompute::full        ? pass.forward
                            : plan.recompute == Recompute::selective ? pass.attention_forward
                                                                     : 0;
  double first_ends = pass.embedding_forward + pass.embedding_backward;
  double last_ends = pass.ends_forward + pass.ends_backward;
  double ends = stages > 1 ? std::max(first_ends, last_ends) : first_ends + last_ends;
  double forward = pass.forward * share +
                   (stages > 1 ? pass.ends_forward : pass.ends_forward + pass.embedding_forward);
  double covered = plan.recompute == Recompute::full && plan.recompute_layers > 0
                       ? std::min(1.0, plan.recompute_layers / std::max(1.0, t.layers * share))
                       : 1;
  double recompute = recompute_layers * share * covered;
  double send = 0;
  int stride = plan.tensor * plan.context * plan.data;
  // Where one boundary crosses the network, the stages beside it set the pace.
  if (stride * plan.pipeline > d.per_node) stride = std::max(stride, d.per_node);
  if (stages > 1) send = 2 * collective_seconds(d, Collective::send, pass.boundary, 2, stride);
  double micro = (pass.forward + pass.backward) * share + recompute + ends + send;
  double backward = micro - forward - recompute - send;
  int replicas = plan.data * plan.context;
  if (tr.exchanged_bytes > 0 && replicas > 1) {
    // Rows travel from the ranks that hold them and their gradients back.
    double one = collective_seconds(d, Collective::all_to_all,
                                    tr.exchanged_bytes * plan.micro_batch, replicas, plan.tensor);
    send += 2 * one;
    micro += 2 * one;
  }
  double bubble = (stages - 1) / v * micro;

  // Parameters of one rank. Experts are divided by the expert group, the rest by the tensor group.
  double dense = (tr.parameters - tr.expert_parameters) / plan.tensor / stages;
  double experts = tr.expert_parameters / plan.tensor / std::max(1, plan.expert) / stages;
  int expert_replicas = std::max(1, replicas / std::max(1, plan.expert));
  double grad = gradient_bytes(plan.recipe);
  double overlap = d.engine.overlap;
  double dense_trained = dense * tr.trainable_share, expert_trained = experts * tr.trainable_share;
  // Experts are the same on fewer ranks, an expert group apart.
  auto exchange = [&](Collective c, double dense_bytes, double expert_bytes) {
    return collective_seconds(d, c, dense_bytes, replicas, plan.tensor) +
           collective_seconds(d, c, expert_bytes, expert_replicas,
                              plan.tensor * std::max(1, plan.expert));
  };
  auto over_replicas = [&](Collective c, double bytes_per_parameter, double scale) {
    return scale *
           exchange(c, dense_trained * bytes_per_parameter, expert_trained * bytes_per_parameter);
  };
  double exposed = 0, reduction = 0, hides = 0;
  if (replicas > 1) {
    double weight_bytes = bits_per_element(t.domain.weights.value_or(Format::bf16)) / 8;
    if (plan.zero >= 3) {
      // Weights are gathered for the forward and again for the backward pass of each micro-batch,
      // gradients scattered after it; what compute does not hide is exposed.
      double gather =
          2 * exchange(Collective::all_gather, dense * weight_bytes, experts * weight_bytes);
      reduction = m * (gather + over_replicas(Collective::reduce_scatter, grad, 1));
      hides = m * micro;
    } else {
      reduction = plan.zero == 0
                      ? over_replicas(Collective::all_reduce, grad, 1)
                      : over_replicas(Collective::reduce_scatter, grad, plan.zero == 2 ? m : 1) +
                            over_replicas(Collective::all_gather, weight_bytes, 1);
      // Only the last micro-batch's backward can hide a reduction that happens once a step.
      hides = backward * (plan.zero == 2 ? m : 1);
    }
    exposed = std::max(0.0, reduction - overlap * hides);
  }
  double owned = plan.zero >= 1 ? dense_trained / replicas + expert_trained / expert_replicas
                                : dense_trained + expert_trained;
  double sustained = d.bandwidth * d.operators.stream.ceiling * d.engine.stream_factor;
  // Offloaded states stay behind the host link: gradients go down and weights come up once a step,
  // offloaded weights come up for each pass of each micro-batch. The host's own work is not priced.
  double host_bytes = 0;
  if (plan.offload_optimizer) host_bytes += owned * (grad + 2);
  if (plan.offload_weights)
    host_bytes += 2 * m * (dense / replicas + experts / expert_replicas) *
                  bits_per_element(t.domain.weights.value_or(Format::bf16)) / 8;
  const auto& host_link = d.accelerator->pcie_one_way;
  double transfer = host_link ? host_bytes / host_link->in_base() : 0;
  double optimizer = owned * optimizer_bytes(plan) / sustained + transfer;
  double step = m * micro + bubble + exposed + optimizer + d.engine.step_overhead_seconds;

  double sequences = static_cast<double>(plan.micro_batch) * m * plan.data;
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
  e[Metric::exposed_communication_seconds] =
      exposed + m * (send + pass.tensor_communication * share);
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
  e[Metric::hfu] = (model_flops + sequences * repeated * covered) / (step * cards * peak);
  e[Metric::time_to_train_seconds] = tokens / step_tokens * step;
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
          {{"pipeline", stages, ""}, {"virtual", v, ""}, {"micro_batch_time", micro, "s"}}};
    });
    recorder.step([&] {
      return DerivationStep{&formulas::kGradientReduction,
                            exposed,
                            "s",
                            "data parallel",
                            {{"reduction", reduction, "s"},
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
           {"optimizer", optimizer, "s"},
           {"overhead", d.engine.step_overhead_seconds, "s", "calibration/" + d.engine.sheet}}};
    });
    recorder.step([&] {
      return DerivationStep{&formulas::kTimeToTrain,
                            e[Metric::time_to_train_seconds],
                            "s",
                            "all tokens",
                            {{"tokens", tokens, "tokens"},
                             {"step_tokens", step_tokens, "tokens"},
                             {"step", step, "s"}}};
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
