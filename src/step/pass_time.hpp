#pragma once
// Internal to the step room: the passes of a job and their times, shared by `prepare` (which
// tabulates them) and `costed_operators` (which explains them).

#include "lower/lower.hpp"
#include "step/tables.hpp"

namespace trigon {

// How the prompts of `sequences` requests are cut into passes under a token budget.
struct PromptPasses {
  double passes = 1;
  double sequences = 1;    // in each pass
  double new_tokens = 0;   // per sequence in each pass
  double mean_cached = 0;  // tokens of earlier chunks
};
// Tokens of one forward pass at most; 0: no limit.
double pass_tokens(const EnginePolicy& e);
PromptPasses prompt_passes(double sequences, double input, double budget);

Pass decode_pass(const Tables& t, std::int32_t tensor, std::int32_t expert, double batch);
Pass prefill_pass(const Tables& t, std::int32_t tensor, std::int32_t expert,
                  const PromptPasses& passes);
PassTime pass_time(const Tables& t, const Pass& pass);

}  // namespace trigon
