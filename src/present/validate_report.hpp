#pragma once
// Errors of predictions as text, JSON and, row by row, CSV.

#include "evidence/validate.hpp"
#include "present/job_text.hpp"

namespace trigon {

// `broken`: thresholds that do not hold; null when none were asked for.
std::string validate_text(const ValidateAnswer& a, const std::vector<Message>* broken,
                          const TextStyle& style);
JsonNode validate_json(const ValidateAnswer& a, const std::vector<Message>* broken,
                       const Asked& asked);
// id,predicted,low,high,measured,basis,refusal,detail: one line for each row of the files.
std::string validate_rows_csv(const ValidateAnswer& a);

}  // namespace trigon
