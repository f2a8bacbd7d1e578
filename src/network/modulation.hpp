#pragma once
// Conditions of diffusion transformers: shifts, scales and gates of each channel that a vector sets
// (adaLN-Zero of Peebles and Xie 2022, arXiv:2212.09748).

#include "network/transformer_block.hpp"

namespace trigon {

// [1, width in] -> two layers with SiLU between -> [1, width].
ValueId condition_embedding(NetworkBuilder& b, std::string_view name, ValueId x,
                            std::int64_t width);
// SiLU and a projection of the condition to `parts` vectors of `width`.
std::vector<ValueId> modulation(NetworkBuilder& b, std::string_view name, ValueId condition,
                                std::int64_t parts, std::int64_t width);
// Normalised without learned factors, then times one plus scale, plus shift.
ValueId modulated_norm(NetworkBuilder& b, std::string_view name, ValueId x, ValueId shift,
                       ValueId scale);
// x + gate y.
ValueId gated_add(NetworkBuilder& b, std::string_view name, ValueId x, ValueId gate, ValueId y);
// The last layer: a modulated norm and a projection to `out` values a token.
ValueId modulated_output(NetworkBuilder& b, ValueId x, ValueId condition, std::int64_t out);

}  // namespace trigon
