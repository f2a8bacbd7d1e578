#pragma once
// Pieces that the autoencoder and the U-Net of latent diffusion share.

#include <optional>

#include "network/builder.hpp"

namespace trigon {

ValueId convolution_3x3(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
                        std::int64_t stride = 1);
ValueId convolution_1x1(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out);
// Group normalisation over 32 groups, then SiLU.
ValueId norm_silu(NetworkBuilder& b, std::string_view name, ValueId x);
// Two normalised 3 x 3 convolutions and a shortcut; `time` [1, width] is projected and added
// between them.
ValueId residual_block(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
                       std::optional<ValueId> time = std::nullopt);
ValueId upsample_block(NetworkBuilder& b, std::string_view name, ValueId x);

}  // namespace trigon
