// HiFi-GAN: Kong et al. 2020, arXiv:2010.05646. A generator of transposed convolutions and dilated
// residual blocks turns a spectrogram into sound; two sets of discriminators judge it in training.

#include <algorithm>
#include <string>

#include "network/families.hpp"
#include "network/sound.hpp"

namespace trigon {
namespace {

ConvolutionOptions with_bias(Extent kernel, Extent stride = 1, std::int64_t groups = 1) {
  ConvolutionOptions o;
  o.kernel = std::move(kernel);
  o.stride = std::move(stride);
  o.groups = groups;
  o.bias = true;
  return o;
}

ValueId residual(NetworkBuilder& b, ValueId x, std::int64_t kernel) {
  for (std::int64_t dilation : {1, 3, 5}) {
    auto in_branch = b.scope("d" + std::to_string(dilation));
    ConvolutionOptions o = with_bias(kernel);
    const ValueId a = b.activation("act1", x, Activation::leaky_relu);
    o.dilation = dilation;
    ValueId y = b.convolution("conv1", a, b.channels(x), o);
    o.dilation = 1;
    y = b.convolution("conv2", b.activation("act2", y, Activation::leaky_relu), b.channels(x), o);
    x = b.add("add", x, y);
  }
  return x;
}

ValueId generator(NetworkBuilder& b, const NetworkSpec& spec, std::int64_t frames) {
  const auto rates = spec.wholes("upsample_rates"), kernels = spec.wholes("upsample_kernels");
  ValueId x =
      b.convolution("conv_pre", b.input({80, frames}), spec.whole("channels"), with_bias(7));
  for (std::size_t i = 0; i < rates.size() && i < kernels.size(); ++i) {
    auto in_stage = b.scope("stage" + std::to_string(i));
    ConvolutionOptions up = with_bias(kernels[i], rates[i]);
    up.padding = (kernels[i] - rates[i]) / 2;
    x = b.activation("act", x, Activation::leaky_relu);
    x = b.transposed_convolution("up", x, b.channels(x) / 2, up);
    std::optional<ValueId> sum;
    for (std::int64_t k : {3, 7, 11}) {
      auto in_block = b.scope("k" + std::to_string(k));
      const ValueId y = residual(b, x, k);
      sum = sum ? b.add("sum", *sum, y) : y;
    }
    x = *sum;
  }
  x = b.convolution("conv_post", b.activation("act", x, Activation::leaky_relu), 1, with_bias(7));
  return b.activation("tanh", x, Activation::tanh);
}

// Sound folded to rows of `period` samples; windows of five along one column.
ValueId period_discriminator(NetworkBuilder& b, ValueId sound, std::int64_t period) {
  const std::int64_t rows = (b.shape(sound)[1] + period - 1) / period;
  ValueId x = b.pad("pad", sound, {rows * period});
  x = b.reshape("fold", x, {1, rows, period});
  const std::int64_t widths[] = {32, 128, 512, 1024, 1024};
  for (int i = 0; i < 5; ++i) {
    ConvolutionOptions o = with_bias({5, 1}, {i < 4 ? 3 : 1, 1});
    o.padding = Extent{2, 0};
    x = b.activation("act", b.convolution("conv" + std::to_string(i), x, widths[i], o),
                     Activation::leaky_relu);
  }
  ConvolutionOptions o = with_bias({3, 1});
  o.padding = Extent{1, 0};
  return b.convolution("conv_post", x, 1, o);
}

ValueId scale_discriminator(NetworkBuilder& b, ValueId x) {
  struct Layer {
    std::int64_t out, kernel, stride, groups;
  };
  const Layer layers[] = {{128, 15, 1, 1},   {128, 41, 2, 4},   {256, 41, 2, 16}, {512, 41, 4, 16},
                          {1024, 41, 4, 16}, {1024, 41, 1, 16}, {1024, 5, 1, 1}};
  int i = 0;
  for (const Layer& l : layers)
    x = b.activation("act",
                     b.convolution("conv" + std::to_string(i++), x, l.out,
                                   with_bias(l.kernel, l.stride, l.groups)),
                     Activation::leaky_relu);
  return b.convolution("conv_post", x, 1, with_bias(3));
}

// One clip of training passes through the discriminators as recorded and as generated when they
// learn (two passes forth and back), and again when the generator does (two forth, one back
// without weight gradients): nine forward passes of work, as much as three clips forth and back.
Graph discriminators(const NetworkSpec& spec, std::int64_t samples) {
  NetworkBuilder b(spec.source());
  std::vector<ValueId> outputs;
  const std::size_t first = b.next_weight();
  for (int pass = 0; pass < 3; ++pass) {
    if (pass > 0) b.share_weights_from(first);
    ValueId sound = b.input({1, samples});
    for (std::int64_t period : {2, 3, 5, 7, 11}) {
      auto in_period = b.scope("mpd" + std::to_string(period));
      outputs.push_back(period_discriminator(b, sound, period));
    }
    for (int scale = 0; scale < 3; ++scale) {
      auto in_scale = b.scope("msd" + std::to_string(scale));
      if (scale > 0) sound = b.average_pool("pool", sound, 4, 2, 2);
      outputs.push_back(scale_discriminator(b, sound));
    }
  }
  b.stop_sharing();
  return b.finish(outputs);
}

}  // namespace

Model build_hifigan(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const double seconds = spec.audio_seconds();
  const std::int64_t frames = frames_of(seconds, 256.0 / 22050.0, 4);
  Model m = sound_model(spec, b.finish({generator(b, spec, frames)}), seconds);
  Component judges{"discriminators", ComponentRole::other, discriminators(spec, frames * 256)};
  judges.serves = false;
  m.components.push_back(std::move(judges));
  return m;
}

}  // namespace trigon
