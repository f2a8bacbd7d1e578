// Hybrids of Dosovitskiy et al. 2020 (arXiv:2010.11929, section 3.1) put ResNets with group
// normalisation (BiT, arXiv:1912.11370) in front; timm's own hybrids put ResNet-D there
// (arXiv:1812.01187).

#include "network/vit_stem.hpp"

namespace trigon {
namespace {

struct Stem {
  bool grouped;  // group normalisation and TensorFlow's padding; else batch normalisation and "D"

  ValueId norm(NetworkBuilder& b, const char* name, ValueId x) const {
    return grouped ? b.group_norm(name, x, 32) : b.batch_norm(name, x);
  }
  ValueId conv(NetworkBuilder& b, const char* name, ValueId x, std::int64_t out,
               std::int64_t kernel, std::int64_t stride) const {
    ConvolutionOptions o;
    o.kernel = kernel;
    o.stride = stride;
    o.same = grouped;
    return b.convolution(name, x, out, o);
  }
  ValueId unit(NetworkBuilder& b, const char* name, ValueId x, std::int64_t out,
               std::int64_t kernel, std::int64_t stride) const {
    auto in_unit = b.scope(name);
    return b.activation("act", norm(b, "norm", conv(b, "conv", x, out, kernel, stride)),
                        Activation::relu);
  }

  ValueId first(NetworkBuilder& b, ValueId x) const {
    auto in_stem = b.scope("stem");
    if (grouped) {
      x = unit(b, "0", x, 64, 7, 2);
    } else {
      x = unit(b, "0", x, 32, 3, 2);
      x = unit(b, "1", x, 32, 3, 1);
      x = unit(b, "2", x, 64, 3, 1);
    }
    return b.max_pool("pool", x, 3, 2, 1);
  }

  ValueId bottleneck(NetworkBuilder& b, ValueId x, std::int64_t width, std::int64_t stride) const {
    const std::int64_t out = 4 * width;
    ValueId y = unit(b, "1", x, width, 1, 1);
    y = unit(b, "2", y, width, 3, stride);
    y = norm(b, "norm3", conv(b, "conv3", y, out, 1, 1));
    ValueId shortcut = x;
    if (stride != 1 || b.channels(x) != out) {
      auto in_downsample = b.scope("downsample");
      if (!grouped && stride > 1) shortcut = b.average_pool("pool", x, 2, 2, 0, true);
      shortcut = norm(b, "norm", conv(b, "conv", shortcut, out, 1, grouped ? stride : 1));
    }
    return b.activation("act3", b.add("add", y, shortcut), Activation::relu);
  }
};

}  // namespace

ValueId vit_stem(NetworkBuilder& b, const NetworkSpec& spec, ValueId image) {
  auto in_backbone = b.scope("patch_embed.backbone");
  const Stem stem{spec.text("stem") == "resnetv2"};
  ValueId x = stem.first(b, image);
  if (!spec.has("stem_depths")) return x;
  std::int64_t width = 64;
  int stage = 0;
  for (std::int64_t depth : spec.wholes("stem_depths")) {
    for (std::int64_t i = 0; i < depth; ++i) {
      auto in_block = b.scope("stages." + std::to_string(stage) + "." + std::to_string(i));
      x = stem.bottleneck(b, x, width, i == 0 && stage > 0 ? 2 : 1);
    }
    width *= 2;
    ++stage;
  }
  return x;
}

}  // namespace trigon
