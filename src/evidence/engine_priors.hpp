#pragma once
// What is believed of an engine table before rows are looked at: where a fit starts, how far each
// effect may lie from one, and what effects may make together.

#include "cost/engine_effects.hpp"

namespace trigon {

// What a fit of this kind starts from and is held to: nothing but the operator tables and host
// times of a usual size.
EngineCoefficients neutral_coefficients(EngineKind kind);
// Whether coefficients of this kind have the parameter.
bool fitted_parameter(EngineKind kind, EngineParameter p);

// A host's time, which classes and formats do not know.
bool is_overhead(EngineParameter p);

// The host, the links and the kernels that a prompt's 16-bit queries and keys meet in do not know
// in which format weights lie. (Training in FP8 and networks under autocast launch more kernels.)
bool knows(EngineKind kind, EngineLevel level, EngineParameter p);

// One over the squared deviation, in logarithms, that an effect has without any row. Judged: chosen
// by the errors of unseen folds, by kind of work (docs/cost.md).
double hold_of(EngineKind kind, EngineLevel level, EngineParameter p);

// Whether the operator tables timed the libraries that the subject's products run in. What its
// effects make together of their rates is then held to one by `kHoldTogether`: many small effects,
// each likely, may not add up to what no table shows. A tenth is what boxes of one card differ by.
bool timed_by_tables(EngineKind kind, const EngineSubject& s);
constexpr double kHoldTogether = 1 / (0.1 * 0.1);

}  // namespace trigon
