// Inference of models that do whole items in one go: batches that start together, or a server that
// takes what waits into the next batch.

#include <algorithm>
#include <cmath>

#include "step/formulas.hpp"
#include "step/items.hpp"
#include "step/pass_time.hpp"
#include "step/serving_passes.hpp"

namespace trigon {
namespace {

double rate_at(const Tables& t, const Plan& plan, double items) {
  return items / item_batch_seconds(t, plan, items);
}

// The batch of at most `most` that does most items a second; of nearly equal ones the smallest.
double best_batch(const Tables& t, const Plan& plan, double most) {
  double best = 1, rate = rate_at(t, plan, 1);
  auto consider = [&](double b) {
    const double r = rate_at(t, plan, b);
    if (r > rate * 1.01) best = b, rate = r;
  };
  for (std::int32_t b : t.inference.batches)
    if (b <= most) consider(b);
  consider(most);
  return best;
}

double most_items(const Tables& t, const Plan& plan) {
  double most = std::max(1.0, t.memory.capacity(plan).max_sequences);
  if (t.engine.max_sequences > 0)
    most = std::min(most, static_cast<double>(t.engine.max_sequences));
  return std::min<double>(most, 4096);
}

void fill_rates(const Tables& t, double batch, double rate, Evaluation& e) {
  e[Metric::requests_per_second] = rate;
  if (t.stack) return;
  const Item& item = *t.model->item;
  if (item.audio_seconds > 0) e[Metric::audio_seconds_per_second] = rate * item.audio_seconds;
  const PassTime step = at_batch(t.inference, t.inference.decode, 0, batch);
  if (step.layers > 0) e[Metric::denoising_steps_per_second] = 1 / (step.layers + step.ends);
}

template <class Recorder>
void record_batch(const Tables& t, const Plan& plan, double batch, Recorder& recorder) {
  recorder.step([&] {
    const std::string engine = "calibration/" + t.device.engine.sheet;
    if (t.stack) {
      const PassParts parts = prefill_parts(t, plan, batch);
      return DerivationStep{
          &formulas::kItemBatch,
          item_batch_seconds(t, plan, batch),
          "s",
          "one batch",
          {{"request_overhead", t.device.engine.request_overhead_seconds, "s", engine},
           {"once", parts.layers + parts.ends + parts.sends, "s"},
           {"steps", 0, ""},
           {"step", 0, "s"},
           {"overhead", parts.overhead, "s", engine},
           {"batch", batch, ""}}};
    }
    const PassTime once = at_batch(t.inference, t.inference.prefill, 0, batch);
    const PassTime step = at_batch(t.inference, t.inference.decode, 0, batch);
    const double steps = static_cast<double>(t.model->item->steps);
    return DerivationStep{
        &formulas::kItemBatch,
        item_batch_seconds(t, plan, batch),
        "s",
        "one batch",
        {{"request_overhead", t.device.engine.request_overhead_seconds, "s", engine},
         {"once", once.layers, "s"},
         {"steps", steps, ""},
         {"step", step.layers, "s"},
         {"overhead", once.ends + steps * step.ends, "s", engine},
         {"batch", batch, ""}}};
  });
}

}  // namespace

template <class Recorder>
void evaluate_item_serve(const Tables& t, const Serve& job, Plan& plan, Evaluation& e,
                         Recorder& recorder) {
  const double replicas = plan.data;
  const double most = best_batch(t, plan, most_items(t, plan));
  const double saturation = rate_at(t, plan, most);
  const double p = (job.limits.e2e ? job.limits.e2e->percentile : 95) / 100;
  double batch = 1, rate = 0, latency = 0, tail = 0, wait = 0, busy = 1;
  if (job.rate) {
    rate = job.rate->in_base() / replicas;
    // While a batch runs the next one gathers: the smallest that keeps up is where it settles.
    double low = 1, high = most;
    if (rate_at(t, plan, 1) < rate) {
      for (int i = 0; i < 40 && high - low > 1e-6 * high; ++i) {
        const double middle = (low + high) / 2;
        (rate_at(t, plan, middle) < rate ? low : high) = middle;
      }
      batch = high;
    }
    const double pass = item_batch_seconds(t, plan, batch);
    busy = std::min(1.0, rate * pass / batch);
    // An item arrives somewhere in a running batch and waits for the rest of it.
    wait = busy * pass / 2;
    latency = wait + pass;
    const double idle = 1 - busy;
    tail = pass + (p > idle ? (p - idle) / std::max(busy, 1e-12) * pass : 0);
    e.sustainable = rate <= saturation * 1.000001;
  } else {
    const double here = std::max(1.0, job.concurrency.value_or(1) / replicas);
    batch = std::min(here, most);
    rate = rate_at(t, plan, batch);
    latency = tail = here / rate;
    busy = 1;
  }
  e[Metric::e2e_seconds] = latency;
  e[Metric::e2e_percentile_seconds] = tail;
  e[Metric::sequences_in_flight] = rate * latency * replicas;
  e[Metric::utilization] = job.rate ? rate / saturation : busy;
  // More that arrives waits, and is not answered.
  fill_rates(t, batch, (job.rate ? std::min(rate, saturation) : rate) * replicas, e);
  e.lone_step_seconds = item_batch_seconds(t, plan, 1);
  e.sequences_together = batch;
  plan.micro_batch = static_cast<std::int32_t>(std::clamp(std::ceil(batch), 1.0, 1e6));
  record_batch(t, plan, batch, recorder);
  recorder.step([&] {
    return DerivationStep{
        &formulas::kItemWait,
        wait,
        "s",
        "mean",
        {{"busy", wait > 0 ? busy : 0, ""}, {"pass", item_batch_seconds(t, plan, batch), "s"}}};
  });
}

template <class Recorder>
void evaluate_item_batch(const Tables& t, const Batch& job, const Plan& plan, Evaluation& e,
                         Recorder& recorder) {
  const double batch = std::max(1, plan.micro_batch), replicas = plan.data;
  const double seconds = item_batch_seconds(t, plan, batch);
  const double rate = batch / seconds * replicas;
  e[Metric::e2e_seconds] = seconds;
  e[Metric::sequences_in_flight] = batch * replicas;
  e[Metric::capacity_requests_per_second] = rate;
  e[Metric::utilization] = 1;
  fill_rates(t, batch, rate, e);
  if (job.requests) e[Metric::job_seconds] = *job.requests / rate;
  record_batch(t, plan, batch, recorder);
}

template void evaluate_item_serve<NoRecord>(const Tables&, const Serve&, Plan&, Evaluation&,
                                            NoRecord&);
template void evaluate_item_serve<Record>(const Tables&, const Serve&, Plan&, Evaluation&, Record&);
template void evaluate_item_batch<NoRecord>(const Tables&, const Batch&, const Plan&, Evaluation&,
                                            NoRecord&);
template void evaluate_item_batch<Record>(const Tables&, const Batch&, const Plan&, Evaluation&,
                                          Record&);

}  // namespace trigon
