#pragma once
// A vision transformer as one graph.

#include "network/spec.hpp"

namespace trigon {

// For an image of the asked size, from the facts of the variant ("width", "depth", "patch", ...).
Graph vit_graph(const NetworkSpec& spec);

}  // namespace trigon
