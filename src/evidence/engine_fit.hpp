#pragma once
// Fits the effects of an engine table on end-to-end times: all at once, in logarithms, each effect
// held to one by a prior that is tighter the finer the effect (partial pooling, as in a
// hierarchical regression: A. Gelman, J. Hill, "Data Analysis Using Regression and
// Multilevel/Hierarchical Models", 2006). Gauss-Newton steps with Cauchy weights, so that wrong
// readings do not steer, each solved by conjugate gradients.

#include <functional>
#include <vector>

#include "cost/engine_effects.hpp"

namespace trigon {

struct FitProblem {
  std::vector<EngineSubject> subjects;  // one a row; all of one kind
  std::vector<double> weights;
  // log(predicted / measured) of a row under these coefficients; NaN where there is no prediction.
  // Called for different rows from several threads at once.
  std::function<double(std::size_t row, const EngineCoefficients&)> log_error;
};

// The effects of one kind, on the rows that are `seen`. `start`: a fit of nearly the same rows,
// from which fewer steps reach the same end.
std::map<std::string, EngineEffect, std::less<>> fit_effects(
    const FitProblem& problem, EngineKind kind, const std::vector<bool>& seen,
    const std::map<std::string, EngineEffect, std::less<>>* start);

}  // namespace trigon
