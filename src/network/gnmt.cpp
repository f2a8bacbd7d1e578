// Google's neural translation as MLPerf and DeepLearningExamples train it (Wu et al. 2016,
// arXiv:1609.08144): four LSTMs to read, the first in both directions, four to write, an additive
// attention over what was read whose result every later LSTM of the decoder sees.

#include <string>

#include "network/builder.hpp"
#include "network/families.hpp"

namespace trigon {

Model build_gnmt(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const std::int64_t d = 1024, vocabulary = spec.whole("vocabulary"), n = spec.tokens();
  const ValueId source = b.input({n}, Format::i64), target = b.input({n}, Format::i64);
  const std::size_t first = b.next_weight();
  ValueId x = b.dropout("drop", b.embedding("embedder", source, vocabulary, d));
  x = b.recurrence("encoder0", x, RecurrentCell::lstm, d, true);
  x = b.recurrence("encoder1", b.dropout("drop", x), RecurrentCell::lstm, d);
  for (int i = 2; i < 4; ++i)
    x = b.add(
        "residual", x,
        b.recurrence("encoder" + std::to_string(i), b.dropout("drop", x), RecurrentCell::lstm, d));
  const ValueId memory = x;
  b.share_weights_from(first);
  ValueId y = b.embedding("embedder", target, vocabulary, d);
  b.stop_sharing();
  y = b.recurrence("decoder0", b.dropout("drop", y), RecurrentCell::lstm, d);
  // score(q, k) = v tanh(q + k + b) of every pair, v kept at unit length.
  const ValueId keys = b.linear("attention.linear_k", memory, d, false);
  const ValueId query = b.linear("attention.linear_q", y, d, false);
  ValueId pairs =
      b.node("attention.sum", Elementwise{"add_tanh", 8, Keeps::output}, {query, keys},
             {b.weight("attention.bias", {d}), b.weight("attention.scalar", {1})}, {n * n, d});
  pairs = b.linear("attention.v", pairs, 1, false);
  const ValueId where = b.softmax("attention.softmax", b.reshape("scores", pairs, {n, n}));
  const ValueId context = b.product("attention.context", where, memory);
  for (int i = 1; i < 4; ++i) {
    const ValueId in = b.concatenate("with_context", {b.dropout("drop", y), context}, 1);
    const ValueId out = b.recurrence("decoder" + std::to_string(i), in, RecurrentCell::lstm, d);
    y = i > 1 ? b.add("residual", y, out) : out;
  }
  y = b.linear("classifier", y, vocabulary);
  y = b.softmax("log_softmax", y);
  return network_model(spec, b.finish({y}), WorkUnit::sequence, {n});
}

}  // namespace trigon
