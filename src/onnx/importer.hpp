#pragma once
// Walks the nodes of an ONNX graph in order, infers the shapes of one item and writes a Graph.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "onnx/value.hpp"

namespace trigon::onnx {

// The names that a graph sees: its own, then those of the graph around it.
struct Scope {
  const Scope* around = nullptr;
  std::map<std::string, ValuePtr, std::less<>> values;
  const ValuePtr* find(std::string_view name) const;
};

// What surrounds a node.
struct Context {
  const std::map<std::string, std::int64_t>* opsets = nullptr;
  std::map<std::string, const OnnxAttribute*, std::less<>> bound;  // of the function called
  std::string prefix;                                              // "layer/", of functions
  std::int64_t repeat = 1;                                         // turns of the loops around
  std::vector<const OnnxFunction*> calls;
  int depth = 0;
};

class Importer {
 public:
  Importer(const ByteSource& file, const OnnxFile& model) : file_(file), model_(model) {}

  const ByteSource& file() const { return file_; }
  const OnnxFile& model() const { return model_; }
  bool ok() const { return !error_; }
  const std::optional<Error>& error() const { return error_; }
  void refuse(Error e) {
    if (!error_) error_ = std::move(e);
  }
  // For branches that are tried: the error is gone afterwards.
  std::optional<Error> take_error() { return std::exchange(error_, std::nullopt); }
  void note(Message m);

  Graph& graph() { return graph_; }
  std::vector<Message>& notes() { return notes_; }

  // An input of the model, a tensor of the file.
  ValuePtr add_input(std::int32_t type, const TensorShape& whole, const std::string& name);
  ValuePtr add_tensor(const OnnxTensor& t, const std::string& name);
  // A constant that several others gave.
  std::size_t add_constant(std::string name, const TensorShape& shape, std::int32_t type,
                           bool in_file);
  const Constant& constant(std::size_t i) const { return constants_[i]; }
  // Its bytes hold other values than its type says: 4-bit ones, say.
  void see_constant_as(std::size_t constant, TensorShape shape, Format format) {
    constants_[constant].shape = std::move(shape);
    constants_[constant].format = format;
  }
  WeightId weight_of(std::size_t constant, bool trains);
  std::optional<ValueId> add_value(std::int32_t type, const TensorShape& whole,
                                   const std::string& name);
  // Counts what is written, so that no sum overflows.
  bool spend_elements(std::int64_t elements, std::int64_t repeat);
  // Of contents computed from others; false when the file has used its share.
  bool spend_contents(std::int64_t elements);

  // The initializers of a graph, then its nodes.
  void add_initializers(const OnnxGraph& g, Scope& scope);
  void run(const std::vector<OnnxNode>& nodes, const Context& context, Scope& scope);
  // Runs a graph inside a node; its outputs by position (null after an error).
  std::vector<ValuePtr> run_inside(const OnnxGraph& g, const Context& context, Scope& scope);

  // Takes back what was written since.
  struct Mark {
    std::size_t nodes, values, weights, constants, notes;
    std::vector<bool> trains;
  };
  Mark mark();
  void back_to(const Mark& m);

  Graph finish(const std::vector<ValuePtr>& outputs);

 private:
  void run_node(const OnnxNode& node, const Context& context, Scope& scope);
  void call(const OnnxFunction& f, const OnnxNode& node, const Context& context, Scope& scope);
  const OnnxFunction* function(const OnnxNode& node) const;

  const ByteSource& file_;
  const OnnxFile& model_;
  Graph graph_;
  std::vector<Constant> constants_;
  std::vector<Message> notes_;
  std::optional<Error> error_;
  std::int64_t work_ = 0, elements_ = 0, contents_ = 0;
};

// "Conv_12", or the first output of a node without a name.
std::string node_name(const OnnxNode& n);
// The prefix of nodes inside a node of this name; the tail of a long one.
std::string inner_prefix(const std::string& name);

}  // namespace trigon::onnx
