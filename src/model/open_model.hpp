#pragma once
// A model by path or by name.

#include <string>

#include "model/byte_source.hpp"
#include "model/model.hpp"
#include "model/model_catalog.hpp"

namespace trigon {

// A config.json, a safetensors file or index, a GGUF file (any part of a split one), or a folder
// that holds one model.
Result<Model> open_model_file(const std::string& path);

// A path where one exists, else a name of the catalogue.
Result<Model> open_model(const std::string& path_or_name, const ModelCatalog& catalog);

}  // namespace trigon
