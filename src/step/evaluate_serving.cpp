#include <algorithm>
#include <cmath>

#include "step/evaluate_parts.hpp"
#include "step/pass_time.hpp"

namespace trigon {
namespace {

// Standard normal quantile of a percentile, by Acklam-free bisection on erf: exact to 1e-9.
double normal_quantile(double percentile) {
  double p = std::clamp(percentile / 100, 1e-6, 1 - 1e-6);
  double low = -6, high = 6;
  for (int i = 0; i < 50; ++i) {
    double mid = (low + high) / 2;
    (0.5 * (1 + std::erf(mid / std::sqrt(2.0))) < p ? low : high) = mid;
  }
  return (low + high) / 2;
}

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
  std::size_t n = static_cast<std::size_t>(
      std::upper_bound(grid.begin(), grid.end(), b,
                       [](double v, std::int32_t g) { return v < g; }) -
      grid.begin());
  double f = (b - grid[n - 1]) / (grid[n] - grid[n - 1]);
  return {p[n - 1].layers + f * (p[n].layers - p[n - 1].layers),
          p[n - 1].ends + f * (p[n].ends - p[n - 1].ends)};
}

std::size_t row_of(const Tables& t, const Plan& plan) {
  return index_in(t.domain.tensor, plan.tensor) * t.domain.expert.size() +
         index_in(t.domain.expert, plan.expert);
}

// A captured graph exists for some batches only; others run the next larger one.
double captured(const EnginePolicy& engine, double batch) {
  for (std::int64_t c : engine.capture_batches)
    if (static_cast<double>(c) >= batch) return static_cast<double>(c);
  return batch;
}

double boundary_seconds(const Tables& t, const Plan& plan, double tokens) {
  if (plan.pipeline <= 1) return 0;
  double bytes = t.inference.send_per_token[index_in(t.domain.tensor, plan.tensor)] * tokens;
  return (plan.pipeline - 1) *
         collective_seconds(t.device, Collective::send, bytes, 2, plan.tensor);
}

struct Load {
  double rate = 0;    // requests/s on one replica
  double batch = 0;   // sequences decoding together on one replica
  double step = 0;    // decode step at that batch
  double busy = 0;    // share of time spent on prompts
  bool sustainable = true;
};

// Steady state of one replica at `rate`: the decode batch grows until output keeps up.
Load steady_state(const Tables& t, const Plan& plan, double rate, double prefill, double output,
                  double most) {
  Load l;
  l.rate = rate;
  l.busy = rate * prefill;
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
  for (int i = 0; i < 40 && high - low > 1e-6 * high; ++i) {
    double mid = (low + high) / 2;
    (short_of(mid) ? low : high) = mid;
  }
  l.batch = high;
  l.step = decode_step_seconds(t, plan, high);
  return l;
}

// Most sequences one replica may hold: the engine's limit and the KV pool.
double most_sequences(const Tables& t, const Plan& plan) {
  double most = t.memory.capacity(plan).max_sequences;
  if (t.engine.max_sequences > 0)
    most = std::min(most, static_cast<double>(t.engine.max_sequences));
  return std::max(1.0, most);
}

struct Latency {
  double ttft = 0, tpot = 0, ttft_percentile = 0, tpot_percentile = 0;
};

// Mean and percentile latencies at a steady state. Waiting for prompts ahead is M/D/1 with an
// exponential tail; a decode step of the running batch is interrupted by half on average. These
// are approximations below saturation; the event simulation is exact where it exists.
Latency latency_at(const Tables& t, const Plan& plan, const Load& l, double prefill, double output,
                   double ttft_percentile, double tpot_percentile) {
  Latency out;
  double overhead = t.device.engine.request_overhead_seconds;
  double wait = l.busy < 1 ? l.busy / (1 - l.busy) * prefill / 2 : 1e9;
  double step_share = std::min(1.0, l.batch);  // chance that a step is running at all
  out.ttft = overhead + wait + prefill + step_share * l.step / 2;
  out.tpot = l.step / std::max(1e-9, 1 - l.busy);
  double tail = 1 - ttft_percentile / 100;
  double conditional = l.busy < 1 ? prefill / 2 / (1 - l.busy) : 1e9;
  double wait_tail = l.busy > tail ? conditional * std::log(l.busy / tail) : 0;
  out.ttft_percentile = overhead + std::max(wait_tail, 0.0) + prefill + step_share * l.step;
  // The batch fluctuates like a Poisson count, and so does the number of prompts that interrupt
  // one request while it decodes.
  double z = std::max(0.0, normal_quantile(tpot_percentile));
  double batch = l.batch + z * std::sqrt(l.batch);
  double step = decode_step_seconds(t, plan, batch);
  double interruptions = l.rate * output * out.tpot;
  double stalls = (interruptions + z * std::sqrt(interruptions)) * prefill / std::max(1.0, output);
  out.tpot_percentile = step + stalls;
  return out;
}

}  // namespace

std::size_t index_in(const std::vector<std::int32_t>& domain, std::int32_t value) {
  for (std::size_t i = 0; i < domain.size(); ++i)
    if (domain[i] == value) return i;
  broken_invariant("plan degree is not in the domain of its tables", value,
                   domain.empty() ? 0 : domain[0]);
}

double decode_step_seconds(const Tables& t, const Plan& plan, double sequences) {
  // A pipeline works on as many groups of sequences as it has stages.
  double groups = t.engine.default_parallelism == Parallelism::layers
                      ? 1
                      : std::min<double>(plan.pipeline, std::max(1.0, sequences));
  double b = captured(t.engine, sequences / groups);
  PassTime p = at_batch(t.inference, t.inference.decode, row_of(t, plan), b);
  return p.layers + p.ends + t.device.engine.step_overhead_seconds + boundary_seconds(t, plan, b);
}

double prefill_seconds(const Tables& t, const Plan& plan, double sequences) {
  PassTime p = at_batch(t.inference, t.inference.prefill, row_of(t, plan), sequences);
  const auto input = std::visit(
      [](const auto& j) -> double {
        if constexpr (requires { j.input_tokens; })
          return static_cast<double>(j.input_tokens);
        else
          return 0;
      },
      t.job);
  return p.layers + p.ends + t.device.engine.step_overhead_seconds +
         boundary_seconds(t, plan, sequences * input);
}

template <class Recorder>
void evaluate_serve(const Tables& t, const Serve& job, Plan& plan, Evaluation& e,
                    Recorder& recorder) {
  double output = static_cast<double>(job.output_tokens);
  double input = static_cast<double>(job.input_tokens);
  double prefill = prefill_seconds(t, plan, 1);
  // What a prompt costs when many wait: they share passes up to the token budget.
  double together = std::max(1.0, std::floor(pass_tokens(t.engine) /
                                             std::max(1.0, input)));
  double loaded_prefill =
      together > 1 ? prefill_seconds(t, plan, together) / together : prefill;
  loaded_prefill = std::min(loaded_prefill, prefill);
  double most = most_sequences(t, plan);
  double replicas = plan.data;
  Load l;
  if (job.rate) {
    l = steady_state(t, plan, job.rate->in_base() / replicas, loaded_prefill, output, most);
  } else {
    // A closed loop: c requests on a replica, each prefilled and then decoded; the rate is what
    // keeps exactly c of them there.
    double c = std::max(1.0, job.concurrency.value_or(1) / replicas);
    double low = 0, high = 1 / loaded_prefill;
    for (int i = 0; i < 60; ++i) {
      double mid = (low + high) / 2;
      Load trial = steady_state(t, plan, mid, loaded_prefill, output, std::min(most, c));
      double there = trial.batch + mid * prefill;
      bool too_many = !trial.sustainable || there > c;
      (too_many ? high : low) = mid;
    }
    l = steady_state(t, plan, low, loaded_prefill, output, std::min(most, c));
    l.sustainable = true;
    if (l.batch < 1) {
      // One request at a time: it decodes alone between prompts.
      l.step = decode_step_seconds(t, plan, 1);
    }
  }
  double ttft_p = job.limits.ttft ? job.limits.ttft->percentile : 95;
  double tpot_p = job.limits.tpot ? job.limits.tpot->percentile : 95;
  Latency lat;
  if (!job.rate && job.concurrency.value_or(1) <= replicas) {
    // Nobody else is there: no wait, no interruption.
    double overhead = t.device.engine.request_overhead_seconds;
    lat = {overhead + prefill, l.step, overhead + prefill, l.step};
    l.busy = prefill / (prefill + std::max(0.0, output - 1) * l.step + overhead);
    l.rate = 1 / (overhead + prefill + std::max(0.0, output - 1) * l.step);
    l.batch = 1;
  } else {
    lat = latency_at(t, plan, l, loaded_prefill, output, ttft_p, tpot_p);
  }
  double steps = std::max(0.0, output - 1);
  e[Metric::prefill_seconds] = prefill;
  e[Metric::decode_step_seconds] = l.step;
  e[Metric::ttft_seconds] = lat.ttft;
  e[Metric::tpot_seconds] = lat.tpot;
  e[Metric::e2e_seconds] = lat.ttft + steps * lat.tpot;
  e[Metric::ttft_percentile_seconds] = lat.ttft_percentile;
  e[Metric::tpot_percentile_seconds] = lat.tpot_percentile;
  e[Metric::e2e_percentile_seconds] = lat.ttft_percentile + steps * lat.tpot_percentile;
  e[Metric::sequences_in_flight] = (l.batch + l.rate * lat.ttft) * replicas;
  e[Metric::prefill_tokens_per_second] = input / prefill * replicas;
  e[Metric::decode_tokens_per_second_user] = 1 / lat.tpot;
  e[Metric::requests_per_second] = l.rate * replicas;
  e[Metric::output_tokens_per_second] = l.rate * output * replicas;
  e[Metric::total_tokens_per_second] = l.rate * (output + input) * replicas;
  double room = decode_step_seconds(t, plan, most) / most;
  double saturation = 1 / (loaded_prefill + output * room);
  e[Metric::utilization] = l.rate / saturation;
  e.sustainable = l.sustainable && l.rate < saturation * 1.000001;
  // What memory must hold: the batch at the asked percentile, and never less than one.
  double z = job.rate ? std::max(0.0, normal_quantile(tpot_p)) : 0;
  double held = job.rate ? l.batch + z * std::sqrt(l.batch) + 1
                         : std::max(1.0, job.concurrency.value_or(1) / replicas);
  plan.micro_batch = static_cast<std::int32_t>(std::min(std::ceil(std::min(held, 1e6)), 1e6));
  if (t.engine.max_sequences > 0)
    plan.micro_batch = std::min<std::int32_t>(
        plan.micro_batch, static_cast<std::int32_t>(t.engine.max_sequences));
  if constexpr (Recorder::on) {
    recorder.step([&] {
      return DerivationStep{&formulas::kPrefill, prefill, "s", "one prompt",
                            {{"input", input, "tokens"},
                             {"overhead", t.device.engine.step_overhead_seconds, "s",
                              "calibration/" + t.device.engine.sheet}}};
    });
    recorder.step([&] {
      return DerivationStep{&formulas::kDecodeStep, l.step, "s", "one token for the batch",
                            {{"batch", l.batch, "sequences"}}};
    });
    recorder.step([&] {
      return DerivationStep{&formulas::kSteadyState, l.batch, "sequences", "one replica",
                            {{"rate", l.rate, "1/s"},
                             {"prefill", loaded_prefill, "s"},
                             {"output", output, "tokens"},
                             {"decode_step", l.step, "s"}}};
    });
    recorder.step([&] {
      return DerivationStep{&formulas::kTimePerToken, lat.tpot, "s", "mean",
                            {{"decode_step", l.step, "s"},
                             {"rate", l.rate, "1/s"},
                             {"prefill", loaded_prefill, "s"}}};
    });
    recorder.step([&] {
      return DerivationStep{&formulas::kTimeToFirst, lat.ttft, "s", "mean",
                            {{"request_overhead", t.device.engine.request_overhead_seconds, "s"},
                             {"prefill", loaded_prefill, "s"},
                             {"busy", l.busy, ""},
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
  if (t.engine.batching == Batching::continuous && job.requests.value_or(1e300) > b * replicas) {
    // A finished request is replaced at once, so prompts and steps alternate for ever.
    rate = 1 / (prefill / b + std::max(output, 1.0) * step / b) * replicas;
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
    recorder.step([&] {
      return DerivationStep{&formulas::kFixedBatch, whole, "s", "one batch",
                            {{"batch", b, "sequences"},
                             {"prefill", prefill, "s"},
                             {"output", output, "tokens"},
                             {"decode_step", step, "s"}}};
    });
  }
}

template void evaluate_serve<NoRecord>(const Tables&, const Serve&, Plan&, Evaluation&, NoRecord&);
template void evaluate_serve<Record>(const Tables&, const Serve&, Plan&, Evaluation&, Record&);
template void evaluate_batch<NoRecord>(const Tables&, const Batch&, const Plan&, Evaluation&,
                                       NoRecord&);
template void evaluate_batch<Record>(const Tables&, const Batch&, const Plan&, Evaluation&, Record&);

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
    evaluate_serve(t, job, p, e, none);
    if (!e.sustainable) return false;
    const ServeLimits& l = job.limits;
    auto within = [&](const std::optional<LatencyLimit>& limit, Metric m) {
      return !limit || e[m] <= limit->at_most.in_base();
    };
    return within(l.ttft, Metric::ttft_percentile_seconds) &&
           within(l.tpot, Metric::tpot_percentile_seconds) &&
           within(l.e2e, Metric::e2e_percentile_seconds);
  };
  double most = plan.data / prefill_seconds(t, plan, 1) * 64;
  double low = 0, high = most;
  if (!holds(most * 1e-9)) return 0;
  for (int i = 0; i < 40 && high - low > 1e-4 * high; ++i) {
    double mid = (low + high) / 2;
    (holds(mid) ? low : high) = mid;
  }
  return low;
}

}  // namespace trigon
