#include "step/training_work.hpp"

#include <algorithm>

#include "plan/legality.hpp"
#include "plan/stages.hpp"
#include "step/evaluate_parts.hpp"
#include "step/training_tables.hpp"

namespace trigon {

const TrainPass& pass_of(const Tables& t, const Plan& p) {
  std::size_t i = index_in(t.domain.tensor, p.tensor);
  i = i * t.domain.expert.size() + index_in(t.domain.expert, p.expert);
  i = i * t.domain.expert_tensor.size() + index_in(t.domain.expert_tensor, expert_slices(p));
  i = i * t.domain.context.size() + index_in(t.domain.context, p.context);
  // Of undivided sequences nothing is exchanged: all are the first.
  const std::vector<ContextExchange>& ways = t.domain.context_exchange;
  i *= ways.size();
  if (p.context > 1)
    i += static_cast<std::size_t>(std::find(ways.begin(), ways.end(), p.context_exchange) -
                                  ways.begin());
  i = i * 2 + (p.sequence_parallel ? 1 : 0);
  i = i * t.domain.micro_batch.size() + index_in(t.domain.micro_batch, p.micro_batch);
  return t.train.later ? t.train.later->at(t, i, p) : t.train.pass[i];
}

void fill_pipeline(const Tables& t, const TrainPass& pass, const Plan& plan, StepPipeline& out) {
  const int p = std::max(1, plan.pipeline), v = p > 1 ? std::max(1, plan.virtual_stages) : 1;
  const auto layers = static_cast<std::int64_t>(t.layers);
  double send = 0;
  if (p > 1) {
    int stride = plan.tensor * plan.context * plan.data;
    // Where one boundary crosses the network, the stages beside it set the pace.
    if (stride * p > t.device.per_node) stride = std::max(stride, t.device.per_node);
    send = collective_seconds(t.device, Collective::send, pass.boundary, 2, stride);
  }
  const int blocks = p * v;
  out.blocks.resize(static_cast<std::size_t>(blocks));
  out.stages.assign(static_cast<std::size_t>(p), {});
  out.covered = 1;
  out.buckets = pass.buckets;
  double most = -1;
  for (int s = 0; s < p; ++s) {
    StageWork& stage = out.stages[static_cast<std::size_t>(s)];
    double held = 0;
    for (int k = 0; k < v; ++k) {
      const LayerRange r = p > 1 ? layers_of(plan, layers, s, k) : LayerRange{0, layers};
      held += static_cast<double>(r.count());
    }
    const double covered =
        plan.recompute_layers > 0 ? std::min(1.0, plan.recompute_layers / std::max(1.0, held)) : 1;
    for (int k = 0; k < v; ++k) {
      const int block = k * p + s;
      const LayerRange r = p > 1 ? layers_of(plan, layers, s, k) : LayerRange{0, layers};
      LayerWork w = pass.of(r.begin, r.end, t.layers);
      const double again = plan.recompute == Recompute::full        ? covered * w.forward
                           : plan.recompute == Recompute::selective ? w.again
                                                                    : 0;
      if (block == 0) w += pass.embedding;
      if (block == p * v - 1) w += pass.head;
      // The reference reads the same sequences, forward only.
      if (plan.reference) w.forward *= 2;
      // Interleaved pipelines send while they compute the next chunk, which that slows. Each chunk
      // sends: v times as much as without them.
      const bool hidden = v > 1;
      auto shown = [&](double beside) {
        return hidden ? std::max(0.0, send - beside) + std::min(send, beside) * kSlowing : send;
      };
      const double down = block + 1 < p * v ? shown(w.forward) : 0;
      const double up = block > 0 ? shown(w.backward()) : 0;
      out.blocks[static_cast<std::size_t>(block)] = {w.forward + down, w.input + again + up,
                                                     w.weight};
      stage.work += w;
      stage.recompute += again;
      stage.sends += down + up;
    }
    if (stage.total() > most) most = stage.total(), out.slowest = s, out.covered = covered;
  }
  out.work = {plan.pipeline_schedule(), p,         v, std::max(1, plan.accumulation),
              plan.interleave_group,    out.blocks};
}

}  // namespace trigon
