// The largest load that fits: evaluate, read backwards.

#include <algorithm>
#include <cmath>

#include "memory/memory_model.hpp"
#include "memory/stage_layers.hpp"

namespace trigon {
namespace {

constexpr double kMost = 1 << 30;   // beyond any sequence count or context asked for
constexpr double kRounding = 1e-6;  // of a page, what differences of sums of bytes may lose

// Largest whole n in [0, most] that satisfies a monotone predicate.
template <class F>
double largest(double most, F&& fits) {
  if (!fits(1.0)) return 0;
  double low = 1, high = 2;
  while (high <= most && fits(high)) {
    low = high;
    high *= 2;
  }
  high = std::min(high, most + 1);
  while (high - low > 1) {
    double middle = std::floor((low + high) / 2);
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

bool MemoryModel::fits_at(const Plan& plan, const Load& load) const {
  RankMemory m = fullest_at(plan, load).memory;
  return m.total() <= budget_bytes(plan, m).value;
}

Capacity MemoryModel::capacity(const Plan& plan) const {
  Capacity c;
  if (!serving_) return c;
  const Load load = asked(plan);
  if (graphs()) {
    // Items that run together: activations grow with each, nothing stays behind.
    c.max_sequences = largest(1 << 20, [&](double n) {
      return fits_at(plan, {n, load.context, load.prompt});
    });
    return c;
  }
  const double context_limit =
      stack_->max_context ? static_cast<double>(*stack_->max_context) : kMost;

  // Without a pool, or where nothing bounds a batch, the rest grows with the load: ask each time.
  if (engine_.pool == PoolRule::none || engine_.max_sequences <= 0) {
    c.max_sequences = largest(kMost, [&](double n) {
      Load l = load;
      l.sequences = n;
      return fits_at(plan, l);
    });
    c.max_context = largest(context_limit, [&](double tokens) {
      Load l = load;
      l.context = tokens;
      l.prompt = std::min(load.prompt, tokens);
      return fits_at(plan, l);
    });
    const Load most{c.max_sequences, load.context, load.prompt, load.source};
    const FullestRank rank = fullest_at(plan, most);
    if (engine_.pool == PoolRule::none) {
      c.pool_bytes = rank.memory[MemoryTerm::kv_cache];
      c.kv_tokens = c.pool_bytes > 0 ? c.max_sequences * load.context : 0;
      return c;
    }
    c.pool_bytes = std::max(0.0, budget_bytes(plan, rank.memory).value -
                                     (rank.memory.total() - rank.memory[MemoryTerm::kv_cache]));
    const double one = cache_of(plan, rank.stage, {1, load.context, load.prompt, load.source});
    const double block = page_tokens(plan);
    const double whole = whole_pages(load.context, load.source, block);
    if (one > 0) c.kv_tokens = std::floor(c.pool_bytes / one * whole / block) * block;
    return c;
  }

  // With a pool the rest does not depend on how it is filled.
  double pool_low = -1;
  double sequences = kMost;
  double blocks_tokens = kMost * kMost;
  constexpr int kStages = 256;
  std::array<double, kStages> pools{};
  const int stages = std::min(plan.pipeline, kStages);
  for (int s = 0; s < stages; ++s) {
    NoRecord quiet;
    RankMemory m = serving_memory(plan, s, load, quiet);
    const double pool =
        std::max(0.0, budget_bytes(plan, m).value - (m.total() - m[MemoryTerm::kv_cache]));
    pools[static_cast<std::size_t>(s)] = pool;
    pool_low = pool_low < 0 ? pool : std::min(pool_low, pool);
    const double one = cache_of(plan, s, {1, load.context, load.prompt, load.source});
    if (one > 0) sequences = std::min(sequences, std::floor(pool / one));
    // Tokens while every sequence is as long as asked; without windows this is every block.
    const double block = page_tokens(plan);
    const double whole = whole_pages(load.context, load.source, block);
    if (one > 0)
      blocks_tokens =
          std::min(blocks_tokens, std::floor(pool / one * whole / block + kRounding) * block);
  }
  c.pool_bytes = std::max(pool_low, 0.0);
  // Sums of bytes round: the last sequence is settled by the question itself.
  auto fits_with = [&](double n) {
    Load l = load;
    l.sequences = n;
    return fits_at(plan, l);
  };
  if (sequences < kMost) {
    if (sequences > 0 && !fits_with(sequences))
      sequences -= 1;
    else if (fits_with(sequences + 1))
      sequences += 1;
  }
  c.max_sequences = sequences;
  // Encoders cache nothing.
  c.kv_tokens = stack_->generates ? blocks_tokens : 0;
  c.max_context = largest(context_limit, [&](double tokens) {
    for (int s = 0; s < stages; ++s)
      if (cache_of(plan, s, {load.sequences, tokens, load.prompt, load.source}) >
          pools[static_cast<std::size_t>(s)])
        return false;
    return true;
  });
  return c;
}

}  // namespace trigon
