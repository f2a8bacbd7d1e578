#pragma once
// What one evaluation of a plan returns: plain term values, no heap, no ranges.

#include <array>
#include <cstdint>

#include "memory/memory.hpp"
#include "plan/plan.hpp"

namespace trigon {

// Every quantity Trigon can state about a plan, in base units (seconds, bytes, tokens/s, ...).
// `metric_info` (present and JSON use it) gives the JSON name and the unit of each.
enum class Metric : std::uint8_t {
  // Inference.
  prefill_seconds,          // one prompt alone
  decode_step_seconds,      // one token for every sequence in flight, no prefill beside it
  ttft_seconds,             // time to first token under the asked load, mean
  tpot_seconds,             // time per output token under the asked load, mean
  e2e_seconds,              // a whole request under the asked load, mean
  ttft_percentile_seconds,  // at the percentile of the asked limit, p95 without one
  tpot_percentile_seconds,
  e2e_percentile_seconds,
  sequences_in_flight,            // over the whole cluster
  prefill_tokens_per_second,      // total, of isolated prompts
  decode_tokens_per_second_user,  // 1 / tpot
  output_tokens_per_second,       // total over the cluster under the asked load
  total_tokens_per_second,        // input + output
  requests_per_second,            // under the asked load
  capacity_requests_per_second,   // largest rate that the cluster sustains within its limits
  utilization,                    // busy share of the steady state
  denoising_steps_per_second,     // of one batch ("it/s")
  audio_seconds_per_second,       // seconds of sound done in a second, total
  // Training.
  step_seconds,
  forward_seconds,
  backward_seconds,
  recompute_seconds,
  optimizer_seconds,
  exposed_communication_seconds,
  bubble_seconds,
  tokens_per_second_per_gpu,
  samples_per_second_per_gpu,
  train_tokens_per_second,     // total
  model_flops_per_gpu_second,  // "TFLOPS": 6N-style model FLOPs with causal attention halved
  mfu,
  hfu,
  goodput,  // share of the run that makes progress, checkpoints and failures taken off
  checkpoint_interval_seconds,
  time_to_train_seconds,
  job_seconds,  // until all requests of a batch job are done
  // Both.
  memory_bytes,        // peak of the fullest rank
  usable_bytes,        // what that rank may use
  headroom_bytes,      // usable - peak
  kv_pool_bytes,       // left for caches on the rank that has least
  kv_capacity_tokens,  // per replica
  max_context_tokens,  // with the asked number of sequences
  max_sequences,       // per replica, with the asked context
  power_watts,
  energy_joules,
  usd_per_hour,
  usd_total,  // of the job (training, batch) or a month of serving
  usd_per_million_tokens,
  usd_per_million_items,
  usd_purchase,
  count_
};
constexpr std::size_t kMetrics = static_cast<std::size_t>(Metric::count_);

struct MetricInfo {
  const char* json;  // "ttft_seconds"
  const char* unit;  // "s", "B", "tokens/s", "1/s", "USD", "USD/h", "W", "J", "FLOP/s", ""
};
const MetricInfo& metric_info(Metric m);

// Where a training step goes beside computing, of the slowest stage; seconds of a whole step.
struct TrainParts {
  std::int32_t slowest = 0;                    // the pipeline stage with most work
  double pipeline = 0;                         // from the first to the last pass of all stages
  double sends = 0;                            // between pipeline stages, or of rows between ranks
  double tensor = 0, expert = 0, context = 0;  // collectives inside forward and backward passes
  double gradients = 0;  // and weights of data parallelism, beyond what compute hides
  double slowed = 0;     // compute beside hidden communication
  double transfer = 0;   // offloaded states, part of the optimizer's time
  double offloaded = 0;  // waiting for activations to leave or come back
  double loader = 0;     // waiting for data
};

// NaN marks a metric that this kind of job does not have.
struct Evaluation {
  std::array<double, kMetrics> values{};
  RankMemory memory;
  TrainParts train;
  bool fits = false;              // memory, on the best knowledge of the usable bytes
  bool sustainable = true;        // the asked rate is below saturation
  double lone_step_seconds = 0;   // serving: a decode step of one sequence, the least there is
  double sequences_together = 0;  // serving: that one replica decodes, or items in a batch, at once
  std::int32_t sequences_held = 0;  // serving: what one replica must hold at the percentile
  double& operator[](Metric m) { return values[static_cast<std::size_t>(m)]; }
  double operator[](Metric m) const { return values[static_cast<std::size_t>(m)]; }
};

}  // namespace trigon
