#include "step/evaluation.hpp"

namespace trigon {

const MetricInfo& metric_info(Metric m) {
  static constexpr MetricInfo kInfo[] = {
      {"prefill_seconds", "s"},
      {"decode_step_seconds", "s"},
      {"ttft_seconds", "s"},
      {"tpot_seconds", "s"},
      {"e2e_seconds", "s"},
      {"ttft_percentile_seconds", "s"},
      {"tpot_percentile_seconds", "s"},
      {"e2e_percentile_seconds", "s"},
      {"sequences_in_flight", ""},
      {"prefill_tokens_per_second", "tokens/s"},
      {"decode_tokens_per_second_user", "tokens/s"},
      {"output_tokens_per_second", "tokens/s"},
      {"total_tokens_per_second", "tokens/s"},
      {"requests_per_second", "1/s"},
      {"capacity_requests_per_second", "1/s"},
      {"utilization", ""},
      {"denoising_steps_per_second", "1/s"},
      {"audio_seconds_per_second", "s/s"},
      {"step_seconds", "s"},
      {"forward_seconds", "s"},
      {"backward_seconds", "s"},
      {"recompute_seconds", "s"},
      {"optimizer_seconds", "s"},
      {"exposed_communication_seconds", "s"},
      {"bubble_seconds", "s"},
      {"tokens_per_second_per_gpu", "tokens/s"},
      {"samples_per_second_per_gpu", "1/s"},
      {"train_tokens_per_second", "tokens/s"},
      {"model_flops_per_gpu_second", "FLOP/s"},
      {"mfu", ""},
      {"hfu", ""},
      {"goodput", ""},
      {"checkpoint_interval_seconds", "s"},
      {"time_to_train_seconds", "s"},
      {"job_seconds", "s"},
      {"memory_bytes", "B"},
      {"usable_bytes", "B"},
      {"headroom_bytes", "B"},
      {"kv_pool_bytes", "B"},
      {"kv_capacity_tokens", "tokens"},
      {"max_context_tokens", "tokens"},
      {"max_sequences", ""},
      {"power_watts", "W"},
      {"energy_joules", "J"},
      {"usd_per_hour", "USD/h"},
      {"usd_total", "USD"},
      {"usd_per_million_tokens", "USD"},
      {"usd_per_million_items", "USD"},
      {"usd_purchase", "USD"},
  };
  static_assert(sizeof kInfo / sizeof *kInfo == kMetrics);
  return kInfo[static_cast<std::size_t>(m)];
}

}  // namespace trigon
