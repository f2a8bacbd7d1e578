#pragma once
// Parts of a card that share nothing with its other parts: instances of MIG, named
// "a100-sxm-80gb:1g.10gb". Facts are in the sheet "partitions/mig".

#include <vector>

#include "hardware/accelerator.hpp"

namespace trigon {

// "1g.10gb" -> the part of `card`; absent when the card does not divide so.
std::optional<Accelerator> partition_of(const FactStore& store, const Accelerator& card,
                                        std::string_view profile);
// The names of all its parts, smallest first; empty where it does not divide.
std::vector<std::string> partition_names(const FactStore& store, const Accelerator& card);

}  // namespace trigon
