// Residual networks with normalization before each convolution: He et al. 2016
// (arXiv:1603.05027), and BigTransfer's wide ones with group normalization (Kolesnikov et al.
// 2019, arXiv:1912.11370). The standardization of BigTransfer's weights is not counted.

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

struct Style {
  bool grouped = false, deep = false;

  ValueId normalized(NetworkBuilder& b, std::string_view name, ValueId x) const {
    x = grouped ? b.group_norm(name, x, 32) : b.batch_norm(name, x);
    return b.activation("relu", x, Activation::relu);
  }
};

ValueId plain(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
              std::int64_t kernel, std::int64_t stride = 1) {
  ConvolutionOptions o;
  o.kernel = kernel;
  o.stride = stride;
  return b.convolution(name, x, out, o);
}

ValueId block(NetworkBuilder& b, ValueId x, std::int64_t out, std::int64_t stride, bool first,
              const Style& style) {
  const ValueId before = style.normalized(b, "norm1", x);
  ValueId shortcut = x;
  if (first && style.deep) {
    shortcut = stride > 1 ? b.average_pool("downsample.pool", before, 2, 2, 0, true) : before;
    shortcut = plain(b, "downsample.conv", shortcut, out, 1);
  } else if (first) {
    shortcut = plain(b, "downsample.conv", before, out, 1, stride);
  }
  ValueId y = plain(b, "conv1", before, out / 4, 1);
  y = plain(b, "conv2", style.normalized(b, "norm2", y), out / 4, 3, stride);
  y = plain(b, "conv3", style.normalized(b, "norm3", y), out, 1);
  return b.add("add", y, shortcut);
}

}  // namespace

Model build_resnetv2(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  Style style;
  style.grouped = spec.text("norm", "batch") == "group";
  style.deep = spec.text("stem", "plain") == "deep";
  const std::int64_t times = spec.whole("width_times", 1);
  ValueId x = image_input(b, spec);
  if (style.deep) {
    x = style.normalized(b, "stem.norm1", plain(b, "stem.conv1", x, 32, 3, 2));
    x = style.normalized(b, "stem.norm2", plain(b, "stem.conv2", x, 32, 3));
    x = plain(b, "stem.conv3", x, 64, 3);
  } else {
    x = plain(b, "stem.conv", x, 64 * times, 7, 2);
  }
  x = b.max_pool("stem.pool", x, 3, 2, 1);
  const auto depths = spec.wholes("depths");
  std::int64_t out = 256 * times;
  for (std::size_t s = 0; s < depths.size(); ++s, out *= 2) {
    auto in_stage = b.scope("stages." + std::to_string(s));
    for (std::int64_t i = 0; i < depths[s]; ++i) {
      auto in_block = b.scope("blocks." + std::to_string(i));
      x = block(b, x, out, i == 0 && s > 0 ? 2 : 1, i == 0, style);
    }
  }
  return image_model(spec, b, classifier(b, spec, "head.fc", style.normalized(b, "norm", x)));
}

}  // namespace trigon
