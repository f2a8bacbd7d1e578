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

Model build_resnet(const NetworkSpec& spec);      // ResNet, ResNeXt, wide, SE, -D
Model build_vit(const NetworkSpec& spec);         // ViT, DeiT, BEiT, EVA-02, SigLIP, DINOv2, AST
Model build_swin(const NetworkSpec& spec);        // Swin, Swin V2
Model build_maxvit(const NetworkSpec& spec);      // MaxViT
Model build_clip(const NetworkSpec& spec);        // an image and a text tower
Model build_diffusion(const NetworkSpec& spec);   // text encoders, denoiser, autoencoder
Model build_mobile(const NetworkSpec& spec);      // inverted residual blocks
Model build_regnet(const NetworkSpec& spec);      // RegNetX and Y
Model build_vgg(const NetworkSpec& spec);         // VGG
Model build_alexnet(const NetworkSpec& spec);     // AlexNet
Model build_squeezenet(const NetworkSpec& spec);  // SqueezeNet
Model build_densenet(const NetworkSpec& spec);    // DenseNet
Model build_inception(const NetworkSpec& spec);   // GoogLeNet, Inception-v3 and v4, Xception
Model build_convnext(const NetworkSpec& spec);    // ConvNeXt, V2
Model build_mixer(const NetworkSpec& spec);       // MLP-Mixer, ResMLP
Model build_poolformer(const NetworkSpec& spec);  // PoolFormer
Model build_convmixer(const NetworkSpec& spec);   // ConvMixer
Model build_cspnet(const NetworkSpec& spec);      // Darknet-53, cross stage partial
Model build_nfnet(const NetworkSpec& spec);       // NFNet
Model build_resnetv2(const NetworkSpec& spec);    // pre-activation ResNet, BigTransfer
Model build_hrnet(const NetworkSpec& spec);       // HRNet
Model build_ghostnet(const NetworkSpec& spec);    // GhostNet
Model build_mobilevit(const NetworkSpec& spec);   // MobileViT, V2
Model build_repvgg(const NetworkSpec& spec);      // RepVGG
Model build_shufflenet(const NetworkSpec& spec);  // ShuffleNet V2
Model build_dla(const NetworkSpec& spec);         // deep layer aggregation
Model build_dpn(const NetworkSpec& spec);         // dual path

Model build_retinanet(const NetworkSpec& spec);
Model build_rcnn(const NetworkSpec& spec);  // Faster, Mask, Cascade R-CNN; C4, DC5, FPN
Model build_ssd(const NetworkSpec& spec);
Model build_detr(const NetworkSpec& spec);
Model build_segmentation(const NetworkSpec& spec);  // U-Nets of medical images
Model build_rnnt(const NetworkSpec& spec);
Model build_jasper(const NetworkSpec& spec);  // and QuartzNet
Model build_wav2vec2(const NetworkSpec& spec);
Model build_fastpitch(const NetworkSpec& spec);
Model build_tacotron2(const NetworkSpec& spec);
Model build_waveglow(const NetworkSpec& spec);
Model build_hifigan(const NetworkSpec& spec);
Model build_gnmt(const NetworkSpec& spec);
Model build_transformer_xl(const NetworkSpec& spec);
Model build_ncf(const NetworkSpec& spec);
Model build_dlrm(const NetworkSpec& spec);  // dot or cross interactions
Model build_wide_deep(const NetworkSpec& spec);
Model build_efficientdet(const NetworkSpec& spec);
Model build_tft(const NetworkSpec& spec);
Model build_moflow(const NetworkSpec& spec);
Model build_se3_transformer(const NetworkSpec& spec);

}  // namespace trigon
