#pragma once
// A model in a file or a folder.

#include <string>

#include "model/byte_source.hpp"
#include "model/model.hpp"

namespace trigon {

// A config.json, a safetensors file or index, a GGUF file (any part of a split one), or a folder
// that holds one model.
Result<Model> open_model_file(const std::string& path);

// Whether a folder holds a model's files.
bool holds_model(const std::string& folder);

}  // namespace trigon
