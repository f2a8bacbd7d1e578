#pragma once
// Hardware as people write it:
//
//   [NODES x] COUNT x NAME [@LINK]...{FACTS}      "4x8xh100-sxm@ib400", "rtx-4090{used=2GiB}"
//   [NODES x] SYSTEM [@LINK]...{FACTS}            "dgx-h100", "4xdgx-h100"
//
// FACTS are used=SIZE, memory=SIZE, display, power=WATTS, ecc=on|off, threads=NUMBER, separated by
// commas. LINK is
// a name of data/links/ or `nvlink`, `xgmi`, `pcie` for the accelerator's own; a network goes
// between the nodes, everything else between the accelerators of a node. Blanks do not count.

#include "hardware/systems.hpp"

namespace trigon {

Result<Cluster> parse_hardware(std::string_view text, const HardwareCatalog& catalog,
                               std::string_view where = {});

// As parse_hardware, but an ambiguous name ("8xa100-80gb") gives a cluster of each candidate.
Result<std::vector<Cluster>> parse_hardware_candidates(std::string_view text,
                                                       const HardwareCatalog& catalog,
                                                       std::string_view where = {});

// `nodes` nodes of `per_node` of these, with the links that the catalogue's facts give. What had to
// be assumed is listed in the cluster.
Cluster make_cluster(const HardwareCatalog& catalog, const Accelerator& accelerator, int per_node,
                     int nodes = 1);
Cluster make_cluster(const HardwareCatalog& catalog, const System& system, int nodes = 1);

// "4x8xh100-sxm-80gb@ib400": reads back as the same cluster (links by name, card facts in braces).
std::string write_hardware(const Cluster& cluster);

}  // namespace trigon
