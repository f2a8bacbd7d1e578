// How long the program takes from being started to its answer, as a person at a shell sees it.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <string>
#include <vector>

#include "base/facts.hpp"

extern char** environ;

namespace {

// Starts the program with its output thrown away; returns its exit status, or -1.
int run(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  int failed = posix_spawn(&pid, argv[0], &quiet, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&quiet);
  int status = 0;
  if (failed != 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

void program(benchmark::State& state, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), TRIGON_BINARY);
  for (auto _ : state)
    if (int exit = run(arguments); exit != 0)
      return state.SkipWithError(("exits with " + std::to_string(exit)).c_str());
}

void embedded_facts(benchmark::State& state) {
  for (auto _ : state) {
    auto store = trigon::FactStore::embedded();
    if (!store) return state.SkipWithError("the embedded facts do not load");
    state.counters["sheets"] = static_cast<double>(store->sheets().size());
  }
}

BENCHMARK_CAPTURE(program, version, std::vector<std::string>{"version"})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(program, fit_one_card,
                  std::vector<std::string>{"fit", "llama-3.1-8b", "--on", "rtx-4090"})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(program, recommend,
                  std::vector<std::string>{"recommend", "llama-3.1-8b", "--task", "serve", "--rate",
                                           "2/s", "--isl", "1000", "--osl", "300"})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(embedded_facts)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
