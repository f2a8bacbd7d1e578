#pragma once
// The best plan of a space, the best of each family, and the plans that no other beats in both time
// and memory: exactly, as if every plan had been evaluated in full. A plan is left early only where
// a bound proves that it changes none of these.
//
// The bounds, from cheap to dear:
//   1. less than its step can take, as if memory held: a score can only become worse by memory;
//   2. what a rank holds whatever it computes; all memory of one rank: no less than that lies on
//   the
//      fullest;
//   3. a closer bound of the step, memory of all ranks, then the step itself.
// Nothing is assumed monotone in a degree: gradients that do not persist, buffers of buckets and
// rounding of layers to stages all break that.
//
// Blocks of divisions are searched in rounds of growing size, each from the best of the rounds
// before, and merged by a total order of plans: results and counts are the same for any number of
// threads.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "search/training_space.hpp"

namespace trigon {

// What plans are compared by, the first difference decides; less is better.
struct Score {
  double excess = std::numeric_limits<double>::infinity();  // of limits; 0: all hold
  int offloads = 0;    // what leaves the card waits for a host nobody named: after what stays
  bool tight = false;  // memory without room to spare, where that is wanted
  double wish = std::numeric_limits<double>::infinity();  // seconds, or what else the job wants
};

// Within a part in a million two wishes are the same: 20 bits behind the leading one are kept, so
// that the order of plans decides between them and not the last bit of a sum.
inline double rounded(double v) {
  if (!(v > 0) || v == std::numeric_limits<double>::infinity()) return v;
  return std::bit_cast<double>((std::bit_cast<std::uint64_t>(v) + (std::uint64_t{1} << 31)) &
                               ~((std::uint64_t{1} << 32) - 1));
}

inline int compare(const Score& a, const Score& b) {
  if (a.excess != b.excess) return a.excess < b.excess ? -1 : 1;
  if (a.offloads != b.offloads) return a.offloads < b.offloads ? -1 : 1;
  if (a.tight != b.tight) return b.tight ? -1 : 1;
  if (a.wish != b.wish) return a.wish < b.wish ? -1 : 1;
  return 0;
}

// Memory of all ranks, as it enters a score.
struct Weight {
  double bytes = 0;   // on the fullest
  double excess = 0;  // of the limit
  bool tight = false;
};
inline Score with(Score s, const Weight& w) {
  s.excess += w.excess;
  s.tight = s.excess == 0 && w.tight;
  return s;
}

struct Scored {
  bool found = false;
  Score score;
  Plan plan;
};

// A plan that meets all limits, on the front of time and memory.
struct FrontPlan {
  double seconds = 0, bytes = 0;
  Plan plan;
};

struct SearchTally {
  std::int64_t decided = 0;  // plans past divisibility and support
  std::int64_t weighed = 0;  // of which memory of at least one rank was computed
  std::int64_t whole = 0;    // ... and of all ranks
  std::int64_t timed = 0;    // ... and the step
  void operator+=(const SearchTally& o) {
    decided += o.decided, timed += o.timed, weighed += o.weighed, whole += o.whole;
  }
};

// The best so far: of all, of each family, and the front.
class Incumbents {
 public:
  Incumbents(bool families, bool front) : families_(families), front_(front) {}

  // Whether a plan of these families with at least this score may change anything. `bytes`: at
  // least so many on the fullest rank.
  bool may_change(const Plan& p, FamilySet families, const Score& least, double seconds,
                  double bytes) const {
    if (better(least, p, best_)) return true;
    if (families_)
      for (FamilySet left = families; left; left &= left - 1)
        if (better(least, p, family_[static_cast<std::size_t>(std::countr_zero(left))]))
          return true;
    return front_ && least.excess == 0 && !dominated(seconds, bytes, p);
  }
  // Whether a plan with at least this score may be the best, whatever its place in the order.
  bool may_be_best(const Score& least) const {
    return !best_.found || compare(least, best_.score) <= 0;
  }
  void take(const Plan& p, FamilySet families, const Score& score, double seconds, double bytes) {
    keep(score, p, best_);
    if (families_)
      for (FamilySet left = families; left; left &= left - 1)
        keep(score, p, family_[static_cast<std::size_t>(std::countr_zero(left))]);
    if (front_ && score.excess == 0) add({seconds, bytes, p});
  }
  void merge(const Incumbents& o) {
    if (o.best_.found) keep(o.best_.score, o.best_.plan, best_);
    for (std::size_t i = 0; i < kMostFamilies; ++i)
      if (o.family_[i].found) keep(o.family_[i].score, o.family_[i].plan, family_[i]);
    for (const FrontPlan& p : o.points_) add(p);
  }

  const Scored& best() const { return best_; }
  const Scored& of_family(std::size_t i) const { return family_[i]; }
  // Fastest first, so fullest first.
  const std::vector<FrontPlan>& front() const { return points_; }

 private:
  static bool better(const Score& s, const Plan& p, const Scored& than) {
    if (!than.found) return true;
    const int c = compare(s, than.score);
    return c < 0 || (c == 0 && plan_before(p, than.plan));
  }
  static void keep(const Score& s, const Plan& p, Scored& in) {
    if (better(s, p, in)) in = {true, s, p};
  }
  // The first point that is not faster. Points before it need less time.
  std::vector<FrontPlan>::const_iterator at(double seconds) const {
    return std::lower_bound(points_.begin(), points_.end(), seconds,
                            [](const FrontPlan& x, double v) { return x.seconds < v; });
  }
  bool dominated(double seconds, double bytes, const Plan& p) const {
    auto i = at(seconds);
    if (i != points_.begin() && std::prev(i)->bytes <= bytes) return true;
    if (i == points_.end() || i->seconds != seconds) return false;
    return i->bytes < bytes || (i->bytes == bytes && !plan_before(p, i->plan));
  }
  void add(const FrontPlan& point) {
    if (dominated(point.seconds, point.bytes, point.plan)) return;
    auto i = at(point.seconds);
    auto end = i;
    while (end != points_.end() && end->bytes >= point.bytes) ++end;
    i = points_.erase(i, end);
    points_.insert(i, point);
  }

  bool families_, front_;
  Scored best_;
  std::array<Scored, kMostFamilies> family_{};
  std::vector<FrontPlan> points_;  // ascending seconds, descending bytes
};

struct SearchOutcome {
  Incumbents incumbents{false, false};
  SearchTally tally;
  bool partial = false;  // stopped before the end
};

struct SearchOptions {
  bool families = false, front = false;
  bool bounds = true;                       // off: every plan is evaluated in full
  int threads = 1;                          // 0: as many as the machine has
  const std::atomic<bool>* stop = nullptr;  // set: the rest of the space is left
};

// Of n divisions the i-th to look at: neighbours are alike, so the first few are taken from all
// over the space.
inline std::size_t scattered(std::size_t i, std::size_t n) {
  std::size_t stride = n * 5 / 8 + 1;
  while (std::gcd(stride, n) != 1) ++stride;
  return i * stride % n;
}

// One plan after the other, against the best so far.
template <class Judge>
class PlanVisitor {
 public:
  PlanVisitor(Judge& judge, const SearchOptions& options, Incumbents& best, SearchTally& tally)
      : judge_(judge), options_(options), best_(best), tally_(tally) {}

  // What the plans of a division hold at least.
  void divide(const TrainingSpace& space, const Division& d) {
    least_bytes_ = 0;
    if (!options_.bounds || options_.families || options_.front) return;
    least_bytes_ = std::numeric_limits<double>::infinity();
    for_each_beside(space, d, divided(space, d), [&](const Plan& p) {
      least_bytes_ = std::min(least_bytes_, judge_.state_bytes(p));
    });
  }
  // Whether plans that differ from `p` only beside their pipeline are looked at.
  bool enter(const Plan& p) {
    if (!options_.bounds || options_.families || options_.front) return true;
    if (!best_.may_be_best(judge_.at_least({0, 0, false, 0}, p, least_bytes_))) return false;
    // Where nothing fits yet, time decides little.
    if (nothing_fits()) return true;
    double seconds = 0;
    Score least = judge_.least(p, &seconds);
    least.offloads = 0;
    return best_.may_be_best(judge_.at_least(least, p, least_bytes_));
  }
  void skip(std::int64_t plans) { tally_.decided += plans; }

  void operator()(const Plan& p, FamilySet families) {
    ++tally_.decided;
    double seconds = 0;
    if (options_.bounds) {
      double bytes = judge_.state_bytes(p);
      if (nothing_fits()) {
        const Score now{0, offloads_of(p), false, 0};
        if (!best_.may_change(p, families, judge_.at_least(now, p, bytes), 0, bytes)) return;
        bytes = judge_.some_bytes(p);
        ++tally_.weighed;
        if (!best_.may_change(p, families, judge_.at_least(now, p, bytes), 0, bytes)) return;
      } else {
        Score least = judge_.least(p, &seconds);
        if (!best_.may_change(p, families, judge_.at_least(least, p, bytes), seconds, bytes))
          return;
        bytes = judge_.some_bytes(p);
        ++tally_.weighed;
        least = judge_.at_least(least, p, bytes);
        if (!best_.may_change(p, families, least, seconds, bytes)) return;
        least = judge_.at_least(judge_.nearly(p, &seconds), p, bytes);
        if (!best_.may_change(p, families, least, seconds, bytes)) return;
      }
    }
    const Weight weight = judge_.weight(p);
    ++tally_.whole;
    if (options_.bounds) {
      if (const Score now = with({0, offloads_of(p), false, 0}, weight);
          nothing_fits() && !best_.may_change(p, families, now, 0, weight.bytes))
        return;
      // Schedules are walked last.
      const Score least = with(judge_.nearly(p, &seconds), weight);
      if (!best_.may_change(p, families, least, seconds, weight.bytes)) return;
    }
    const Score score = with(judge_.timed(p, &seconds), weight);
    ++tally_.timed;
    best_.take(p, families, score, seconds, weight.bytes);
  }

 private:
  bool nothing_fits() const { return best_.best().found && best_.best().score.excess > 0; }

  Judge& judge_;
  const SearchOptions& options_;
  Incumbents& best_;
  SearchTally& tally_;
  double least_bytes_ = 0;
};

// A judge answers for a plan; each thread has a copy of its own:
//   Score least(plan, double* seconds)   no worse than the score; no more than the time it takes
//   double state_bytes(plan)             of weights and optimizer on one rank
//   double some_bytes(plan)              on one rank, at most what lies on the fullest
//   Score nearly(plan, double* seconds)  a closer bound of the time
//   Score timed(plan, double* seconds)   the score as if memory held, and the time it takes
//   Score at_least(Score, plan, bytes)   the score if the fullest rank held `bytes` or more
//   Weight weight(plan)                  of all ranks
template <class Judge>
SearchOutcome search_training(const TrainingSpace& space, const Judge& judge,
                              const SearchOptions& options) {
  constexpr std::size_t kBlock = 4;  // divisions
  const std::size_t divisions = space.divisions.size();
  const std::size_t blocks = (divisions + kBlock - 1) / kBlock;
  const std::size_t most_threads = options.threads > 0
                                       ? static_cast<std::size_t>(options.threads)
                                       : std::max(1u, std::thread::hardware_concurrency());
  SearchOutcome all;
  all.incumbents = Incumbents(options.families, options.front);
  std::atomic<bool> partial{false};
  std::size_t round = 0;  // its first block
  for (std::size_t size = 1; round < blocks; round += size, size *= 2) {
    const std::size_t end = std::min(blocks, round + size);
    std::atomic<std::size_t> next{round};
    auto work = [&](Judge own, SearchOutcome& out) {
      for (std::size_t b; (b = next.fetch_add(1)) < end;) {
        Incumbents best = all.incumbents;
        PlanVisitor<Judge> visit(own, options, best, out.tally);
        for (std::size_t i = b * kBlock; i < std::min(divisions, (b + 1) * kBlock); ++i) {
          if (options.stop && options.stop->load(std::memory_order_relaxed)) {
            partial = true;
            break;
          }
          const Division& division = space.divisions[scattered(i, divisions)];
          visit.divide(space, division);
          for_each_plan(space, division, visit);
        }
        out.incumbents.merge(best);
      }
    };
    const std::size_t threads = std::max<std::size_t>(1, std::min(most_threads, end - round));
    std::vector<SearchOutcome> outcomes(threads);
    for (SearchOutcome& o : outcomes) o.incumbents = Incumbents(options.families, options.front);
    {
      std::vector<std::jthread> pool;
      for (std::size_t t = 1; t < threads; ++t)
        pool.emplace_back([&, t] { work(judge, outcomes[t]); });
      work(judge, outcomes[0]);
    }
    for (const SearchOutcome& o : outcomes) {
      all.incumbents.merge(o.incumbents);
      all.tally += o.tally;
    }
  }
  all.partial = partial;
  return all;
}

}  // namespace trigon
