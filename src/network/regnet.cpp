// RegNet: Radosavovic et al. 2020, arXiv:2003.13678, section 3.3. Widths of blocks grow linearly
// and are quantized to steps of a constant factor; equal widths form a stage.

#include <cmath>

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

// Width of each block: w0 + wa j, rounded to the nearest w0 wm^k and to multiples of 8.
std::vector<std::int64_t> block_widths(const NetworkSpec& spec) {
  const double w0 = spec.number("w0"), wa = spec.number("wa"), wm = spec.number("wm");
  std::vector<std::int64_t> out;
  for (std::int64_t j = 0; j < spec.whole("depth"); ++j) {
    const double wish = w0 + wa * static_cast<double>(j);
    const double step = std::nearbyint(std::log(wish / w0) / std::log(wm));
    out.push_back(static_cast<std::int64_t>(std::nearbyint(w0 * std::pow(wm, step) / 8)) * 8);
  }
  return out;
}

}  // namespace

Model build_regnet(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  UnitOptions stem;
  stem.kernel = 3;
  stem.stride = 2;
  ValueId x = convolution_unit(b, "stem", image_input(b, spec), 32, stem);
  const double excite = spec.number("excite", 0);
  std::int64_t previous = 0, block = 0;
  for (std::int64_t wish : block_widths(spec)) {
    const std::int64_t group = std::min(spec.whole("group_width"), wish);
    const std::int64_t width =
        std::max(group, static_cast<std::int64_t>(std::nearbyint(static_cast<double>(wish) /
                                                                 static_cast<double>(group))) *
                            group);
    auto scope = b.scope("blocks." + std::to_string(block++));
    UnitOptions o;
    ValueId y = convolution_unit(b, "conv1", x, width, o);
    o.kernel = 3;
    o.stride = width != previous ? 2 : 1;
    o.groups = width / group;
    y = convolution_unit(b, "conv2", y, width, o);
    if (excite > 0) {
      Excitation e;
      e.reduced =
          static_cast<std::int64_t>(std::nearbyint(static_cast<double>(b.channels(x)) * excite));
      y = squeeze_excite(b, "se", y, e);
    }
    UnitOptions plain;
    plain.act = Activation::none;
    y = convolution_unit(b, "conv3", y, width, plain);
    plain.stride = o.stride;
    const ValueId shortcut =
        width != previous ? convolution_unit(b, "downsample", x, width, plain) : x;
    x = b.activation("act", b.add("add", y, shortcut), Activation::relu);
    previous = width;
  }
  return image_model(spec, b, classifier(b, spec, "fc", x));
}

}  // namespace trigon
