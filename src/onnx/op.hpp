#pragma once
// One node while it is read: its inputs, attributes and outputs. The first error sticks, and
// whatever is asked afterwards answers with harmless values, so operators are written without
// checks after each step.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/importer.hpp"
#include "onnx/messages.hpp"

namespace trigon::onnx {

using Indices = std::vector<std::size_t>;

class Op {
 public:
  Op(Importer& importer, const OnnxNode& node, const Context& context, Scope& scope,
     std::int64_t version);

  Importer& importer() { return importer_; }
  const OnnxNode& node() const { return node_; }
  const Context& context() const { return context_; }
  Scope& scope() { return scope_; }
  std::int64_t version() const { return version_; }  // of the operator's domain
  bool ok() const;
  // message(id, operator, node, args...).
  template <class... A>
  void fail(OnnxMessage id, A&&... args) {
    refuse(message(id, node_.op, name(), std::forward<A>(args)...));
  }
  const std::string& name() const { return name_; }

  std::size_t inputs() const { return in_.size(); }
  std::size_t outputs() const { return node_.outputs.size(); }
  bool wants(std::size_t k) const { return k < outputs() && !node_.outputs[k].empty(); }
  bool has(std::size_t i) const { return i < in_.size() && in_[i]; }
  const Value& in(std::size_t i);
  ValuePtr pointer(std::size_t i) const { return has(i) ? in_[i] : nullptr; }
  const TensorShape& shape(std::size_t i) { return in(i).shape; }
  std::size_t rank(std::size_t i) { return in(i).rank(); }
  std::int64_t dim(std::size_t i, std::int64_t axis);  // from the end when negative
  void need_rank(std::size_t i, std::size_t least, std::size_t most = 64);
  // Known contents, else absent or an error.
  const std::vector<std::int64_t>* integers(std::size_t i);
  std::vector<std::int64_t> need_integers(std::size_t i);
  std::int64_t need_integer(std::size_t i);
  std::vector<double> need_reals(std::size_t i);  // integers too
  bool constant_node() const { return constant_; }

  bool given(std::string_view key) const { return attribute(key) != nullptr; }
  std::int64_t integer(std::string_view key, std::int64_t otherwise) const;
  std::int64_t need_integer_attribute(std::string_view key);
  double real(std::string_view key, double otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise = "") const;
  std::vector<std::int64_t> list(std::string_view key) const;
  std::vector<double> reals(std::string_view key) const;
  const OnnxAttribute* attribute(std::string_view key) const;
  // From 0, within `rank`; an error otherwise.
  std::size_t axis(std::int64_t value, std::size_t rank);
  std::vector<std::size_t> axes(const std::vector<std::int64_t>& values, std::size_t rank);
  // Attributes before some version, an input since.
  std::vector<std::int64_t> list_or_input(std::string_view key, std::size_t input);

  // Output k: a new value. Checked for size.
  Value& set(std::size_t k, std::int32_t type, TensorShape shape);
  void alias(std::size_t k, std::size_t i);
  void put(std::size_t k, ValuePtr v);
  const Value& out(std::size_t k) const { return out_[k]; }
  // Output k shows the bytes of input i in another shape; a free node unless constant.
  void view(std::size_t k, std::size_t i, TensorShape shape);
  // The node's outputs change with each run although its inputs are constant (random numbers).
  void vary() { constant_ = false; }

  // Appends the node to the graph, with the outputs that are set. `data` flows; a constant among
  // it is kept beside the node. `parameters` train, `constants` do not. Nothing is appended when
  // all inputs are constant.
  void emit(NodeOperation operation, const Indices& data, const Indices& parameters = {},
            const Indices& constants = {}, std::string_view suffix = "");
  // An additional value between nodes of one operator; it becomes an input index of its own.
  std::size_t inner(std::int32_t type, TensorShape shape);
  // As emit, writing inner value `to`.
  void emit_inner(NodeOperation operation, std::size_t to, const Indices& data,
                  const Indices& parameters = {}, const Indices& constants = {},
                  std::string_view suffix = "");
  // Convolutions want [channels, ...]: a value with several pictures is [channels, pictures, ...].
  void as_image(std::size_t i);
  void as_image_out(std::size_t k) { image_out_ = k; }
  // Input i seen in another shape (a transposed operand), as an input index of its own.
  std::size_t seen_as(std::size_t i, TensorShape shape);
  // Values that are no inputs of their own (the items of a sequence), as input indices.
  Indices add(const std::vector<ValuePtr>& values);
  std::vector<std::size_t> range_of_inputs(std::size_t from = 0) const;
  // Makes the outputs known to the scope.
  void finish();

 private:
  void refuse(Message what);
  void without_contents(std::size_t i);
  void append(NodeOperation operation, std::vector<ValueId> outputs, const Indices& data,
              const Indices& parameters, const Indices& constants, std::string_view suffix);
  void add_weight(GraphNode& n, std::size_t input, bool trains);

  Importer& importer_;
  const OnnxNode& node_;
  const Context& context_;
  Scope& scope_;
  std::int64_t version_;
  std::string name_;
  std::vector<ValuePtr> in_;
  std::vector<Value> out_;
  std::vector<bool> is_set_;
  std::vector<ValuePtr> aliased_;
  bool constant_ = true;
  std::optional<std::size_t> image_out_;
};

using Operator = void (*)(Op&);
struct OperatorEntry {
  std::string_view name;
  Operator run;
};
// Of a domain, or null.
Operator find_operator(std::string_view domain, std::string_view name);
// Names that Trigon knows, for tests and the documentation.
std::vector<std::string_view> operators_of(std::string_view domain);

// The tables, one a file.
using OperatorTable = std::vector<OperatorEntry>;
const OperatorTable& elementwise_operators();
const OperatorTable& convolution_operators();
const OperatorTable& pooling_operators();
const OperatorTable& product_operators();
const OperatorTable& quantized_operators();
const OperatorTable& normalization_operators();
const OperatorTable& recurrent_operators();
const OperatorTable& layout_operators();
const OperatorTable& resampling_operators();
const OperatorTable& shape_operators();
const OperatorTable& index_operators();
const OperatorTable& reduction_operators();
const OperatorTable& selection_operators();
const OperatorTable& sequence_operators();
const OperatorTable& control_operators();
const OperatorTable& signal_operators();
const OperatorTable& attention_operators();
const OperatorTable& microsoft_operators();
const OperatorTable& learning_operators();  // ai.onnx.ml

}  // namespace trigon::onnx
