// Normalisations and the softmax family.

#include <algorithm>

#include "onnx/op.hpp"

namespace trigon::onnx {
namespace {

void batch_normalization(Op& op) {
  op.need_rank(0, 1);
  const Value& x = op.in(0);
  op.set(0, x.type, x.shape);
  for (std::size_t k = 1; k < op.outputs() && k < 5; ++k) op.set(k, op.in(3).type, op.shape(3));
  op.emit(Normalization{Statistics::batch}, {0}, {1, 2}, {3, 4});
}

// Output 0 like x; mean and inverse deviation of what is normalised, when asked for.
void normalize(Op& op, Statistics kind, const Indices& data, const Indices& parameters,
               const Indices& constants = {}) {
  op.set(0, op.in(data.empty() ? 0 : data[0]).type, op.shape(data.empty() ? 0 : data[0]));
  op.emit(Normalization{kind}, data, parameters, constants);
}

void instance_normalization(Op& op) { normalize(op, Statistics::instance, {0}, {1, 2}); }
void group_normalization(Op& op) { normalize(op, Statistics::group, {0}, {1, 2}); }
void local_response(Op& op) { normalize(op, Statistics::local_response, {0}, {}); }
void mean_variance(Op& op) { normalize(op, Statistics::instance, {0}, {}); }
void lp_normalization(Op& op) { normalize(op, Statistics::rms, {0}, {}); }

void statistics_outputs(Op& op, std::size_t axis) {
  TensorShape s = op.shape(0);
  for (std::size_t i = axis; i < s.size(); ++i) s[i] = 1;
  for (std::size_t k = 1; k < 3; ++k)
    if (op.wants(k)) op.set(k, kFloat, s);
}

void layer_normalization(Op& op) {
  op.need_rank(0, 1);
  const std::size_t a = op.axis(op.integer("axis", -1), op.rank(0));
  if (!op.ok()) return;
  auto fits = op.has(1) ? broadcast(op.shape(0), op.shape(1)) : op.shape(0);
  if (!fits || *fits != op.shape(0))
    return op.fail(OnnxMessage::shape_mismatch, shape_text(op.shape(0)), shape_text(op.shape(1)));
  statistics_outputs(op, a);
  normalize(op, Statistics::layer, {0}, {1, 2});
}
void rms_normalization(Op& op) {
  op.need_rank(0, 1);
  const std::size_t a = op.axis(op.integer("axis", -1), op.rank(0));
  if (!op.ok()) return;
  statistics_outputs(op, a);
  normalize(op, Statistics::rms, {0}, {1});
}

// input, skip, gamma, beta, bias: the sum is output 3.
void skip_normalization(Op& op) {
  op.need_rank(0, 2);
  const bool simple = op.node().op == "SkipSimplifiedLayerNormalization";
  if (!op.ok()) return;
  if (op.wants(3)) op.set(3, op.in(0).type, op.shape(0));
  normalize(op, simple ? Statistics::rms : Statistics::layer, {0, 1},
            simple ? Indices{2, 3} : Indices{2, 3, 4});
}
// X, gamma, beta, skip, bias; the sum is output 1.
void skip_group_normalization(Op& op) {
  if (op.wants(1)) op.set(1, op.in(0).type, op.shape(0));
  normalize(op, Statistics::group, {0, 3}, {1, 2, 4});
}

// ids [b, s], segments, word, position, segment tables, gamma, beta, mask.
void embed_layer_normalization(Op& op) {
  op.need_rank(0, 2, 2);
  op.need_rank(2, 2, 2);
  if (!op.ok()) return;
  const TensorShape y{op.dim(0, 0), op.dim(0, 1), op.dim(2, 1)};
  const std::int64_t rows = op.in(0).count();
  const std::size_t words = op.inner(op.in(2).type, y);
  op.emit_inner(TableLookup{rows}, words, {0}, {2}, {}, ".word");
  const std::size_t positions = op.inner(op.in(2).type, y);
  op.emit_inner(TableLookup{rows}, positions, {0}, {3}, {}, ".position");
  Indices sums{words, positions};
  if (op.has(4)) {
    const std::size_t segments = op.inner(op.in(2).type, y);
    op.emit_inner(TableLookup{rows}, segments, {op.has(1) ? std::size_t{1} : std::size_t{0}}, {4},
                  {}, ".segment");
    sums.push_back(segments);
  }
  op.set(0, op.in(2).type, y);
  if (op.wants(1)) op.set(1, kInt32, {op.dim(0, 0)});
  if (op.wants(2)) op.set(2, op.in(2).type, y);
  op.emit(Normalization{Statistics::layer}, sums, {5, 6});
}

void softmax(Op& op) {
  const Value& x = op.in(0);
  if (!op.ok()) return;
  if (x.rank() > 0) op.axis(op.integer("axis", -1), x.rank());
  op.set(0, x.type, x.shape);
  op.emit(Softmax{}, {0, 1});
}

// scores [b, classes, ...], labels [b, ...] -> a number or one a label; log probabilities.
void loss(Op& op) {
  op.need_rank(0, 1);
  if (!op.ok()) return;
  const bool none = op.text("reduction", "mean") == "none";
  op.set(0, op.in(0).type, none ? op.shape(1) : TensorShape{});
  const bool softmax_first = op.node().op == "SoftmaxCrossEntropyLoss";
  if (op.wants(1)) op.set(1, op.in(0).type, op.shape(0));
  op.emit(softmax_first ? NodeOperation{Softmax{}} : NodeOperation{Reduction{}}, {0, 1}, {}, {2});
}

}  // namespace

const OperatorTable& normalization_operators() {
  static const OperatorTable table = {{"BatchNormalization", batch_normalization},
                                      {"InstanceNormalization", instance_normalization},
                                      {"GroupNormalization", group_normalization},
                                      {"GroupNorm", group_normalization},
                                      {"SkipGroupNorm", skip_group_normalization},
                                      {"LRN", local_response},
                                      {"MeanVarianceNormalization", mean_variance},
                                      {"LpNormalization", lp_normalization},
                                      {"LayerNormalization", layer_normalization},
                                      {"SimplifiedLayerNormalization", rms_normalization},
                                      {"RMSNormalization", rms_normalization},
                                      {"SkipLayerNormalization", skip_normalization},
                                      {"SkipSimplifiedLayerNormalization", skip_normalization},
                                      {"EmbedLayerNormalization", embed_layer_normalization},
                                      {"Softmax", softmax},
                                      {"LogSoftmax", softmax},
                                      {"Hardmax", softmax},
                                      {"BiasSoftmax", softmax},
                                      {"NegativeLogLikelihoodLoss", loss},
                                      {"SoftmaxCrossEntropyLoss", loss}};
  return table;
}

}  // namespace trigon::onnx
