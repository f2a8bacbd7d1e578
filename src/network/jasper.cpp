// Convolutional speech recognizers over time: Jasper (Li et al. 2019, arXiv:1904.03288), whose
// blocks all see the outputs of the blocks before them, and QuartzNet (Kriman et al. 2019,
// arXiv:1910.10261), whose convolutions are depthwise then pointwise.

#include <string>

#include "network/families.hpp"
#include "network/sound.hpp"

namespace trigon {
namespace {

struct Unit {
  std::int64_t kernel = 1, stride = 1, dilation = 1;
  bool separable = false;
};

ValueId normalized(NetworkBuilder& b, ValueId x, std::int64_t out, const Unit& u) {
  ConvolutionOptions o;
  o.kernel = u.kernel;
  o.stride = u.stride;
  o.dilation = u.dilation;
  if (u.separable) {
    o.groups = b.channels(x);
    x = b.convolution("depthwise", x, b.channels(x), o);
    ConvolutionOptions one;
    one.kernel = 1;
    return b.batch_norm("bn", b.convolution("pointwise", x, out, one));
  }
  return b.batch_norm("bn", b.convolution("conv", x, out, o));
}

ValueId finished(NetworkBuilder& b, ValueId x) {
  return b.dropout("dropout", b.activation("relu", x, Activation::relu));
}

}  // namespace

Model build_jasper(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const double seconds = spec.audio_seconds();
  const bool separable = spec.flag("separable"), dense = spec.flag("dense_residual");
  const auto widths = spec.wholes("widths"), kernels = spec.wholes("kernels");
  const std::int64_t repeat = spec.whole("blocks_of_each"), sub = spec.whole("sub_blocks");
  ValueId x = b.input({64, frames_of(seconds, 0.01, 2)});
  auto single = [&](const char* name, std::int64_t out, const Unit& u) {
    auto in_unit = b.scope(name);
    x = finished(b, normalized(b, x, out, u));
  };
  single("prologue", spec.whole("prologue_width"),
         {spec.whole("prologue_kernel"), 2, 1, separable});
  std::vector<ValueId> seen;
  int blocks = 0;
  for (std::size_t g = 0; g < widths.size() && g < kernels.size(); ++g)
    for (std::int64_t r = 0; r < repeat; ++r) {
      auto in_block = b.scope("block" + std::to_string(blocks++));
      if (!dense) seen.clear();
      seen.push_back(x);
      for (std::int64_t i = 0; i < sub; ++i) {
        auto in_sub = b.scope(std::to_string(i));
        x = normalized(b, x, widths[g], {kernels[g], 1, 1, separable});
        if (i + 1 < sub) x = finished(b, x);
      }
      for (std::size_t i = 0; i < seen.size(); ++i) {
        auto in_residual = b.scope("residual" + std::to_string(i));
        x = b.add("add", x, normalized(b, seen[i], widths[g], {}));
      }
      x = finished(b, x);
    }
  single("epilogue1", spec.whole("epilogue_width"),
         {spec.whole("epilogue_kernel"), 1, 2, separable});
  single("epilogue2", 1024, {});
  ConvolutionOptions last;
  last.kernel = 1;
  last.bias = true;
  x = b.convolution("decoder", x, spec.whole("labels"), last);
  x = b.softmax("log_softmax", x);
  return sound_model(spec, b.finish({x}), seconds);
}

}  // namespace trigon
