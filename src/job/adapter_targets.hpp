#pragma once
// The modules that low-rank adapters stand on, by the part a module plays in a layer.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trigon {

enum class AdapterTarget : std::uint8_t {
  query,
  key,
  value,
  output,  // of attention
  gate,
  up,
  down,
  mixer,    // projections of recurrent mixers
  experts,  // every expert's matrices
  embedding,
  head
};

class AdapterTargets {
 public:
  constexpr AdapterTargets() = default;
  constexpr AdapterTargets(std::initializer_list<AdapterTarget> list) {
    for (AdapterTarget t : list) add(t);
  }
  constexpr void add(AdapterTarget t) {
    bits_ = static_cast<std::uint16_t>(bits_ | 1U << static_cast<unsigned>(t));
  }
  constexpr void add(AdapterTargets more) {
    bits_ = static_cast<std::uint16_t>(bits_ | more.bits_);
  }
  constexpr bool has(AdapterTarget t) const {
    return (bits_ >> static_cast<unsigned>(t) & 1U) != 0;
  }
  constexpr bool any(std::initializer_list<AdapterTarget> list) const {
    for (AdapterTarget t : list)
      if (has(t)) return true;
    return false;
  }
  constexpr bool within(AdapterTargets most) const { return (bits_ & ~most.bits_) == 0; }
  constexpr bool empty() const { return bits_ == 0; }
  friend constexpr bool operator==(AdapterTargets a, AdapterTargets b) = default;

 private:
  std::uint16_t bits_ = 0;
};

// Every linear of a layer but the experts'.
inline constexpr AdapterTargets kAllLinears{
    AdapterTarget::query, AdapterTarget::key, AdapterTarget::value, AdapterTarget::output,
    AdapterTarget::gate,  AdapterTarget::up,  AdapterTarget::down,  AdapterTarget::mixer};
inline constexpr AdapterTargets kAttentionProjections{AdapterTarget::query, AdapterTarget::key,
                                                      AdapterTarget::value, AdapterTarget::output};
inline constexpr AdapterTargets kQueryValue{AdapterTarget::query, AdapterTarget::value};

// Reads "all", "qv" or module names joined by ',' or '+': parts ("query", "q"), names of the
// checkpoints in use ("q_proj", "c_attn", "w1"). An unknown name is an error that names the
// nearest.
Result<AdapterTargets> adapter_targets(std::string_view list, std::string_view where = {});
// "q_proj+v_proj": what `adapter_targets` reads back.
std::string write_targets(AdapterTargets targets);

}  // namespace trigon
