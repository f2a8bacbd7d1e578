// Darknet-53 (Redmon and Farhadi 2018, arXiv:1804.02767, table 1) and cross stage partial networks
// (Wang et al. 2019, arXiv:1911.11929): half of each stage's maps pass by its blocks.

#include <cmath>

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

struct Stage {
  std::int64_t depth = 1, out = 64, stride = 2, groups = 1;
  double expand = 1, inner = 1, bottleneck = 1;
  bool partial = true, dark = true, widens_first = true;
};

ValueId unit(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
             std::int64_t kernel, std::int64_t stride = 1, std::int64_t groups = 1,
             Activation act = Activation::leaky_relu) {
  UnitOptions o;
  o.kernel = kernel;
  o.stride = stride;
  o.groups = groups;
  o.act = act;
  return convolution_unit(b, name, x, out, o);
}

std::int64_t share(std::int64_t of, double ratio) {
  return std::llround(static_cast<double>(of) * ratio);
}

ValueId inner_block(NetworkBuilder& b, ValueId x, std::int64_t out, const Stage& s) {
  const std::int64_t mid = share(out, s.bottleneck);
  ValueId y = unit(b, "conv1", x, mid, 1);
  if (s.dark) {
    y = unit(b, "conv2", y, out, 3, 1, s.groups);
    return b.channels(x) == out ? b.add("add", y, x) : y;
  }
  y = unit(b, "conv2", y, mid, 3, 1, s.groups);
  y = unit(b, "conv3", y, out, 1, 1, 1, Activation::none);
  return b.activation("act", b.add("add", y, x), Activation::leaky_relu);
}

ValueId stage(NetworkBuilder& b, ValueId x, const Stage& s) {
  if (s.stride > 1)
    x = unit(b, "conv_down", x, s.widens_first ? s.out : b.channels(x), 3, s.stride, s.groups);
  ValueId y = x, aside = x;
  if (s.partial) {
    const std::int64_t wide = share(s.out, s.expand);
    x = unit(b, "conv_exp", x, wide, 1, 1, 1, s.dark ? Activation::leaky_relu : Activation::none);
    const auto halves = b.split("split", x, 0, {wide / 2, wide / 2});
    aside = halves[0];
    y = halves[1];
  }
  const std::int64_t inner = s.partial ? share(s.out, s.inner) : s.out;
  for (std::int64_t i = 0; i < s.depth; ++i) {
    auto scope = b.scope("blocks." + std::to_string(i));
    y = inner_block(b, y, inner, s);
  }
  if (!s.partial) return y;
  y = unit(b, "conv_transition_b", y, b.channels(aside), 1);
  return unit(b, "conv_transition", b.concatenate("cat", {aside, y}), s.out, 1);
}

}  // namespace

Model build_cspnet(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const bool pooled = spec.flag("stem_pool");
  ValueId x = unit(b, "stem", image_input(b, spec), spec.whole("stem_width"),
                   spec.whole("stem_kernel"), pooled ? 2 : 1);
  if (pooled) x = b.max_pool("stem.pool", x, 3, 2, 1);
  const auto depths = spec.wholes("depths"), widths = spec.wholes("widths"),
             strides = spec.wholes("strides");
  const auto expand = spec.numbers("expand"), inner = spec.numbers("inner"),
             bottleneck = spec.numbers("bottleneck");
  for (std::size_t i = 0; i < depths.size(); ++i) {
    auto scope = b.scope("stages." + std::to_string(i));
    Stage s;
    s.depth = depths[i];
    s.out = of_stage(widths, i, std::int64_t{64});
    s.stride = of_stage(strides, i, std::int64_t{2});
    s.groups = spec.whole("groups", 1);
    s.expand = of_stage(expand, i, 1.0);
    s.inner = of_stage(inner, i, 1.0);
    s.bottleneck = of_stage(bottleneck, i, 0.5);
    s.partial = spec.flag("partial", true);
    s.dark = spec.flag("dark", true);
    s.widens_first = s.dark;
    x = stage(b, x, s);
  }
  return image_model(spec, b, classifier(b, spec, "head.fc", x));
}

}  // namespace trigon
