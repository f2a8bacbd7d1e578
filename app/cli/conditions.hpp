#pragma once
// Conditions on facts: "vendor=nvidia,memory>=80GB".

#include <string>
#include <vector>

#include "base/facts.hpp"

namespace trigon {

struct Condition {
  std::string key;   // as written
  std::string op;    // = != < <= > >=
  std::string text;  // what the fact is compared with
};

Result<std::vector<Condition>> parse_conditions(std::string_view text, std::string_view where);

// The sheets for which every condition holds. A key is a short name (memory, bandwidth, power,
// price, date), a fact's whole name or its last part; a key of no sheet is an error that names the
// nearest. A sheet without the fact does not match.
Result<std::vector<const FactSheet*>> matching(const std::vector<const FactSheet*>& sheets,
                                               const std::vector<Condition>& conditions,
                                               std::string_view where);

}  // namespace trigon
