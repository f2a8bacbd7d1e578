#pragma once
// Facts: every number or name Trigon takes from the world, with its source and date.
//
// A sheet is one TOML file under data/: a `kind`, an `id`, a default `source` and `date`, and
// facts in (possibly nested) tables, flattened to dotted keys that carry their base unit or scale
// in the name ("memory.bandwidth_gb_per_s"). A table `[provenance]` may give another source or
// date for single keys: `"peak.fp8_tflops" = { source = "...", date = "2025-06" }`.
// The build packs all sheets into one text that the program embeds; `--data DIR` reads TOML
// sheets that replace the embedded ones of the same kind and id.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace trigon {

using FactValue =
    std::variant<bool, double, std::string, std::vector<double>, std::vector<std::string>>;

struct Fact {
  std::string key;
  FactValue value;
  std::string source;  // empty: the sheet's
  std::string date;    // empty: the sheet's
};

// A list of tables in a sheet ([[entry]]): each is a small sheet of facts of its own.
struct FactGroup {
  std::string name;  // "entry"
  std::vector<Fact> facts;
};

class FactSheet {
 public:
  std::string kind, id, source, date;
  std::string where;  // file it came from, for messages
  std::vector<Fact> facts;
  std::vector<FactGroup> groups;

  const Fact* find(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;  // empty when absent
  std::vector<double> numbers(std::string_view key) const;     // empty when absent
  // "kind/id#key", the stable id under which a fact is cited.
  std::string fact_id(std::string_view key) const;
  Error missing(std::string_view key) const;
};

const Fact* find_fact(const std::vector<Fact>& facts, std::string_view key);

class FactStore {
 public:
  // The sheets embedded at build time.
  static Result<FactStore> embedded();
  // The embedded sheets, with those under `dir` (recursively, *.toml) replacing their namesakes.
  static Result<FactStore> with_directory(const std::filesystem::path& dir);
  static Result<FactStore> from_directory(const std::filesystem::path& dir);
  static Result<FactStore> from_packed(std::string_view packed);

  // Adds a sheet that was made from something else than TOML, or replaces its namesake.
  void add(FactSheet sheet);

  const FactSheet* find(std::string_view kind, std::string_view id) const;
  // All sheets of a kind, sorted by id.
  std::vector<const FactSheet*> of_kind(std::string_view kind) const;
  std::string packed() const;
  const std::vector<FactSheet>& sheets() const { return sheets_; }

 private:
  void put(FactSheet sheet);
  void sort();
  std::vector<FactSheet> sheets_;  // sorted by (kind, id)
};

// Parses one TOML sheet. `where` names it in errors.
Result<FactSheet> parse_fact_sheet(std::string_view toml, std::string_view where);

}  // namespace trigon
