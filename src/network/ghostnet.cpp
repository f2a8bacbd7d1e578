// GhostNet: Han et al. 2019, arXiv:1911.11907, table 1. Half of the maps come from a 1 x 1
// convolution, half from a cheap depthwise one over them.

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

ValueId ghost(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
              Activation act) {
  auto scope = b.scope(name);
  const std::int64_t half = (out + 1) / 2;
  UnitOptions o;
  o.act = act;
  const ValueId first = convolution_unit(b, "primary", x, half, o);
  o.kernel = 3;
  o.groups = half;
  const ValueId cheap = convolution_unit(b, "cheap", first, half, o);
  const ValueId both = b.concatenate("cat", {first, cheap});
  return b.channels(both) == out ? both : b.slice("slice", both, 0, out);
}

struct Block {
  std::int64_t kernel, wide, out, stride;
  double excite;
};

ValueId ghost_block(NetworkBuilder& b, ValueId x, const Block& k) {
  const std::int64_t in = b.channels(x);
  UnitOptions depthwise, plain;
  depthwise.kernel = k.kernel;
  depthwise.stride = k.stride;
  depthwise.act = plain.act = Activation::none;
  ValueId y = ghost(b, "ghost1", x, k.wide, Activation::relu);
  if (k.stride > 1) {
    depthwise.groups = k.wide;
    y = convolution_unit(b, "conv_dw", y, k.wide, depthwise);
  }
  if (k.excite > 0) {
    Excitation e;
    e.reduced = round_channels(static_cast<double>(k.wide) * k.excite, 4);
    e.gate = Activation::hard_sigmoid;
    y = squeeze_excite(b, "se", y, e);
  }
  y = ghost(b, "ghost2", y, k.out, Activation::none);
  if (k.stride == 1 && in == k.out) return b.add("add", y, x);
  depthwise.groups = in;
  const ValueId shortcut = convolution_unit(b, "shortcut.0", x, in, depthwise);
  return b.add("add", y, convolution_unit(b, "shortcut.1", shortcut, k.out, plain));
}

}  // namespace

Model build_ghostnet(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const double wide = spec.number("width_multiplier", 1);
  auto scaled = [&](std::int64_t c) { return round_channels(static_cast<double>(c) * wide, 4); };
  UnitOptions stem;
  stem.kernel = 3;
  stem.stride = 2;
  ValueId x = convolution_unit(b, "conv_stem", image_input(b, spec), scaled(16), stem);
  const auto kernels = spec.wholes("kernels"), expanded = spec.wholes("expanded"),
             channels = spec.wholes("channels"), strides = spec.wholes("strides");
  const auto excite = spec.numbers("excite");
  for (std::size_t i = 0; i < expanded.size(); ++i) {
    auto scope = b.scope("blocks." + std::to_string(i));
    x = ghost_block(b, x,
                    {of_stage(kernels, i, std::int64_t{3}), scaled(expanded[i]),
                     scaled(of_stage(channels, i, std::int64_t{16})),
                     of_stage(strides, i, std::int64_t{1}), of_stage(excite, i, 0.0)});
  }
  x = convolution_unit(b, "conv_last", x, scaled(expanded.empty() ? 960 : expanded.back()));
  x = b.linear("conv_head", b.global_average_pool("avgpool", x), 1280);
  x = b.linear("classifier", b.activation("act2", x, Activation::relu),
               spec.whole("classes", 1000));
  return image_model(spec, b, x);
}

}  // namespace trigon
