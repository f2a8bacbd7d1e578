#pragma once
// The parts of `saved_for_backward` under an eager framework. Bytes per token of one rank.

#include "memory/saved.hpp"

namespace trigon {

// `width`: elements of a token that are normalised.
double eager_norm(const Norm& norm, double width, const ActivationRules& rules);
// `hidden`: elements of the layer's input.
ActivationBytes eager_attention(double hidden, const Attention& attention,
                                const ActivationRules& rules);
// `input_counted`: attention reads the same tensor and has kept it.
ActivationBytes eager_mlp(double hidden, double width, bool gated, bool input_counted,
                          const ActivationRules& rules);
// Gradients that are alive at once while the layer runs backward, beside all that it saved.
ActivationBytes eager_backward(const Layer& layer, std::int64_t hidden,
                               const ActivationRules& rules);

}  // namespace trigon
