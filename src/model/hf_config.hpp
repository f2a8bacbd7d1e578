#pragma once
// Reader of Hugging Face `config.json`: any decoder-only architecture of the table in
// architectures.cpp, with every dialect of `quantization_config`.

#include <string>
#include <string_view>

#include "model/decoder_spec.hpp"
#include "model/json_value.hpp"

namespace trigon {

// `quantization` is the parsed hf_quant_config.json beside the config, if there is one.
// `where` names the file in errors.
Result<DecoderSpec> read_hf_config(const Json& config, const std::string& where,
                                   const Json* quantization = nullptr);
Result<DecoderSpec> read_hf_config(std::string_view text, const std::string& where,
                                   const Json* quantization = nullptr);

// The field names a config of an unknown architecture is described by.
std::string_view decoder_fields();

}  // namespace trigon
