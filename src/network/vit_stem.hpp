#pragma once
// Residual networks in front of a vision transformer's blocks.

#include "network/builder.hpp"
#include "network/spec.hpp"

namespace trigon {

// [c, h, w] -> the last stage of the sheet's `stem` ("resnetv2" or "resnet_d") with `stem_depths`.
ValueId vit_stem(NetworkBuilder& b, const NetworkSpec& spec, ValueId image);

}  // namespace trigon
