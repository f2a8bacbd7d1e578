#include "item.hpp"

#include "base/units.hpp"
#include "values.hpp"

namespace trigon {

Result<ItemOptions> read_item(const Settings& settings) {
  ItemOptions out;
  if (const Setting* s = settings.find("image")) {
    auto v = parse_pixels(s->text, s->origin);
    if (!v) return tl::unexpected(v.error());
    out.size = std::move(*v);
  }
  if (const Setting* s = settings.find("tokens-per-item")) {
    auto v = parse_length(s->text, s->origin);
    if (!v) return tl::unexpected(v.error());
    out.tokens = *v;
  }
  if (const Setting* s = settings.find("audio")) {
    auto v = parse_duration(s->text, s->origin);
    if (!v) return tl::unexpected(v.error());
    out.audio_seconds = v->in_base();
  }
  if (const Setting* s = settings.find("steps")) {
    auto v = parse_whole(s->text, s->origin);
    if (!v) return tl::unexpected(v.error());
    out.steps = *v;
  }
  if (const Setting* s = settings.find("guidance")) out.guidance = s->text == "on";
  if (const Setting* s = settings.find("shape")) {
    auto v = parse_shapes(s->text, s->origin);
    if (!v) return tl::unexpected(v.error());
    out.shapes = std::move(*v);
  }
  return out;
}

}  // namespace trigon
