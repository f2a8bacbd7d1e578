#pragma once
// Models in files: what the readers of single formats give, put together.

#include <string>

#include "base/result.hpp"
#include "model/model.hpp"

namespace trigon {

// A folder with config.json, and safetensors files or their index beside it.
Result<Model> open_checkpoint_folder(const std::string& folder);
// A config alone, with hf_quant_config.json beside it.
Result<Model> open_config_file(const std::string& path);
// One safetensors file without a config: its tensors, and no component.
Result<Model> open_safetensors_file(const std::string& path);
// A GGUF file; of a split one any part will do, all others are looked for beside it.
Result<Model> open_gguf_file(const std::string& path);

}  // namespace trigon
