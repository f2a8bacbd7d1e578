#pragma once
// A network as a directed acyclic graph of primitive operators: CNNs, U-Nets, detectors, speech,
// whatever ONNX holds. A graph is for one item (one image, one utterance): activations grow with
// the number of items that run together, weights do not.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "model/format.hpp"

namespace trigon {

using TensorShape = std::vector<std::int64_t>;
std::int64_t elements(const TensorShape& shape);

using ValueId = std::uint32_t;
using WeightId = std::uint32_t;

// What flows between nodes. Floating-point values take the plan's number format when they run;
// `format` is what the network states (f32 for most), and what integers and booleans keep.
struct GraphValue {
  TensorShape shape;  // of one item, without its batch dimension
  Format format = Format::f32;
};

// A stored parameter. Several nodes may use one (the shared heads of a detector).
struct GraphWeight {
  std::string name;
  TensorShape shape;
  Format format = Format::f32;
  bool trains = true;  // running statistics and constants do not
  // A table whose rows are divided over the ranks and get gradients only where they were read.
  bool by_row = false;
};

// y[n, g*o, p] = sum over the window of x[n, g*i, q] w[g*o, i, window]. One to three spatial
// dimensions; the values are [channels, spatial...].
struct Convolution {
  std::int64_t groups = 1;
  std::int64_t window = 1;  // elements of the kernel: 9 for 3 x 3
  bool transposed = false;
};
// x[..., in] w[in, out].
struct Projection {};
// Batched product of two activations: `batch` times m x k by k x n.
struct MatrixProduct {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
};
// Softmax(q k^T + bias) v. `sequences` independent windows of `queries` against `keys`; inputs are
// q, k, v (and a bias or mask).
struct AttentionCore {
  std::int64_t sequences = 1, heads = 1, kv_heads = 1, head_dim = 1, value_dim = 1;
  std::int64_t queries = 1, keys = 1;
  bool causal = false;
  bool fused = true;  // false: scores are written out whatever the framework (biases, old code)
};
enum class Statistics : std::uint8_t { batch, layer, group, instance, rms, local_response };
struct Normalization {
  Statistics kind = Statistics::batch;
};
// What a function needs kept for its backward pass.
enum class Keeps : std::uint8_t {
  nothing,  // addition, scaling by a constant
  inputs,   // products, GELU, SiLU
  output,   // ReLU, sigmoid, tanh, softmax
  mask      // dropout: one byte an element
};
// One arithmetic function of one or more values of the same size (broadcast allowed).
struct Elementwise {
  const char* function = "add";
  double flops = 1;  // of one output element
  Keeps keeps = Keeps::nothing;
};
struct Softmax {};
struct Pooling {
  enum class Kind : std::uint8_t { maximum, average } kind = Kind::maximum;
  std::int64_t window = 1;  // input elements of one output element
};
// Sums, means, extremes over some dimensions.
struct Reduction {};
// Rows of a table by index.
struct TableLookup {
  std::int64_t rows_read = 1;  // of one item
};
enum class RecurrentCell : std::uint8_t { lstm, gru, plain };
// `steps` applications one after another in each direction; the input projections of all steps are
// one product, the recurrent ones are not.
struct Recurrence {
  RecurrentCell cell = RecurrentCell::lstm;
  std::int64_t input = 0, hidden = 0, steps = 1;
  std::int64_t directions = 1;
};
// Another way to look at the same bytes: reshape, squeeze.
struct Reinterpret {};
// Moves bytes: transpose, concatenate, slice, pad, repeat, resize.
struct Move {};
// Sorting, non-maximum suppression, top-k: bytes read and written, little arithmetic.
struct Selection {};

using NodeOperation = std::variant<Convolution, Projection, MatrixProduct, AttentionCore,
                                   Normalization, Elementwise, Softmax, Pooling, Reduction,
                                   TableLookup, Recurrence, Reinterpret, Move, Selection>;

struct GraphNode {
  std::string name;  // "layer1.0.conv1"
  NodeOperation operation;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<WeightId> weights;
  std::int64_t repeat = 1;  // the same node once for each of so many steps of a loop
};

struct Graph {
  std::string source;
  std::vector<GraphValue> values;
  std::vector<GraphWeight> weights;
  std::vector<GraphNode> nodes;  // in an order of execution
  std::vector<ValueId> inputs, outputs;
};

// Multiply-accumulates of one item: convolutions, projections, products, attention and recurrences,
// as papers and timm print "GMACs".
double multiply_accumulates(const Graph& g);
double multiply_accumulates(const Graph& g, const GraphNode& n);
// Floating-point operations of one item: two for each of the above, and those of elementwise work.
double flops(const Graph& g, const GraphNode& n);
double flops(const Graph& g);
std::int64_t count_parameters(const Graph& g);      // those that train
std::int64_t count_row_parameters(const Graph& g);  // of tables whose rows train one by one
// Bytes of all weights as stored.
ByteCount weight_bytes(const Graph& g);
std::int64_t weight_elements(const Graph& g, const GraphNode& n);
const char* operation_name(const NodeOperation& o);  // "convolution"

// What a node does for attention: projections whose result reaches an attention's queries, keys or
// values through norms, rotations and moves alone, and those of what an attention gives out.
enum class AttentionPart : std::uint8_t { none, query, key, value, output };
std::vector<AttentionPart> attention_parts(const Graph& g);  // of every node

}  // namespace trigon
