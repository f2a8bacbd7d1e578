// wav2vec 2.0: Baevski et al. 2020, arXiv:2006.11477. Seven convolutions turn sound of 16 kHz into
// 49 frames a second, a transformer reads them; pre-training tells the quantized frame from a
// hundred others at each masked place.

#include <algorithm>
#include <string>

#include "network/families.hpp"
#include "network/sound.hpp"

namespace trigon {
namespace {

ValueId layer(NetworkBuilder& b, ValueId x, std::int64_t heads, std::int64_t inner,
              bool norm_first) {
  const std::int64_t d = b.width(x);
  auto attention = [&](ValueId v) {
    AttentionOptions o;
    o.heads = heads;
    o.fused = false;
    const ValueId q = b.linear("q_proj", v, d), k = b.linear("k_proj", v, d),
                  w = b.linear("v_proj", v, d);
    return b.dropout("drop", b.linear("out_proj", b.attention("attention", q, k, w, o), d));
  };
  auto feed_forward = [&](ValueId v) {
    v = b.activation("gelu", b.linear("fc1", v, inner), Activation::gelu);
    return b.dropout("drop", b.linear("fc2", b.dropout("drop", v), d));
  };
  if (norm_first) {
    x = b.add("residual", x, attention(b.layer_norm("attention_norm", x)));
    return b.add("residual", x, feed_forward(b.layer_norm("final_norm", x)));
  }
  x = b.layer_norm("attention_norm", b.add("residual", x, attention(x)));
  return b.layer_norm("final_norm", b.add("residual", x, feed_forward(x)));
}

}  // namespace

Model build_wav2vec2(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const double seconds = spec.audio_seconds();
  const std::int64_t d = spec.whole("width"), channels = 512;
  // The seven windows reach over 400 samples.
  const std::int64_t samples = frames_of(seconds, 1.0 / 16000.0, 400);
  const bool every_norm = spec.flag("norm_every_convolution");
  const std::int64_t kernels[] = {10, 3, 3, 3, 3, 2, 2}, strides[] = {5, 2, 2, 2, 2, 2, 2};
  ValueId x = b.input({1, samples});
  for (int i = 0; i < 7; ++i) {
    auto in_conv = b.scope("conv" + std::to_string(i));
    ConvolutionOptions o;
    o.kernel = kernels[i];
    o.stride = strides[i];
    o.padding = 0;
    o.bias = every_norm;
    x = b.convolution("conv", x, channels, o);
    if (every_norm)
      x = b.layer_norm("norm", x, true, true);
    else if (i == 0)
      x = b.group_norm("norm", x, channels);
    x = b.activation("gelu", x, Activation::gelu);
  }
  const std::int64_t frames = b.shape(x)[1];
  const ValueId features = b.layer_norm("layer_norm", b.transpose("tokens", x, {frames, channels}));
  x = b.dropout("dropout_input", b.linear("post_extract_proj", features, d));
  if (spec.flag("pretraining")) x = b.add_parameter("mask_emb", x, {d});
  ConvolutionOptions position;
  position.kernel = 128;
  position.padding = 64;
  position.groups = 16;
  position.bias = true;
  ValueId p = b.convolution("pos_conv", b.transpose("channels", x, {d, frames}), d, position);
  p = b.activation("gelu", b.slice("same", p, 1, frames), Activation::gelu);
  x = b.add("with_positions", x, b.transpose("tokens", p, {frames, d}));
  const bool norm_first = spec.flag("norm_first");
  if (!norm_first) x = b.layer_norm("encoder_norm", x);
  for (std::int64_t i = 0; i < spec.whole("layers"); ++i) {
    auto in_layer = b.scope("layer" + std::to_string(i));
    x = layer(b, x, spec.whole("heads"), 4 * d, norm_first);
  }
  if (norm_first) x = b.layer_norm("encoder_norm", x);
  if (!spec.flag("pretraining")) {
    x = b.softmax("log_softmax", b.linear("proj", x, spec.whole("labels")));
    return sound_model(spec, b.finish({x}), seconds);
  }
  // Section 4.2: about 49 % of the time steps are masked; two groups of 320 codes.
  const std::int64_t masked = std::max<std::int64_t>(1, frames * 49 / 100);
  const std::int64_t code = spec.whole("code_width"), final = spec.whole("final_width");
  const ValueId picked = b.slice("masked", x, 0, masked);
  ValueId q = b.slice("masked_features", features, 0, masked);
  q = b.softmax("gumbel_softmax", b.linear("weight_proj", q, 640));
  const ValueId codes = b.node("codes", Elementwise{"select_code", 640, Keeps::inputs}, {q},
                               {b.weight("vars", {640, code / 2})}, {masked, code});
  const ValueId target = b.linear("project_q", codes, final);
  const ValueId guess = b.linear("final_proj", picked, final);
  const ValueId others = b.copy("negatives", {target}, {101, masked, final});
  const ValueId similar =
      b.elementwise("cosine", {others, guess}, "cosine_similarity", 6, Keeps::inputs);
  const ValueId logits = b.softmax("log_softmax", b.reduce("sum", similar, {masked, 101}));
  return sound_model(spec, b.finish({logits}), seconds);
}

}  // namespace trigon
