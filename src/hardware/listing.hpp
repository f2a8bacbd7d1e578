#pragma once
// What `trigon catalog` shows: facts with their units and sources, and conditions on them.

#include "hardware/systems.hpp"

namespace trigon {

// One fact as a row: unit taken from the end of its key ("memory.bandwidth_gb_per_s" is in GB/s).
struct FactRow {
  std::string id;   // "accelerator/rtx-4090#memory.bandwidth_gb_per_s"
  std::string key;  // without the unit: "memory.bandwidth"
  std::string value;
  std::string unit;
  std::string source, date;
};
std::vector<FactRow> list_facts(const FactSheet& sheet);

// A condition as written after --where: KEY OP VALUE with OP one of = != < <= > >=.
// Sizes need their unit ("mem>=24GB"), rates may have one ("bw>1TB/s"), peaks are in TFLOP/s
// ("fp16>=100"), power in W ("power<=300W"), prices in USD ("price<2000"), dates compare as texts
// ("launch>=2023"), and words only with = and != ("vendor=amd", commas give several).
struct Condition {
  enum class Op : std::uint8_t { equal, not_equal, less, at_most, more, at_least };
  std::string key;
  Op op = Op::equal;
  std::optional<double> number;  // base units
  std::vector<std::string> words;
};
Result<Condition> parse_condition(std::string_view text, std::string_view where = {});

// The keys that conditions know, for help and completion.
const std::vector<std::string_view>& condition_keys();

// Whether the condition holds; an unknown fact never satisfies one.
bool holds(const Condition& c, const Accelerator& a);

// Accelerators for which all conditions hold, by id; processors only where the kind is asked for.
std::vector<const Accelerator*> select(const AcceleratorCatalog& catalog,
                                       const std::vector<Condition>& conditions);

}  // namespace trigon
