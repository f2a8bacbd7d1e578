// How fast the plans of a job are searched, on a named space: GPT-3 175B on 4,096 A100 80 GB (512
// nodes of eight), global batch 1,536, sequences of 2,048. Only plans past divisibility and support
// count. Rates: plans decided, timed, weighed (memory of a rank computed), and, in `every_plan`,
// evaluated in full without any bound.

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
void search(benchmark::State& state, const char* model, const char* hardware, bool rest) {
  auto n = named(model, hardware);
  if (!n) return state.SkipWithError("no such space");
  PlanSearchOptions options;
  options.filling = Filling::with_room;
  options.families = options.front = rest;
  options.threads = static_cast<int>(state.range(0));
  SearchTally tally;
  for (auto _ : state) {
    auto found = search_plans(n->setup, n->fixed, options);
    if (!found) return state.SkipWithError("no answer");
    tally += found->tally;
  }
  count(state, tally);
}

// No bound: every plan of the space through `evaluate`, time and memory of all ranks.
void every_plan(benchmark::State& state, const char* model, const char* hardware) {
  auto n = named(model, hardware);
  if (!n) return state.SkipWithError("no such space");
  const Setup& s = n->setup;
  TrainingFacts facts;
  facts.cards = s.cluster.count();
  facts.per_node = s.cluster.per_node;
  facts.layers = layers_of(s);
  facts.global_batch = s.global_batch;
  facts.sequence = 2048;
  PlanDomain domain = formats_of(s, n->fixed);
  Plan base;
  apply_formats(base, domain, s);
  const TrainingSpace space = training_space(n->fixed, s.engine, facts, base, false,
                                             [&](const Plan& p) { return illegal(s, p); });
  domain.tensor = space.tensors();
  domain.expert = space.experts();
  domain.context = space.contexts();
  domain.micro_batch = space.micro_batch;
  domain.with_sequence_parallel = domain.without_sequence_parallel = true;
  auto tables = prepare_for(s, domain);
  if (!tables) return state.SkipWithError("no tables");
  const int threads = static_cast<int>(state.range(0));
  std::vector<std::int64_t> plans(static_cast<std::size_t>(threads));
  std::vector<double> least(plans.size(), 1e300);
  for (auto _ : state) {
    std::atomic<std::size_t> next{0};
    auto work = [&](std::size_t me) {
      for (std::size_t i; (i = next.fetch_add(1)) < space.divisions.size();)
        for_each_plan(space, space.divisions[i], [&](const Plan& p, FamilySet) {
          const Evaluation e = evaluate(*tables, p);
          if (e.fits) least[me] = std::min(least[me], e[Metric::step_seconds]);
          ++plans[me];
        });
    };
    std::vector<std::jthread> pool;
    for (std::size_t t = 1; t < plans.size(); ++t) pool.emplace_back(work, t);
    work(0);
  }
  benchmark::DoNotOptimize(least);
  SearchTally tally;
  for (std::int64_t p : plans) tally.decided += p;
  tally.timed = tally.weighed = tally.whole = tally.decided;
  count(state, tally);
}

#define RATES ->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime()

BENCHMARK_CAPTURE(search, gpt3_175b_best_families_front, "gpt3-175b", "512x8xa100-sxm-80gb", true)
RATES;
BENCHMARK_CAPTURE(search, gpt3_175b_best, "gpt3-175b", "512x8xa100-sxm-80gb", false) RATES;
BENCHMARK_CAPTURE(every_plan, gpt3_175b, "gpt3-175b", "512x8xa100-sxm-80gb") RATES;
BENCHMARK_CAPTURE(search, deepseek_v3_best_families_front, "deepseek-v3", "512x8xh100-sxm-80gb",
                  true)
RATES;

}  // namespace

BENCHMARK_MAIN();
