#pragma once
// Internal to the step room: passes of models that do whole items in one go.

#include "lower/lower.hpp"
#include "step/tables.hpp"

namespace trigon {

// Operators of one component for `items` items in inference or training.
void lower_component(const Tables& t, const Component& component, double items, bool training,
                     OperatorList& out);

// Kernels that the host launches for such a list.
double host_launches(const Tables& t, const OperatorList& ops);

// Fill the tables of inference and of training.
void fill_item_inference(Tables& t, const std::vector<std::int32_t>& batches);
void fill_item_training(Tables& t);

// A batch of items on one replica, from its start to its end.
double item_batch_seconds(const Tables& t, const Plan& plan, double items);

template <class Recorder>
void evaluate_item_serve(const Tables& t, const Serve& job, Plan& plan, Evaluation& e,
                         Recorder& recorder);
template <class Recorder>
void evaluate_item_batch(const Tables& t, const Batch& job, const Plan& plan, Evaluation& e,
                         Recorder& recorder);

}  // namespace trigon
