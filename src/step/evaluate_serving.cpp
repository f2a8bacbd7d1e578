#include <algorithm>
#include <cmath>

#include "step/items.hpp"
#include "step/serving_passes.hpp"

namespace trigon {
namespace {

// Standard normal quantile of a percentile, exact to 1e-12: Halley's steps on the distribution from
// the rational start of Abramowitz and Stegun 26.2.23, which is good to 4.5e-4.
double normal_quantile(double percentile) {
  const double p = std::clamp(percentile / 100, 1e-6, 1 - 1e-6);
  const double t = std::sqrt(-2 * std::log(std::min(p, 1 - p)));
  double x = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                     (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  if (p < 0.5) x = -x;
  for (int i = 0; i < 2; ++i) {
    const double off = 0.5 * std::erfc(-x / std::sqrt(2.0)) - p;
    const double u = off * std::sqrt(2 * std::acos(-1.0)) * std::exp(x * x / 2);
    x -= u / (1 + x * u / 2);
  }
  return x;
}

struct Load {
  double rate = 0;   // requests/s on one replica
  double batch = 0;  // sequences decoding together on one replica
  double step = 0;   // decode step at that batch
  double busy = 0;   // share of time spent on prompts
  bool sustainable = true;
};

// Steady state of one replica at `rate`: the decode batch grows until output keeps up.
Load steady_state(const Tables& t, const Plan& plan, double rate, double occupancy, double output,
                  double most) {
  Load l;
  l.rate = rate;
  l.busy = rate * occupancy;
  double low = 1, high = std::max(1.0, most);
  auto short_of = [&](double b) {
    return (1 - l.busy) * b / decode_step_seconds(t, plan, b) < rate * output;
  };
  if (l.busy >= 1 || short_of(high)) {
    l.sustainable = false;
    l.batch = high;
    l.step = decode_step_seconds(t, plan, high);
    return l;
  }
  if (!short_of(1)) {
    // Fewer than one sequence on average: it still decodes at batch 1.
    l.step = decode_step_seconds(t, plan, 1);
    l.batch = rate * output * l.step / (1 - l.busy);
    return l;
  }
  // Steps that are captured for some batches only make a staircase, which the batch climbs from
  // below: the first stair that keeps up is where it stays.
  double groups = stages_at_once(t, plan);
  for (std::int64_t c : t.engine.capture_batches) {
    double stair = static_cast<double>(c) * groups;
    if (stair <= low) continue;
    if (stair >= high) break;
    if (short_of(stair)) {
      low = stair;
    } else {
      high = stair;
      break;
    }
  }
  for (int i = 0; i < 40 && high - low > 1e-6 * high; ++i) {
    double mid = (low + high) / 2;
    (short_of(mid) ? low : high) = mid;
  }
  l.batch = high;
  l.step = decode_step_seconds(t, plan, high);
  return l;
}

// Largest mean batch whose Poisson percentile and the sequence that is admitted next are held by a
// pool of `pool` sequences: b + z sqrt(b) + 1 <= pool.
double mean_within(double pool, double z) {
  double root = (std::sqrt(z * z + 4 * std::max(0.0, pool - 1)) - z) / 2;
  return root * root;
}

// Most sequences one replica decodes together on average: the KV pool and the engine's limit.
double most_sequences(const Tables& t, double pool, double z, bool open) {
  double most = open ? mean_within(pool, z) : pool;
  if (t.engine.max_sequences > 0)
    most = std::min(most, static_cast<double>(t.engine.max_sequences * t.engine.attention_ranks));
  return std::max(1.0, most);
}

// The batch of at most `most` sequences that decodes most tokens a second: more sequences do not
// help where they only reach for the next stair.
double best_batch(const Tables& t, const Plan& plan, double most) {
  double best = most, pace = decode_step_seconds(t, plan, most) / most;
  auto consider = [&](double b) {
    if (b >= most) return;
    double p = decode_step_seconds(t, plan, b) / b;
    if (p < pace) best = b, pace = p;
  };
  double groups = stages_at_once(t, plan);
  for (std::int64_t c : t.engine.capture_batches) consider(static_cast<double>(c) * groups);
  for (std::int32_t b : t.inference.batches) consider(b * groups);
  return best;
}

struct Latency {
  double ttft = 0, tpot = 0, ttft_percentile = 0, tpot_percentile = 0;
  double wait = 0, running = 0;  // for the prompts ahead; chance that a step is running at all
};

// Mean and percentile latencies at a steady state. Waiting for prompts ahead is M/D/1 with an
// exponential tail; a decode step of the running batch is interrupted by half on average. These
// are approximations below saturation. `prefill` is how long a prompt takes, `occupancy` how long
// it keeps others from the replica.
Latency latency_at(const Tables& t, const Plan& plan, const Load& l, double prefill,
                   double occupancy, double output, double ttft_percentile,
                   double tpot_percentile) {
  Latency out;
  double overhead = t.device.engine.request_overhead_seconds;
  out.wait = l.busy < 1 ? l.busy / (1 - l.busy) * occupancy / 2 : 1e9;
  out.running = std::min(1.0, l.batch);
  out.ttft = overhead + out.wait + prefill + out.running * l.step / 2;
  out.tpot = l.step / std::max(1e-9, 1 - l.busy);
  double tail = 1 - ttft_percentile / 100;
  double conditional = l.busy < 1 ? occupancy / 2 / (1 - l.busy) : 1e9;
  double wait_tail = l.busy > tail ? conditional * std::log(l.busy / tail) : 0;
  out.ttft_percentile = overhead + std::max(wait_tail, 0.0) + prefill + out.running * l.step;
  // The batch fluctuates like a Poisson count, and so does the number of prompts that interrupt
  // one request while it decodes.
  double z = std::max(0.0, normal_quantile(tpot_percentile));
  double batch = l.batch + z * std::sqrt(l.batch);
  double step = decode_step_seconds(t, plan, batch);
  double interruptions = l.rate * output * out.tpot;
  double stalls =
      (interruptions + z * std::sqrt(interruptions)) * occupancy / std::max(1.0, output);
  out.tpot_percentile = step + stalls;
  return out;
}

template <class Recorder>
void record_pass(Recorder& recorder, const Formula& formula, const char* subject,
                 const PassParts& parts, const Symbol& size, const std::string& engine) {
  recorder.step([&] {
    return DerivationStep{&formula,
                          parts.total(),
                          "s",
                          subject,
                          {{"layers", parts.layers, "s"},
                           {"ends", parts.ends, "s"},
                           {"overhead", parts.overhead, "s", engine},
                           {"sends", parts.sends, "s"},
                           size}};
  });
}

}  // namespace

template <class Recorder>
void evaluate_serve(const Tables& t, const Serve& job, Plan& plan, Evaluation& e,
                    Recorder& recorder) {
  double output = static_cast<double>(job.output_tokens);
  double input = static_cast<double>(job.input_tokens);
  double prefill = prefill_seconds(t, plan, 1);
  double occupancy = prompt_occupancy(t, plan);
  double tpot_p = job.limits.tpot ? job.limits.tpot->percentile : 95;
  double z = job.rate ? std::max(0.0, normal_quantile(tpot_p)) : 0;
  double pool = t.memory.capacity(plan).max_sequences;
  double most = best_batch(t, plan, most_sequences(t, pool, z, job.rate.has_value()));
  double replicas = plan.data;
  Load l;
  if (job.rate) {
    l = steady_state(t, plan, job.rate->in_base() / replicas, occupancy, output, most);
  } else {
    // A closed loop: c requests on a replica, each prefilled and then decoded; the rate is what
    // keeps exactly c of them there.
    double c = std::max(1.0, job.concurrency.value_or(1) / replicas);
    double low = 0, high = 1 / occupancy;
    for (int i = 0; i < 60; ++i) {
      double mid = (low + high) / 2;
      Load trial = steady_state(t, plan, mid, occupancy, output, std::min(most, c));
      double there = trial.batch + mid * prefill;
      bool too_many = !trial.sustainable || there > c;
      (too_many ? high : low) = mid;
    }
    l = steady_state(t, plan, low, occupancy, output, std::min(most, c));
    l.sustainable = true;
    if (l.batch < 1) {
      // One request at a time: it decodes alone between prompts.
      l.step = decode_step_seconds(t, plan, 1);
    }
  }
  double ttft_p = job.limits.ttft ? job.limits.ttft->percentile : 95;
  Latency lat;
  const bool alone = !job.rate && job.concurrency.value_or(1) <= replicas;
  if (alone) {
    // Nobody else is there: no wait, no interruption.
    double overhead = t.device.engine.request_overhead_seconds;
    lat = {overhead + prefill, l.step, overhead + prefill, l.step, 0, 0};
    l.busy = 0;
    l.rate = 1 / (overhead + prefill + std::max(0.0, output - 1) * l.step);
    l.batch = 1;
  } else {
    lat = latency_at(t, plan, l, prefill, occupancy, output, ttft_p, tpot_p);
  }
  double steps = std::max(0.0, output - 1);
  e[Metric::prefill_seconds] = prefill;
  e[Metric::decode_step_seconds] = l.step;
  e.sequences_together = l.batch;
  e[Metric::ttft_seconds] = lat.ttft;
  e[Metric::tpot_seconds] = lat.tpot;
  e[Metric::e2e_seconds] = lat.ttft + steps * lat.tpot;
  e[Metric::ttft_percentile_seconds] = lat.ttft_percentile;
  e[Metric::tpot_percentile_seconds] = lat.tpot_percentile;
  e[Metric::e2e_percentile_seconds] = lat.ttft_percentile + steps * lat.tpot_percentile;
  e[Metric::sequences_in_flight] = (l.batch + l.rate * lat.ttft) * replicas;
  e[Metric::prefill_tokens_per_second] = input / prefill * replicas;
  e[Metric::decode_tokens_per_second_user] = 1 / lat.tpot;
  double room = decode_step_seconds(t, plan, most) / most;
  double saturation = 1 / (occupancy + output * room);
  // More that arrives waits, and is not answered.
  const double answered = (job.rate ? std::min(l.rate, saturation) : l.rate) * replicas;
  e[Metric::requests_per_second] = answered;
  e[Metric::output_tokens_per_second] = answered * output;
  e[Metric::total_tokens_per_second] = answered * (output + input);
  e[Metric::utilization] = l.rate / saturation;
  e.lone_step_seconds = decode_step_seconds(t, plan, 1);
  e.sustainable = l.sustainable && l.rate < saturation * 1.000001;
  // What memory must hold: the batch at the asked percentile, and never less than one. A pool too
  // small for that lets sequences wait.
  double held = job.rate ? std::min(l.batch + z * std::sqrt(l.batch) + 1, std::max(1.0, pool))
                         : std::max(1.0, job.concurrency.value_or(1) / replicas);
  plan.micro_batch = static_cast<std::int32_t>(std::min(std::ceil(std::min(held, 1e6)), 1e6));
  if (t.engine.max_sequences > 0)
    plan.micro_batch =
        std::min<std::int32_t>(plan.micro_batch, static_cast<std::int32_t>(t.engine.max_sequences));
  if constexpr (Recorder::on) {
    const std::string engine = "calibration/" + t.device.engine.sheet;
    record_pass(recorder, formulas::kPrefill, "one prompt", prefill_parts(t, plan, 1),
                {"input", input, "tokens"}, engine);
    record_pass(recorder, formulas::kDecodeStep, "one token for the batch",
                decode_parts(t, plan, std::max(1.0, l.batch)), {"batch", l.batch, "sequences"},
                engine);
    if (!alone)
      recorder.step([&] {
        return DerivationStep{&formulas::kSteadyState,
                              l.batch,
                              "sequences",
                              "one replica",
                              {{"rate", l.rate, "1/s"},
                               {"output", output, "tokens"},
                               {"decode_step", l.step, "s"},
                               {"busy", l.busy, ""},
                               {"occupancy", occupancy, "s"}}};
      });
    recorder.step([&] {
      return DerivationStep{&formulas::kTimePerToken,
                            lat.tpot,
                            "s",
                            "mean",
                            {{"decode_step", l.step, "s"}, {"busy", l.busy, ""}}};
    });
    if (!alone)
      recorder.step([&] {
        return DerivationStep{&formulas::kWait,
                              lat.wait,
                              "s",
                              "mean",
                              {{"busy", l.busy, ""}, {"occupancy", occupancy, "s"}}};
      });
    recorder.step([&] {
      return DerivationStep{
          &formulas::kTimeToFirst,
          lat.ttft,
          "s",
          "mean",
          {{"request_overhead", t.device.engine.request_overhead_seconds, "s", engine},
           {"wait", lat.wait, "s"},
           {"prefill", prefill, "s"},
           {"running", lat.running, ""},
           {"decode_step", l.step, "s"}}};
    });
  }
}

template <class Recorder>
void evaluate_batch(const Tables& t, const Batch& job, const Plan& plan, Evaluation& e,
                    Recorder& recorder) {
  double b = std::max(1, plan.micro_batch), replicas = plan.data;
  double input = static_cast<double>(job.input_tokens);
  double output = static_cast<double>(job.output_tokens);
  double prefill = prefill_seconds(t, plan, b);
  double step = decode_step_seconds(t, plan, b);
  double overhead = t.device.engine.request_overhead_seconds;
  double steps = std::max(0.0, output - 1);
  double whole = overhead + prefill + steps * step;
  e[Metric::prefill_seconds] = prefill;
  e[Metric::decode_step_seconds] = step;
  e[Metric::ttft_seconds] = overhead + prefill;
  e[Metric::tpot_seconds] = step;
  e[Metric::e2e_seconds] = whole;
  e[Metric::sequences_in_flight] = b * replicas;
  e[Metric::prefill_tokens_per_second] = b * input / prefill * replicas;
  e[Metric::decode_tokens_per_second_user] = 1 / step;
  double rate = 0;
  const double own = job.requests.value_or(0) / replicas;  // requests of a replica
  if (t.engine.batching == Batching::continuous && job.requests && own > b) {
    // Requests of one length that start together end together: so many waves, the last of what is
    // left. Prompts take their turns between the steps.
    const double waves = std::floor(own / b), rest = own - waves * b;
    const double last = rest >= 1 ? decode_step_seconds(t, plan, rest) : 0;
    rate = own /
           (overhead + own * prompt_occupancy(t, plan) +
            std::max(output, 1.0) * (waves * step + last)) *
           replicas;
  } else if (t.engine.batching == Batching::continuous && !job.requests) {
    // A finished request is replaced at once, so prompts and steps alternate for ever.
    // While some decode, prompts of others fill the pipeline.
    rate = 1 / (prompt_occupancy(t, plan) + std::max(output, 1.0) * step / b) * replicas;
  } else {
    rate = b / whole * replicas;
  }
  e[Metric::requests_per_second] = rate;
  e[Metric::output_tokens_per_second] = rate * output;
  e[Metric::total_tokens_per_second] = rate * (output + input);
  e[Metric::capacity_requests_per_second] = rate;
  e[Metric::utilization] = 1;
  if (job.requests) e[Metric::job_seconds] = *job.requests / rate;
  if constexpr (Recorder::on) {
    const std::string engine = "calibration/" + t.device.engine.sheet;
    record_pass(recorder, formulas::kPrefill, "prompts of the batch", prefill_parts(t, plan, b),
                {"batch", b, "sequences"}, engine);
    record_pass(recorder, formulas::kDecodeStep, "one token for the batch",
                decode_parts(t, plan, b), {"batch", b, "sequences"}, engine);
    recorder.step([&] {
      return DerivationStep{&formulas::kFixedBatch,
                            whole,
                            "s",
                            "one batch",
                            {{"request_overhead", overhead, "s", engine},
                             {"prefill", prefill, "s"},
                             {"steps", steps, ""},
                             {"decode_step", step, "s"},
                             {"batch", b, "sequences"}}};
    });
  }
}

template void evaluate_serve<NoRecord>(const Tables&, const Serve&, Plan&, Evaluation&, NoRecord&);
template void evaluate_serve<Record>(const Tables&, const Serve&, Plan&, Evaluation&, Record&);
template void evaluate_batch<NoRecord>(const Tables&, const Batch&, const Plan&, Evaluation&,
                                       NoRecord&);
template void evaluate_batch<Record>(const Tables&, const Batch&, const Plan&, Evaluation&,
                                     Record&);

double capacity_requests_per_second(const Tables& t, Plan plan) {
  const Serve* asked = std::get_if<Serve>(&t.job);
  if (!asked) return evaluate(t, plan)[Metric::requests_per_second];
  Serve job = *asked;
  job.concurrency.reset();
  auto holds = [&](double rate) {
    job.rate = PerSecond::base(rate);
    Evaluation e;
    NoRecord none;
    Plan p = plan;
    if (!t.whole_items())
      evaluate_serve(t, job, p, e, none);
    else
      evaluate_item_serve(t, job, p, e, none);
    if (!e.sustainable) return false;
    const ServeLimits& l = job.limits;
    auto within = [&](const std::optional<LatencyLimit>& limit, Metric m) {
      return !limit || e[m] <= limit->at_most.in_base();
    };
    return within(l.ttft, Metric::ttft_percentile_seconds) &&
           within(l.tpot, Metric::tpot_percentile_seconds) &&
           within(l.e2e, Metric::e2e_percentile_seconds);
  };
  double most =
      64 * plan.data / (t.stack ? prefill_seconds(t, plan, 1) : item_batch_seconds(t, plan, 1));
  double low = 0, high = most;
  if (!holds(most * 1e-9)) return 0;
  for (int i = 0; i < 40 && high - low > 1e-4 * high; ++i) {
    double mid = (low + high) / 2;
    (holds(mid) ? low : high) = mid;
  }
  return low;
}

}  // namespace trigon
