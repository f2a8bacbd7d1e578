#pragma once
// The conditional U-Net of Stable Diffusion.

#include "network/spec.hpp"

namespace trigon {

// Facts: widths, depths (transformer blocks of each level, 0: none), layers, head_width or heads,
// context_width, encoder_width (of a text that
// is projected to context_width first), linear_projections, added_condition (width of SDXL's pooled
// text and sizes). One evaluation for a latent [latent, h / 8, w / 8] and a text of `tokens`.
Graph unet_graph(const NetworkSpec& spec, std::int64_t tokens);

}  // namespace trigon
