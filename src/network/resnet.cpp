// Residual networks: He et al. 2015 (arXiv:1512.03385), ResNeXt (arXiv:1611.05431), wide
// (arXiv:1605.07146), squeeze and excitation (arXiv:1709.01507), the stems and shortcuts of
// arXiv:1812.01187 ("-D"), Res2Net (arXiv:1904.01169), ResNet-RS (arXiv:2103.07579). In
// bottlenecks the stride lies on the 3 x 3 convolution ("v1.5").

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

struct Block {
  std::int64_t width = 64, out = 64, stride = 1, groups = 1, scale = 1;
  std::int64_t group_width = 0;  // channels of a group, where it is fixed instead of `groups`
  bool average_shortcut = false, filtered = false, attends_inside = false;
  Activation act = Activation::relu;
  std::string_view kind, attention, filter;
  double reduction = 1.0 / 16;
};

ValueId plain_unit(NetworkBuilder& b, const char* name, ValueId x, std::int64_t out,
                   std::int64_t kernel, std::int64_t stride = 1, std::int64_t groups = 1,
                   Activation act = Activation::relu) {
  UnitOptions o;
  o.kernel = kernel;
  o.stride = stride;
  o.groups = groups;
  o.act = act;
  return convolution_unit(b, name, x, out, o);
}

// Strides by a filter where the sheet asks for one: the convolution then has stride 1.
ValueId down(NetworkBuilder& b, ValueId x, std::string_view filter) {
  return filter == "blur" ? blur_pool(b, "aa", x) : b.average_pool("aa", x, 2, 2);
}

// The middle of a Res2Net block: each split passes its result on to the next one.
ValueId scaled_middle(NetworkBuilder& b, ValueId x, const Block& k, bool first) {
  const auto parts = static_cast<std::size_t>(k.scale);
  std::vector<ValueId> in =
      b.split("split", x, 0, std::vector<std::int64_t>(parts, b.channels(x) / k.scale));
  std::vector<ValueId> out;
  for (std::size_t i = 0; i + 1 < parts; ++i) {
    ValueId y = i == 0 || first ? in[i] : b.add("add", out.back(), in[i]);
    out.push_back(plain_unit(b, "convs", y, b.channels(y), 3, k.stride, k.groups));
  }
  out.push_back(first ? b.average_pool("pool", in.back(), 3, k.stride, 1) : in.back());
  return b.concatenate("cat", out);
}

ValueId attend(NetworkBuilder& b, ValueId y, const Block& k) {
  if (k.attention == "eca") return channel_attention(b, "eca", y);
  if (k.attention != "se") return y;
  Excitation e;
  e.reduced = round_channels(static_cast<double>(b.channels(y)) * k.reduction, 8, 0);
  return squeeze_excite(b, "se", y, e);
}

ValueId residual_block(NetworkBuilder& b, ValueId x, const Block& k) {
  const bool widens = k.stride != 1 || b.channels(x) != k.out;
  const std::int64_t stride = k.filtered ? 1 : k.stride;
  ValueId y = x;
  if (k.kind == "basic") {
    y = plain_unit(b, "conv1", y, k.width, 3, stride);
    if (k.filtered) y = down(b, y, k.filter);
    y = plain_unit(b, "conv2", y, k.out, 3, 1, 1, Activation::none);
  } else {
    const std::int64_t groups = k.group_width > 0 ? k.width / k.group_width : k.groups;
    y = plain_unit(b, "conv1", y, k.width * k.scale, 1, 1, 1, k.act);
    y = k.scale > 1 ? scaled_middle(b, y, k, widens)
                    : plain_unit(b, "conv2", y, k.width, 3, stride, groups, k.act);
    if (k.filtered) y = down(b, y, k.filter);
    if (k.attends_inside) y = attend(b, y, k);
    y = plain_unit(b, "conv3", y, k.out, 1, 1, 1, Activation::none);
  }
  if (!k.attends_inside) y = attend(b, y, k);
  ValueId shortcut = x;
  if (widens && k.average_shortcut) {
    if (k.stride != 1) shortcut = b.average_pool("downsample.pool", x, 2, 2, 0, true);
    shortcut = plain_unit(b, "downsample", shortcut, k.out, 1, 1, 1, Activation::none);
  } else if (widens) {
    shortcut = plain_unit(b, "downsample", x, k.out, 1, k.stride, 1, Activation::none);
  }
  return b.activation("act", b.add("add", y, shortcut), k.act);
}

// One 7 x 7 convolution, or three 3 x 3 ones of half the width ("deep"; "tiered": the first of
// three eighths), then a pool or a convolution with stride 2.
ValueId stem(NetworkBuilder& b, const NetworkSpec& spec, ValueId x, const Block& k) {
  const std::string kind = spec.text("stem", "plain");
  const std::int64_t width = spec.whole("stem_width", 64);
  if (kind == "plain") {
    x = plain_unit(b, "conv1", x, width, 7, 2, 1, k.act);
  } else {
    x = plain_unit(b, "conv1.0", x, kind == "tiered" ? 3 * (width / 8) : width / 2, 3, 2, 1, k.act);
    x = plain_unit(b, "conv1.1", x, width / 2, 3, 1, 1, k.act);
    x = plain_unit(b, "conv1.2", x, width, 3, 1, 1, k.act);
  }
  if (!spec.flag("stem_pool", true)) return plain_unit(b, "maxpool.0", x, width, 3, 2, 1, k.act);
  if (k.filter == "average") return b.average_pool("maxpool", x, 2, 2);
  if (k.filter == "blur") return blur_pool(b, "maxpool.1", b.max_pool("maxpool.0", x, 3, 1, 1));
  return b.max_pool("maxpool", x, 3, 2, 1);
}

}  // namespace

Model build_resnet(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const std::string kind = spec.text("block"), attention = spec.text("attention", "none"),
                    filter = spec.text("filter", "none");
  const std::int64_t base = spec.whole("width_per_group", 64);
  Block k;
  k.kind = kind;
  k.attention = attention;
  k.filter = filter;
  k.groups = spec.whole("groups", 1);
  k.group_width = spec.whole("group_width", 0);
  k.attends_inside = spec.flag("attention_inside");
  k.act = activation_named(spec.text("act", "relu")).value_or(Activation::relu);
  k.scale = spec.whole("scale", 1);
  k.average_shortcut = spec.flag("average_shortcut");
  k.reduction = spec.number("reduction", 1.0 / 16);
  ValueId x = stem(b, spec, image_input(b, spec), k);
  std::int64_t planes = 64;
  int stage = 1;
  for (std::int64_t depth : spec.wholes("depths")) {
    auto in_stage = b.scope("layer" + std::to_string(stage));
    for (std::int64_t i = 0; i < depth; ++i) {
      auto in_block = b.scope(std::to_string(i));
      k.width = kind == "basic" ? planes : planes * base / 64 * k.groups;
      k.out = kind == "basic" ? planes : planes * 4;
      k.stride = i == 0 && stage > 1 ? 2 : 1;
      k.filtered = filter != "none" && k.stride == 2;
      x = residual_block(b, x, k);
    }
    planes *= 2;
    ++stage;
  }
  return image_model(spec, b, classifier(b, spec, "fc", x));
}

}  // namespace trigon
