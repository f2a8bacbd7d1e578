// FastPitch: Lancucki 2020, arXiv:2006.06873, in the form that learns its own alignment (Badlani et
// al. 2021, arXiv:2108.10447): feed-forward transformers over symbols and over frames, predictors
// of duration, pitch and energy between them, no step waits for another.

#include <algorithm>
#include <string>

#include "network/families.hpp"
#include "network/sound.hpp"

namespace trigon {
namespace {

constexpr std::int64_t kWidth = 384, kInner = 1536, kHead = 64;

// A convolution along the tokens of [tokens, width].
ValueId along(NetworkBuilder& b, const std::string& name, ValueId x, std::int64_t out,
              std::int64_t kernel) {
  const std::int64_t n = b.tokens(x);
  ConvolutionOptions o;
  o.kernel = kernel;
  o.bias = true;
  const ValueId y = b.convolution(name, b.transpose("to_channels", x, {b.width(x), n}), out, o);
  return b.transpose("to_tokens", y, {n, out});
}

ValueId transformer(NetworkBuilder& b, ValueId x, int layers) {
  for (int i = 0; i < layers; ++i) {
    auto in_layer = b.scope(std::to_string(i));
    const auto qkv = b.split("qkv", b.linear("qkv_net", x, 3 * kHead), 1, {kHead, kHead, kHead});
    AttentionOptions o;
    o.fused = false;
    const ValueId a =
        b.linear("o_net", b.attention("attention", qkv[0], qkv[1], qkv[2], o), kWidth, false);
    x = b.layer_norm("attention_norm", b.add("residual", x, b.dropout("drop", a)));
    ValueId y = b.activation("relu", along(b, "conv1", x, kInner, 3), Activation::relu);
    y = b.dropout("drop", along(b, "conv2", y, kWidth, 3));
    x = b.layer_norm("ff_norm", b.add("residual", x, y));
  }
  return x;
}

ValueId predictor(NetworkBuilder& b, const char* name, ValueId x) {
  auto in_predictor = b.scope(name);
  for (int i = 0; i < 2; ++i) {
    x = b.activation("relu", along(b, "conv" + std::to_string(i), x, 256, 3), Activation::relu);
    x = b.dropout("drop", b.layer_norm("norm" + std::to_string(i), x));
  }
  return b.linear("fc", x, 1);
}

// Distances between all frames and symbols in a space of 80 dimensions, softened over symbols.
ValueId alignment(NetworkBuilder& b, ValueId symbols, ValueId frames) {
  auto in_attention = b.scope("attention");
  ValueId key = b.activation("relu", along(b, "key0", symbols, 2 * kWidth, 3), Activation::relu);
  key = along(b, "key1", key, 80, 1);
  ValueId query = b.activation("relu", along(b, "query0", frames, 160, 3), Activation::relu);
  query = b.activation("relu", along(b, "query1", query, 80, 1), Activation::relu);
  query = along(b, "query2", query, 80, 1);
  const std::int64_t s = b.tokens(key), t = b.tokens(query);
  const ValueId squares = b.node("squares", Elementwise{"square_difference", 2, Keeps::inputs},
                                 {query, key}, {}, {80, t, s});
  const ValueId sum = b.reduce("sum", squares, {t, s});
  return b.softmax("softmax", b.softmax("log_softmax", sum));
}

}  // namespace

Model build_fastpitch(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const double seconds = spec.audio_seconds();
  const std::int64_t frames = frames_of(seconds, 256.0 / 22050.0), mels = 80;
  const auto symbols =
      std::max<std::int64_t>(1, std::llround(seconds * spec.number("symbols_per_second")));
  ValueId x = b.embedding("word_emb", b.input({symbols}, Format::i64), 148, kWidth);
  const ValueId mel = b.input({frames, mels});
  const ValueId aligned = alignment(b, x, mel);
  {
    auto in_encoder = b.scope("encoder");
    x = transformer(b, x, 6);
  }
  const ValueId duration = predictor(b, "duration_predictor", x);
  const ValueId pitch = predictor(b, "pitch_predictor", x);
  x = b.add("with_pitch", x, along(b, "pitch_emb", pitch, kWidth, 3));
  const ValueId energy = predictor(b, "energy_predictor", x);
  x = b.add("with_energy", x, along(b, "energy_emb", energy, kWidth, 3));
  x = b.product("regulate_length", aligned, x);
  {
    auto in_decoder = b.scope("decoder");
    x = transformer(b, x, 6);
  }
  return sound_model(spec, b.finish({b.linear("proj", x, mels), duration}), seconds);
}

}  // namespace trigon
