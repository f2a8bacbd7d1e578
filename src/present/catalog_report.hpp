#pragma once
// Facts with their sources: one sheet in full, or many in a table.

#include "hardware/accelerator.hpp"
#include "present/job_text.hpp"

namespace trigon {

std::string sheet_text(const FactSheet& sheet, const TextStyle& style);
JsonNode sheet_json(const FactSheet& sheet);

// `total`: how many the catalogue has, before any condition.
std::string accelerators_text(const std::vector<const Accelerator*>& shown, std::size_t total,
                              const TextStyle& style);
// Sheets of any kind with some of their facts as columns.
std::string sheets_text(const std::vector<const FactSheet*>& shown, std::size_t total,
                        const std::vector<std::string>& keys, const TextStyle& style);

}  // namespace trigon
