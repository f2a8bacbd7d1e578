// Tacotron 2: Shen et al. 2017, arXiv:1712.05884. Text through convolutions and a bidirectional
// LSTM; the decoder writes one frame of the spectrogram a step, and each step attends to the text
// by content and by where it looked before. No step can start before the last one ended.

#include <algorithm>
#include <string>

#include "network/families.hpp"
#include "network/sound.hpp"

namespace trigon {
namespace {

ValueId convolution_norm(NetworkBuilder& b, const std::string& name, ValueId x, std::int64_t out,
                         Activation act) {
  auto in_conv = b.scope(name);
  ConvolutionOptions o;
  o.kernel = 5;
  o.bias = true;
  x = b.batch_norm("bn", b.convolution("conv", x, out, o));
  return b.dropout("dropout", b.activation("act", x, act));
}

}  // namespace

Model build_tacotron2(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const double seconds = spec.audio_seconds();
  const std::int64_t frames = frames_of(seconds, 256.0 / 22050.0), mels = 80, width = 512;
  const auto text =
      std::max<std::int64_t>(1, std::llround(seconds * spec.number("symbols_per_second")));
  const std::int64_t rnn = 1024, attention = 128, prenet = 256;
  ValueId memory = b.embedding("embedding", b.input({text}, Format::i64), 148, width);
  memory = b.transpose("channels_first", memory, {width, text});
  for (int i = 0; i < 3; ++i)
    memory =
        convolution_norm(b, "encoder.conv" + std::to_string(i), memory, width, Activation::relu);
  memory = b.transpose("time_first", memory, {text, width});
  memory = b.recurrence("encoder.lstm", memory, RecurrentCell::lstm, width / 2, true);
  const ValueId keys = b.linear("memory_layer", memory, attention, false);
  // Teacher forcing: the prenet reads all frames ahead.
  ValueId x = b.input({frames, mels});
  for (int i = 0; i < 2; ++i)
    x = b.dropout("prenet_dropout",
                  b.activation("relu", b.linear("prenet" + std::to_string(i), x, prenet, false),
                               Activation::relu));
  const ValueId state = b.input({1, rnn}), seen = b.input({2, text});
  const std::size_t first = b.next_node();
  const ValueId last_context = b.input({1, width});
  ValueId h = b.concatenate("cell_input", {b.slice("frame", x, 0, 1), last_context}, 1);
  h = b.dropout("attention_dropout", lstm_step(b, "attention_rnn", h, state));
  ValueId where;
  {
    auto in_attention = b.scope("attention");
    ConvolutionOptions o;
    o.kernel = 31;
    ValueId place = b.convolution("location_conv", seen, 32, o);
    place =
        b.linear("location_dense", b.transpose("time_first", place, {text, 32}), attention, false);
    const ValueId query = b.linear("query_layer", h, attention, false);
    const ValueId sum = b.elementwise("energy", {query, place, keys}, "add", 2, Keeps::nothing);
    const ValueId e = b.linear("v", b.activation("tanh", sum, Activation::tanh), 1, false);
    where = b.softmax("weights", b.reshape("row", e, {1, text}));
    where = b.product("context", where, memory);
  }
  ValueId y = b.concatenate("decoder_input", {h, where}, 1);
  y = b.dropout("decoder_dropout", lstm_step(b, "decoder_rnn", y, state));
  y = b.concatenate("projection_input", {y, where}, 1);
  const ValueId frame = b.linear("linear_projection", y, mels);
  const ValueId gate = b.linear("gate_layer", y, 1);
  b.repeat_from(first, frames);
  ValueId mel = b.copy("stack", {frame}, {mels, frames});
  ValueId post = mel;
  for (int i = 0; i < 5; ++i)
    post = convolution_norm(b, "postnet.conv" + std::to_string(i), post, i < 4 ? width : mels,
                            i < 4 ? Activation::tanh : Activation::none);
  mel = b.add("mel_outputs_postnet", mel, post);
  return sound_model(spec, b.finish({mel, gate}), seconds);
}

}  // namespace trigon
