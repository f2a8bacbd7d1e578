#pragma once
// Everything that is a model: by the name of a language model or a network, or by a file.

#include <string>

#include "model/item_options.hpp"
#include "model/model.hpp"
#include "model/model_catalog.hpp"
#include "network/catalog.hpp"

namespace trigon {

// A path where one exists, else a name: of a language model, else of a network. What is said about
// one item applies to networks and ONNX files; for other models it is an error.
Result<Model> open_model(const std::string& path_or_name, const ModelCatalog& models,
                         const NetworkCatalog& networks, const ItemOptions& item = {});

// By name only. An unknown one names the nearest of both catalogues.
Result<Model> named_model(const std::string& name, const ModelCatalog& models,
                          const NetworkCatalog& networks, const ItemOptions& item = {});

}  // namespace trigon
