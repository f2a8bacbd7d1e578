#pragma once
// How good predictions have to be: the limits of data/calibration/thresholds.toml.
//
//   [[limit]]
//   schema = "train"                     # of the rows looked at
//   statistic = "median_of_group_medians"  # or one of a group's: median_error, inside_interval ...
//   group = "overall"                    # or "encoder", "network", or a group's name
//   at_most = 0.2                        # or at_least
//
// "overall" is the rows of language models that write tokens, which the first limits were set for;
// other kinds of models have limits of their own, so that a new kind loosens none.

#include <vector>

#include "base/facts.hpp"
#include "evidence/validate.hpp"

namespace trigon {

struct Threshold {
  std::string schema, group, statistic;
  std::optional<double> at_most, at_least;
};

Result<std::vector<Threshold>> read_thresholds(const FactSheet& sheet);

// What does not hold, as messages; empty when all is well. Limits of other schemas than the
// answer's rows are not looked at; a figure that could not be computed breaks its limit.
std::vector<Message> broken_thresholds(const std::vector<Threshold>& limits,
                                       const ValidateAnswer& answer);

}  // namespace trigon
