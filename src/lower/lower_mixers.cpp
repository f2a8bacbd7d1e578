// Recurrent mixers and residual streams.

#include <algorithm>
#include <cmath>

#include "lower/layer_writer.hpp"

namespace trigon {

// A recurrence reads and writes its state once a pass when it goes token by token; the matrix
// form over chunks of Q tokens (Dao and Gu 2024, arXiv:2405.21060, section 6; for the delta
// rule Yang et al. 2024, arXiv:2412.06464) multiplies Q x Q scores within a chunk and the state
// between chunks: for a head of P values and N keys, 2 Q (N + P) + 4 N P operations a token,
// and for the delta rule one product of each more, halved where causal.
void LayerWriter::recurrence(const RecurrentMixer& m) {
  double t = tensor(), rows = tokens();
  for (const MixerLinear& p : m.projections) {
    const bool last = &p == &m.projections.back();
    if (last) {
      if (m.conv_channels > 0)
        elementwise("mixer.convolution", rows * static_cast<double>(m.conv_channels) / t, 1, 1);
      if (m.state > 0) scan(m);
      elementwise("mixer.gate", rows * static_cast<double>(m.inner()) / t, 2, 1);
    }
    if (p.linear.split == Split::row)
      linear(p.role, p.linear, 1, t, rows);
    else
      linear(p.role, p.linear, p.linear.split == Split::column ? t : 1, 1, rows);
    if (p.linear.split == Split::row && !last && pass.tensor > 1) {
      Operator op;
      op.kind = OperatorKind::all_reduce;
      op.name = "mixer.reduce";
      op.payload_bytes = rows * static_cast<double>(p.linear.out) * act();
      op.ranks = pass.tensor;
      out.push_back(op);
    }
  }
  reduce_hidden("mixer.reduce");
}

void LayerWriter::scan(const RecurrentMixer& m) {
  double t = tensor(), rows = tokens();
  double heads = static_cast<double>(m.heads) / t;
  double p = static_cast<double>(m.head_dim), n = static_cast<double>(m.state);
  double key_heads = std::max(1.0, static_cast<double>(m.groups) / t);
  Operator op;
  op.kind = OperatorKind::scan;
  op.name = "mixer.scan";
  op.sequences = pass.sequences;
  op.query_tokens = pass.new_tokens / pass.context;
  op.m = heads;
  op.n = p;
  op.k = n;
  op.activations = pass.activations;
  op.weights = m.state_format;
  const bool delta = m.kind == MixerKind::gated_delta;
  op.matrix_form = m.chunk > 0 && pass.new_tokens > 1;
  double state = heads * p * n * element_bytes(m.state_format);
  double moved = rows * (2 * heads * p + 2 * key_heads * n) * act();
  if (op.matrix_form) {
    double q = std::min(static_cast<double>(m.chunk), op.query_tokens);
    op.flops = rows * heads * ((delta ? 2 : 1) * q * (n + p) + (delta ? 6 : 4) * n * p);
    // The state at each chunk's start is written by one kernel and read by the next.
    double chunks = std::ceil(op.query_tokens / q) * pass.sequences;
    op.data_bytes = moved + 2 * chunks * state;
  } else {
    // Decay, outer product and read-out; the delta rule reads the state once more.
    op.flops = rows * heads * (delta ? 7 : 5) * n * p;
    op.data_bytes = moved + 2 * pass.sequences * state;
  }
  out.push_back(op);
}

void LayerWriter::streams(const StreamMixer& m) {
  double rows = tokens();
  linear("streams.mix", m.mix, 1, 1, rows);
  elementwise("streams", rows * static_cast<double>(m.streams * stack.hidden), 2, 1);
}

}  // namespace trigon
