#pragma once
// From settings to the question a verb answers.

#include "decide/verbs.hpp"
#include "settings.hpp"

namespace trigon {

struct Asking {
  JobRequest job;
  PlanRequest plan;
  Objective objective;
  std::string engine;
  std::optional<Bytes> host_memory, disk;
  std::optional<BytesPerSecond> host_bandwidth;
  std::optional<double> loader_rate;  // items a second, of a node
  std::vector<Message> warnings;
};
Result<Asking> read_question(const Settings& s);

}  // namespace trigon
