// Deep layer aggregation: Yu et al. 2017, arXiv:1707.06484; as timm's dla.py, without projections
// that nothing reads.

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

struct Style {
  bool bottleneck = false, residual_root = false;
  std::int64_t groups = 1, base = 64;
};

ValueId unit(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
             std::int64_t kernel, std::int64_t stride = 1, Activation act = Activation::relu,
             std::int64_t groups = 1) {
  UnitOptions o;
  o.kernel = kernel;
  o.stride = stride;
  o.act = act;
  o.groups = groups;
  return convolution_unit(b, name, x, out, o);
}

ValueId block(NetworkBuilder& b, std::string_view name, ValueId x, ValueId shortcut,
              std::int64_t out, std::int64_t stride, const Style& s) {
  auto scope = b.scope(name);
  ValueId y = x;
  if (s.bottleneck) {
    const std::int64_t mid = out * s.base / 64 * s.groups / 2;
    y = unit(b, "conv2", unit(b, "conv1", y, mid, 1), mid, 3, stride, Activation::relu, s.groups);
    y = unit(b, "conv3", y, out, 1, 1, Activation::none);
  } else {
    y = unit(b, "conv2", unit(b, "conv1", y, out, 3, stride), out, 3, 1, Activation::none);
  }
  return b.activation("relu", b.add("add", y, shortcut), Activation::relu);
}

// `below` are the maps that the root at the end joins besides the last two.
ValueId tree(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t levels,
             std::int64_t out, std::int64_t stride, bool level_root, std::vector<ValueId> below,
             const Style& s) {
  auto scope = b.scope(name);
  const ValueId bottom = stride > 1 ? b.max_pool("downsample", x, stride, stride) : x;
  if (level_root) below.push_back(bottom);
  if (levels > 1) {
    const ValueId first = tree(b, "tree1", x, levels - 1, out, stride, false, {}, s);
    below.push_back(first);
    return tree(b, "tree2", first, levels - 1, out, 1, false, std::move(below), s);
  }
  ValueId shortcut = bottom;
  if (b.channels(x) != out) shortcut = unit(b, "project", bottom, out, 1, 1, Activation::none);
  const ValueId first = block(b, "tree1", x, shortcut, out, stride, s);
  const ValueId second = block(b, "tree2", first, first, out, 1, s);
  std::vector<ValueId> all{second, first};
  all.insert(all.end(), below.begin(), below.end());
  ValueId y = unit(b, "root", b.concatenate("cat", all), out, 1, 1, Activation::none);
  if (s.residual_root) y = b.add("root.add", y, second);
  return b.activation("root.relu", y, Activation::relu);
}

}  // namespace

Model build_dla(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  Style s;
  s.bottleneck = spec.text("block") == "bottleneck";
  s.residual_root = spec.flag("residual_root");
  s.groups = spec.whole("groups", 1);
  s.base = spec.whole("width_per_group", 64);
  const auto levels = spec.wholes("levels"), widths = spec.wholes("widths");
  ValueId x = unit(b, "base_layer", image_input(b, spec), of_stage(widths, 0, std::int64_t{16}), 7);
  x = unit(b, "level0", x, of_stage(widths, 0, std::int64_t{16}), 3);
  x = unit(b, "level1", x, of_stage(widths, 1, std::int64_t{32}), 3, 2);
  for (std::size_t i = 2; i < levels.size(); ++i)
    x = tree(b, "level" + std::to_string(i), x, levels[i], of_stage(widths, i, std::int64_t{64}), 2,
             i > 2, {}, s);
  return image_model(spec, b, classifier(b, spec, "fc", x));
}

}  // namespace trigon
