#pragma once
// For the tests of the families: the catalogue of the embedded sheets and the graphs of a network.

#include <string_view>
#include <vector>

#include "network/catalog.hpp"

namespace trigon {

inline const NetworkCatalog& embedded_networks() {
  static const FactStore store = *FactStore::embedded();
  static const NetworkCatalog catalog = *NetworkCatalog::from(store);
  return catalog;
}

// The graph of a component; an empty one when the network does not build.
inline Graph network_graph(std::string_view name, const ItemOptions& item = {},
                           std::size_t component = 0) {
  auto m = embedded_networks().find(name, item);
  return m ? std::get<Graph>(m->components.at(component).body) : Graph{};
}

inline std::int64_t network_parameters(std::string_view name, std::size_t component = 0) {
  return count_parameters(network_graph(name, {}, component));
}

inline double network_gmacs(std::string_view name, std::vector<std::int64_t> size = {}) {
  ItemOptions item;
  item.size = std::move(size);
  return multiply_accumulates(network_graph(name, item)) / 1e9;
}

}  // namespace trigon
