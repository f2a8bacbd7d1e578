#include "step/interleaved.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace trigon {

std::vector<ChunkPass> interleaved_order(int m, int v, int group) {
  std::vector<ChunkPass> out;
  out.reserve(static_cast<std::size_t>(m) * static_cast<std::size_t>(v));
  for (int first = 0; first < m; first += group)
    for (int chunk = 0; chunk < v; ++chunk)
      for (int i = first; i < std::min(first + group, m); ++i) out.push_back({i, chunk});
  return out;
}

int interleaved_warmup(int p, int v, int group, int m, int stage) {
  return std::min(2 * (p - 1 - stage) + (v - 1) * group, m * v);
}

namespace {

// Every stage runs as far as what it waits for is known, one after the other, until all are done.
struct Walk {
  int p, v, m, group;
  std::span<const BlockTime> blocks;
  std::vector<ChunkPass> order;
  // Ends by (micro-batch, block); NaN: not known yet.
  std::vector<double> forward, backward;

  std::size_t at(int micro_batch, int block) const {
    const int place = micro_batch * p * v + block;
    return static_cast<std::size_t>(place);
  }

  double run() {
    order = interleaved_order(m, v, group);
    const double unknown = std::numeric_limits<double>::quiet_NaN();
    const auto all = static_cast<std::size_t>(m) * static_cast<std::size_t>(p * v);
    forward.assign(all, unknown);
    backward.assign(all, unknown);
    const int total = m * v;
    std::vector<double> free(static_cast<std::size_t>(p), 0);
    std::vector<int> f(static_cast<std::size_t>(p), 0), b(f);
    for (bool moved = true; moved;) {
      moved = false;
      for (int s = 0; s < p; ++s) {
        const auto i = static_cast<std::size_t>(s);
        const int warm = interleaved_warmup(p, v, group, m, s);
        while (b[i] < total) {
          // Warm-up, then a forward pass before each backward pass while there are any.
          const bool next_forward = f[i] < total && f[i] <= b[i] + warm - (f[i] < warm ? 1 : 0);
          const ChunkPass x = order[static_cast<std::size_t>(next_forward ? f[i] : b[i])];
          const int chunk = next_forward ? x.chunk : v - 1 - x.chunk;
          const int block = chunk * p + s;
          const BlockTime& time = blocks[static_cast<std::size_t>(block)];
          double ready = 0;
          if (next_forward) {
            if (block > 0) ready = forward[at(x.micro_batch, block - 1)];
          } else {
            ready = block + 1 < p * v ? backward[at(x.micro_batch, block + 1)]
                                      : forward[at(x.micro_batch, block)];
          }
          if (std::isnan(ready)) break;
          free[i] =
              std::max(free[i], ready) + (next_forward ? time.forward : time.input + time.weight);
          (next_forward ? forward : backward)[at(x.micro_batch, block)] = free[i];
          ++(next_forward ? f : b)[i];
          moved = true;
        }
      }
    }
    double end = 0;
    for (int s = 0; s < p; ++s) {
      const auto i = static_cast<std::size_t>(s);
      if (b[i] < total) return std::numeric_limits<double>::infinity();
      end = std::max(end, free[i]);
    }
    return end;
  }

  // Whether all passes of group g follow those of g - 1 by the same time; that time.
  bool follows(int g, double& by) const {
    const std::size_t n = static_cast<std::size_t>(group) * static_cast<std::size_t>(p * v);
    const std::size_t from = static_cast<std::size_t>(g) * n;
    for (std::size_t k = 0; k < n; ++k)
      for (const std::vector<double>* ends : {&forward, &backward}) {
        const double step = (*ends)[from + k] - (*ends)[from + k - n];
        if (by < 0) by = step;
        if (std::fabs(step - by) > 1e-12 * (*ends)[from + k]) return false;
      }
    return true;
  }
};

// A stage's forward passes run at most two groups ahead of its backward passes, so a pattern that
// holds for three groups between start and end goes on.
constexpr int kGroups = 8;

double walked(const PipelineWork& w, int group) {
  Walk walk{w.stages, w.virtual_stages, w.micro_batches, group, w.blocks, {}, {}, {}};
  const int groups = w.micro_batches / group;
  if (w.micro_batches % group == 0 && groups > kGroups) {
    walk.m = kGroups * group;
    const double end = walk.run();
    double by = -1;
    if (walk.follows(3, by) && walk.follows(4, by) && walk.follows(5, by))
      return end + (groups - kGroups) * by;
    walk.m = w.micro_batches;
  }
  return walk.run();
}

// What this thread walked last, by place. The values are those of the walk, whatever is kept.
struct Remembered {
  int stages = 0, virtual_stages = 0, micro_batches = 0, group = 0;
  std::vector<BlockTime> blocks;
  double seconds = 0;
};

std::size_t place_of(const PipelineWork& w, int group) {
  std::uint64_t h = 1469598103934665603u;
  auto mix = [&](std::uint64_t x) { h = (h ^ x) * 1099511628211u, h ^= h >> 29; };
  mix(static_cast<std::uint64_t>(w.stages) << 32 | static_cast<std::uint32_t>(w.virtual_stages));
  mix(static_cast<std::uint64_t>(w.micro_batches) << 32 | static_cast<std::uint32_t>(group));
  for (const BlockTime& b : w.blocks)
    for (double x : {b.forward, b.input, b.weight}) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &x, sizeof bits);
      mix(bits);
    }
  return static_cast<std::size_t>(h % 1024);
}

}  // namespace

namespace {

// All blocks take the same, in whole groups of as many micro-batches as stages.
bool is_even(const PipelineWork& w) {
  const int group = w.group > 0 ? w.group : w.stages;
  if (w.micro_batches % group != 0 || group != w.stages) return false;
  return std::all_of(w.blocks.begin(), w.blocks.end(),
                     [&](const BlockTime& b) { return b == w.blocks.front(); });
}

}  // namespace

bool needs_walk(const PipelineWork& w) {
  return w.stages > 1 && w.schedule == Schedule::interleaved && !is_even(w);
}

double interleaved_seconds(const PipelineWork& w) {
  const int group = w.group > 0 ? w.group : w.stages;
  // Equal blocks: no stage waits but for the first and the last passes of the others (Narayanan et
  // al. 2021, arXiv:2104.04473, section 2.2).
  if (is_even(w))
    return (w.micro_batches * w.virtual_stages + w.stages - 1) * w.blocks.front().total();
  thread_local std::vector<Remembered> memory(1024);
  Remembered& kept = memory[place_of(w, group)];
  if (kept.stages == w.stages && kept.virtual_stages == w.virtual_stages &&
      kept.micro_batches == w.micro_batches && kept.group == group &&
      std::equal(kept.blocks.begin(), kept.blocks.end(), w.blocks.begin(), w.blocks.end()))
    return kept.seconds;
  const double seconds = walked(w, group);
  kept = {w.stages, w.virtual_stages, w.micro_batches, group, {w.blocks.begin(), w.blocks.end()},
          seconds};
  return seconds;
}

}  // namespace trigon
