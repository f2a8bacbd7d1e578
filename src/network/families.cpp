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
};
// clang-format on

}  // namespace

NetworkBuild network_builder(std::string_view name) {
  for (const Family& f : kFamilies)
    if (f.name == name) return f.build;
  return nullptr;
}

}  // namespace trigon
