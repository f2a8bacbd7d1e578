#pragma once
// The formulas of the step room, as recorded in derivations and documented in docs/.

#include "base/record.hpp"

namespace trigon::formulas {

inline constexpr Formula kPrefill{"serving.prefill", "layers + ends + overhead + sends"};
inline constexpr Formula kDecodeStep{"serving.decode_step",
                                     "layers(batch) + ends(batch) + overhead + sends"};
inline constexpr Formula kSteadyState{
    "serving.steady_state", "rate * output = (1 - rate * prefill) * batch / decode_step(batch)"};
inline constexpr Formula kTimePerToken{"serving.tpot", "decode_step / (1 - rate * prefill)"};
inline constexpr Formula kWait{"serving.wait", "busy / (1 - busy) * prefill / 2"};
inline constexpr Formula kTimeToFirst{"serving.ttft",
                                      "request_overhead + wait + prefill + decode_step / 2"};
inline constexpr Formula kFixedBatch{"serving.fixed_batch",
                                     "prefill(batch) + (output - 1) * decode_step(batch)"};
inline constexpr Formula kMicroBatch{
    "training.micro_batch", "(forward + backward + recompute) * layers of the slowest stage"};
inline constexpr Formula kBubble{"training.bubble", "(pipeline - 1) / virtual * micro_batch_time"};
inline constexpr Formula kGradientReduction{
    "training.gradient_reduction", "max(0, reduction - overlap * last backward)"};
inline constexpr Formula kOptimizer{"training.optimizer",
                                    "parameters on the rank * bytes moved / bandwidth"};
inline constexpr Formula kStep{
    "training.step",
    "accumulation * micro_batch_time + bubble + exposed communication + optimizer + overhead"};
inline constexpr Formula kTimeToTrain{"training.time_to_train",
                                      "tokens / (global_batch * sequence) * step"};
inline constexpr Formula kMfu{"training.mfu",
                              "model FLOPs of a step / (step * cards * dense peak)"};

}  // namespace trigon::formulas
