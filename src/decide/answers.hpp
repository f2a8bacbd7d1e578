#pragma once
// What the verbs answer: plain values. `present` turns them into words, tables and JSON.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/estimate.hpp"
#include "base/record.hpp"
#include "base/result.hpp"
#include "decide/messages.hpp"
#include "engine/policy.hpp"
#include "hardware/cluster.hpp"
#include "job/job.hpp"
#include "memory/memory_errors.hpp"
#include "model/model.hpp"
#include "plan/request.hpp"
#include "search/families.hpp"
#include "step/breakdown.hpp"

namespace trigon {

using MetricEstimates = std::array<std::optional<Estimate<double>>, kMetrics>;

// One plan on one cluster, as shown.
struct PlanReport {
  Cluster cluster;
  std::string engine;        // id and version
  std::optional<Item> item;  // what the model does in one go; absent: tokens
  Plan plan;
  MetricEstimates metrics;
  RankMemory memory;         // of the fullest rank, by term
  double program_bytes = 0;  // of a card, that programs find when they start
  MemoryErrors memory_errors;
  int fullest_stage = 0;           // pipeline stage of that rank
  std::vector<RankMemory> stages;  // a rank of each stage, where a pipeline has several
  bool fits = false;
  bool meets_limits = false;
  std::optional<Format> narrowed;  // weights stored in fewer bits than the checkpoint's, as allowed
  std::vector<Message> violated;   // limits that do not hold, worst first
  std::vector<Message> warnings;
  std::vector<StepBreakdown> steps;  // where the time goes, when explanation was asked
  const RankMemory& last_stage() const { return stages.empty() ? memory : stages.back(); }
  const std::optional<Estimate<double>>& operator[](Metric m) const {
    return metrics[static_cast<std::size_t>(m)];
  }
};

// `estimate`: exactly one configuration.
struct EstimateAnswer {
  JobRequest asked;
  Job job;
  PlanReport report;
  std::vector<Assumption> assumptions;
  std::optional<Derivation> derivation;  // when explanation was asked
};

enum class FitMark : std::uint8_t { fits, tight, no };

// `fit`: one model on one piece of hardware, or on every card.
struct FitRow {
  PlanReport report;
  FitMark mark = FitMark::no;
  std::optional<Message> binding;  // what stops it, when it does not fit
};
// A change under which the job fits by Trigon's account.
struct FittingChange {
  std::string flags;  // "--context 9216", "--on 2xrtx-4090", "--gpu-layers 27"
  PlanReport report;
  std::string roomier;  // the like with room to spare, where the first is close to full
};
struct FitAnswer {
  Job job;
  std::vector<FitRow> rows;        // one with --on, all cards without
  std::optional<FitRow> smallest;  // of one card: the one with least memory that it fits
  std::vector<Assumption> assumptions;
  std::optional<Derivation> derivation;
  // What does not fit whole: the least of it in host memory that lets the rest fit.
  std::optional<FittingChange> on_host{};
};

// `fit --on HARDWARE` without a model.
struct ModelFitRow {
  std::string model;
  double parameters = 0;
  Format weights = Format::bf16;
  FitRow fit;
};

struct Rejection {
  std::string hardware;  // id of the accelerator
  Message reason;        // the binding limit, with its numbers
  std::optional<PlanReport> nearest;
};

struct SearchCounts {
  std::int64_t cards = 0, counts = 0;
  std::int64_t plans_considered = 0, plans_pruned = 0, plans_evaluated = 0;
};

// The three sides of the golden triangle, 0..1 each, with the parts they were made of.
struct TrianglePart {
  Message what;
  double value = 0;
};
struct Triangle {
  double compute_density = 0, memory = 0, ecosystem = 0, score = 0;
  std::vector<TrianglePart> parts;
};

struct Candidate {
  PlanReport report;
  Triangle triangle;
  std::vector<Message> why;  // against the one ranked before it
  std::int64_t rank = 1;     // among all that meet the limits
};

struct RecommendAnswer {
  Job job;
  std::vector<Candidate> ranked;      // best first; empty: no solution
  std::int64_t feasible = 0;          // accelerators that meet the limits, shown or not
  std::vector<Rejection> rejected;    // every accelerator that is not in `ranked`
  std::optional<PlanReport> nearest;  // when nothing meets the limits
  std::vector<Message> relax;         // what to relax for that
  std::vector<Message> would_change;  // what would change the verdict
  std::vector<Assumption> assumptions;
  SearchCounts counts;
  bool partial = false;  // interrupted
  std::optional<Derivation> derivation;
};

struct CompareRow {
  PlanReport report;
  Message binding;   // the limit that binds on this hardware
  double ratio = 0;  // of the deciding metric, against the first
};
struct CompareAnswer {
  Job job;
  Metric deciding = Metric::output_tokens_per_second;
  std::vector<CompareRow> rows;
  std::vector<Assumption> assumptions;
  // The same hardware with facts or settings changed, in the same order; `changes` as written.
  std::string changes;
  std::vector<CompareAnswer> what_if;
};

// A plan of a search, as it stands in a table.
struct PlanRow {
  Plan plan;
  int cards = 1;
  double seconds = 0;  // of a training step, of a request
  double wish = 0;     // what plans are ordered by, less is better; see `wish_of`
  double memory_bytes = 0, usable_bytes = 0;
  double host_bytes = 0;      // beside the cards of a node
  std::optional<double> usd;  // of the job; of an hour of serving
  std::vector<Message> violated;
  bool tight = false;  // fits, but leaves little of the memory
  bool good() const { return violated.empty(); }
};

// The best of a family of plans that the chosen one does not belong to.
struct PlanFamilyRow {
  Family family;
  std::optional<PlanRow> best;
  std::optional<Message> refused;  // why there is none
  double ratio = 0;                // of its wish to the chosen one's; 0: it misses a limit
};

// The best plan on some of the cards.
struct ScalingRow {
  int cards = 1;
  std::optional<PlanRow> best;     // absent: nothing divides
  std::optional<Message> refused;  // why
  // Against the fewest cards that hold all limits; 0 where nothing does.
  double speedup = 0, efficiency = 0;
  double added = 0;  // what each card added since the row before brings, against one of the fewest
};

// What else fine-tuning could change on the same cards.
struct MethodRow {
  TuneMethod method = TuneMethod::full;
  std::optional<PlanRow> best;     // absent: nothing divides
  std::optional<Message> refused;  // why
};

// `plan`: the best way to run a job on one cluster.
struct PlanAnswer {
  Job job;
  std::optional<PlanReport> best;     // meets all limits
  std::optional<PlanReport> nearest;  // when none does
  std::optional<Message> refused;     // when there is not even that
  std::optional<PlanRow> runner_up;   // the best outside some family of the best
  std::vector<PlanFamilyRow> families;
  std::vector<PlanRow> front;  // of time, share of memory and cost, over all counts of cards
  std::vector<ScalingRow> scaling;
  std::vector<MethodRow> methods;  // fine-tuning alone: every method, the asked one among them
  std::vector<Message> relax;
  std::vector<Assumption> assumptions;
  std::int64_t plans = 0;  // of the space on the whole cluster
  // With those on fewer cards, see SearchTally.
  std::int64_t decided = 0, timed = 0, weighed = 0, whole = 0;
  bool partial = false;  // interrupted
  std::optional<Derivation> derivation;
};

}  // namespace trigon
