#pragma once
// What a graph keeps in memory for one item: weights, values alive at once, values saved for the
// backward pass. Exact sums over the graph's values.

#include "job/adapter_targets.hpp"
#include "model/graph.hpp"

namespace trigon {

// Elements are counted apart from bytes where the plan's number format decides their size.
struct ItemBytes {
  double floats = 0;  // elements in the format of the plan's activations
  double bytes = 0;   // of integers, masks and 32-bit statistics
  double at(double element_bytes) const { return floats * element_bytes + bytes; }
};

struct GraphBytes {
  double parameters = 0;     // that train
  double row_bytes = 0;      // of tables whose rows are divided over the ranks, as stored
  double weight_floats = 0;  // elements of weights stored in floating point
  double weight_bytes = 0;   // of weights stored otherwise (integers, blocks)
  double stored_bytes = 0;   // of all weights as the network states them
  ItemBytes forward;         // the most alive at once, nothing kept
  ItemBytes saved;           // kept for the backward pass, each value once
  ItemBytes largest;         // inputs and outputs of the node that has most
  bool attention = false;
  // With adapters: how many, and their sum of inputs + outputs; what is kept where each casts its
  // input for itself instead of sharing it.
  double adapted = 0, adapter_in_out = 0;
  ItemBytes saved_casts;
};

// Low-rank adapters on attention's projections; everything else is frozen and passes gradients on.
struct GraphAdapters {
  double rank = 0;
  AdapterTargets targets;
};
// Whether an adapter stands on a node, for all nodes.
std::vector<bool> adapted_nodes(const Graph& graph, AdapterTargets targets);

// `flash`: attention scores are not kept where the network allows it. `in_place`: a function of
// single elements overwrites an input that nobody else reads.
GraphBytes bytes_of_graph(const Graph& graph, bool flash, bool in_place,
                          const GraphAdapters* adapters = nullptr);

}  // namespace trigon
