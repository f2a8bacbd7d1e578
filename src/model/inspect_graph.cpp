// What a graph is made of: sums by kind of operation, and its largest nodes.

#include <algorithm>
#include <map>

#include "model/inspect.hpp"

namespace trigon {
namespace {

constexpr std::size_t kLargest = 10;

ByteCount bytes_of_value(const GraphValue& v) {
  return bytes_of(v.format, 1, elements(v.shape)).value_or(ByteCount());
}

// Shares in the order of their names, then by what `key` says, largest first.
template <class Share, class Key>
std::vector<Share> sorted(const std::map<std::string, Share>& shares, Key key) {
  std::vector<Share> out;
  for (const auto& [name, share] : shares) out.push_back(share);
  std::stable_sort(out.begin(), out.end(),
                   [&](const Share& a, const Share& b) { return key(a) > key(b); });
  return out;
}

}  // namespace

ComponentDescription describe_graph(const Component& c, const Graph& g) {
  ComponentDescription d;
  d.name = c.name;
  d.bytes = weight_bytes(g);
  d.parameters.total = d.parameters.active = count_parameters(g);
  GraphDescription out;
  out.each_step = c.runs == Runs::each_step;
  out.rows = c.rows;
  for (ValueId v : g.inputs) out.inputs.push_back(g.values[v].shape);
  for (ValueId v : g.outputs) out.outputs.push_back(g.values[v].shape);
  std::map<std::string, OperatorShare> kinds;
  std::vector<bool> counted(g.weights.size());
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const GraphNode& n = g.nodes[i];
    OperatorShare& s = kinds[operation_name(n.operation)];
    s.kind = operation_name(n.operation);
    s.nodes += n.repeat;
    s.multiply_accumulates += multiply_accumulates(g, n);
    s.flops += flops(g, n);
    for (WeightId w : n.weights) {
      if (counted[w]) continue;
      counted[w] = true;
      if (g.weights[w].trains) s.parameters += elements(g.weights[w].shape);
      s.weights += bytes_of(g.weights[w].format, 1, elements(g.weights[w].shape)).value();
    }
    const bool view = std::holds_alternative<Reinterpret>(n.operation);
    for (ValueId v : n.outputs)
      if (!view) s.written += bytes_of_value(g.values[v]) * n.repeat;
    out.nodes += n.repeat;
    order.emplace_back(flops(g, n), i);
  }
  out.operators = sorted(kinds, [](const OperatorShare& s) { return s.flops; });
  for (const OperatorShare& s : out.operators) {
    out.multiply_accumulates += s.multiply_accumulates;
    out.flops += s.flops;
    out.written += s.written;
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (order.size() > kLargest) order.resize(kLargest);
  for (const auto& [arithmetic, i] : order) {
    const GraphNode& n = g.nodes[i];
    std::int64_t parameters = 0;
    for (WeightId w : n.weights)
      if (g.weights[w].trains) parameters += elements(g.weights[w].shape);
    out.largest.push_back({n.name, operation_name(n.operation),
                           n.outputs.empty() ? TensorShape() : g.values[n.outputs.front()].shape,
                           parameters, multiply_accumulates(g, n), arithmetic});
  }
  std::map<std::string, FormatShare> formats;
  for (const GraphWeight& w : g.weights) {
    FormatShare& f = formats[std::string(info(w.format).name)];
    f.format = info(w.format).name;
    f.tensors += 1;
    f.parameters += elements(w.shape);
    f.bytes += bytes_of(w.format, 1, elements(w.shape)).value();
  }
  d.formats = sorted(formats, [](const FormatShare& s) { return s.bytes; });
  d.graph = std::move(out);
  return d;
}

}  // namespace trigon
