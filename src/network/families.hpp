#pragma once
// One builder for each family of networks; the catalogue finds it by the sheet's `builder`.
// Builders may assume that the asked item was checked against the sheet's limits.

#include <array>
#include <string_view>

#include "network/spec.hpp"

namespace trigon {

using NetworkBuild = Model (*)(const NetworkSpec&);

// Null when no builder has this name.
NetworkBuild network_builder(std::string_view name);

Model build_resnet(const NetworkSpec& spec);     // ResNet, ResNeXt, wide, SE, -D
Model build_vit(const NetworkSpec& spec);        // ViT, DeiT, BEiT, EVA-02, SigLIP, DINOv2, AST
Model build_swin(const NetworkSpec& spec);       // Swin, Swin V2
Model build_maxvit(const NetworkSpec& spec);     // MaxViT
Model build_clip(const NetworkSpec& spec);       // an image and a text tower
Model build_diffusion(const NetworkSpec& spec);  // text encoders, denoiser, autoencoder

}  // namespace trigon
