#pragma once
// Named networks: sheets of kind "network" under data/networks/, one for each family, with its
// variants as [[variant]] tables.

#include <string>
#include <string_view>
#include <vector>

#include "network/spec.hpp"

namespace trigon {

class NetworkCatalog {
 public:
  // The store must outlive the catalogue. Errors: a family no builder knows, a name used twice.
  static Result<NetworkCatalog> from(const FactStore& store);

  struct Entry {
    const FactSheet* family;
    const FactGroup* variant;
    std::string id;
  };
  const std::vector<Entry>& all() const { return entries_; }  // sorted by id
  // By id or alias, compared without case, blanks, '-' and '_'. Null when nobody has the name.
  const Entry* entry(std::string_view name) const;
  // Builds the model for the asked item. An unknown name is an error that names the nearest.
  Result<Model> find(std::string_view name, const ItemOptions& item = {},
                     std::string_view where = {}) const;

 private:
  struct Name {
    std::string key;
    std::size_t entry;
  };
  std::vector<Entry> entries_;
  std::vector<Name> names_;  // sorted by key
};

// A variant with what its family says of all, as one sheet to show.
FactSheet variant_sheet(const NetworkCatalog::Entry& entry);

Result<Model> build_network(const NetworkCatalog::Entry& entry, const ItemOptions& item);

}  // namespace trigon
