// The recurrent transducer of MLPerf: He et al. 2018, arXiv:1811.06621, without projections and
// normalization. An encoder of LSTMs reads spliced filterbank frames, a prediction network reads
// the text so far, a joint network scores every pair of the two. Training evaluates the whole grid
// of frames and symbols; greedy decoding steps through it (`greedy`), once for each frame and each
// symbol that it writes.

#include <algorithm>
#include <cmath>

#include "network/families.hpp"
#include "network/sound.hpp"

namespace trigon {

Model build_rnnt(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const double seconds = spec.audio_seconds();
  const std::int64_t hidden = spec.whole("encoder_hidden"), joint = spec.whole("joint_hidden");
  const std::int64_t predict = spec.whole("prediction_hidden"), labels = spec.whole("labels");
  // Frames of 10 ms, three to a feature vector of 240.
  const std::int64_t frames = frames_of(seconds, 0.03, 2);
  const auto symbols =
      std::max<std::int64_t>(1, std::llround(seconds * spec.number("symbols_per_second")));
  ValueId x = b.input({frames, spec.whole("features")});
  for (std::int64_t i = 0; i < spec.whole("pre_layers"); ++i)
    x = b.recurrence("pre" + std::to_string(i), x, RecurrentCell::lstm, hidden);
  const std::int64_t steps = frames / 2;
  x = b.transpose("stack_time", b.slice("even", x, 0, steps * 2), {steps, 2 * hidden});
  for (std::int64_t i = 0; i < spec.whole("post_layers"); ++i)
    x = b.recurrence("post" + std::to_string(i), x, RecurrentCell::lstm, hidden);
  const ValueId text = b.input({symbols}, Format::i64);
  if (spec.flag("greedy")) {
    const ValueId f = b.linear("joint_enc", x, joint);
    const std::size_t first = b.next_node();
    ValueId g = b.embedding("embed", b.slice("last", text, 0, 1), labels, predict);
    for (int i = 0; i < 2; ++i)
      g = lstm_step(b, i == 0 ? "pred0" : "pred1", g, b.slice("state", g, 0, 1));
    g = b.linear("joint_pred", g, joint);
    b.repeat_from(first, symbols);
    const std::size_t each = b.next_node();
    ValueId y = b.activation("relu", b.add("sum", b.slice("frame", f, 0, 1), g), Activation::relu);
    y = b.linear("joint_out", y, labels + 1);
    const ValueId best = b.reduce("argmax", y, {1});
    b.repeat_from(each, steps + symbols);
    return sound_model(spec, b.finish({best}), seconds);
  }
  ValueId g = b.embedding("embed", text, labels, predict);
  for (int i = 0; i < 2; ++i)
    g = b.recurrence("pred" + std::to_string(i), g, RecurrentCell::lstm, predict);
  // A start symbol comes before the text.
  const ValueId f = b.linear("joint_enc", x, joint), p = b.linear("joint_pred", g, joint);
  ValueId y = b.node("sum", Elementwise{"add_outer", 1, Keeps::nothing}, {f, p}, {},
                     {steps * (symbols + 1), joint});
  y = b.dropout("dropout", b.activation("relu", y, Activation::relu));
  y = b.linear("joint_out", y, labels + 1);
  // The transducer loss normalizes each pair's scores and sums over paths.
  y = b.softmax("log_softmax", y);
  return sound_model(spec, b.finish({y}), seconds);
}

}  // namespace trigon
