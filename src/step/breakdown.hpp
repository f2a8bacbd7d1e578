#pragma once
// Where the time of a step goes: its operators, each against the roofline of the device, and what
// is no operator's. The same lowering and cost that `prepare` used; lines and rest add up to the
// time that `evaluate` states.

#include <string>
#include <vector>

#include "step/tables.hpp"

namespace trigon {

enum class StepPart : std::uint8_t {
  prefill,     // of the prompts: Metric::prefill_seconds
  decode,      // one token for every sequence: Metric::decode_step_seconds
  item_batch,  // a batch of whole items, from its start to its end
  train_step   // operators of the forward pass of one optimizer step: Metric::step_seconds
};

// Time that belongs to no operator.
enum class StepRest : std::uint8_t {
  host_floor,        // the device waits for the host's launches
  step_overhead,     // scheduler, sampling, input preparation
  request_overhead,  // once a request
  sends,             // between pipeline stages, or of rows between ranks
  backward,
  recompute,
  optimizer,
  exposed_communication,  // gradients and weights, beyond what compute hides
  bubble,
  other  // what the lines above do not explain; 0 but for rounding
};

struct OperatorLine {
  Operator op;            // one call
  std::string component;  // of models that do whole items; empty for a language model
  OperatorTime time;      // one call
  double calls = 1;       // in the step
  double seconds = 0;     // of all calls, as they count in the step
  MathUnit unit;          // what it is computed on: peak under the power limit, and mode
  double bytes() const { return op.weight_bytes + op.data_bytes; }
  bool collective() const { return op.kind >= OperatorKind::all_reduce; }
  // FLOP per byte of memory traffic; 0 where there is none.
  double intensity() const { return bytes() > 0 ? op.flops / bytes() : 0; }
};

struct RestLine {
  StepRest what = StepRest::other;
  double seconds = 0;
};

struct StepBreakdown {
  StepPart part = StepPart::decode;
  double seconds = 0;    // operators and rest
  double sequences = 1;  // or items, in the pass; of a training step those of a micro-batch
  double bandwidth = 0;  // of the device's memory, B/s
  std::vector<OperatorLine> operators;  // the longest first
  std::vector<RestLine> rest;           // in the order of StepRest, without zeros
  // Seconds of operators that this binds.
  double bound_by(Bound b) const;
};

// The parts of an evaluated plan, in the order they run. `evaluation` is that of the same tables.
std::vector<StepBreakdown> break_down(const Tables& tables, const Plan& plan,
                                      const Evaluation& evaluation);

}  // namespace trigon
