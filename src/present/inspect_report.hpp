#pragma once
// What a model file holds, as text and JSON.

#include "model/inspect.hpp"
#include "present/job_text.hpp"

namespace trigon {

std::string inspect_text(const ModelDescription& m, const TextStyle& style);
JsonNode inspect_json(const ModelDescription& m, const Asked& asked);

}  // namespace trigon
