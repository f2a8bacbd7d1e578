#pragma once
// Parts that networks for sound share: units of one-dimensional convolutions, cells that step, and
// how many feature frames a recording has.

#include <cmath>

#include "network/builder.hpp"
#include "network/spec.hpp"

namespace trigon {

// Frames of `hop_seconds` in a recording, at least `least`.
inline std::int64_t frames_of(double seconds, double hop_seconds, std::int64_t least = 1) {
  const auto n = static_cast<std::int64_t>(std::llround(seconds / hop_seconds));
  return n < least ? least : n;
}

// One step of an LSTM that cannot be unrolled ahead: x [1, in] and the last state [1, hidden], two
// products and one pointwise kernel.
inline ValueId lstm_step(NetworkBuilder& b, const char* name, ValueId x, ValueId state) {
  auto in_cell = b.scope(name);
  const std::int64_t hidden = b.width(state);
  const ValueId i = b.linear("ih", x, 4 * hidden), h = b.linear("hh", state, 4 * hidden);
  // Four sigmoids or tanh, three products and a sum of each output element.
  return b.node("gates", Elementwise{"lstm_gates", 30, Keeps::inputs}, {i, h}, {}, {1, hidden});
}

// A model of an utterance.
inline Model sound_model(const NetworkSpec& spec, Graph graph, double seconds) {
  Model m = network_model(spec, std::move(graph), WorkUnit::utterance, {});
  m.item->audio_seconds = seconds;
  return m;
}

}  // namespace trigon
