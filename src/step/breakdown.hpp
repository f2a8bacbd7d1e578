#pragma once
// Where the time of a step goes: its operators, each against the roofline of the device, and what
// is no operator's. The same lowering and cost that `prepare` used; lines and rest add up to the
// time that `evaluate` states.

#include <string>
#include <vector>

#include "step/schedule_events.hpp"
#include "step/tables.hpp"

namespace trigon {

enum class StepPart : std::uint8_t {
  prefill,     // of the prompts: Metric::prefill_seconds
  decode,      // one token for every sequence: Metric::decode_step_seconds
  item_batch,  // a batch of whole items, from its start to its end
  train_step   // one optimizer step on the stage with most work: Metric::step_seconds
};

// Time that belongs to no operator.
enum class StepRest : std::uint8_t {
  host_floor,        // the device waits for the host's launches
  beside_products,   // collectives that run beside products, taken off again
  step_overhead,     // scheduler, sampling, input preparation
  request_overhead,  // once a request
  sends,             // between pipeline stages, or of rows between ranks
  recompute,
  optimizer,
  exposed_communication,  // gradients and weights, beyond what compute hides
  slowed,                 // compute beside communication that it hides
  offloaded,              // waiting for activations to leave for host memory or come back
  loader,                 // waiting for data
  bubble,
  other  // what the lines above do not explain; 0 but for rounding
};

struct OperatorLine {
  Operator op;            // one call
  bool backward = false;  // its backward pass: the gradients of inputs and of weights
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
  // Training: what each pipeline stage does when, from the start of the step; empty where there are
  // more passes than a picture holds. What is not passes follows them.
  std::vector<StageEvent> events;
  std::int32_t stages = 1, virtual_stages = 1, micro_batches = 1;
  double passes_end = 0;
  // Training: seconds of communication inside the passes.
  double tensor = 0, expert = 0, context = 0;
  // Training: seconds of the passes, communication inside them included.
  double forward = 0, backward = 0;
  // Seconds of operators that this binds.
  double bound_by(Bound b) const;
};

// The parts of an evaluated plan, in the order they run. `evaluation` is that of the same tables.
std::vector<StepBreakdown> break_down(const Tables& tables, const Plan& plan,
                                      const Evaluation& evaluation);

}  // namespace trigon
