#pragma once
// Changes for training and for models run by torch itself.

#include "decide/oom_advice.hpp"

namespace trigon {

// `component` is what asked for the memory.
std::vector<OomAdvice> train_advice(const OomReport& report, const OomEvent& event,
                                    OomComponent component);

}  // namespace trigon
