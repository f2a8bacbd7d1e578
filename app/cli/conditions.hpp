#pragma once
// Conditions on the facts of any kind of sheet: "layers>=40,architecture=LlamaForCausalLM". Those
// on accelerators, with their units, are in hardware/listing.hpp.

#include <string>
#include <vector>

#include "base/facts.hpp"

namespace trigon {

struct FactCondition {
  std::string key;   // as written
  std::string op;    // = != < <= > >=
  std::string text;  // what the fact is compared with
};

// The conditions of a text with commas between them. A comma also separates the words of one
// condition: a part without a comparison belongs to the one before it.
std::vector<std::string> split_conditions(std::string_view text);
Result<std::vector<FactCondition>> parse_conditions(std::string_view text, std::string_view where);

// The sheets for which every condition holds. A key is a fact's whole name or its last
// part; a key of no sheet is an error that names the nearest. A sheet without the fact does not
// match.
Result<std::vector<const FactSheet*>> matching(const std::vector<const FactSheet*>& sheets,
                                               const std::vector<FactCondition>& conditions,
                                               std::string_view where);

}  // namespace trigon
