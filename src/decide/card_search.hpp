#pragma once
// The cheapest machine of one accelerator that does a job within its limits, over all counts of it
// and all formats that its weights may be stored in.

#include "decide/best_plan.hpp"

namespace trigon {

// What was found on one accelerator, over all counts of it.
struct CardResult {
  const Accelerator* card = nullptr;
  std::optional<Setup> setup;    // of the chosen count
  std::optional<Chosen> chosen;  // the cheapest that meets everything
  std::optional<Setup> nearest_setup;
  std::optional<Chosen> nearest;  // the one that misses by least
  double nearest_excess = 0;
  std::vector<Message> nearest_violated;
  std::optional<Message> rejection;
  std::optional<Error> error;              // of the question itself
  double usd_per_hour = 0, usd_total = 0;  // of the chosen; 0: no price is known
  double cost = 0;                         // what counts were compared by
  PlanRequest request;                     // the question's, with the format of the weights
  std::optional<Format> narrowed;          // weights in fewer bits than the checkpoint's
  double stored_usd_total = 0;             // the same card with the weights as they are stored
  SearchCounts counts;
};

// Ranks that the fixed degrees make: machines hold a multiple of them.
std::int64_t fixed_ranks(const PlanRequest& p);
// Not a number for a service that never ends.
double job_hours(const Setup& s, const Evaluation& e);
// What more of breaks a tie of costs.
double speed_of(const CardResult& r);

// Formats that weights may be stored in instead: of fewer bits than the checkpoint's, not of fewer
// than was allowed, and such as the card multiplies or unpacks.
std::vector<Format> narrower_formats(const Question& q, const Objective& o,
                                     const Accelerator& card);
// What to relax for a plan that misses limits.
std::vector<Message> relaxations(const Setup& s, const Chosen& c, const Objective& o,
                                 double usd_per_hour);

CardResult search_card(const Catalogues& all, const Question& q, const Objective& o,
                       const Accelerator& card, Offloading offloading = Offloading::as_asked,
                       const std::atomic<bool>* stop = nullptr);

}  // namespace trigon
