#include "network/families.hpp"

namespace trigon {
namespace {

struct Family {
  std::string_view name;
  NetworkBuild build;
};
// clang-format off
constexpr std::array kFamilies = {
    Family{"alexnet", build_alexnet},
    Family{"clip", build_clip},
    Family{"convmixer", build_convmixer},
    Family{"convnext", build_convnext},
    Family{"cspnet", build_cspnet},
    Family{"densenet", build_densenet},
    Family{"diffusion", build_diffusion},
    Family{"dla", build_dla},
    Family{"dpn", build_dpn},
    Family{"ghostnet", build_ghostnet},
    Family{"hrnet", build_hrnet},
    Family{"inception", build_inception},
    Family{"maxvit", build_maxvit},
    Family{"mixer", build_mixer},
    Family{"mobile", build_mobile},
    Family{"mobilevit", build_mobilevit},
    Family{"nfnet", build_nfnet},
    Family{"poolformer", build_poolformer},
    Family{"regnet", build_regnet},
    Family{"repvgg", build_repvgg},
    Family{"resnet", build_resnet},
    Family{"resnetv2", build_resnetv2},
    Family{"shufflenet", build_shufflenet},
    Family{"squeezenet", build_squeezenet},
    Family{"swin", build_swin},
    Family{"vgg", build_vgg},
    Family{"vit", build_vit},
    Family{"retinanet", build_retinanet},
    Family{"rcnn", build_rcnn},
    Family{"ssd", build_ssd},
    Family{"detr", build_detr},
    Family{"segmentation", build_segmentation},
    Family{"rnnt", build_rnnt},
    Family{"jasper", build_jasper},
    Family{"wav2vec2", build_wav2vec2},
    Family{"fastpitch", build_fastpitch},
    Family{"tacotron2", build_tacotron2},
    Family{"waveglow", build_waveglow},
    Family{"hifigan", build_hifigan},
    Family{"gnmt", build_gnmt},
    Family{"transformer_xl", build_transformer_xl},
    Family{"ncf", build_ncf},
    Family{"dlrm", build_dlrm},
    Family{"wide_deep", build_wide_deep},
    Family{"efficientdet", build_efficientdet},
    Family{"tft", build_tft},
    Family{"moflow", build_moflow},
    Family{"se3_transformer", build_se3_transformer},
};
// clang-format on

}  // namespace

NetworkBuild network_builder(std::string_view name) {
  for (const Family& f : kFamilies)
    if (f.name == name) return f.build;
  return nullptr;
}

}  // namespace trigon
