#pragma once
// GGUF file types ("Q4_K_M") mix formats by tensor: what llama.cpp's quantiser gives to each.

#include <optional>
#include <string_view>
#include <vector>

#include "model/decoder_spec.hpp"
#include "model/model.hpp"

namespace trigon {

// Stores every matrix as the file type does, norms and routers in f32. False when the file type is
// unknown; the spec is then unchanged. Without an importance matrix, as the quantiser's defaults.
bool apply_gguf_file_type(DecoderSpec& spec, std::string_view file_type);

// The same for a model that is built already: its language stack, layer by layer. Empty when the
// file type is unknown or the model has no such stack.
std::optional<Model> in_gguf_file_type(const Model& model, std::string_view file_type);

// What most matrices of the file type are stored in.
std::optional<Format> gguf_base_format(std::string_view file_type);

// The names that `apply_gguf_file_type` knows, upper case, sorted.
std::vector<std::string_view> gguf_file_types();

}  // namespace trigon
