// How fast the plans of a job are searched, on a named space: GPT-3 175B on 4,096 A100 80 GB (512
// nodes of eight), global batch 1,536, sequences of 2,048. Only plans past divisibility and support
// count. Rates: plans decided, weighed (memory of a rank computed), timed (the step computed),
// whole (memory of all ranks too); in `every_plan` without any bound, so that all of them are
// whole.

#include <benchmark/benchmark.h>

#include <memory>
#include <thread>

#include "decide/plan_search.hpp"
#include "hardware/parse.hpp"

namespace {

using namespace trigon;

struct Named {
  Model model;
  Setup setup;
  PlanRequest fixed;
};

const Catalogues* catalogues() {
  static const auto loaded = Catalogues::load();
  return loaded ? loaded->get() : nullptr;
}

std::unique_ptr<Named> named(const char* model, const char* hardware) {
  const Catalogues* all = catalogues();
  if (!all) return nullptr;
  auto n = std::make_unique<Named>();
  auto found = all->models.find(model);
  auto cluster = parse_hardware(hardware, all->hardware);
  if (!found || !cluster) return nullptr;
  n->model = std::move(*found);
  Question q;
  q.model = &n->model;
  q.job.kind = JobKind::train;
  q.job.tokens = 300e9;
  q.job.sequence = 2048;
  q.job.global_batch = 1536;
  auto setup = set_up(*all, q, *cluster);
  if (!setup) return nullptr;
  n->setup = std::move(*setup);
  return n;
}

void count(benchmark::State& state, const SearchTally& t) {
  auto rate = [](std::int64_t n) {
    return benchmark::Counter(static_cast<double>(n), benchmark::Counter::kIsRate);
  };
  state.counters["plans"] =
      static_cast<double>(t.decided) / static_cast<double>(state.iterations());
  state.counters["decided/s"] = rate(t.decided);
  state.counters["timed/s"] = rate(t.timed);
  state.counters["weighed/s"] = rate(t.weighed);
  state.counters["whole/s"] = rate(t.whole);
}

// Tables, best, families, front: what `trigon plan` does for the whole cluster.
void search(benchmark::State& state, const char* model, const char* hardware, bool rest,
            bool bounds = true) {
  auto n = named(model, hardware);
  if (!n) return state.SkipWithError("no such space");
  PlanSearchOptions options;
  options.filling = Filling::with_room;
  options.families = options.front = rest;
  options.bounds = bounds;
  options.threads = static_cast<int>(state.range(0));
  SearchTally tally;
  for (auto _ : state) {
    auto found = search_plans(n->setup, n->fixed, options);
    if (!found) return state.SkipWithError("no answer");
    tally += found->tally;
  }
  count(state, tally);
}

#define RATES ->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime()

BENCHMARK_CAPTURE(search, gpt3_175b_best_families_front, "gpt3-175b", "512x8xa100-sxm-80gb", true)
RATES;
BENCHMARK_CAPTURE(search, gpt3_175b_best, "gpt3-175b", "512x8xa100-sxm-80gb", false) RATES;
BENCHMARK_CAPTURE(search, gpt3_175b_every_plan, "gpt3-175b", "512x8xa100-sxm-80gb", true, false)
RATES;
BENCHMARK_CAPTURE(search, deepseek_v3_best_families_front, "deepseek-v3", "512x8xh100-sxm-80gb",
                  true)
RATES;

}  // namespace

BENCHMARK_MAIN();
