// ConvNeXt: Liu et al. 2022, arXiv:2201.03545; ConvNeXt V2: Woo et al. 2023, arXiv:2301.00808
// (global response normalization instead of the layer scale).

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

ValueId biased(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
               std::int64_t kernel, std::int64_t stride, std::int64_t groups = 1) {
  ConvolutionOptions o;
  o.kernel = kernel;
  o.stride = stride;
  o.groups = groups;
  o.bias = true;
  if (kernel == stride) o.padding = Extent(0);
  return b.convolution(name, x, out, o);
}

// Each channel over its norm across the image, relative to the mean of all channels, of which
// there are `channels`.
ValueId response_norm(NetworkBuilder& b, ValueId x, std::int64_t channels) {
  const ValueId norms = b.reduce("grn.norm", x, {channels});
  const ValueId scaled = b.multiply("grn.scale", x, norms);
  return b.node("grn", Elementwise{"response_norm", 3, Keeps::inputs}, {x, scaled},
                {b.weight("grn.weight", {channels}), b.weight("grn.bias", {channels})},
                TensorShape(b.shape(x)));
}

struct Block {
  bool response_norm = false;  // the second version
  // Small variants multiply by 1 x 1 convolutions; the others look at the image as tokens, without
  // moving it, and multiply matrices (timm convnext.py, `conv_mlp`).
  bool convolves = false;
};

ValueId block(NetworkBuilder& b, ValueId x, const Block& kind) {
  const std::int64_t c = b.channels(x);
  const TensorShape image = b.shape(x);
  ValueId y = biased(b, "conv_dw", x, c, 7, 1, c);
  if (!kind.convolves) y = b.reshape("channels_last", y, {image[1] * image[2], c});
  y = b.layer_norm("norm", y, true, kind.convolves);
  y = kind.convolves ? biased(b, "mlp.fc1", y, 4 * c, 1, 1) : b.linear("mlp.fc1", y, 4 * c);
  y = b.activation("gelu", y, Activation::gelu);
  if (kind.response_norm) y = response_norm(b, y, 4 * c);
  y = kind.convolves ? biased(b, "mlp.fc2", y, c, 1, 1) : b.linear("mlp.fc2", y, c);
  if (!kind.convolves) y = b.reshape("image", y, image);
  return b.add("add", kind.response_norm ? y : b.scale("gamma", y, true), x);
}

}  // namespace

Model build_convnext(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const auto depths = spec.wholes("depths"), widths = spec.wholes("widths");
  const std::int64_t first = of_stage(widths, 0, std::int64_t{96});
  const std::string stem = spec.text("stem", "patch");
  const Block kind{spec.flag("response_norm"), spec.flag("convolves")};
  ValueId x = image_input(b, spec);
  if (stem == "patch") {
    x = biased(b, "stem.0", x, first, 4, 4);
  } else {  // two overlapping convolutions; "tiered": the first of half the width
    x = biased(b, "stem.0", x, stem == "tiered" ? first / 2 : first, 3, 2);
    x = biased(b, "stem.1", x, first, 3, 2);
  }
  x = b.layer_norm("stem.norm", x, true, true);
  for (std::size_t s = 0; s < depths.size(); ++s) {
    auto in_stage = b.scope("stages." + std::to_string(s));
    if (s > 0)
      x = biased(b, "downsample.1", b.layer_norm("downsample.0", x, true, true),
                 of_stage(widths, s, first), 2, 2);
    for (std::int64_t i = 0; i < depths[s]; ++i) {
      auto in_block = b.scope("blocks." + std::to_string(i));
      x = block(b, x, kind);
    }
  }
  x = b.layer_norm("head.norm", b.global_average_pool("avgpool", x));
  if (const std::int64_t hidden = spec.whole("head_hidden", 0))
    x = b.activation("head.act", b.linear("head.hidden", x, hidden), Activation::gelu);
  return image_model(spec, b, b.linear("head.fc", x, spec.whole("classes", 1000)));
}

}  // namespace trigon
