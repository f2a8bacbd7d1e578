#pragma once
// The verbs, as functions from questions to answers. All of them go through prepare() and
// evaluate() of the step room.

#include <atomic>

#include "cost/calibration.hpp"
#include "decide/answers.hpp"

namespace trigon {

struct Catalogues;  // all facts, loaded (decide/catalogues.hpp)

// How the machine is paid for.
enum class Payment : std::uint8_t { rent, buy, any };
struct Budget {
  std::optional<Dollars> total;                // for the job
  std::optional<DollarsPerSecond> per_second;  // per hour or month
};

struct Objective {
  Payment payment = Payment::any;
  Budget budget;
  std::vector<std::string> vendors;  // empty: all
  int max_gpus = 64;
  std::string as_of;               // ISO date; empty: the price data's own
  std::string why_not;             // accelerator to explain
  int threads = 0;                 // 0: as many as the machine has; the answer is the same
  std::optional<double> min_bits;  // weights may be stored in fewer bits than the checkpoint's
};

struct Question {
  const Model* model = nullptr;
  JobRequest job;
  PlanRequest plan;
  std::string engine;       // id, optionally "id@version"; empty: the default for the job
  std::string engine_date;  // for evidence rows without a version
  bool explain = false;
  bool measured = false;  // it ran, whatever documentation says of engine and card
  // Coefficients to use instead of the catalogues': those fitted without the evidence at hand.
  const Calibration* calibration = nullptr;
};

Result<EstimateAnswer> estimate(const Catalogues&, const Question&, const Cluster&);
// The plan columns that are empty mean the best legal plan instead of the engine's default.
Result<EstimateAnswer> estimate_best(const Catalogues&, const Question&, const Cluster&);
Result<FitAnswer> fit(const Catalogues&, const Question&, const Cluster&);
// Where the one row of an answer does not fit: what an engine that may leave layers or experts in
// host memory would still hold on the cards.
std::optional<FittingChange> fit_on_host(const Catalogues&, const Question&, const Cluster&,
                                         const FitAnswer&);
Result<FitAnswer> fit_everywhere(const Catalogues&, const Question&);
Result<std::vector<ModelFitRow>> models_that_fit(const Catalogues&, const Question&,
                                                 const Cluster&);
// `stop`: set from outside, the search ends and the answer is partial.
Result<RecommendAnswer> recommend(const Catalogues&, const Question&, const Objective&,
                                  const std::atomic<bool>* stop = nullptr);
// The best plan of the whole space on one cluster, with what it was chosen from; `stop` likewise.
Result<PlanAnswer> plan_job(const Catalogues&, const Question&, const Cluster&, const Objective&,
                            const std::atomic<bool>* stop = nullptr);
Result<CompareAnswer> compare(const Catalogues&, const Question&, const std::vector<Cluster>&,
                              const Objective&);

}  // namespace trigon
