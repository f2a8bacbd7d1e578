#pragma once
// Writes a graph operator by operator and infers shapes on the way. Values are of one item:
// images [channels, height, width], sound and signals [channels, length], volumes
// [channels, depth, height, width], token sequences [tokens, width].
//
// A misuse (widths that do not match) is our bug and aborts with the node's name; what users may
// ask (an image too small for a network) is checked by the families before they build.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/graph.hpp"

namespace trigon {

// Sizes along the spatial dimensions; one number stands for all of them.
class Extent {
 public:
  Extent(std::int64_t all) : sizes_{all} {}  // NOLINT(google-explicit-constructor)
  Extent(std::initializer_list<std::int64_t> sizes) : sizes_(sizes) {}
  explicit Extent(std::vector<std::int64_t> sizes) : sizes_(std::move(sizes)) {}
  std::int64_t operator[](std::size_t i) const {
    return sizes_.size() == 1 ? sizes_[0] : sizes_[i];
  }

 private:
  std::vector<std::int64_t> sizes_;
};

struct ConvolutionOptions {
  Extent kernel = 3;
  Extent stride = 1;
  std::optional<Extent> padding = std::nullopt;  // absent: "same" for stride 1: dilation (k-1)/2
  Extent dilation = 1;
  std::int64_t groups = 1;
  bool bias = false;
  bool same = false;          // TensorFlow's: the output is ceil(input / stride)
  bool trains = true;         // a frozen layer
  Extent output_padding = 0;  // transposed only
};

struct AttentionOptions {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 0;   // 0: as many as heads
  std::int64_t sequences = 1;  // windows: each has rows / sequences tokens
  bool causal = false;
  bool fused = true;
  std::optional<ValueId> bias = std::nullopt;  // added to the scores
};

enum class Activation : std::uint8_t {
  none,
  relu,
  relu6,
  leaky_relu,
  gelu,
  silu,
  sigmoid,
  hard_swish,
  hard_sigmoid,
  tanh,
  elu,
  selu,
  softplus,
  mish
};

class NetworkBuilder {
 public:
  explicit NetworkBuilder(std::string source) { graph_.source = std::move(source); }

  // Names of nodes and weights are prefixed with the scopes that are open: "layer1.0.conv1".
  class Scope {
   public:
    Scope(NetworkBuilder& b, std::string_view name) : builder_(b), length_(b.prefix_.size()) {
      b.prefix_ += name;
      b.prefix_ += '.';
    }
    ~Scope() { builder_.prefix_.resize(length_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    NetworkBuilder& builder_;
    std::size_t length_;
  };
  Scope scope(std::string_view name) { return {*this, name}; }

  ValueId input(TensorShape shape, Format format = Format::f32);
  const TensorShape& shape(ValueId v) const { return graph_.values[v].shape; }
  std::int64_t channels(ValueId v) const { return shape(v).front(); }  // images
  std::int64_t width(ValueId v) const { return shape(v).back(); }      // sequences
  std::int64_t tokens(ValueId v) const { return elements(shape(v)) / shape(v).back(); }

  // Images, signals, volumes: as many spatial dimensions as the value has.
  ValueId convolution(std::string_view name, ValueId x, std::int64_t out,
                      const ConvolutionOptions& o = {});
  ValueId transposed_convolution(std::string_view name, ValueId x, std::int64_t out,
                                 const ConvolutionOptions& o = {});
  ValueId max_pool(std::string_view name, ValueId x, Extent kernel, Extent stride,
                   Extent padding = 0, bool ceil = false);
  ValueId average_pool(std::string_view name, ValueId x, Extent kernel, Extent stride,
                       Extent padding = 0, bool ceil = false);
  ValueId global_average_pool(std::string_view name, ValueId x);  // [c]
  ValueId adaptive_average_pool(std::string_view name, ValueId x, std::vector<std::int64_t> to);
  // To other spatial sizes, by nearest or linear interpolation.
  ValueId resize(std::string_view name, ValueId x, std::vector<std::int64_t> to);
  ValueId upsample(std::string_view name, ValueId x, std::int64_t times);
  ValueId pad(std::string_view name, ValueId x, std::vector<std::int64_t> spatial);  // new sizes

  ValueId batch_norm(std::string_view name, ValueId x);  // scale, shift and running statistics
  ValueId group_norm(std::string_view name, ValueId x, std::int64_t groups, bool affine = true);
  ValueId instance_norm(std::string_view name, ValueId x, bool affine = true);
  // Over the last dimension of sequences, over channels of images when `channels_first`.
  ValueId layer_norm(std::string_view name, ValueId x, bool affine = true,
                     bool channels_first = false);
  ValueId rms_norm(std::string_view name, ValueId x);

  ValueId activation(std::string_view name, ValueId x, Activation a);
  ValueId add(std::string_view name, ValueId a, ValueId b);       // broadcasts the smaller
  ValueId multiply(std::string_view name, ValueId a, ValueId b);  // broadcasts the smaller
  // Any other function; the output has the shape of the largest input.
  ValueId elementwise(std::string_view name, std::initializer_list<ValueId> inputs,
                      const char* function, double flops, Keeps keeps);
  // A learned scale (and shift) of each channel (images) or of the last dimension (sequences).
  ValueId scale(std::string_view name, ValueId x, bool channels_first = false);
  // A learned value of the shape of `x` (position embedding) or of its last dimensions is added.
  ValueId add_parameter(std::string_view name, ValueId x, TensorShape parameter);
  ValueId dropout(std::string_view name, ValueId x);
  ValueId softmax(std::string_view name, ValueId x);

  // [.., in] -> [.., out].
  ValueId linear(std::string_view name, ValueId x, std::int64_t out, bool bias = true);
  // As `linear`, with the weight of an earlier node (a tied head): nothing is stored again.
  ValueId linear_with(std::string_view name, ValueId x, std::int64_t out, WeightId weight);
  // a [.., m, k] times b [.., k, n]; with `transpose_b` b is [.., n, k].
  ValueId product(std::string_view name, ValueId a, ValueId b, bool transpose_b = false);
  // q [tokens, heads * d], k [keys, kv_heads * d], v [keys, kv_heads * dv] -> [tokens, heads * dv].
  ValueId attention(std::string_view name, ValueId q, ValueId k, ValueId v,
                    const AttentionOptions& o);
  // ids of `count` rows of a table of `rows` x `width` -> [count, width].
  ValueId embedding(std::string_view name, ValueId ids, std::int64_t rows, std::int64_t width);
  // x [steps, input] -> [steps, hidden * directions]; two bias vectors a gate, as cuDNN has them.
  ValueId recurrence(std::string_view name, ValueId x, RecurrentCell cell, std::int64_t hidden,
                     bool bidirectional = false, std::int64_t biases = 2);

  ValueId reshape(std::string_view name, ValueId x, TensorShape shape);    // free
  ValueId transpose(std::string_view name, ValueId x, TensorShape shape);  // moves bytes to `shape`
  ValueId concatenate(std::string_view name, const std::vector<ValueId>& xs, std::size_t axis = 0);
  ValueId slice(std::string_view name, ValueId x, std::size_t axis, std::int64_t length);
  std::vector<ValueId> split(std::string_view name, ValueId x, std::size_t axis,
                             const std::vector<std::int64_t>& lengths);  // views
  ValueId copy(std::string_view name, std::vector<ValueId> inputs, TensorShape shape);
  ValueId reduce(std::string_view name, ValueId x, TensorShape shape);
  ValueId select(std::string_view name, std::vector<ValueId> inputs, TensorShape shape);
  ValueId flatten_to_tokens(std::string_view name, ValueId image);  // [c, h, w] -> [h * w, c]
  ValueId tokens_to_image(std::string_view name, ValueId tokens, std::int64_t height,
                          std::int64_t width);  // [h * w, c] -> [c, h, w]

  // The plain mechanism, for what has no method here.
  WeightId weight(std::string_view name, TensorShape shape, bool trains = true);
  ValueId node(std::string_view name, NodeOperation op, std::vector<ValueId> inputs,
               std::vector<WeightId> weights, TensorShape output, Format format = Format::f32);
  // The weights of the nodes made inside `body` are those of `first`, made by an earlier call of
  // the same code (the heads of a detector on each level, ALBERT's layers).
  void share_weights_from(std::size_t first_weight) { shared_from_ = first_weight; }
  void stop_sharing() { shared_from_.reset(); }
  std::size_t next_weight() const { return graph_.weights.size(); }
  GraphNode& last() { return graph_.nodes.back(); }
  // Nodes made from `first` on are one step of a loop that takes `times` of them.
  std::size_t next_node() const { return graph_.nodes.size(); }
  void repeat_from(std::size_t first, std::int64_t times) {
    for (std::size_t i = first; i < graph_.nodes.size(); ++i) graph_.nodes[i].repeat *= times;
  }

  Graph finish(std::vector<ValueId> outputs);

 private:
  ValueId pool(std::string_view name, ValueId x, Pooling::Kind kind, const Extent& kernel,
               const Extent& stride, const Extent& padding, bool ceil);
  ValueId normalize(std::string_view name, ValueId x, Statistics kind, std::int64_t width,
                    bool affine, bool statistics);
  [[noreturn]] void broken(std::string_view name, std::int64_t a, std::int64_t b) const;
  std::string full(std::string_view name) const { return prefix_ + std::string(name); }

  Graph graph_;
  std::string prefix_;
  std::optional<std::size_t> shared_from_;
};

}  // namespace trigon
