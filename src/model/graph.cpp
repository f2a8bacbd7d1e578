#include "model/graph.hpp"

#include "model/model.hpp"

namespace trigon {

std::int64_t elements(const TensorShape& shape) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) {
    auto product = checked_mul(n, d);
    if (!product) broken_invariant("a value has more elements than 64 bits count", n, d);
    n = *product;
  }
  return n;
}

namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

std::int64_t gates(RecurrentCell c) {
  return c == RecurrentCell::lstm ? 4 : c == RecurrentCell::gru ? 3 : 1;
}

double kernel_elements(const Graph& g, const GraphNode& n) {
  return n.weights.empty() ? 0 : d(elements(g.weights[n.weights.front()].shape));
}

double output_elements(const Graph& g, const GraphNode& n) {
  double sum = 0;
  for (ValueId v : n.outputs) sum += d(elements(g.values[v].shape));
  return sum;
}

struct Counter {
  const Graph& g;
  const GraphNode& n;

  double operator()(const Convolution& c) const {
    // Each position of the output (of the input when transposed) meets the whole kernel once.
    const TensorShape& at = g.values[c.transposed ? n.inputs.front() : n.outputs.front()].shape;
    return d(elements(at)) / d(at.front()) * kernel_elements(g, n);
  }
  double operator()(const Projection&) const {
    const TensorShape& x = g.values[n.inputs.front()].shape;
    return d(elements(x)) / d(x.back()) * kernel_elements(g, n);
  }
  double operator()(const MatrixProduct& p) const { return d(p.batch) * d(p.m) * d(p.n) * d(p.k); }
  double operator()(const AttentionCore& a) const {
    double pairs =
        d(a.sequences) * d(a.heads) * d(a.queries) * (a.causal ? (d(a.keys) + 1) / 2 : d(a.keys));
    return pairs * d(a.head_dim + a.value_dim);
  }
  double operator()(const Recurrence& r) const {
    return d(r.directions) * d(r.steps) * d(gates(r.cell)) * d(r.hidden) * d(r.input + r.hidden);
  }
  template <class Other>
  double operator()(const Other&) const {
    return 0;
  }
};

struct Arithmetic {
  const Graph& g;
  const GraphNode& n;

  double operator()(const Elementwise& e) const { return e.flops * output_elements(g, n); }
  // Subtract the mean, scale, multiply, add; the statistics are another two passes.
  double operator()(const Normalization&) const { return 4 * output_elements(g, n); }
  double operator()(const Softmax&) const { return 4 * output_elements(g, n); }
  double operator()(const Pooling& p) const { return d(p.window) * output_elements(g, n); }
  double operator()(const Reduction&) const { return d(elements(g.values[n.inputs[0]].shape)); }
  double operator()(const AttentionCore& a) const {
    return 4 * d(a.sequences) * d(a.heads) * d(a.queries) * d(a.keys);
  }
  template <class Other>
  double operator()(const Other&) const {
    return 0;
  }
};

}  // namespace

double multiply_accumulates(const Graph& g, const GraphNode& n) {
  return d(n.repeat) * std::visit(Counter{g, n}, n.operation);
}

double multiply_accumulates(const Graph& g) {
  double sum = 0;
  for (const GraphNode& n : g.nodes) sum += multiply_accumulates(g, n);
  return sum;
}

double flops(const Graph& g, const GraphNode& n) {
  return 2 * multiply_accumulates(g, n) + d(n.repeat) * std::visit(Arithmetic{g, n}, n.operation);
}

double flops(const Graph& g) {
  double sum = 0;
  for (const GraphNode& n : g.nodes) sum += flops(g, n);
  return sum;
}

std::int64_t count_parameters(const Graph& g) {
  std::int64_t sum = 0;
  for (const GraphWeight& w : g.weights)
    if (w.trains) sum += elements(w.shape);
  return sum;
}

std::int64_t count_row_parameters(const Graph& g) {
  std::int64_t sum = 0;
  for (const GraphWeight& w : g.weights)
    if (w.trains && w.by_row) sum += elements(w.shape);
  return sum;
}

std::int64_t weight_elements(const Graph& g, const GraphNode& n) {
  std::int64_t sum = 0;
  for (WeightId w : n.weights) sum += elements(g.weights[w].shape);
  return sum;
}

ByteCount weight_bytes(const Graph& g) {
  ByteCount sum;
  for (const GraphWeight& w : g.weights) {
    auto bytes = bytes_of(w.format, 1, elements(w.shape));
    if (!bytes) broken_invariant("a weight has no size", elements(w.shape), 0);
    sum += *bytes;
  }
  return sum;
}

std::vector<AttentionPart> attention_parts(const Graph& g) {
  std::vector<AttentionPart> parts(g.nodes.size(), AttentionPart::none);
  std::vector<std::size_t> made_by(g.values.size(), g.nodes.size());
  for (std::size_t i = 0; i < g.nodes.size(); ++i)
    for (ValueId v : g.nodes[i].outputs) made_by[v] = i;
  std::vector<ValueId> open;
  for (const GraphNode& core : g.nodes) {
    if (!std::holds_alternative<AttentionCore>(core.operation)) continue;
    for (std::size_t input = 0; input < 3 && input < core.inputs.size(); ++input) {
      const auto part =
          static_cast<AttentionPart>(static_cast<std::size_t>(AttentionPart::query) + input);
      open.assign(1, core.inputs[input]);
      while (!open.empty()) {
        const std::size_t i = made_by[open.back()];
        open.pop_back();
        if (i == g.nodes.size()) continue;
        const GraphNode& n = g.nodes[i];
        if (std::holds_alternative<Projection>(n.operation)) {
          if (parts[i] == AttentionPart::none) parts[i] = part;
        } else if (std::holds_alternative<Move>(n.operation)) {
          open.insert(open.end(), n.inputs.begin(), n.inputs.end());
        } else if (std::holds_alternative<Reinterpret>(n.operation) ||
                   std::holds_alternative<Normalization>(n.operation) ||
                   std::holds_alternative<Elementwise>(n.operation)) {
          open.push_back(n.inputs.front());
        }
      }
    }
  }
  // Where attention is joined with something else, the projection is of both.
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    if (!std::holds_alternative<Projection>(g.nodes[i].operation)) continue;
    std::size_t from = made_by[g.nodes[i].inputs.front()];
    while (from != g.nodes.size() && g.nodes[from].inputs.size() == 1 &&
           (std::holds_alternative<Reinterpret>(g.nodes[from].operation) ||
            std::holds_alternative<Move>(g.nodes[from].operation)))
      from = made_by[g.nodes[from].inputs.front()];
    if (from != g.nodes.size() && std::holds_alternative<AttentionCore>(g.nodes[from].operation))
      parts[i] = AttentionPart::output;
  }
  return parts;
}

const char* operation_name(const NodeOperation& o) {
  struct Name {
    const char* operator()(const Convolution&) const { return "convolution"; }
    const char* operator()(const Projection&) const { return "projection"; }
    const char* operator()(const MatrixProduct&) const { return "product"; }
    const char* operator()(const AttentionCore&) const { return "attention"; }
    const char* operator()(const Normalization&) const { return "normalization"; }
    const char* operator()(const Elementwise& e) const { return e.function; }
    const char* operator()(const Softmax&) const { return "softmax"; }
    const char* operator()(const Pooling&) const { return "pooling"; }
    const char* operator()(const Reduction&) const { return "reduction"; }
    const char* operator()(const TableLookup&) const { return "lookup"; }
    const char* operator()(const Recurrence&) const { return "recurrence"; }
    const char* operator()(const Reinterpret&) const { return "view"; }
    const char* operator()(const Move&) const { return "copy"; }
    const char* operator()(const Selection&) const { return "select"; }
  };
  return std::visit(Name{}, o);
}

}  // namespace trigon
