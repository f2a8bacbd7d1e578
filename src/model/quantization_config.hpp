#pragma once
// The dialects in which checkpoints say how their weights are stored: `quantization_config` of
// config.json (GPTQ, AWQ, bitsandbytes, FP8, compressed-tensors, MXFP4, Quark, FBGEMM, HQQ) and
// ModelOpt's hf_quant_config.json.

#include <string>

#include "model/decoder_spec.hpp"
#include "model/json_value.hpp"

namespace trigon {

// Sets every format of the spec: `stored` (the dtype of the checkpoint) everywhere, then what the
// method quantises. Either object may be absent.
Result<void> apply_quantization(const Json* method, const Json* model_opt, Format stored,
                                const std::string& where, DecoderSpec& spec);

}  // namespace trigon
