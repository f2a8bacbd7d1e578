// An image tower and a text tower trained to agree: CLIP, Radford et al. 2021 (arXiv:2103.00020).

#include "network/families.hpp"
#include "network/text_encoder.hpp"
#include "network/vit.hpp"

namespace trigon {

Model build_clip(const NetworkSpec& spec) {
  Model m =
      network_model(spec, vit_graph(spec), WorkUnit::image, {spec.height(), spec.image_width()});
  m.components.front().name = "image";
  m.components.front().role = ComponentRole::vision_tower;
  m.components.push_back(
      {"text", ComponentRole::text_encoder, text_encoder_graph(spec, spec.text("text_encoder"))});
  return m;
}

}  // namespace trigon
