// RepVGG: Ding et al. 2021, arXiv:2101.03697, table 2, as it trains (three branches) or with the
// branches merged into one convolution ("deploy").

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

ValueId block(NetworkBuilder& b, ValueId x, std::int64_t out, std::int64_t stride,
              std::int64_t groups, bool merged) {
  if (merged) {
    ConvolutionOptions o;
    o.stride = stride;
    o.groups = groups;
    o.bias = true;
    return b.activation("act", b.convolution("reparam", x, out, o), Activation::relu);
  }
  UnitOptions o;
  o.kernel = 3;
  o.stride = stride;
  o.groups = groups;
  o.act = Activation::none;
  ValueId y = convolution_unit(b, "conv_kxk", x, out, o);
  o.kernel = 1;
  y = b.add("add", y, convolution_unit(b, "conv_1x1", x, out, o));
  if (stride == 1 && b.channels(x) == out) y = b.add("add", y, b.batch_norm("identity", x));
  return b.activation("act", y, Activation::relu);
}

}  // namespace

Model build_repvgg(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const auto depths = spec.wholes("depths");
  const auto times = spec.numbers("width_times");
  const std::int64_t groups = spec.whole("groups", 1);
  const bool merged = spec.flag("deploy");
  auto width = [&](std::size_t s) {
    return static_cast<std::int64_t>(64 * static_cast<double>(1 << s) * of_stage(times, s, 1.0));
  };
  ValueId x = image_input(b, spec);
  {
    auto scope = b.scope("stem");
    x = block(b, x, std::min<std::int64_t>(64, width(0)), 2, 1, merged);
  }
  for (std::size_t s = 0, layer = 1; s < depths.size(); ++s) {
    for (std::int64_t i = 0; i < depths[s]; ++i, ++layer) {
      auto scope = b.scope("stages." + std::to_string(s) + "." + std::to_string(i));
      // Every second layer is grouped.
      x = block(b, x, width(s), i == 0 ? 2 : 1, layer % 2 == 0 ? groups : 1, merged);
    }
  }
  return image_model(spec, b, classifier(b, spec, "head.fc", x));
}

}  // namespace trigon
