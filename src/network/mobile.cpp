// Networks of inverted residual blocks: MobileNetV2 (arXiv:1801.04381), MnasNet
// (arXiv:1807.11626), MobileNetV3 (arXiv:1905.02244), EfficientNet (arXiv:1905.11946) and
// EfficientNetV2 (arXiv:2104.00298), GPUNet (arXiv:2205.00841).
//
// A sheet gives one entry for each run of equal blocks: `blocks` ("ds": depthwise and pointwise,
// "ir": inverted residual, "er": its first two convolutions fused into one, "cn": a plain
// convolution), `repeats`, `kernels`, `strides` (of the first of the run), `expand`, `channels`,
// `excite` (the ratio of squeeze and excitation, 0 for none), `acts`, `skip`.

#include <cmath>

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

struct Run {
  std::string block;
  std::int64_t kernel = 3, stride = 1, out = 16, divisor = 8;
  double expand = 1, excite = 0;
  bool skip = true, same = false, from_expanded = false, excite_rounded = false;
  bool pointwise_act = false;  // "ds" ends with its activation
  bool always_expand = true;   // a block with ratio 1 still has its first convolution
  Activation act = Activation::relu, excite_act = Activation::relu, gate = Activation::sigmoid;
};

ValueId excited(NetworkBuilder& b, ValueId y, std::int64_t in, const Run& r) {
  if (r.excite <= 0) return y;
  const double wish = static_cast<double>(r.from_expanded ? b.channels(y) : in) * r.excite;
  Excitation e;
  e.reduced =
      r.excite_rounded ? round_channels(wish) : std::max<std::int64_t>(1, std::llround(wish));
  e.act = r.excite_act;
  e.gate = r.gate;
  return squeeze_excite(b, "se", y, e);
}

ValueId mobile_block(NetworkBuilder& b, ValueId x, const Run& r) {
  const std::int64_t in = b.channels(x);
  auto unit = [&](const char* name, ValueId v, std::int64_t out, std::int64_t kernel,
                  std::int64_t stride, bool depthwise, Activation act) {
    UnitOptions o;
    o.kernel = kernel;
    o.stride = stride;
    o.groups = depthwise ? out : 1;
    o.act = act;
    o.same = r.same;
    return convolution_unit(b, name, v, out, o);
  };
  ValueId y = x;
  if (r.block == "cn") {
    y = unit("conv", y, r.out, r.kernel, r.stride, false, r.act);
  } else if (r.block == "ds") {
    y = unit("conv_dw", y, in, r.kernel, r.stride, true, r.act);
    y = unit("conv_pw", excited(b, y, in, r), r.out, 1, 1, false,
             r.pointwise_act ? r.act : Activation::none);
  } else {
    const std::int64_t wide = round_channels(static_cast<double>(in) * r.expand, r.divisor);
    if (r.block == "er") {
      y = unit("conv_exp", y, wide, r.kernel, r.stride, false, r.act);
    } else {
      if (r.always_expand || wide != in) y = unit("conv_pw", y, wide, 1, 1, false, r.act);
      y = unit("conv_dw", y, wide, r.kernel, r.stride, true, r.act);
    }
    y = unit("conv_pwl", excited(b, y, in, r), r.out, 1, 1, false, Activation::none);
  }
  const bool residual = r.skip && r.stride == 1 && in == r.out;
  return residual ? b.add("add", y, x) : y;
}

Activation act_of(const NetworkSpec& spec, const std::vector<std::string>& acts, std::size_t i) {
  const std::string name = of_stage(acts, i);
  return activation_named(name.empty() ? spec.text("act", "relu") : name)
      .value_or(Activation::relu);
}

// The last 1 x 1 convolution, the mean, where the sheet says so another product (MobileNetV3), the
// classifier.
ValueId head(NetworkBuilder& b, const NetworkSpec& spec, ValueId x, std::int64_t width, bool same) {
  UnitOptions o;
  o.act = activation_named(spec.text("act", "relu")).value_or(Activation::relu);
  o.same = same;
  if (width > 0) x = convolution_unit(b, "conv_head", x, width, o);
  x = b.global_average_pool("avgpool", x);
  if (const std::int64_t pooled = spec.whole("pooled_width", 0)) {
    x = b.linear("pooled", x, pooled, spec.flag("pooled_bias", true));
    x = b.activation("act", x, o.act);
  }
  return b.linear("classifier", x, spec.whole("classes", 1000));
}

}  // namespace

Model build_mobile(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const double wide = spec.number("width_multiplier", 1), deep = spec.number("depth_multiplier", 1);
  const double limit = spec.number("round_limit", 0.9);
  const std::int64_t divisor = spec.whole("channel_multiple", 8);
  auto scaled = [&](std::int64_t channels) {
    return wide == 1 ? channels
                     : round_channels(static_cast<double>(channels) * wide, divisor, limit);
  };
  const bool fixed_ends = spec.flag("fixed_ends");  // stem, first and last run keep their size
  const bool nearest = spec.text("depth_rounding", "up") == "nearest";
  const auto blocks = spec.texts("blocks");
  const auto repeats = spec.wholes("repeats"), kernels = spec.wholes("kernels"),
             strides = spec.wholes("strides"), channels = spec.wholes("channels");
  const auto expand = spec.numbers("expand");
  const auto excite = spec.has("excite") ? spec.numbers("excite") : std::vector<double>{};
  const auto skip = spec.has("skip") ? spec.wholes("skip") : std::vector<std::int64_t>{};
  const auto acts = spec.has("acts") ? spec.texts("acts") : std::vector<std::string>{};

  Run r;
  r.divisor = divisor;
  r.same = spec.flag("same_padding");
  r.from_expanded = spec.flag("excite_from_expanded");
  r.excite_rounded = spec.flag("excite_rounded");
  r.always_expand = spec.flag("always_expand", true);
  r.pointwise_act = spec.flag("pointwise_act");
  r.gate = activation_named(spec.text("gate", "sigmoid")).value_or(Activation::sigmoid);

  UnitOptions stem;
  stem.kernel = 3;
  stem.stride = 2;
  stem.same = r.same;
  stem.act =
      activation_named(spec.text("stem_act", spec.text("act", "relu"))).value_or(Activation::relu);
  const std::int64_t first = spec.whole("stem_width");
  ValueId x = convolution_unit(b, "conv_stem", image_input(b, spec),
                               spec.flag("fixed_stem", fixed_ends) ? first : scaled(first), stem);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    auto in_run = b.scope("blocks." + std::to_string(i));
    const bool end = fixed_ends && (i == 0 || i + 1 == blocks.size());
    const double count =
        static_cast<double>(of_stage(repeats, i, std::int64_t{1})) * (end ? 1 : deep);
    r.block = blocks[i];
    r.kernel = of_stage(kernels, i, std::int64_t{3});
    r.out = scaled(of_stage(channels, i, std::int64_t{16}));
    r.expand = of_stage(expand, i, 1.0);
    r.excite = of_stage(excite, i, 0.0);
    r.skip = of_stage(skip, i, std::int64_t{1}) != 0;
    r.act = act_of(spec, acts, i);
    r.excite_act = activation_named(spec.text("excite_act", "none")).value_or(Activation::none);
    if (r.excite_act == Activation::none) r.excite_act = r.act;
    const std::int64_t last =
        std::max(1LL, nearest ? std::llround(count) : std::llround(std::ceil(count)));
    for (std::int64_t k = 0; k < last; ++k) {
      auto in_block = b.scope(std::to_string(k));
      r.stride = k == 0 ? of_stage(strides, i, std::int64_t{1}) : 1;
      x = mobile_block(b, x, r);
    }
  }
  std::int64_t width = spec.whole("head_width", 1280);
  const std::string grows = spec.text("head_scales", "no");  // "no", "yes", "never less"
  if (grows == "yes") width = scaled(width);
  if (grows == "never less") width = std::max(width, scaled(width));
  return image_model(spec, b, head(b, spec, x, width, r.same));
}

}  // namespace trigon
