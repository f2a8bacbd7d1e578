// Classical learning (domain ai.onnx.ml): trees, linear models, scalers.

#include <algorithm>

#include "onnx/op.hpp"

namespace trigon::onnx {
namespace {

std::int64_t rows_of(Op& op) { return op.rank(0) > 1 ? op.dim(0, 0) : 1; }

// The number of classes that either list of labels names.
std::int64_t classes_of(Op& op) {
  for (const char* key : {"classlabels_int64s", "classlabels_ints", "classlabels_strings"})
    if (const OnnxAttribute* a = op.attribute(key))
      if (!a->integers.empty() || !a->texts.empty())
        return static_cast<std::int64_t>(a->integers.size() + a->texts.size());
  return 1;
}
std::int32_t label_type(Op& op) { return op.given("classlabels_strings") ? kString : kInt64; }

void scores(Op& op, std::int64_t classes) {
  op.need_rank(0, 1, 2);
  op.set(0, label_type(op), {rows_of(op)});
  op.set(1, kFloat, {rows_of(op), classes});
}

// coefficients are attributes: products of each row with each class's.
void linear_classifier(Op& op) {
  const std::int64_t classes = classes_of(op);
  scores(op, classes);
  op.emit(MatrixProduct{1, rows_of(op), classes, op.dim(0, -1)}, {0});
}

void linear_regressor(Op& op) {
  op.need_rank(0, 1, 2);
  const std::int64_t targets = op.integer("targets", 1);
  op.set(0, kFloat, {rows_of(op), targets});
  op.emit(MatrixProduct{1, rows_of(op), targets, op.dim(0, -1)}, {0});
}

void support_vectors(Op& op) {
  const auto vectors = op.list("vectors_per_class");
  std::int64_t n = op.integer("n_supports", 0);
  for (std::int64_t v : vectors) n = checked_add(n, v).value_or(0);
  if (op.node().op == "SVMClassifier") {
    scores(op, classes_of(op));
  } else {
    op.need_rank(0, 1, 2);
    op.set(0, kFloat, {rows_of(op), 1});
  }
  n = std::clamp<std::int64_t>(n, 0, kMostDimension);
  op.emit(MatrixProduct{1, rows_of(op), n, op.dim(0, -1)}, {0});
}

// One comparison a level of each tree; the levels are bounded by the nodes of a tree.
void trees(Op& op) {
  const OnnxAttribute* nodes = op.attribute("nodes_treeids");
  std::int64_t count = 1;
  if (nodes)
    for (std::size_t i = 1; i < nodes->integers.size(); ++i)
      count += nodes->integers[i] != nodes->integers[i - 1];
  if (op.node().op == "TreeEnsembleClassifier") {
    scores(op, std::max<std::int64_t>(classes_of(op), 1));
  } else {
    op.need_rank(0, 1, 2);
    op.set(0, kFloat, {rows_of(op), op.integer("n_targets", 1)});
  }
  if (!op.ok()) return;
  const std::int64_t reads = checked_mul(count, rows_of(op)).value_or(1);
  op.emit(TableLookup{std::max<std::int64_t>(reads, 1)}, {0});
}

void scaled(Op& op) {
  op.set(0, kFloat, op.shape(0));
  op.emit(Elementwise{"scale", 2, Keeps::nothing}, {0});
}
void same_type(Op& op) {
  op.set(0, op.in(0).type, op.shape(0));
  op.emit(Elementwise{"select", 1, Keeps::nothing}, {0});
}

void labels(Op& op) {
  std::int32_t type = op.in(0).type == kString ? kInt64 : kString;
  if (op.given("values_int64s")) type = kInt64;
  if (op.given("values_floats")) type = kFloat;
  if (op.given("values_strings")) type = kString;
  op.set(0, type, op.shape(0));
  op.emit(TableLookup{std::max<std::int64_t>(op.in(0).count(), 1)}, {0});
}

void one_hot(Op& op) {
  TensorShape to = op.shape(0);
  const OnnxAttribute *whole = op.attribute("cats_int64s"), *texts = op.attribute("cats_strings");
  to.push_back(static_cast<std::int64_t>(whole   ? whole->integers.size()
                                         : texts ? texts->texts.size()
                                                 : 1));
  op.set(0, kFloat, to);
  op.emit(Elementwise{"compare", 1, Keeps::nothing}, {0});
}

void features(Op& op) {
  std::int64_t width = 0;
  for (std::size_t i = 0; i < op.inputs() && op.ok(); ++i)
    width = checked_add(width, op.dim(i, -1)).value_or(-1);
  op.set(0, kFloat, {rows_of(op), width});
  op.emit(Move{}, op.range_of_inputs());
}

void extract(Op& op) {
  TensorShape to = op.shape(0);
  if (!op.ok()) return;
  if (to.size() < 2) to.insert(to.begin(), 1);
  to.back() = op.in(1).count();
  op.set(0, op.in(0).type, to);
  op.emit(Selection{}, {0, 1});
}

// A map for each row: seen as its numbers.
void zip_map(Op& op) { op.alias(0, 0); }

}  // namespace

const OperatorTable& learning_operators() {
  static const OperatorTable table = {{"ArrayFeatureExtractor", extract},
                                      {"Binarizer", same_type},
                                      {"CategoryMapper", labels},
                                      {"FeatureVectorizer", features},
                                      {"Imputer", same_type},
                                      {"LabelEncoder", labels},
                                      {"LinearClassifier", linear_classifier},
                                      {"LinearRegressor", linear_regressor},
                                      {"Normalizer", scaled},
                                      {"OneHotEncoder", one_hot},
                                      {"SVMClassifier", support_vectors},
                                      {"SVMRegressor", support_vectors},
                                      {"Scaler", scaled},
                                      {"TreeEnsembleClassifier", trees},
                                      {"TreeEnsembleRegressor", trees},
                                      {"ZipMap", zip_map}};
  return table;
}

}  // namespace trigon::onnx
