#include "network/families.hpp"

namespace trigon {
namespace {

struct Family {
  std::string_view name;
  NetworkBuild build;
};
constexpr std::array kFamilies = {
    Family{"resnet", build_resnet},
    Family{"maxvit", build_maxvit},
    Family{"vit", build_vit},
    Family{"swin", build_swin},
};

}  // namespace

NetworkBuild network_builder(std::string_view name) {
  for (const Family& f : kFamilies)
    if (f.name == name) return f.build;
  return nullptr;
}

}  // namespace trigon
