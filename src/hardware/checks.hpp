#pragma once
// Facts held against physics when the catalogue is built. A contradiction is a typing or reading
// mistake in a sheet, so the build stops at it.

#include "base/facts.hpp"
#include "hardware/messages.hpp"

namespace trigon {

// Every contradiction in the hardware sheets: peaks against units x clock x rate of the family,
// wider formats never faster than narrower ones, matrix units never slower than vector units, the
// direction of links, sizes and rates that no device has, references that lead nowhere.
// `where` of each error is the fact's id.
std::vector<Error> hardware_contradictions(const FactStore& store);

// The first of them.
Result<void> check_hardware_facts(const FactStore& store);

}  // namespace trigon
