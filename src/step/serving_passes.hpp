#pragma once
// Internal to the step room: times of whole passes of a serving plan, looked up in the tables.

#include "step/evaluate_parts.hpp"
#include "step/pass_time.hpp"

namespace trigon {

// A pass with what it is made of, in seconds.
struct PassParts {
  double layers = 0, ends = 0, overhead = 0, sends = 0;
  double batch = 0;  // sequences that the tables were asked for
  double total() const { return layers + ends + overhead + sends; }
};

// Stages that work at the same time, each on sequences of its own. Engines that cut a model into
// layers to fit it (llama.cpp) run one stage after the other.
double stages_at_once(const Tables& t, const Plan& plan);
PassParts decode_parts(const Tables& t, const Plan& plan, double sequences);
// The prompts of `sequences` requests, until the last of them is through.
PassParts prefill_parts(const Tables& t, const Plan& plan, double sequences);

}  // namespace trigon
