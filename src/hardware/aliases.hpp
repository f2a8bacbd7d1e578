#pragma once
// Names of hardware in the world and what they mean (data/aliases.csv).
//
// The build turns the table into one sheet of kind "aliases" with a list of rows
// "canonical name|kind|candidate;candidate|note", sorted by name. Kinds are `a` accelerator,
// `s` system and `u` unknown: hardware outside the catalogue, with the reason as note.

#include <string>
#include <string_view>
#include <vector>

#include "base/facts.hpp"
#include "hardware/messages.hpp"

namespace trigon {

enum class AliasKind : char { accelerator = 'a', system = 's', unknown = 'u' };

struct Alias {
  std::string_view key;  // canonical
  AliasKind kind = AliasKind::accelerator;
  std::vector<std::string_view> targets;  // ids; several when the name is ambiguous
  std::string_view note;
};

class AliasTable {
 public:
  AliasTable() = default;
  // The sheet must outlive the table.
  static Result<AliasTable> from(const FactSheet& sheet);
  std::optional<Alias> find(std::string_view name) const;
  std::size_t size() const { return rows_.size(); }

 private:
  std::vector<std::string_view> rows_;  // sorted by key
};

// Reads the CSV file with the columns name, kind, target, candidates, note into a sheet.
Result<FactSheet> read_alias_table(std::string_view csv, std::string_view where);

}  // namespace trigon
