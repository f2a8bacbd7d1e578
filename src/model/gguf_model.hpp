#pragma once
// From a GGUF header to a decoder: the layers are read off the tensors themselves (names, shapes,
// types), so parameters and bytes are exact for every decoder-only architecture; the metadata
// gives heads, windows, routing and context.

#include "model/decoder_spec.hpp"
#include "model/gguf.hpp"

namespace trigon {

struct GgufModel {
  DecoderSpec spec;
  std::int64_t layers_left_out = 0;  // draft layers for multi-token prediction
};

// `tensors`: of all parts, where the model is split. `where` names the first part.
Result<GgufModel> read_gguf_model(const GgufHeader& h, const std::vector<Tensor>& tensors,
                                  const std::string& where);

}  // namespace trigon
