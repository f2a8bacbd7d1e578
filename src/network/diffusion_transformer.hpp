#pragma once
// Diffusion transformers; each builds one evaluation for the latent of the asked image.

#include "network/spec.hpp"

namespace trigon {

Graph dit_graph(const NetworkSpec& spec);  // conditioned on a class
// Conditioned on texts of so many tokens by cross-attention.
Graph pixart_graph(const NetworkSpec& spec, std::int64_t tokens);
// Image and text in one attention.
Graph mmdit_graph(const NetworkSpec& spec, std::int64_t tokens);
// Codes of the latent by a masked transformer between convolutional blocks.
Graph uvit_graph(const NetworkSpec& spec, std::int64_t tokens);
Graph flux_graph(const NetworkSpec& spec, std::int64_t tokens);

}  // namespace trigon
