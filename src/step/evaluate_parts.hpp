#pragma once
// Internal to the step room: the parts that `evaluate` is made of, one for each kind of job.

#include "step/formulas.hpp"
#include "step/tables.hpp"

namespace trigon {

// Fills the inference metrics under the asked load. Sets plan.micro_batch to the sequences that
// are in flight on one replica at the asked percentile, which is what memory must hold.
template <class Recorder>
void evaluate_serve(const Tables& t, const Serve& job, Plan& plan, Evaluation& e,
                    Recorder& recorder);

// A fixed batch of plan.micro_batch requests that start together, on each replica.
template <class Recorder>
void evaluate_batch(const Tables& t, const Batch& job, const Plan& plan, Evaluation& e,
                    Recorder& recorder);

template <class Recorder>
void evaluate_train(const Tables& t, const Plan& plan, Evaluation& e, Recorder& recorder);

// Seconds of one decode step and of the prefill of `sequences` prompts, pipeline sends and host
// overhead included.
double decode_step_seconds(const Tables& t, const Plan& plan, double sequences);
double prefill_seconds(const Tables& t, const Plan& plan, double sequences);
// How long one prompt keeps a replica from other work when many wait: what it adds to a pass that
// is shared up to the token budget, on one of the stages that work at once.
double prompt_occupancy(const Tables& t, const Plan& plan);

std::size_t index_in(const std::vector<std::int32_t>& domain, std::int32_t value);

}  // namespace trigon
