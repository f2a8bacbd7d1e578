#include "network/families.hpp"

namespace trigon {
namespace {

struct Family {
  std::string_view name;
  NetworkBuild build;
};
// clang-format off
constexpr std::array kFamilies = {
    Family{"clip", build_clip},
    Family{"diffusion", build_diffusion},
    Family{"maxvit", build_maxvit},
    Family{"resnet", build_resnet},
    Family{"swin", build_swin},
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
