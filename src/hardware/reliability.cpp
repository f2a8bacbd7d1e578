#include "hardware/reliability.hpp"

namespace trigon {

std::optional<Reliability> reliability_of(const FactStore& facts) {
  const FactSheet* s = facts.find("reliability", "default");
  if (!s) return std::nullopt;
  const auto cards = s->number("observed_cards"), days = s->number("observed_days");
  const auto failures = s->number("interruptions"), restart = s->number("restart_minutes");
  const auto rate = s->number("storage_gb_per_s"), nodes = s->number("storage_nodes");
  if (!cards || !days || !failures || !restart || !rate || !nodes) return std::nullopt;
  if (*failures <= 0 || *nodes <= 0) return std::nullopt;
  return Reliability{*days * 86400 * *cards / *failures, *restart * 60, *rate * 1e9 / *nodes};
}

}  // namespace trigon
