#pragma once
// What a log of an out-of-memory error says, as text and JSON.

#include "decide/check.hpp"
#include "present/job_text.hpp"

namespace trigon {

std::string check_text(const CheckAnswer& a, const Asked& asked, const TextStyle& style);
JsonNode check_json(const CheckAnswer& a, const Asked& asked);
// Whether nothing failed: a table of needs alone is no failure.
bool is_yes(const CheckAnswer& a);

}  // namespace trigon
