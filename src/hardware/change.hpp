#pragma once
// Hardware as it might be: facts of the catalogue changed for one question ("bandwidth=2x").

#include <memory>
#include <span>

#include "hardware/systems.hpp"

namespace trigon {

enum class HardwareKey : std::uint8_t {
  card,       // another accelerator in the same places
  bandwidth,  // of the memory
  peak,       // of every arithmetic unit
  memory,     // how much there is
  cache,      // the last level
  link,       // between nodes if there are several, else inside the node
  network,    // between nodes
  peer,       // inside the node
  latency,    // of all links
  power       // limit of each card
};
// "bandwidth", as written before the equals sign.
const std::vector<std::string_view>& hardware_keys();

// A factor ("2x", "+50%", "-20%") or a value in base units ("3.35TB/s", "96GB", "400W", "1us").
struct HardwareChange {
  HardwareKey key = HardwareKey::bandwidth;
  double factor = 1;
  std::optional<double> value;
  std::string name;  // of a card
};
// Errors: unknown key, a value that does not read, a factor where only a value has a meaning.
Result<HardwareChange> parse_hardware_change(std::string_view key, std::string_view value,
                                             std::string_view where = {});

// A cluster with the accelerator that it points to.
struct ChangedHardware {
  std::shared_ptr<const Accelerator> accelerator;
  Cluster cluster;
};
// The card comes first, whatever the order. Errors: unknown card, a fact to scale that nobody
// knows, a network where there is none (which `side_by_side` with others is no error).
Result<ChangedHardware> changed(const Cluster& cluster, std::span<const HardwareChange> changes,
                                const HardwareCatalog& catalog, std::string_view where = {},
                                bool side_by_side = false);

}  // namespace trigon
