#pragma once
// The search over all plans of a job on one cluster: the best, the best of each family, and the
// plans that no other beats in both time and memory.

#include "decide/report.hpp"
#include "search/exact_search.hpp"

namespace trigon {

// Memory fuller than this leaves no room for what was not counted.
inline constexpr double kTightShare = 0.9;

struct Chosen {
  Plan plan;
  Evaluation evaluation;
  double excess = 0;  // of the limits; 0: all hold
};

// How full memory may be where a smaller micro-batch or more recomputation would leave room:
// tuned results run at the edge, advice keeps away from it.
enum class Filling : std::uint8_t { to_the_edge, with_room };

struct PlanSearchOptions : SearchOptions {
  Filling filling = Filling::to_the_edge;
  // Where nothing meets the limits, what the engine can keep in host memory may go there.
  bool offload = false;
};

struct FamilyResult {
  Family family;
  std::optional<Chosen> best;      // absent: no plan of it divides
  std::optional<Message> refused;  // why, where a division was tried
};

struct PlanSearch {
  std::optional<Chosen> best;      // absent: nothing divides
  std::optional<Message> illegal;  // why the last candidate could not run, when none can
  std::vector<FamilyResult> families;
  std::vector<Chosen> front;  // fastest first
  SearchTally tally;
  bool partial = false;
};

// Orders plans: limits first, then what stays on the card, in training room to spare where that is
// wanted, then what the job wants (capacity when serving, throughput for a batch, time when
// training), then fewer ranks to a model, then the plan's own order, so that the answer does not
// depend on how the space was walked.
Result<PlanSearch> search_plans(const Setup& s, const PlanRequest& fixed,
                                const PlanSearchOptions& options);

// Bytes that all cards together hold at least while a model trains, whatever the plan: weights and
// what the optimizer keeps of each, once. 0 where nothing is known beforehand.
double least_state_bytes(const Setup& s, const PlanRequest& fixed);

// What a plan is compared by where limits hold, less is better: seconds of a training step, of a
// request of a batch, of a request served; the busy share under a rate.
double wish_of(const Setup& s, const Evaluation& e);

}  // namespace trigon
