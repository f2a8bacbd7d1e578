// How fast the verbs answer, and what a recommendation looked at: cards x counts x plans
// considered, pruned before evaluation, fully evaluated.

#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "decide/catalogues.hpp"
#include "decide/verbs.hpp"
#include "hardware/parse.hpp"

namespace {

using namespace trigon;

const Catalogues* catalogues() {
  static const auto loaded = Catalogues::load();
  return loaded ? loaded->get() : nullptr;
}

JobRequest serving(double rate, std::int64_t input, std::int64_t output) {
  JobRequest r;
  r.kind = JobKind::serve;
  r.rate = PerSecond::base(rate);
  r.input_tokens = input;
  r.output_tokens = output;
  return r;
}

JobRequest training(double tokens, Seconds deadline) {
  JobRequest r;
  r.kind = JobKind::train;
  r.tokens = tokens;
  r.deadline = deadline;
  return r;
}

JobRequest tuning(double tokens) {
  JobRequest r;
  r.kind = JobKind::finetune;
  r.method = TuneMethod::lora;
  r.tokens = tokens;
  return r;
}

// The place a failed call complains about is all a benchmark can print of an error.
template <class T>
bool skipped(benchmark::State& state, const Result<T>& result) {
  if (!result) state.SkipWithError(("no answer: " + result.error().where).c_str());
  return !result;
}

void load_catalogues(benchmark::State& state) {
  for (auto _ : state) {
    auto loaded = Catalogues::load();
    if (skipped(state, loaded)) return;
    benchmark::DoNotOptimize(loaded);
  }
}

void recommend_over_all_cards(benchmark::State& state, const char* name, const JobRequest& job) {
  const Catalogues* all = catalogues();
  if (!all) return state.SkipWithError("the catalogues do not load");
  auto model = all->models.find(name);
  if (skipped(state, model)) return;
  Question question;
  question.model = &*model;
  question.job = job;
  Objective objective;  // every vendor, up to 64 cards
  SearchCounts counts;
  for (auto _ : state) {
    auto answer = recommend(*all, question, objective);
    if (skipped(state, answer)) return;
    counts = answer->counts;
  }
  state.counters["cards"] = static_cast<double>(counts.cards);
  state.counters["counts"] = static_cast<double>(counts.counts);
  state.counters["considered"] = static_cast<double>(counts.plans_considered);
  state.counters["pruned"] = static_cast<double>(counts.plans_pruned);
  state.counters["evaluated"] = static_cast<double>(counts.plans_evaluated);
}

void fit_one_card(benchmark::State& state) {
  const Catalogues* all = catalogues();
  if (!all) return state.SkipWithError("the catalogues do not load");
  auto model = all->models.find("llama-3.1-8b");
  if (skipped(state, model)) return;
  auto cluster = parse_hardware("rtx-4090", all->hardware);
  if (skipped(state, cluster)) return;
  Question question;
  question.model = &*model;
  for (auto _ : state) {
    auto answer = fit(*all, question, *cluster);
    if (skipped(state, answer)) return;
    benchmark::DoNotOptimize(answer);
  }
}

void fit_all_cards(benchmark::State& state) {
  const Catalogues* all = catalogues();
  if (!all) return state.SkipWithError("the catalogues do not load");
  auto model = all->models.find("llama-3.1-8b");
  if (skipped(state, model)) return;
  Question question;
  question.model = &*model;
  for (auto _ : state) {
    auto answer = fit_everywhere(*all, question);
    if (skipped(state, answer)) return;
    state.counters["cards"] = static_cast<double>(answer->rows.size());
  }
}

BENCHMARK(load_catalogues)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK(fit_one_card)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK(fit_all_cards)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK_CAPTURE(recommend_over_all_cards, serve_8b, "llama-3.1-8b", serving(2, 1000, 300))
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(recommend_over_all_cards, serve_70b, "llama-3.1-70b", serving(20, 1000, 300))
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(recommend_over_all_cards, train_13b, "llama-2-13b", training(300e9, days(30)))
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(recommend_over_all_cards, lora_7b, "llama-2-7b", tuning(100e6))
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
