#include "network/builder.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/byte_count.hpp"

namespace trigon {
namespace {

struct Function {
  const char* name;
  double flops;
  Keeps keeps;
};

// Operations of one element, an exponential counted as four.
Function function_of(Activation a) {
  switch (a) {
    case Activation::none:
    case Activation::relu:
      return {"relu", 1, Keeps::output};
    case Activation::relu6:
      return {"relu6", 2, Keeps::inputs};
    case Activation::leaky_relu:
      return {"leaky_relu", 2, Keeps::inputs};
    case Activation::gelu:
      return {"gelu", 8, Keeps::inputs};
    case Activation::silu:
      return {"silu", 6, Keeps::inputs};
    case Activation::sigmoid:
      return {"sigmoid", 5, Keeps::output};
    case Activation::hard_swish:
      return {"hard_swish", 4, Keeps::inputs};
    case Activation::hard_sigmoid:
      return {"hard_sigmoid", 3, Keeps::inputs};
    case Activation::tanh:
      return {"tanh", 6, Keeps::output};
    case Activation::elu:
      return {"elu", 5, Keeps::output};
    case Activation::selu:
      return {"selu", 6, Keeps::output};
    case Activation::softplus:
      return {"softplus", 6, Keeps::inputs};
    case Activation::mish:
      return {"mish", 12, Keeps::inputs};
  }
  return {"relu", 1, Keeps::output};
}

}  // namespace

void NetworkBuilder::broken(std::string_view name, std::int64_t a, std::int64_t b) const {
  broken_invariant(("the shapes of " + full(name) + " do not match").c_str(), a, b);
}

ValueId NetworkBuilder::input(TensorShape shape, Format format) {
  graph_.values.push_back({std::move(shape), format});
  const auto id = static_cast<ValueId>(graph_.values.size() - 1);
  graph_.inputs.push_back(id);
  return id;
}

WeightId NetworkBuilder::weight(std::string_view name, TensorShape shape, bool trains) {
  if (shared_from_) {
    const auto id = static_cast<WeightId>((*shared_from_)++);
    if (id >= graph_.weights.size() || graph_.weights[id].shape != shape)
      broken(name, static_cast<std::int64_t>(id), static_cast<std::int64_t>(graph_.weights.size()));
    return id;
  }
  graph_.weights.push_back({full(name), std::move(shape), Format::f32, trains});
  return static_cast<WeightId>(graph_.weights.size() - 1);
}

ValueId NetworkBuilder::node(std::string_view name, NodeOperation op, std::vector<ValueId> inputs,
                             std::vector<WeightId> weights, TensorShape output, Format format) {
  for (std::int64_t s : output)
    if (s < 1) broken(name, s, 1);
  graph_.values.push_back({std::move(output), format});
  const auto id = static_cast<ValueId>(graph_.values.size() - 1);
  graph_.nodes.push_back({full(name), std::move(op), std::move(inputs), {id}, std::move(weights)});
  return id;
}

ValueId NetworkBuilder::convolution(std::string_view name, ValueId x, std::int64_t out,
                                    const ConvolutionOptions& o) {
  const TensorShape in = shape(x);
  if (in[0] % o.groups != 0 || out % o.groups != 0) broken(name, in[0], o.groups);
  TensorShape y{out}, kernel{out, in[0] / o.groups};
  std::int64_t window = 1;
  for (std::size_t i = 0; i + 1 < in.size(); ++i) {
    const std::int64_t k = o.kernel[i], s = o.stride[i], reach = o.dilation[i] * (k - 1) + 1;
    const std::int64_t p = o.padding ? (*o.padding)[i] : (reach - 1) / 2;
    y.push_back(o.same ? (in[i + 1] + s - 1) / s : (in[i + 1] + 2 * p - reach) / s + 1);
    if (!o.same && in[i + 1] + 2 * p < reach) broken(name, in[i + 1], reach);
    kernel.push_back(k);
    window *= k;
  }
  std::vector<WeightId> weights{weight(std::string(name) + ".weight", kernel, o.trains)};
  if (o.bias) weights.push_back(weight(std::string(name) + ".bias", {out}, o.trains));
  return node(name, Convolution{o.groups, window, false}, {x}, std::move(weights), std::move(y));
}

ValueId NetworkBuilder::transposed_convolution(std::string_view name, ValueId x, std::int64_t out,
                                               const ConvolutionOptions& o) {
  const TensorShape in = shape(x);
  if (in[0] % o.groups != 0 || out % o.groups != 0) broken(name, in[0], o.groups);
  TensorShape y{out}, kernel{in[0], out / o.groups};
  std::int64_t window = 1;
  for (std::size_t i = 0; i + 1 < in.size(); ++i) {
    const std::int64_t k = o.kernel[i], s = o.stride[i];
    const std::int64_t p = o.padding ? (*o.padding)[i] : 0;
    y.push_back((in[i + 1] - 1) * s - 2 * p + o.dilation[i] * (k - 1) + o.output_padding[i] + 1);
    kernel.push_back(k);
    window *= k;
  }
  std::vector<WeightId> weights{weight(std::string(name) + ".weight", kernel, o.trains)};
  if (o.bias) weights.push_back(weight(std::string(name) + ".bias", {out}, o.trains));
  return node(name, Convolution{o.groups, window, true}, {x}, std::move(weights), std::move(y));
}

ValueId NetworkBuilder::pool(std::string_view name, ValueId x, Pooling::Kind kind,
                             const Extent& kernel, const Extent& stride, const Extent& padding,
                             bool ceil) {
  const TensorShape in = shape(x);
  TensorShape y{in[0]};
  std::int64_t window = 1;
  for (std::size_t i = 0; i + 1 < in.size(); ++i) {
    const std::int64_t room = in[i + 1] + 2 * padding[i] - kernel[i];
    if (room < 0) broken(name, in[i + 1], kernel[i]);
    std::int64_t out = (room + (ceil ? stride[i] - 1 : 0)) / stride[i] + 1;
    // The last window starts inside the input or its left padding.
    if (ceil && (out - 1) * stride[i] >= in[i + 1] + padding[i]) --out;
    y.push_back(out);
    window *= kernel[i];
  }
  return node(name, Pooling{kind, window}, {x}, {}, std::move(y));
}

ValueId NetworkBuilder::max_pool(std::string_view name, ValueId x, Extent kernel, Extent stride,
                                 Extent padding, bool ceil) {
  return pool(name, x, Pooling::Kind::maximum, kernel, stride, padding, ceil);
}

ValueId NetworkBuilder::average_pool(std::string_view name, ValueId x, Extent kernel, Extent stride,
                                     Extent padding, bool ceil) {
  return pool(name, x, Pooling::Kind::average, kernel, stride, padding, ceil);
}

ValueId NetworkBuilder::global_average_pool(std::string_view name, ValueId x) {
  return node(name, Reduction{}, {x}, {}, {channels(x)});
}

ValueId NetworkBuilder::adaptive_average_pool(std::string_view name, ValueId x,
                                              std::vector<std::int64_t> to) {
  TensorShape y{channels(x)};
  y.insert(y.end(), to.begin(), to.end());
  const std::int64_t window = std::max<std::int64_t>(1, elements(shape(x)) / elements(y));
  return node(name, Pooling{Pooling::Kind::average, window}, {x}, {}, std::move(y));
}

ValueId NetworkBuilder::resize(std::string_view name, ValueId x, std::vector<std::int64_t> to) {
  TensorShape y{channels(x)};
  y.insert(y.end(), to.begin(), to.end());
  return node(name, Move{}, {x}, {}, std::move(y));
}

ValueId NetworkBuilder::upsample(std::string_view name, ValueId x, std::int64_t times) {
  TensorShape y = shape(x);
  for (std::size_t i = 1; i < y.size(); ++i) y[i] *= times;
  return node(name, Move{}, {x}, {}, std::move(y));
}

ValueId NetworkBuilder::pad(std::string_view name, ValueId x, std::vector<std::int64_t> spatial) {
  return resize(name, x, std::move(spatial));
}

ValueId NetworkBuilder::normalize(std::string_view name, ValueId x, Statistics kind,
                                  std::int64_t size, bool affine, bool statistics) {
  std::vector<WeightId> weights;
  const std::string n(name);
  if (affine) {
    weights.push_back(weight(n + ".weight", {size}));
    if (kind != Statistics::rms) weights.push_back(weight(n + ".bias", {size}));
  }
  if (statistics) {
    weights.push_back(weight(n + ".running_mean", {size}, false));
    weights.push_back(weight(n + ".running_var", {size}, false));
  }
  return node(name, Normalization{kind}, {x}, std::move(weights), shape(x));
}

ValueId NetworkBuilder::batch_norm(std::string_view name, ValueId x) {
  return normalize(name, x, Statistics::batch, channels(x), true, true);
}

ValueId NetworkBuilder::group_norm(std::string_view name, ValueId x, std::int64_t groups,
                                   bool affine) {
  if (channels(x) % groups != 0) broken(name, channels(x), groups);
  return normalize(name, x, Statistics::group, channels(x), affine, false);
}

ValueId NetworkBuilder::instance_norm(std::string_view name, ValueId x, bool affine) {
  return normalize(name, x, Statistics::instance, channels(x), affine, false);
}

ValueId NetworkBuilder::layer_norm(std::string_view name, ValueId x, bool affine,
                                   bool channels_first) {
  return normalize(name, x, Statistics::layer, channels_first ? channels(x) : width(x), affine,
                   false);
}

ValueId NetworkBuilder::rms_norm(std::string_view name, ValueId x) {
  return normalize(name, x, Statistics::rms, width(x), true, false);
}

ValueId NetworkBuilder::activation(std::string_view name, ValueId x, Activation a) {
  if (a == Activation::none) return x;
  const Function f = function_of(a);
  return node(name, Elementwise{f.name, f.flops, f.keeps}, {x}, {}, shape(x));
}

ValueId NetworkBuilder::add(std::string_view name, ValueId a, ValueId b) {
  return elementwise(name, {a, b}, "add", 1, Keeps::nothing);
}

ValueId NetworkBuilder::multiply(std::string_view name, ValueId a, ValueId b) {
  return elementwise(name, {a, b}, "multiply", 1, Keeps::inputs);
}

ValueId NetworkBuilder::elementwise(std::string_view name, std::initializer_list<ValueId> inputs,
                                    const char* function, double flops, Keeps keeps) {
  ValueId largest = *inputs.begin();
  for (ValueId v : inputs)
    if (elements(shape(v)) > elements(shape(largest))) largest = v;
  for (ValueId v : inputs)
    if (elements(shape(largest)) % elements(shape(v)) != 0)
      broken(name, elements(shape(largest)), elements(shape(v)));
  return node(name, Elementwise{function, flops, keeps}, std::vector<ValueId>(inputs), {},
              TensorShape(shape(largest)));
}

ValueId NetworkBuilder::scale(std::string_view name, ValueId x, bool channels_first) {
  const std::int64_t size = channels_first ? channels(x) : width(x);
  return node(name, Elementwise{"scale", 1, Keeps::inputs}, {x}, {weight(name, {size})}, shape(x));
}

ValueId NetworkBuilder::add_parameter(std::string_view name, ValueId x, TensorShape parameter) {
  if (elements(shape(x)) % elements(parameter) != 0)
    broken(name, elements(shape(x)), elements(parameter));
  return node(name, Elementwise{"add", 1, Keeps::nothing}, {x},
              {weight(name, std::move(parameter))}, shape(x));
}

ValueId NetworkBuilder::dropout(std::string_view name, ValueId x) {
  return node(name, Elementwise{"dropout", 2, Keeps::mask}, {x}, {}, shape(x));
}

ValueId NetworkBuilder::softmax(std::string_view name, ValueId x) {
  return node(name, Softmax{}, {x}, {}, shape(x));
}

ValueId NetworkBuilder::linear(std::string_view name, ValueId x, std::int64_t out, bool bias) {
  TensorShape y = shape(x);
  const std::int64_t in = y.back();
  y.back() = out;
  std::vector<WeightId> weights{weight(std::string(name) + ".weight", {out, in})};
  if (bias) weights.push_back(weight(std::string(name) + ".bias", {out}));
  return node(name, Projection{}, {x}, std::move(weights), std::move(y));
}

ValueId NetworkBuilder::linear_with(std::string_view name, ValueId x, std::int64_t out,
                                    WeightId shared) {
  TensorShape y = shape(x);
  if (elements(graph_.weights[shared].shape) != out * y.back())
    broken(name, elements(graph_.weights[shared].shape), out * y.back());
  y.back() = out;
  return node(name, Projection{}, {x}, {shared}, std::move(y));
}

ValueId NetworkBuilder::product(std::string_view name, ValueId a, ValueId b, bool transpose_b) {
  const TensorShape &left = shape(a), &right = shape(b);
  const std::int64_t k = left.back(), m = left[left.size() - 2];
  const std::int64_t inner = transpose_b ? right.back() : right[right.size() - 2];
  const std::int64_t n = transpose_b ? right[right.size() - 2] : right.back();
  if (k != inner) broken(name, k, inner);
  TensorShape y = left;
  y.back() = n;
  return node(name, MatrixProduct{elements(left) / (m * k), m, n, k}, {a, b}, {}, std::move(y));
}

ValueId NetworkBuilder::attention(std::string_view name, ValueId q, ValueId k, ValueId v,
                                  const AttentionOptions& o) {
  const std::int64_t kv_heads = o.kv_heads > 0 ? o.kv_heads : o.heads;
  AttentionCore a;
  a.sequences = o.sequences;
  a.heads = o.heads;
  a.kv_heads = kv_heads;
  a.head_dim = width(q) / o.heads;
  a.value_dim = width(v) / kv_heads;
  a.queries = tokens(q) / o.sequences;
  a.keys = tokens(k) / o.sequences;
  a.causal = o.causal;
  a.fused = o.fused;
  if (width(k) != a.head_dim * kv_heads) broken(name, width(k), a.head_dim * kv_heads);
  if (tokens(k) != tokens(v)) broken(name, tokens(k), tokens(v));
  TensorShape y = shape(q);
  y.back() = a.value_dim * a.heads;
  std::vector<ValueId> inputs{q, k, v};
  if (o.bias) inputs.push_back(*o.bias);
  return node(name, a, std::move(inputs), {}, std::move(y));
}

ValueId NetworkBuilder::embedding(std::string_view name, ValueId ids, std::int64_t rows,
                                  std::int64_t columns) {
  const std::int64_t count = elements(shape(ids));
  return node(name, TableLookup{count}, {ids},
              {weight(std::string(name) + ".weight", {rows, columns})}, {count, columns});
}

ValueId NetworkBuilder::recurrence(std::string_view name, ValueId x, RecurrentCell cell,
                                   std::int64_t hidden, bool bidirectional, std::int64_t biases) {
  const std::int64_t directions = bidirectional ? 2 : 1, in = width(x);
  const std::int64_t gates = cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
  const std::string n(name);
  std::vector<WeightId> weights{weight(n + ".weight_ih", {directions, gates * hidden, in}),
                                weight(n + ".weight_hh", {directions, gates * hidden, hidden})};
  if (biases > 0) weights.push_back(weight(n + ".bias", {directions, biases, gates * hidden}));
  TensorShape y = shape(x);
  y.back() = hidden * directions;
  return node(name, Recurrence{cell, in, hidden, tokens(x), directions}, {x}, std::move(weights),
              std::move(y));
}

ValueId NetworkBuilder::reshape(std::string_view name, ValueId x, TensorShape to) {
  if (elements(shape(x)) != elements(to)) broken(name, elements(shape(x)), elements(to));
  return node(name, Reinterpret{}, {x}, {}, std::move(to), graph_.values[x].format);
}

ValueId NetworkBuilder::transpose(std::string_view name, ValueId x, TensorShape to) {
  if (elements(shape(x)) != elements(to)) broken(name, elements(shape(x)), elements(to));
  return node(name, Move{}, {x}, {}, std::move(to), graph_.values[x].format);
}

ValueId NetworkBuilder::concatenate(std::string_view name, const std::vector<ValueId>& xs,
                                    std::size_t axis) {
  TensorShape y = shape(xs.front());
  y[axis] = 0;
  for (ValueId v : xs) {
    TensorShape other = shape(v);
    y[axis] += other[axis];
    for (std::size_t i = 0; i < other.size(); ++i)
      if (i != axis && other[i] != y[i]) broken(name, other[i], y[i]);
  }
  return node(name, Move{}, xs, {}, std::move(y));
}

ValueId NetworkBuilder::slice(std::string_view name, ValueId x, std::size_t axis,
                              std::int64_t length) {
  TensorShape y = shape(x);
  if (length > y[axis]) broken(name, length, y[axis]);
  y[axis] = length;
  return node(name, Reinterpret{}, {x}, {}, std::move(y), graph_.values[x].format);
}

std::vector<ValueId> NetworkBuilder::split(std::string_view name, ValueId x, std::size_t axis,
                                           const std::vector<std::int64_t>& lengths) {
  std::int64_t sum = 0;
  std::vector<ValueId> out;
  for (std::int64_t l : lengths) {
    out.push_back(slice(name, x, axis, l));
    sum += l;
  }
  if (sum != shape(x)[axis]) broken(name, sum, shape(x)[axis]);
  return out;
}

ValueId NetworkBuilder::copy(std::string_view name, std::vector<ValueId> inputs, TensorShape to) {
  return node(name, Move{}, std::move(inputs), {}, std::move(to));
}

ValueId NetworkBuilder::reduce(std::string_view name, ValueId x, TensorShape to) {
  return node(name, Reduction{}, {x}, {}, std::move(to));
}

ValueId NetworkBuilder::select(std::string_view name, std::vector<ValueId> inputs, TensorShape to) {
  return node(name, Selection{}, std::move(inputs), {}, std::move(to));
}

ValueId NetworkBuilder::flatten_to_tokens(std::string_view name, ValueId image) {
  const std::int64_t c = channels(image);
  return transpose(name, image, {elements(shape(image)) / c, c});
}

ValueId NetworkBuilder::tokens_to_image(std::string_view name, ValueId x, std::int64_t height,
                                        std::int64_t columns) {
  return transpose(name, x, {width(x), height, columns});
}

Graph NetworkBuilder::finish(std::vector<ValueId> outputs) {
  graph_.outputs = std::move(outputs);
  return std::move(graph_);
}

}  // namespace trigon
