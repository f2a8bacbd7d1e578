#pragma once
// The formulas of the step room, as recorded in derivations and documented in docs/.

#include "base/record.hpp"

namespace trigon::formulas {

inline constexpr Formula kPrefill{"serving.prefill", "layers + ends + overhead + sends"};
inline constexpr Formula kDecodeStep{"serving.decode_step", "layers + ends + overhead + sends"};
// Solved for the batch: rate * output = (1 - busy) * batch / decode_step(batch).
inline constexpr Formula kSteadyState{"serving.steady_state",
                                      "rate * output * decode_step / (1 - busy)"};
inline constexpr Formula kTimePerToken{"serving.tpot", "decode_step / (1 - busy)"};
inline constexpr Formula kWait{"serving.wait", "busy / (1 - busy) * occupancy / 2"};
inline constexpr Formula kTimeToFirst{
    "serving.ttft", "request_overhead + wait + prefill + running * decode_step / 2"};
inline constexpr Formula kFixedBatch{"serving.fixed_batch",
                                     "request_overhead + prefill + steps * decode_step"};
inline constexpr Formula kItemBatch{"serving.item_batch",
                                    "request_overhead + once + steps * step + overhead"};
inline constexpr Formula kItemWait{"serving.item_wait", "busy * pass / 2"};
inline constexpr Formula kMicroBatch{"training.micro_batch",
                                     "forward + backward + recompute + send"};
inline constexpr Formula kBubble{"training.bubble",
                                 "max(0, pipeline - accumulation * micro_batch_time)"};
inline constexpr Formula kGradientReduction{
    "training.gradient_reduction",
    "copies + max(last_bucket, reduction - overlap * hidden_behind)"};
inline constexpr Formula kOptimizer{"training.optimizer",
                                    "parameters * bytes / bandwidth + transfer"};
inline constexpr Formula kOffloadedActivations{
    "training.offloaded_activations",
    "accumulation * (max(0, bytes / link - forward) + max(0, bytes / link - backward))"};
inline constexpr Formula kStep{
    "training.step",
    "accumulation * micro_batch_time + bubble + offloaded + exposed + slowed + optimizer + "
    "overhead + loader"};
inline constexpr Formula kTimeToTrain{"training.time_to_train", "steps * step / goodput"};
inline constexpr Formula kGoodput{
    "training.goodput",
    "interval / (failure * exp(restart / failure) * (exp((interval + write) / failure) - 1))"};
inline constexpr Formula kMfu{"training.mfu", "model_flops / (step * cards * peak)"};

}  // namespace trigon::formulas
