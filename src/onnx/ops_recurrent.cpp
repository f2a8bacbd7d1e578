// LSTM, GRU and RNN: X [steps, batch, in], W [directions, gates * hidden, in].

#include <algorithm>

#include "onnx/op.hpp"

namespace trigon::onnx {
namespace {

void recur(Op& op, RecurrentCell cell, const Indices& parameters, const Indices& constants) {
  op.need_rank(0, 3, 3);
  op.need_rank(1, 3, 3);
  if (!op.ok()) return;
  const std::int64_t gates = cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
  const bool batch_first = op.integer("layout", 0) != 0;
  const std::int64_t steps = op.dim(0, batch_first ? 1 : 0);
  const std::int64_t batch = op.dim(0, batch_first ? 0 : 1), in = op.dim(0, 2);
  const std::int64_t directions = op.dim(1, 0);
  // Dynamically quantised weights are [directions, in, gates * hidden].
  const bool turned = op.node().op == "DynamicQuantizeLSTM";
  const std::int64_t rows = op.dim(1, turned ? 2 : 1);
  const std::int64_t hidden = op.integer("hidden_size", rows / gates);
  if (hidden < 1 || hidden > kMostStep || hidden * gates != rows ||
      op.dim(1, turned ? 1 : 2) != in || directions < 1 || directions > 2)
    return op.fail(OnnxMessage::shape_mismatch, shape_text(op.shape(0)), shape_text(op.shape(1)));
  op.set(0, op.in(0).type,
         batch_first ? TensorShape{batch, steps, directions, hidden}
                     : TensorShape{steps, directions, batch, hidden});
  const TensorShape last =
      batch_first ? TensorShape{batch, directions, hidden} : TensorShape{directions, batch, hidden};
  for (std::size_t k = 1; k < op.outputs() && k < (cell == RecurrentCell::lstm ? 3u : 2u); ++k)
    op.set(k, op.in(0).type, last);
  if (!op.ok() || batch == 0) return;
  if (batch > kMostDimension / std::max<std::int64_t>(steps, 1))
    return op.fail(OnnxMessage::value_too_large);
  Recurrence r;
  r.cell = cell;
  r.input = in;
  r.hidden = hidden;
  // Sequences side by side take the place of further steps: as much work, the same weights.
  r.steps = steps * batch;
  r.directions = directions;
  op.emit(r, {0}, parameters, constants);
}

void lstm(Op& op) { recur(op, RecurrentCell::lstm, {1, 2, 3, 7}, {4, 5, 6}); }
void gru(Op& op) { recur(op, RecurrentCell::gru, {1, 2, 3}, {4, 5}); }
void plain(Op& op) { recur(op, RecurrentCell::plain, {1, 2, 3}, {4, 5}); }
void quantized_lstm(Op& op) {
  recur(op, RecurrentCell::lstm, {1, 2, 3, 7}, {4, 5, 6, 8, 9, 10, 11});
}

}  // namespace

const OperatorTable& recurrent_operators() {
  static const OperatorTable table = {
      {"LSTM", lstm}, {"GRU", gru}, {"RNN", plain}, {"DynamicQuantizeLSTM", quantized_lstm}};
  return table;
}

}  // namespace trigon::onnx
