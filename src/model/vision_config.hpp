#pragma once
// The vision tower of a multi-modal config: a stack of layers that see all patches of an image.

#include <optional>
#include <string>

#include "model/config_reader.hpp"
#include "model/decoder_spec.hpp"

namespace trigon {

// What `vision_config` describes, with the projector to a language model of width `text_hidden`.
// Nothing where the config has no numbers (a name of another repository, say).
std::optional<VisionSpec> read_vision(ConfigReader& outer, std::int64_t text_hidden);

// The tower as a stack: patch embedding and projector as its projections.
Result<Stack> build_vision(const VisionSpec& spec, const std::string& where);

}  // namespace trigon
