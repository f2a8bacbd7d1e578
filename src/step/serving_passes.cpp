#include "step/serving_passes.hpp"

#include <algorithm>
#include <cmath>

#include "memory/card_parts.hpp"
#include "step/launch_queue.hpp"

namespace trigon {

PassTime at_batch(const InferenceTables& i, const std::vector<PassTime>& table, std::size_t row,
                  double batch) {
  const auto& grid = i.batches;
  const PassTime* p = table.data() + row * grid.size();
  double b = std::max(batch, 1.0);
  if (b >= grid.back()) {
    // Beyond the grid the last slope holds.
    if (grid.size() == 1) return {p[0].layers * b / grid[0], p[0].ends * b / grid[0]};
    std::size_t n = grid.size() - 1;
    double f = (b - grid[n - 1]) / (grid[n] - grid[n - 1]);
    return {p[n - 1].layers + f * (p[n].layers - p[n - 1].layers),
            p[n - 1].ends + f * (p[n].ends - p[n - 1].ends)};
  }
  // Below the grid (a table made for one batch only) its first time is the most it can take.
  if (b <= grid.front()) return p[0];
  std::size_t n =
      static_cast<std::size_t>(std::upper_bound(grid.begin(), grid.end(), b,
                                                [](double v, std::int32_t g) { return v < g; }) -
                               grid.begin());
  double f = (b - grid[n - 1]) / (grid[n] - grid[n - 1]);
  return {p[n - 1].layers + f * (p[n].layers - p[n - 1].layers),
          p[n - 1].ends + f * (p[n].ends - p[n - 1].ends)};
}

namespace {

std::size_t row_of(const Tables& t, const Plan& plan) {
  return index_in(t.domain.tensor, plan.tensor) * t.domain.expert.size() +
         index_in(t.domain.expert, plan.expert);
}

// A captured graph exists for some batches only; others run the next larger one. `most`: the
// largest batch that the plan runs.
double captured(const EnginePolicy& engine, double batch, double most) {
  const double ranks = engine.attention_ranks;
  for (std::int64_t c : engine.capture_batches)
    if (const double graph = static_cast<double>(c) * ranks; graph >= batch)
      return engine.captures_most && most >= batch ? std::min(graph, most) : graph;
  return batch;
}

double boundary_seconds(const Tables& t, const Plan& plan, double tokens) {
  if (plan.pipeline <= 1) return 0;
  double bytes = t.inference.send_per_token[index_in(t.domain.tensor, plan.tensor)] * tokens;
  int sends = plan.pipeline - 1;
  // Stages fill nodes one after another; a boundary between nodes crosses the network.
  int in_node = std::max(1, t.device.per_node / plan.tensor);
  int crossing = (plan.pipeline + in_node - 1) / in_node - 1;
  auto send = [&](int stride) {
    return collective_seconds(t.device, Collective::send, bytes, 2, stride);
  };
  return (sends - crossing) * send(plan.tensor) +
         (crossing > 0 ? crossing * send(std::max(plan.tensor, t.device.per_node)) : 0);
}

double input_tokens(const Tables& t) {
  return std::visit(
      [](const auto& j) -> double {
        if constexpr (requires { j.input_tokens; })
          return static_cast<double>(j.input_tokens);
        else
          return 0;
      },
      t.job);
}

// All passes over the prompts of `sequences` requests, one after another.
PassParts prefill_work(const Tables& t, const Plan& plan, double sequences, double* passes) {
  PassTime p = at_batch(t.inference, t.inference.prefill, row_of(t, plan), sequences);
  double input = input_tokens(t);
  *passes = prompt_passes(t, sequences).passes;
  return {p.layers, p.ends, t.device.engine.step_overhead_seconds * *passes,
          boundary_seconds(t, plan, sequences * input), sequences};
}

}  // namespace

double stages_at_once(const EnginePolicy& engine, const Plan& plan) {
  return engine.default_parallelism == Parallelism::layers ? 1 : plan.pipeline;
}

double stages_at_once(const Tables& t, const Plan& plan) { return stages_at_once(t.engine, plan); }

std::vector<std::int32_t> batches_of(const Model& model, const Job& job, const EnginePolicy& engine,
                                     const Plan& plan) {
  const Batch* fixed = std::get_if<Batch>(&job);
  if (!fixed) return {};
  const std::int32_t asked = std::max(1, plan.micro_batch);
  const Stack* stack = language_stack(model);
  if (!stack || !stack->generates) return {asked};
  // The entries of the whole grid beside each batch, so that looking it up gives the same.
  const std::vector<std::int32_t> grid = batch_grid(engine.max_sequences, asked);
  std::vector<std::int32_t> out;
  auto need = [&](double batch) {
    auto above = std::lower_bound(grid.begin(), grid.end(), batch);
    if (above == grid.end()) --above;  // beyond the grid the last slope holds
    out.push_back(*above);
    if (*above != batch && above != grid.begin()) out.push_back(*(above - 1));
  };
  const double groups = std::min(stages_at_once(engine, plan), static_cast<double>(asked));
  const double input = std::max(1.0, static_cast<double>(fixed->input_tokens));
  need(1);
  need(asked);
  need(captured(engine, asked / groups, asked / groups));
  if (fixed->requests) {
    // What is left for the last wave.
    const double own = *fixed->requests / std::max(1, plan.data);
    const double rest = std::fmod(own, static_cast<double>(asked));
    if (rest >= 1) need(captured(engine, rest / groups, asked / groups));
  }
  need(std::max(1.0, std::floor(pass_tokens(engine) / input)));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

PassParts decode_parts(const Tables& t, const Plan& plan, double sequences) {
  // A pipeline works on as many groups of sequences as it has stages.
  double groups = std::min(stages_at_once(t, plan), std::max(1.0, sequences));
  double b = captured(t.engine, sequences / groups, plan.micro_batch / groups);
  PassTime p = at_batch(t.inference, t.inference.decode, row_of(t, plan), b);
  return {p.layers, p.ends, t.device.engine.step_overhead_seconds, boundary_seconds(t, plan, b), b};
}

// Launches of one pass on one device against those that its queue holds: some 1,024 on NVIDIA's
// cards (developer forum, "CUDA stream are blocked when luanch lots of kernels (>1000)"). 0: the
// engine's are not counted.
double queue_share(const Tables& t, const Plan& plan, double stages) {
  constexpr double kQueue = 1024;
  if (!t.device.accelerator || t.device.accelerator->vendor != "nvidia") return 0;
  const bool wide =
      bits_per_element(plan.weights) >= 16 && bits_per_element(t.model->weight_format) >= 16;
  const auto launches = wide ? t.engine.half_launches : t.engine.quantised_launches;
  return static_cast<double>(launches) * t.layers / stages / kQueue;
}

// Layers of each card against their mean: ggml deals them, and the head behind them, by the cards'
// shares.
std::vector<double> dealt_work(const Tables& t, const Plan& plan) {
  const auto layers = static_cast<std::int64_t>(t.layers);
  const CardParts parts(plan.card_shares, plan.pipeline);
  std::vector<double> work;
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    const LayerRange r = parts.layers(layers + 1, stage);
    const auto held =
        std::min<std::int64_t>(r.end, layers) - std::min<std::int64_t>(r.begin, layers);
    work.push_back(static_cast<double>(held) * plan.pipeline / t.layers);
  }
  return work;
}

// The same until the last of them is through the pipeline: passes follow each other stage by
// stage, so n of them take (n + p - 1) / (n p) of the time they take one after another. Where only
// w < p may be inside, the next w enter when the first of those before them is through.
PassParts prefill_parts(const Tables& t, const Plan& plan, double sequences) {
  // Every engine pipelines passes of prompts, also those whose decode does not.
  double n = 1, stages = std::max(1, plan.pipeline);
  PassParts work = prefill_work(t, plan, sequences, &n);
  double inside = stages;
  if (t.engine.pipeline_passes > 0)
    inside = std::min(stages, static_cast<double>(t.engine.pipeline_passes));
  const double last = std::ceil(n) - 1;
  const double started = std::floor(last / inside) * stages + std::fmod(last, inside);
  double span = started + stages;
  if (const double launches = queue_share(t, plan, stages); stages > 1 && launches > 0)
    span = queued_span({dealt_work(t, plan), std::ceil(n), inside, launches});
  const double share = span / (std::ceil(n) * stages);
  return {work.layers * share, work.ends * share, work.overhead * share, work.sends * share,
          sequences};
}

std::size_t index_in(const std::vector<std::int32_t>& domain, std::int32_t value) {
  for (std::size_t i = 0; i < domain.size(); ++i)
    if (domain[i] == value) return i;
  broken_invariant("plan degree is not in the domain of its tables", value,
                   domain.empty() ? 0 : domain[0]);
}

double decode_step_seconds(const Tables& t, const Plan& plan, double sequences) {
  return decode_parts(t, plan, sequences).total();
}

double prefill_seconds(const Tables& t, const Plan& plan, double sequences) {
  return prefill_parts(t, plan, sequences).total();
}

double prompt_occupancy(const Tables& t, const Plan& plan) {
  // When many wait they share passes up to the token budget.
  double input = std::max(1.0, input_tokens(t)), n = 1;
  double together = std::max(1.0, std::floor(pass_tokens(t.engine) / input));
  double one = prefill_work(t, plan, 1, &n).total();
  double shared = together > 1 ? prefill_work(t, plan, together, &n).total() / together : one;
  return std::min(one, shared) / std::max(1, plan.pipeline);
}

}  // namespace trigon
