#include "engine/policy.hpp"

namespace trigon {

EnginePolicy EnginePolicy::on_card(Bytes reported) const {
  EnginePolicy p = *this;
  if (large_card > Bytes{} && reported >= large_card) {
    if (large_card_batched_tokens > 0) p.max_batched_tokens = large_card_batched_tokens;
    if (large_card_sequences > 0) p.max_sequences = large_card_sequences;
  }
  return p;
}

}  // namespace trigon
