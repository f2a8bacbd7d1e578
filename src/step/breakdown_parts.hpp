#pragma once
// Internal to the step room: the passes that a breakdown is made of.

#include "step/breakdown.hpp"

namespace trigon {

struct CostedPass {
  std::vector<OperatorLine> operators;
  double host_floor = 0;
  double beside = 0;  // of collectives among the operators: seconds that products hide
};

void add(CostedPass& out, const Tables& t, const Operator& op, double calls,
         const std::string& component = {});
double seconds_of(const CostedPass& p, std::size_t from);
// What waiting for the host adds to the device's seconds.
double beyond(const DeviceModel& d, double device, double host);

// All micro-batches of a step on a rank of the slowest stage, forward and backward.
CostedPass training_passes(const Tables& t, const Plan& plan, const Evaluation& e);
// Which stage does what when.
void add_timeline(const Tables& t, const Plan& plan, const Evaluation& e, StepBreakdown& out);
// What is no operator's there.
std::vector<RestLine> training_rest(const Tables& t, const Plan& plan, const Evaluation& e);

}  // namespace trigon
