#pragma once
// Internal to the step room: the passes of a job and their times, shared by `prepare` (which
// tabulates them) and `break_down` (which explains them).

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
// The same for the job's own input. An encoder sees a sequence whole, so it is never cut.
PromptPasses prompt_passes(const Tables& t, double sequences);

// A table's time at a number of sequences, interpolated; `row` of [tensor][expert].
PassTime at_batch(const InferenceTables& i, const std::vector<PassTime>& table, std::size_t row,
                  double batch);
// Sequences that are costed; evaluation interpolates between them.
std::vector<std::int32_t> batch_grid(std::int64_t limit, std::int32_t asked);
// Backward of one operator: gradients of the input and, where weights train, of the weights.
struct BackwardTime {
  double input = 0, weight = 0;
  double total() const { return input + weight; }
};
BackwardTime backward_time(const DeviceModel& d, const Operator& op, bool weights_train);

// The operators of a training pass as they are timed: experts and their exchange at the pace of
// the busiest rank, attention with the keys and values of other context ranks.
struct TrainOperator {
  double forward = 0;
  BackwardTime backward;
  double context = 0;  // part of both: the exchange beyond what attention hides
};
// What tensor ranks exchange in a layer, and the products it may run beside: in the forward pass
// those it feeds or follows, in the backward pass the gradients of weights (engines say which,
// src/engine/policy.hpp). Compute beside it slows down.
struct BesideProducts {
  double products = 0, weights = 0;  // seconds of products: forward, gradients of weights
  double forward = 0, backward = 0;  // seconds of the exchange
  void add(const Operator& op, const TrainOperator& x);
  // Seconds that do not count, of the forward and the backward pass.
  std::pair<double, double> hidden(const EnginePolicy& e, const Pass& p) const;
};

// The host's time for the forward pass of a layer, twice that for the backward pass. A plain layer
// is some 30 launches, which `layer_overhead_seconds` is the time of. Routing to experts, counting
// and sorting their tokens and putting them back are 50 more (Megatron Core, transformer/moe:
// router.py, moe_utils.py, token_dispatcher.py).
double layer_host(const Tables& t, const OperatorList& ops);

TrainOperator train_operator(const Tables& t, const Pass& pass, const Operator& op,
                             bool weights_train);
// How many more rows the busiest of the ranks of an expert group has than the mean.
double busiest_share(const Tables& t, const Operator& op, double ranks);

Pass decode_pass(const Tables& t, std::int32_t tensor, std::int32_t expert, double batch);
Pass prefill_pass(const Tables& t, std::int32_t tensor, std::int32_t expert,
                  const PromptPasses& passes);
// One pass of an encoder over `sequences` whole inputs of the job.
Pass encoder_pass(const Tables& t, std::int32_t tensor, std::int32_t expert, double sequences);
// What the passes of training under a plan share, lengths apart.
Pass training_pass_of(const Tables& t, const Plan& plan);
// One pass of a stack over training sequences of `s` tokens; `p` holds all but its lengths.
Pass training_pass(const Tables& t, const Stack& stack, std::int64_t s, Pass p);
PassTime pass_time(const Tables& t, const Stack& stack, const Pass& pass);
// What the host needs to launch a layer of a serving pass. A captured graph is replayed whole; what
// is not captured (prompts, eager engines) waits for the host.
double layer_host_seconds(const Tables& t, const Pass& pass);
// `count` layers of these operators, which take the device `device_seconds` in all, with their
// host. Modules that wait for their kernels leave nothing to run ahead of: both times add up.
double with_layer_host(const Tables& t, const Pass& pass, const OperatorList& ops,
                       double device_seconds, double count);

}  // namespace trigon
