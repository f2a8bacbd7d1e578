#include "step/schedule.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "step/interleaved.hpp"

namespace trigon {
namespace {

// Stages of more than this are not drawn on the stack.
constexpr int kMost = 256;

double gpipe(std::span<const BlockTime> b, int m) {
  double sums = 0, forward = 0, backward = 0;
  for (const BlockTime& x : b) {
    sums += x.total();
    forward = std::max(forward, x.forward);
    backward = std::max(backward, x.input + x.weight);
  }
  return sums + (m - 1) * (forward + backward);
}

// Passes in the order of their dependencies. Column j holds the forward pass of micro-batch j of
// every stage and the backward pass that follows it there, that of micro-batch j - warm-up: what
// a column waits for lies in itself or in the one before. With `split`, column j also holds the
// gradients of weights of micro-batch j - (stages - 1).
struct Columns {
  std::span<const BlockTime> b;
  int p, m;
  bool split;
  std::array<double, kMost> free{}, forward_end{}, backward_end{};

  Columns(std::span<const BlockTime> blocks, int micro_batches, bool split_weights)
      : b(blocks), p(static_cast<int>(blocks.size())), m(micro_batches), split(split_weights) {}

  void column(int j) {
    for (int s = 0; s < p; ++s) {
      const auto i = static_cast<std::size_t>(s);
      const int backward = j - (p - 1 - s);
      // The stage after this one holds the same backward pass one column earlier.
      const double arrived = s + 1 < p ? backward_end[i + 1] : 0;
      if (j < m) {
        const double ready = s > 0 ? forward_end[i - 1] : 0;
        forward_end[i] = free[i] = std::max(free[i], ready) + b[i].forward;
      }
      if (backward >= 0 && backward < m) {
        const double back = split ? b[i].input : b[i].input + b[i].weight;
        backward_end[i] = free[i] = std::max(free[i], arrived) + back;
        if (split && j >= p - 1) free[i] += b[i].weight;
      }
    }
  }
};

double walked(std::span<const BlockTime> b, int m, bool split) {
  Columns c(b, m, split);
  for (int j = 0; j < m + c.p - 1; ++j) c.column(j);
  double end = 0;
  for (int s = 0; s < c.p; ++s) {
    const auto i = static_cast<std::size_t>(s);
    // Gradients of weights that no backward pass ran beside.
    const int beside = std::max(0, m - 1 + (c.p - 1 - s) - (c.p - 1) + 1);
    end = std::max(end, c.free[i] + (split ? (m - beside) * b[i].weight : 0));
  }
  return end;
}

// From stages + 1 micro-batches on. The longest chain of passes stays with one stage while that is
// busy without a gap: until then it climbs to some stage (waiting for warm-up passes on the way)
// and comes down, and at the end the same the other way round.
double one_f_one_b(std::span<const BlockTime> b, int m) {
  const int p = static_cast<int>(b.size());
  std::array<double, kMost> up, down;  // the chains that turn at or after a stage
  double forward = 0, backward = 0, longest_forward = 0, longest_backward = 0;
  for (int s = 0; s < p; ++s) {
    const auto i = static_cast<std::size_t>(s);
    const double back = b[i].input + b[i].weight;
    forward += b[i].forward, backward += back;
    longest_forward = std::max(longest_forward, b[i].forward);
    longest_backward = std::max(longest_backward, back);
    const int warm = p - 1 - s;
    up[i] = forward + backward + warm * longest_forward;
    down[i] = forward + backward + warm * longest_backward;
  }
  double end = 0;
  for (int s = p - 1; s >= 0; --s) {
    const auto i = static_cast<std::size_t>(s);
    if (s + 1 < p) up[i] = std::max(up[i], up[i + 1]), down[i] = std::max(down[i], down[i + 1]);
    forward -= b[i].forward, backward -= b[i].input + b[i].weight;
    const double first = up[i] - backward, last = down[i] - forward;
    end = std::max(end, first + last + (m - 2 - (p - 1 - s)) * b[i].total());
  }
  return end;
}

// From stages + 1 micro-batches on: the columns of the start and of the end are walked, between
// them the longest chain stays with one stage.
double zero_bubble(std::span<const BlockTime> b, int m) {
  Columns c(b, m, true);
  const int p = c.p;
  for (int j = 0; j < p; ++j) c.column(j);
  // `rest` is the longest chain from the start of a backward pass of the column on.
  std::array<double, kMost> rest{};
  double below = 0;
  for (int j = m + p - 2; j >= m - 1; --j) {
    below = 0;
    for (int s = 0; s <= p - 1 - (j - (m - 1)); ++s) {
      const auto i = static_cast<std::size_t>(s);
      const bool last = s == p - 1 - (j - (m - 1));
      const double after = last ? (s + 1) * b[i].weight : b[i].weight + rest[i];
      // The stage before holds the same backward pass one column later.
      const double before = below;
      below = rest[i];
      rest[i] = b[i].input + std::max(after, s > 0 ? before : 0);
    }
  }
  double end = 0, chain = 0;
  for (int s = p - 1; s >= 0; --s) {
    const auto i = static_cast<std::size_t>(s);
    chain = b[i].forward + std::max(rest[i], chain);
    end = std::max(end, c.free[i] + (m - 1 - p) * b[i].total() + chain);
  }
  return end;
}

}  // namespace

double stage_seconds(const PipelineWork& w, int s) {
  double sum = 0;
  for (int k = 0; k < w.virtual_stages; ++k) {
    const int block = k * w.stages + s;
    sum += w.blocks[static_cast<std::size_t>(block)].total();
  }
  return sum;
}

double pipeline_seconds(const PipelineWork& w) {
  const int m = w.micro_batches;
  if (w.stages == 1) return m * stage_seconds(w, 0);
  switch (w.schedule) {
    case Schedule::gpipe:
      return gpipe(w.blocks, m);
    case Schedule::one_f_one_b:
      if (w.stages > kMost) break;
      return m > w.stages ? one_f_one_b(w.blocks, m) : walked(w.blocks, m, false);
    case Schedule::zero_bubble:
      if (w.stages > kMost) break;
      return m > w.stages ? zero_bubble(w.blocks, m) : walked(w.blocks, m, true);
    case Schedule::interleaved:
      return interleaved_seconds(w);
  }
  // Longer pipelines than there are models for: the fullest stage and the others' one round trip.
  double sums = 0, most = 0;
  for (const BlockTime& x : w.blocks) sums += x.total(), most = std::max(most, x.total());
  return sums + (m - 1) * most;
}

}  // namespace trigon
