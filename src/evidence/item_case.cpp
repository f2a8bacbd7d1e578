// Rows of models that do whole items: images, utterances, samples.

#include <algorithm>
#include <cmath>

#include "evidence/messages.hpp"
#include "evidence/resolve.hpp"

namespace trigon {

namespace {

Refusal missing(const char* column) { return {RefusalReason::input_missing, column}; }

// What a metric counts is items, unless publications count something else of them.
double counted(const Case& c) {
  return c.model->item->counted_per_item > 0 ? c.model->item->counted_per_item : 1;
}

void take_layout(const Row& row, PlanRequest& p) {
  if (const auto layout = row.text("layout"); !layout.empty())
    p.channels_first = layout == "channels_first";
}

}  // namespace

bool whole_items(const Case& c) { return c.model && c.model->item && !language_stack(*c.model); }

std::optional<Refusal> read_item_inference(const Row& row, Case& c) {
  const std::string_view metric = row.text("metric");
  JobRequest& j = c.question.job;
  PlanRequest& p = c.question.plan;
  const Refusal simulate{RefusalReason::needs_simulation, std::string(metric)};
  // A request rate or a percentile speaks of a queue.
  if (row.number("request_rate")) return simulate;
  if (row.text("stat").substr(0, 2) == "p9") return simulate;
  const auto batch = row.number("batch_or_concurrency");
  j.kind = JobKind::batch;
  take_layout(row, p);
  const double replicas = p.data.value_or(1);
  if (batch && *batch >= 1) {
    // Replicas share what is counted by the second; a query that is timed is one replica's
    // (MLPerf's MultiStream: eight samples that arrive together go to one card).
    const double sharing = metric == "e2e_ms" ? 1 : replicas;
    const double one = std::clamp(*batch / sharing, 1.0, 65536.0);
    p.micro_batch = static_cast<std::int32_t>(one);
    j.requests = one * replicas;
  }
  Readout& r = c.readout;
  if (metric == "req_s") {
    r.metric = Metric::requests_per_second;
    r.scale = counted(c);
    if (!p.micro_batch) {
      // All work at once: the batch was the submitter's to choose.
      if (row.text("stat") != "max" && !c.tuned) return missing("batch_or_concurrency");
      c.tuned = true;
    }
    return std::nullopt;
  }
  if (!p.micro_batch) return missing("batch_or_concurrency");
  if (metric == "e2e_ms") {
    c.measured *= 1e-3;
    r.metric = Metric::e2e_seconds;
    // What is counted may be made of several items (the windows of a volume): they run together.
    const double items = 1 / counted(c);
    if (items > 1) {
      p.micro_batch =
          static_cast<std::int32_t>(std::clamp(std::round(*p.micro_batch * items), 1.0, 65536.0));
      j.requests = *p.micro_batch * replicas;
    }
    return std::nullopt;
  }
  if (metric == "it_s") {
    r.metric = Metric::denoising_steps_per_second;
    return std::nullopt;
  }
  return Refusal{RefusalReason::metric_not_supported, std::string(metric)};
}

std::optional<Refusal> read_item_training(const Row& row, Case& c) {
  const std::string_view metric = row.text("metric");
  JobRequest& j = c.question.job;
  PlanRequest& p = c.question.plan;
  p.tensor = p.pipeline = p.context = p.expert = 1;
  take_layout(row, p);
  const std::int64_t cards = row.whole("n_gpus").value_or(1);
  p.data = static_cast<std::int32_t>(std::clamp<std::int64_t>(cards, 1, 1000000));
  j.global_batch = row.whole("global_batch");
  if (!j.global_batch && p.micro_batch)
    j.global_batch = *p.micro_batch * cards * row.whole("grad_accum").value_or(1);
  if (!j.global_batch || *j.global_batch < 1 || *j.global_batch > 1000000000)
    return missing("micro_batch");
  if (!p.micro_batch)
    p.micro_batch = static_cast<std::int32_t>(std::max<std::int64_t>(1, *j.global_batch / cards));
  j.samples = static_cast<double>(*j.global_batch);
  j.epochs = 1;
  Readout& r = c.readout;
  if (metric == "samples_per_s_per_gpu" || metric == "tokens_per_s_per_gpu") {
    r.metric = Metric::samples_per_second_per_gpu;
    r.scale = counted(c);
    // Tokens of a sequence are known where the network says what is counted.
    if (metric == "tokens_per_s_per_gpu" && c.model->item->counted.empty())
      return Refusal{RefusalReason::metric_not_supported, std::string(metric)};
    return std::nullopt;
  }
  if (metric == "step_s") {
    r.metric = Metric::step_seconds;
    return std::nullopt;
  }
  return Refusal{RefusalReason::metric_not_supported, std::string(metric)};
}

}  // namespace trigon
