// How fast one step of a whole model is estimated. Warm: tables are there, a plan is evaluated.
// Cold: model, engine and calibration are loaded; tables for one plan are made and it is evaluated.

#include <benchmark/benchmark.h>

#include <memory>

#include "decide/setup.hpp"
#include "hardware/parse.hpp"

namespace {

using namespace trigon;

struct Case {
  Model model;
  Setup setup;
  PlanDomain domain;
  Plan plan;
};

const Catalogues* catalogues() {
  static const auto loaded = Catalogues::load();
  return loaded ? loaded->get() : nullptr;
}

JobRequest fixed_batch() {
  JobRequest r;
  r.kind = JobKind::batch;
  r.input_tokens = 1000;
  r.output_tokens = 300;
  return r;
}

JobRequest serving() {
  JobRequest r;
  r.kind = JobKind::serve;
  r.rate = PerSecond::base(2);
  r.input_tokens = 1000;
  r.output_tokens = 300;
  return r;
}

JobRequest training() {
  JobRequest r;
  r.kind = JobKind::train;
  r.tokens = 1e9;
  r.sequence = 4096;
  r.global_batch = 64;
  return r;
}

std::unique_ptr<Case> make(const char* model, const char* hardware, const JobRequest& job,
                           std::optional<int> batch) {
  const Catalogues* all = catalogues();
  if (!all) return nullptr;
  auto c = std::make_unique<Case>();
  auto found = all->models.find(model);
  auto cluster = parse_hardware(hardware, all->hardware);
  if (!found || !cluster) return nullptr;
  c->model = std::move(*found);
  Question q;
  q.model = &c->model;
  q.job = job;
  if (batch) q.plan.micro_batch = batch;
  auto setup = set_up(*all, q, *cluster);
  if (!setup) return nullptr;
  c->setup = std::move(*setup);
  auto plan = default_plan(c->setup, q.plan);
  if (!plan) return nullptr;
  c->plan = *plan;
  c->domain = domain_of(c->setup, q.plan, c->plan);
  return c;
}

void warm(benchmark::State& state, const char* model, const char* hardware, const JobRequest& job,
          std::optional<int> batch) {
  auto c = make(model, hardware, job, batch);
  if (!c) return state.SkipWithError("no such case");
  auto tables = prepare_for(c->setup, c->domain);
  if (!tables) return state.SkipWithError("no tables");
  for (auto _ : state) {
    Evaluation e = evaluate(*tables, c->plan);
    benchmark::DoNotOptimize(e);
  }
}

void cold(benchmark::State& state, const char* model, const char* hardware, const JobRequest& job,
          std::optional<int> batch) {
  auto c = make(model, hardware, job, batch);
  if (!c) return state.SkipWithError("no such case");
  for (auto _ : state) {
    auto tables = prepare_for(c->setup, c->domain);
    if (!tables) return state.SkipWithError("no tables");
    Evaluation e = evaluate(*tables, c->plan);
    benchmark::DoNotOptimize(e);
  }
}

#define BOTH(name, ...)                                                      \
  BENCHMARK_CAPTURE(warm, name, __VA_ARGS__)->Unit(benchmark::kMicrosecond); \
  BENCHMARK_CAPTURE(cold, name, __VA_ARGS__)->Unit(benchmark::kMicrosecond)

BOTH(decode_8b, "llama-3.1-8b", "h100-sxm", fixed_batch(), 16);
BOTH(decode_70b_tp4, "llama-3.1-70b", "4xh100-sxm", fixed_batch(), 16);
BOTH(decode_deepseek_v3, "deepseek-v3", "8xh200-sxm", fixed_batch(), 16);
BOTH(serve_8b, "llama-3.1-8b", "h100-sxm", serving(), std::nullopt);
BOTH(train_7b, "llama-2-7b", "8xa100-sxm-80gb", training(), 1);
BOTH(train_mixtral, "mixtral-8x7b", "8x8xh100-sxm", training(), 1);

}  // namespace

BENCHMARK_MAIN();
