// WaveGlow: Prenger et al. 2018, arXiv:1811.00002. Sound in groups of eight samples goes through
// twelve steps of flow, each an invertible 1 x 1 convolution and an affine coupling whose scales
// come from a network of dilated convolutions conditioned on the spectrogram.

#include <algorithm>
#include <string>

#include "network/families.hpp"
#include "network/sound.hpp"

namespace trigon {
namespace {

ValueId coupling(NetworkBuilder& b, ValueId x, ValueId mel, std::int64_t channels, int layers) {
  const std::int64_t out = 2 * b.channels(x);
  ConvolutionOptions one;
  one.kernel = 1;
  one.bias = true;
  ValueId h = b.convolution("start", x, channels, one);
  const ValueId conditions = b.convolution("cond_layer", mel, 2 * channels * layers, one);
  std::optional<ValueId> skips;
  for (int i = 0; i < layers; ++i) {
    auto in_layer = b.scope(std::to_string(i));
    ConvolutionOptions o;
    o.dilation = std::int64_t{1} << i;
    o.bias = true;
    ValueId a = b.convolution("in_layer", h, 2 * channels, o);
    a = b.add("condition", a, b.slice("part", conditions, 0, 2 * channels));
    // tanh of one half times the sigmoid of the other.
    a = b.node("gate", Elementwise{"tanh_sigmoid", 12, Keeps::inputs}, {a}, {},
               TensorShape(b.shape(h)));
    const bool last = i + 1 == layers;
    const ValueId r = b.convolution("res_skip", a, last ? channels : 2 * channels, one);
    if (!last) h = b.add("residual", h, b.slice("half", r, 0, channels));
    const ValueId skip = last ? r : b.slice("half", r, 0, channels);
    skips = skips ? b.add("skip", *skips, skip) : skip;
  }
  return b.convolution("end", *skips, out, one);
}

}  // namespace

Model build_waveglow(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const double seconds = spec.audio_seconds();
  const std::int64_t group = 8, mels = 80, channels = spec.whole("channels");
  const std::int64_t steps = frames_of(seconds, 8.0 / 22050.0, group);
  const std::int64_t frames = (steps * group + 255) / 256;
  ConvolutionOptions up;
  up.kernel = 1024;
  up.stride = 256;
  up.bias = true;
  ValueId mel = b.transposed_convolution("upsample", b.input({mels, frames}), mels, up);
  mel = b.slice("cut", mel, 1, steps * group);
  mel = b.transpose("grouped_mel", mel, {mels * group, steps});
  ValueId x = b.transpose("grouped", b.input({1, steps * group}), {group, steps});
  std::vector<ValueId> outputs;
  for (int flow = 0; flow < 12; ++flow) {
    auto in_flow = b.scope("flow" + std::to_string(flow));
    if (flow > 0 && flow % 4 == 0) {
      outputs.push_back(b.slice("early", x, 0, 2));
      x = b.slice("rest", x, 0, b.channels(x) - 2);
    }
    ConvolutionOptions one;
    one.kernel = 1;
    x = b.convolution("invertible", x, b.channels(x), one);
    const std::int64_t half = b.channels(x) / 2;
    const ValueId left = b.slice("left", x, 0, half), right = b.slice("right", x, 0, half);
    const ValueId scale = coupling(b, left, mel, channels, 8);
    const ValueId moved = b.elementwise(
        "affine", {right, b.slice("log_s", scale, 0, half), b.slice("shift", scale, 0, half)},
        "exp_scale_shift", 6, Keeps::inputs);
    x = b.concatenate("concat", {left, moved});
  }
  outputs.push_back(x);
  return sound_model(spec, b.finish(outputs), seconds);
}

}  // namespace trigon
