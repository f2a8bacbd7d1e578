#include "engine/policy.hpp"

#include <algorithm>

#include "hardware/accelerator.hpp"

namespace trigon {

EnginePolicy EnginePolicy::on_card(Bytes reported, std::string_view architecture) const {
  EnginePolicy p = *this;
  if (card_resolved) return p;
  p.card_resolved = true;
  const bool left_out =
      std::find(large_card_not.begin(), large_card_not.end(), architecture) != large_card_not.end();
  if (large_card > Bytes{} && reported >= large_card && !left_out) {
    if (large_card_batched_tokens > 0) p.max_batched_tokens = large_card_batched_tokens;
    if (large_card_sequences > 0) p.max_sequences = large_card_sequences;
  }
  std::size_t tier = 0;
  for (std::size_t i = 0; i < tier_gib.size(); ++i)
    if (reported.in_base() >= tier_gib[i] * kGi) tier = i;
  auto only = [&](std::vector<double>& list) {
    if (tier < list.size()) list = {list[tier]};
  };
  if (tier < tier_tokens.size())
    p.max_batched_tokens = static_cast<std::int64_t>(tier_tokens[tier]);
  only(p.tier_graphs);
  only(p.tier_graphs_tp4);
  return p;
}

bool EnginePolicy::made_for(const Accelerator& card) const {
  if (card.kind == DeviceKind::cpu) return processors;
  return std::find(vendors.begin(), vendors.end(), card.vendor) != vendors.end();
}

bool EnginePolicy::runs_on(const Accelerator& card) const {
  if (!made_for(card)) return false;
  return !card.compute_capability || *card.compute_capability >= nvidia_capability_min;
}

double EnginePolicy::fraction(int tensor) const {
  double f = memory_fraction;
  if (memory_fraction <= 0)
    for (std::size_t i = 0; i < fraction_ranks.size() && i < fraction_values.size(); ++i)
      if (tensor >= fraction_ranks[i]) f = fraction_values[i];
  return f;
}

std::optional<double> EnginePolicy::waits(Format weights) const {
  for (std::size_t i = 0; i < waiting_formats.size() && i < waiting_launches.size(); ++i)
    if (waiting_formats[i] == info(weights).name) return waiting_launches[i];
  return std::nullopt;
}

Bytes EnginePolicy::reserve(int tensor, int pipeline, Bytes card) const {
  const auto& graphs = tensor >= 4 ? tier_graphs_tp4 : tier_graphs;
  // At least 2,048 prefill tokens are reckoned with.
  const double chunk = std::max(2048.0, static_cast<double>(max_batched_tokens));
  const Bytes sum = reserve_base + reserve_per_token * chunk +
                    reserve_per_graph * (graphs.empty() ? 0 : graphs[0]) +
                    reserve_per_8_ranks * (tensor * pipeline / 8.0);
  return card > reserve_least_from ? std::max(sum, reserve_least) : sum;
}

}  // namespace trigon
