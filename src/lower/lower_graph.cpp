// Graphs to operators: what each node reads, computes and writes, and which nodes share a kernel.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "lower/lower.hpp"

namespace trigon {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }
double element_bytes(Format f) { return bits_per_element(f) / 8; }

bool floating(Format f) {
  return f == Format::f32 || f == Format::f16 || f == Format::bf16 || f == Format::f64;
}

double gates(RecurrentCell c) {
  return c == RecurrentCell::lstm ? 4 : c == RecurrentCell::gru ? 3 : 1;
}

constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

class GraphWriter {
 public:
  GraphWriter(const Graph& graph, const ItemPass& pass) : g_(graph), pass_(pass) {
    producer_.assign(g_.values.size(), kNobody);
    uses_.assign(g_.values.size(), 0);
    needs_gradient_.assign(g_.values.size(), false);
    // Under autocast inputs and stored tables are in 32 bit, what products write in 16.
    format_.assign(g_.values.size(), pass_.autocast ? Format::f32 : pass_.activations);
    cast_.assign(g_.weights.size(), false);
    channels_last_.assign(g_.values.size(), !pass_.channels_first);
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      for (ValueId v : g_.nodes[i].outputs) producer_[v] = i;
      for (ValueId v : g_.nodes[i].inputs) ++uses_[v];
    }
    kernel_.assign(g_.nodes.size(), kNobody);
  }

  std::vector<Operator> run() {
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      const GraphNode& n = g_.nodes[i];
      bool gradient = false;
      for (WeightId w : n.weights) gradient = gradient || g_.weights[w].trains;
      for (ValueId v : n.inputs) gradient = gradient || needs_gradient_[v];
      for (ValueId v : n.outputs) needs_gradient_[v] = gradient;
      node_ = i;
      if (pass_.autocast) choose_formats(n);
      if (pass_.channels_first) lay_out(n);
      std::visit([&](const auto& op) { write(n, op); }, n.operation);
    }
    add_up_gradients();
    return std::move(out_);
  }

 private:
  double count(ValueId v) const { return pass_.items * d(elements(g_.values[v].shape)); }
  double bytes_of(ValueId v) const {
    const GraphValue& x = g_.values[v];
    return count(v) * element_bytes(floating(x.format) ? format_[v] : x.format);
  }
  // As the node's kernel reads it, after what autocast converts before.
  double bytes_read(ValueId v) const {
    if (!reads_ || !floating(g_.values[v].format)) return bytes_of(v);
    return count(v) * element_bytes(*reads_);
  }
  double read(const GraphNode& n) const {
    double sum = 0;
    for (ValueId v : n.inputs) sum += bytes_read(v);
    return sum;
  }
  double written(const GraphNode& n) const {
    double sum = 0;
    for (ValueId v : n.outputs) sum += bytes_of(v);
    return sum;
  }
  // Stored weights of the node; those in floating point as the pass reads them.
  double weight_bytes(const GraphNode& n) const {
    double sum = 0;
    for (WeightId w : n.weights) {
      const GraphWeight& x = g_.weights[w];
      sum += d(elements(x.shape)) * element_bytes(floating(x.format) ? read_weights(n) : x.format);
    }
    return sum;
  }
  Format read_weights(const GraphNode& n) const {
    return pass_.autocast && multiplies(n) ? pass_.activations : pass_.weights;
  }
  Format weight_format(const GraphNode& n) const {
    if (n.weights.empty()) return read_weights(n);
    const Format f = g_.weights[n.weights.front()].format;
    return floating(f) ? read_weights(n) : f == Format::i8 || f == Format::u8 ? Format::int8 : f;
  }

  Operator base(const GraphNode& n, OperatorKind kind) const {
    Operator op;
    op.kind = kind;
    op.name = operation_name(n.operation);
    op.activations = pass_.activations;
    op.weights = weight_format(n);
    op.weight_bytes = weight_bytes(n);
    op.data_bytes = read(n) + written(n);
    op.flops = pass_.items * flops(g_, n) / d(n.repeat);
    op.repeat = d(n.repeat);
    op.trainable = std::any_of(n.weights.begin(), n.weights.end(),
                               [&](WeightId w) { return g_.weights[w].trains; });
    op.input_gradient = std::any_of(n.inputs.begin(), n.inputs.end(),
                                    [&](ValueId v) { return needs_gradient_[v]; });
    return op;
  }
  // What the backward pass of a function reads and writes: gradients of what it made, what it kept,
  // gradients of its inputs. A sum hands the gradient it gets to its inputs as it is.
  double backward_bytes(const GraphNode& n, Keeps keeps) const {
    const bool gradient = std::any_of(n.outputs.begin(), n.outputs.end(),
                                      [&](ValueId v) { return needs_gradient_[v]; });
    if (!gradient) return 0;
    double moved = written(n);
    for (ValueId v : n.inputs)
      if (needs_gradient_[v]) moved += bytes_read(v);
    if (keeps == Keeps::inputs) moved += read(n);
    if (keeps == Keeps::output) moved += written(n);
    if (keeps == Keeps::mask)
      for (ValueId v : n.outputs) moved += count(v);
    return moved;
  }
  static bool is_sum(const Elementwise& e) { return std::string_view(e.function) == "add"; }
  // A value that several nodes read gets a gradient from each; eager autograd adds them up one by
  // one (torch/csrc/autograd/input_buffer.cpp, `accumulate`), compilers as they make the last.
  void add_up_gradients() {
    const double passes = pass_.fusion == Fusion::none ? 3 : 1;
    for (ValueId v = 0; v < g_.values.size(); ++v) {
      if (uses_[v] < 2 || !needs_gradient_[v] || producer_[v] == kNobody) continue;
      const std::size_t kernel = kernel_[producer_[v]];
      if (kernel == kNobody || out_[kernel].backward_bytes < 0) continue;
      out_[kernel].backward_bytes += passes * (uses_[v] - 1) * bytes_of(v);
    }
  }
  void emit(Operator op) {
    kernel_[node_] = out_.size();
    for (ValueId v : g_.nodes[node_].inputs) held_.emplace(out_.size(), v);
    out_.push_back(op);
  }

  static bool multiplies(const GraphNode& n) {
    return std::holds_alternative<Convolution>(n.operation) ||
           std::holds_alternative<Projection>(n.operation) ||
           std::holds_alternative<MatrixProduct>(n.operation) ||
           std::holds_alternative<AttentionCore>(n.operation) ||
           std::holds_alternative<Recurrence>(n.operation);
  }
  static bool in_32_bit(const GraphNode& n) {
    if (auto norm = std::get_if<Normalization>(&n.operation))
      return norm->kind != Statistics::batch && norm->kind != Statistics::instance;
    return std::holds_alternative<Softmax>(n.operation);
  }
  void copy(const char* name, double bytes, double launches = 1) {
    Operator op;
    op.kind = OperatorKind::elementwise;
    op.name = name;
    op.activations = pass_.activations;
    op.weights = pass_.activations;
    op.data_bytes = bytes;
    op.backward_bytes = bytes;
    op.repeat = launches;
    op.trainable = false;
    out_.push_back(op);
  }
  // Autocast (PyTorch documentation, "Autocast Op Reference"): products take 16 bit, layer and
  // group norms and softmax 32; functions of several values the widest of them, so that a
  // residual stream that meets a 32-bit parameter stays wide. Conversions are kernels unless fused;
  // those of weights come once a pass.
  void choose_formats(const GraphNode& n) {
    reads_.reset();
    Format out = pass_.activations;
    if (multiplies(n)) {
      for (WeightId w : n.weights)
        if (floating(g_.weights[w].format) && !cast_[w]) {
          cast_[w] = true;
          copy("cast", d(elements(g_.weights[w].shape)) * (4 + element_bytes(pass_.activations)));
        }
      convert(n, pass_.activations);
    } else if (in_32_bit(n)) {
      if (pass_.fusion == Fusion::none) {
        convert(n, Format::f32);
        out = Format::f32;
      }
    } else if (std::holds_alternative<TableLookup>(n.operation)) {
      out = Format::f32;
    } else {
      const bool wide = std::any_of(n.inputs.begin(), n.inputs.end(),
                                    [&](ValueId v) { return format_[v] == Format::f32; }) ||
                        (std::holds_alternative<Elementwise>(n.operation) && !n.weights.empty());
      if (wide) out = Format::f32;
    }
    for (ValueId v : n.outputs) format_[v] = out;
  }
  void convert(const GraphNode& n, Format to) {
    reads_ = to;
    if (pass_.fusion != Fusion::none) return;
    for (ValueId v : n.inputs)
      if (floating(g_.values[v].format) && format_[v] != to)
        copy("cast", bytes_of(v) + bytes_read(v), d(n.repeat));
  }

  // What keeps channels last where images lie channels first: a view of tokens as an image, the
  // norm of each position's channels, and what follows either, since kernels write in the order of
  // what they read (PyTorch, "Channels Last Memory Format": operators preserve the format of their
  // inputs; timm, norm.py, LayerNorm2d).
  void lay_out(const GraphNode& n) {
    if (n.inputs.empty()) return;
    const ValueId x = n.inputs.front();
    const TensorShape &in = g_.values[x].shape, &out = g_.values[n.outputs.front()].shape;
    bool last = channels_last_[x];
    if (std::holds_alternative<Reinterpret>(n.operation) && in.size() != out.size())
      last = in.size() == 2 && out.size() > 2 && in.back() == out.front();
    else if (over_channels(n))
      last = true;
    else if (std::holds_alternative<Move>(n.operation))
      last = in.size() == out.size() && last;
    for (ValueId v : n.outputs) channels_last_[v] = last;
  }
  // The layer norm of each position of an image.
  bool over_channels(const GraphNode& n) const {
    const auto norm = std::get_if<Normalization>(&n.operation);
    if (!norm || norm->kind != Statistics::layer || n.weights.empty()) return false;
    const TensorShape& x = g_.values[n.inputs.front()].shape;
    return x.size() > 2 && elements(g_.weights[n.weights.front()].shape) == x.front();
  }

  // The operator whose kernel a function of rows or of single elements can join. As the epilogue of
  // a product: it makes an input of the same size that nobody else reads. In kernels that a
  // compiler writes: the last of its inputs, unless a library's product made that.
  std::size_t host_kernel(const GraphNode& n) const {
    const auto size = elements(g_.values[n.outputs.front()].shape);
    std::size_t last = kNobody;
    bool joins = false;
    for (ValueId v : n.inputs) {
      if (producer_[v] == kNobody) continue;
      const std::size_t kernel = kernel_[producer_[v]];
      if (kernel == kNobody) continue;
      const bool fits = elements(g_.values[v].shape) == size && out_[kernel].repeat == d(n.repeat);
      if (pass_.fusion == Fusion::epilogue && fits && uses_[v] == 1) return kernel;
      if (last != kNobody && kernel < last) continue;
      last = kernel;
      joins = fits && out_[kernel].kind == OperatorKind::elementwise;
    }
    return pass_.fusion == Fusion::pointwise && joins ? last : kNobody;
  }
  bool join(const GraphNode& n, double flops_of_node) {
    const std::size_t kernel = host_kernel(n);
    if (kernel == kNobody) return false;
    Operator& op = out_[kernel];
    const double alone = op.data_bytes;
    // What the kernel made or holds is not read again, nor written unless somebody else reads it.
    op.data_bytes += written(n) + weight_bytes(n);
    for (ValueId v : n.inputs) {
      const bool made = producer_[v] != kNobody && kernel_[producer_[v]] == kernel;
      if (!made && held_.emplace(kernel, v).second) op.data_bytes += bytes_read(v);
      if (made && uses_[v] == 1) op.data_bytes -= bytes_of(v);
    }
    op.flops += op.kind == OperatorKind::elementwise ? flops_of_node : 0;
    // Its backward pass writes gradients where it read values, and reads them where it wrote.
    if (op.backward_bytes >= 0) op.backward_bytes += op.data_bytes - alone;
    kernel_[node_] = kernel;
    return true;
  }

  void write(const GraphNode& n, const Convolution& c) {
    Operator op = base(n, OperatorKind::convolution);
    const TensorShape& x = g_.values[n.inputs.front()].shape;
    const TensorShape& y = g_.values[n.outputs.front()].shape;
    const double groups = d(c.groups), window = d(c.window);
    if (c.transposed) {
      op.m = pass_.items * d(elements(x)) / d(x.front());
      op.n = d(y.front()) / groups * window;
      op.k = d(x.front()) / groups;
    } else {
      op.m = pass_.items * d(elements(y)) / d(y.front());
      op.n = d(y.front()) / groups;
      op.k = d(x.front()) / groups * window;
    }
    op.groups = groups;
    op.axes = static_cast<int>(x.size()) - 1;
    op.flops = 2 * op.m * op.n * op.k * groups;
    if (pass_.tf32_convolutions && op.activations == Format::f32 && op.weights == Format::f32)
      op.activations = op.weights = Format::tf32;
    // Matrix units take channels last: inputs that lie otherwise are turned first (NVIDIA,
    // "Convolutional Layers User's Guide", tensor layouts); what comes out is written as it is
    // wanted (kernels "nhwckrsc_nchw" in cuDNN's traces). Depthwise kernels take either. Training
    // turns the input once more, for the gradient of the weights, and that of the output for both:
    // a third of it stands here, as the backward pass takes twice as long as the forward one.
    if (!channels_last_[n.inputs.front()] && op.k > window && op.activations != Format::f32 &&
        pass_.matrix_units) {
      copy("layout", pass_.training ? 4 * (read(n) + written(n)) / 3 : 2 * read(n), d(n.repeat));
      out_.back().in_library = true;
      out_.back().backward_bytes = 2 * out_.back().data_bytes;
    }
    // A. Lavin, S. Gray, CVPR 2016: 32-bit kernels of 3 x 3 windows multiply tiles of outputs.
    op.minimal_filtering = op.activations == Format::f32 && !c.transposed && c.groups == 1 &&
                           c.window == 9 && elements(x) * y.front() == elements(y) * x.front();
    emit(op);
  }
  void write(const GraphNode& n, const Projection&) {
    Operator op = base(n, OperatorKind::gemm);
    const TensorShape& x = g_.values[n.inputs.front()].shape;
    op.m = pass_.items * d(elements(x)) / d(x.back());
    op.k = d(x.back());
    op.n = d(elements(g_.weights[n.weights.front()].shape)) / op.k;
    op.flops = 2 * op.m * op.n * op.k;
    emit(op);
  }
  void product(const GraphNode& n, const char* name, double batch, double m, double cols, double k,
               double bytes) {
    Operator op = base(n, OperatorKind::gemm);
    op.name = name;
    op.groups = pass_.items * batch;
    op.m = m * op.groups;
    op.n = cols;
    op.k = k;
    op.weights = pass_.activations;
    op.weight_bytes = 0;
    op.data_bytes = bytes;
    op.flops = 2 * op.m * cols * k;
    op.trainable = op.input_gradient;  // both operands get a gradient
    emit(op);
  }
  void write(const GraphNode& n, const MatrixProduct& p) {
    product(n, "product", d(p.batch), d(p.m), d(p.n), d(p.k), read(n) + written(n));
  }
  void write(const GraphNode& n, const AttentionCore& a) {
    const double sequences = d(a.sequences), heads = d(a.heads);
    if (a.fused && pass_.flash_attention) {
      Operator op = base(n, OperatorKind::attention);
      op.sequences = pass_.items * sequences;
      op.query_tokens = d(a.queries);
      op.key_tokens = a.causal ? (d(a.keys) + 1) / 2 : d(a.keys);
      op.group_size = heads / d(a.kv_heads);
      op.m = heads;
      op.n = d(a.kv_heads);
      op.k = d(a.head_dim);
      op.weights = pass_.activations;
      op.flops =
          2 * op.sequences * heads * op.query_tokens * op.key_tokens * d(a.head_dim + a.value_dim);
      op.trainable = false;
      emit(op);
      return;
    }
    // Scores are written, normalised and read again.
    const double scores = pass_.items * sequences * heads * d(a.queries) * d(a.keys) *
                          element_bytes(pass_.activations);
    const double q = bytes_of(n.inputs[0]), k = bytes_of(n.inputs[1]), v = bytes_of(n.inputs[2]);
    const double bias = n.inputs.size() > 3 ? bytes_of(n.inputs[3]) : 0;
    product(n, "attention.scores", sequences * heads, d(a.queries), d(a.keys), d(a.head_dim),
            q + k + scores);
    Operator soft = base(n, OperatorKind::elementwise);
    soft.name = "attention.softmax";
    soft.weight_bytes = 0;
    soft.trainable = false;
    const double count_scores = scores / element_bytes(pass_.activations);
    if (pass_.fusion != Fusion::none) {
      soft.data_bytes = 2 * scores + bias;
    } else {
      // Rows longer than 1,024 do not stay in registers and are read three times (PyTorch,
      // SoftMax.cu); a bias is a kernel of its own; autocast converts to 32 bit and back.
      const double wide = pass_.autocast ? 4 * count_scores : scores;
      soft.data_bytes = (a.keys > 1024 ? 4 : 2) * wide;
      if (bias > 0) copy("attention.bias", 2 * scores + bias, d(n.repeat));
      if (pass_.autocast) copy("cast", scores + wide, 2 * d(n.repeat));
    }
    soft.flops = 4 * count_scores;
    emit(soft);
    product(n, "attention.values", sequences * heads, d(a.queries), d(a.value_dim), d(a.keys),
            scores + v + written(n));
  }
  void write(const GraphNode& n, const Normalization& x) {
    const bool statistics = x.kind != Statistics::batch || pass_.training;
    Operator op = base(n, OperatorKind::elementwise);
    // Stored statistics make a batch norm a function of single elements; folding it into the
    // convolution before it is the same saving.
    if (!statistics && join(n, op.flops)) return;
    // Statistics over more than a row are a pass of their own.
    const bool rows = x.kind == Statistics::layer || x.kind == Statistics::rms;
    // Rows of channels that do not lie together are gathered first (layer_norm.cpp: `contiguous`).
    if (pass_.fusion == Fusion::none && over_channels(n) && !channels_last_[n.inputs.front()])
      copy("layout", 2 * read(n), d(n.repeat));
    if (rows && pass_.fusion == Fusion::pointwise && join(n, op.flops)) return;
    if (statistics && !rows) op.data_bytes += read(n);
    // Sums over the values and their gradients come first, then both are read again (PyTorch,
    // Normalization.cuh, batch_norm_backward_reduce and _elemt; of rows layer_norm_kernel.cu, one
    // kernel for the inputs and one for the weights).
    op.backward_bytes = backward_bytes(n, Keeps::inputs);
    if (op.backward_bytes > 0) op.backward_bytes += read(n) + written(n);
    emit(op);
  }
  void write(const GraphNode& n, const Elementwise& e) {
    Operator op = base(n, OperatorKind::elementwise);
    if (join(n, op.flops)) return;
    op.backward_bytes = pass_.fusion == Fusion::none && is_sum(e) ? 0 : backward_bytes(n, e.keeps);
    emit(op);
  }
  void write(const GraphNode& n, const Softmax&) {
    Operator op = base(n, OperatorKind::elementwise);
    if (pass_.fusion == Fusion::pointwise && join(n, op.flops)) return;
    op.backward_bytes = backward_bytes(n, Keeps::output);
    emit(op);
  }
  void write(const GraphNode& n, const Pooling&) { emit(base(n, OperatorKind::elementwise)); }
  void write(const GraphNode& n, const Reduction&) { emit(base(n, OperatorKind::elementwise)); }
  void write(const GraphNode& n, const Selection&) { emit(base(n, OperatorKind::elementwise)); }
  void write(const GraphNode& n, const Move&) {
    Operator op = base(n, OperatorKind::elementwise);
    op.backward_bytes = backward_bytes(n, Keeps::nothing);
    emit(op);
  }
  void write(const GraphNode& n, const Reinterpret&) {
    if (!n.inputs.empty() && producer_[n.inputs.front()] != kNobody)
      kernel_[node_] = kernel_[producer_[n.inputs.front()]];
  }
  void write(const GraphNode& n, const TableLookup& t) {
    Operator op = base(n, OperatorKind::gather);
    const double stored = op.weight_bytes;
    // Only the rows that are asked for are read.
    op.weight_bytes = 0;
    op.data_bytes = written(n) * 2;
    op.m = pass_.items * d(t.rows_read);
    op.n = stored;
    emit(op);
  }
  void write(const GraphNode& n, const Recurrence& r) {
    const double rows = d(r.steps) * pass_.items, width = gates(r.cell) * d(r.hidden);
    const double directions = d(r.directions), element = element_bytes(pass_.activations);
    Operator in = base(n, OperatorKind::gemm);
    in.name = "recurrence.input";
    in.m = rows;
    in.n = width * directions;
    in.k = d(r.input);
    in.flops = 2 * in.m * in.n * in.k;
    in.weight_bytes = in.n * in.k * element_bytes(pass_.weights);
    in.data_bytes = (in.m * in.k + in.m * in.n) * element;
    emit(in);
    // One call of the framework runs all steps (cuDNN: J. Appleyard et al., arXiv:1604.01946).
    Operator step = in;
    step.name = "recurrence.step";
    step.in_library = true;
    step.m = pass_.items;
    step.n = width;
    step.k = d(r.hidden);
    step.flops = 2 * step.m * step.n * step.k;
    step.weight_bytes = step.n * step.k * element_bytes(pass_.weights);
    step.data_bytes = pass_.items * (2 * width + 3 * d(r.hidden)) * element;
    step.repeat *= d(r.steps) * directions;
    step.input_gradient = true;
    emit(step);
  }

  const Graph& g_;
  const ItemPass& pass_;
  std::vector<std::size_t> producer_, kernel_;  // of each value; of each node
  std::vector<int> uses_;
  std::set<std::pair<std::size_t, ValueId>> held_;  // kernels and the inputs they have read
  std::vector<bool> needs_gradient_, cast_;         // of each value; of each weight
  std::vector<bool> channels_last_;                 // how each value lies
  std::vector<Format> format_;                      // of each value in floating point
  std::optional<Format> reads_;                     // what the node's kernel reads, under autocast
  std::vector<Operator> out_;
  std::size_t node_ = 0;
};

}  // namespace

void lower_graph(const Graph& graph, const ItemPass& pass, OperatorList& out) {
  using Key = std::tuple<OperatorKind, std::string_view, double, double, double, double, double,
                         double, double, double, Format, bool, bool, double, double, bool, int>;
  std::map<Key, std::size_t> known;
  for (Operator& op : GraphWriter(graph, pass).run()) {
    const Key key{op.kind,
                  op.name,
                  op.m,
                  op.n,
                  op.k,
                  op.groups,
                  op.data_bytes,
                  op.backward_bytes,
                  op.flops,
                  op.weight_bytes,
                  op.weights,
                  op.trainable,
                  op.input_gradient,
                  op.sequences,
                  op.query_tokens,
                  op.minimal_filtering,
                  op.axes};
    auto [it, fresh] = known.emplace(key, out.size());
    if (fresh)
      out.push_back(op);
    else
      out[it->second].repeat += op.repeat;
  }
}

}  // namespace trigon
