#pragma once
// The variational autoencoder of latent diffusion: Rombach et al. 2021 (arXiv:2112.10752).

#include "network/spec.hpp"

namespace trigon {

// Facts under "vae.": width, multipliers, layers, latent, moments_convolution. An image side of
// `height` x `width` pixels has a latent of an eighth (one halving for each multiplier but one).
Graph autoencoder_decoder_graph(const NetworkSpec& spec);
Graph autoencoder_encoder_graph(const NetworkSpec& spec);
// Pixels of an image's side for one of the latent's.
std::int64_t latent_stride(const NetworkSpec& spec);

}  // namespace trigon
