#include "onnx/fuse_attention.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace trigon::onnx {
namespace {

class Fuser {
 public:
  explicit Fuser(Graph& g)
      : g_(g), producer_(g.values.size()), readers_(g.values.size()), gone_(g.nodes.size()) {
    for (std::size_t i = 0; i < g.nodes.size(); ++i) {
      for (ValueId v : g.nodes[i].outputs) producer_[v] = i;
      for (ValueId v : g.nodes[i].inputs) readers_[v].push_back(i);
    }
    for (ValueId v : g.outputs) readers_[v].push_back(g.nodes.size());  // read from outside
  }

  void run() {
    for (std::size_t i = 0; i < g_.nodes.size(); ++i)
      if (std::holds_alternative<Softmax>(g_.nodes[i].operation)) fuse(i);
    std::vector<GraphNode> kept;
    for (std::size_t i = 0; i < g_.nodes.size(); ++i)
      if (!gone_[i]) kept.push_back(std::move(g_.nodes[i]));
    g_.nodes = std::move(kept);
  }

 private:
  // Scaling, masking and what else happens to scores or probabilities, of unchanged size.
  bool between(const GraphNode& n) const {
    if (n.outputs.size() != 1 || n.inputs.empty()) return false;
    if (std::holds_alternative<Reinterpret>(n.operation)) return true;
    auto e = std::get_if<Elementwise>(&n.operation);
    if (!e) return false;
    for (std::string_view known :
         {"add", "subtract", "multiply", "divide", "select", "cast", "dropout", "clip", "scale"})
      if (e->function == known) return true;
    return false;
  }
  std::int64_t size(ValueId v) const { return elements(g_.values[v].shape); }
  std::optional<std::size_t> only_reader(ValueId v) const {
    if (readers_[v].size() != 1 || readers_[v][0] >= g_.nodes.size()) return std::nullopt;
    return readers_[v][0];
  }

  void fuse(std::size_t softmax) {
    std::vector<std::size_t> parts{softmax};
    std::vector<ValueId> beside;
    std::vector<WeightId> weights = g_.nodes[softmax].weights;
    std::optional<std::size_t> scores, result;
    std::size_t steps = 0;
    constexpr std::size_t kMostSteps = 8;
    const std::int64_t n = size(g_.nodes[softmax].outputs.front());
    // Back to the product of queries and keys.
    if (g_.nodes[softmax].inputs.empty()) return;
    for (ValueId v = g_.nodes[softmax].inputs.front(); steps < kMostSteps; ++steps) {
      if (!producer_[v] || size(v) != n || !only_reader(v)) return;
      const GraphNode& p = g_.nodes[*producer_[v]];
      if (p.outputs.size() != 1) return;
      if (std::holds_alternative<MatrixProduct>(p.operation)) {
        scores = producer_[v];
        break;
      }
      if (!between(p)) return;
      std::optional<ValueId> main;
      for (ValueId input : p.inputs)
        if (!main && size(input) == n && producer_[input])
          main = input;
        else
          beside.push_back(input);
      if (!main) return;
      weights.insert(weights.end(), p.weights.begin(), p.weights.end());
      parts.push_back(*producer_[v]);
      v = *main;
    }
    if (!scores || g_.nodes[*scores].inputs.size() != 2) return;
    // On to the product with the values.
    steps = 0;
    for (ValueId v = g_.nodes[softmax].outputs.front(); steps < kMostSteps; ++steps) {
      auto reader = only_reader(v);
      if (!reader) return;
      const GraphNode& r = g_.nodes[*reader];
      if (std::holds_alternative<MatrixProduct>(r.operation)) {
        if (r.inputs.size() != 2 || r.inputs[0] != v) return;
        result = reader;
        break;
      }
      if (!between(r) || r.inputs[0] != v || size(r.outputs[0]) != n) return;
      beside.insert(beside.end(), r.inputs.begin() + 1, r.inputs.end());
      weights.insert(weights.end(), r.weights.begin(), r.weights.end());
      parts.push_back(*reader);
      v = r.outputs[0];
    }
    if (!result) return;
    const GraphNode& first = g_.nodes[*scores];
    GraphNode& last = g_.nodes[*result];
    const auto qk = std::get<MatrixProduct>(first.operation);
    const auto pv = std::get<MatrixProduct>(last.operation);
    if (qk.batch != pv.batch || qk.m != pv.m || qk.n != pv.k || first.repeat != last.repeat ||
        qk.batch * qk.m * qk.n != n)
      return;
    const TensorShape& shape = g_.values[first.outputs[0]].shape;
    AttentionCore a;
    a.heads = shape.size() >= 3 ? shape[shape.size() - 3] : 1;
    if (a.heads < 1 || qk.batch % a.heads != 0) a.heads = qk.batch;
    a.sequences = qk.batch / a.heads;
    a.kv_heads = a.heads;
    a.head_dim = qk.k;
    a.value_dim = pv.n;
    a.queries = qk.m;
    a.keys = qk.n;
    // A stored bias of many elements is added to the scores.
    for (WeightId w : weights) a.fused = a.fused && elements(g_.weights[w].shape) == 1;
    const ValueId values = last.inputs[1];
    last.operation = a;
    last.inputs = {first.inputs[0], first.inputs[1], values};
    last.inputs.insert(last.inputs.end(), beside.begin(), beside.end());
    weights.insert(weights.end(), first.weights.begin(), first.weights.end());
    last.weights.insert(last.weights.end(), weights.begin(), weights.end());
    gone_[*scores] = true;
    for (std::size_t p : parts) gone_[p] = true;
  }

  Graph& g_;
  std::vector<std::optional<std::size_t>> producer_;
  std::vector<std::vector<std::size_t>> readers_;
  std::vector<bool> gone_;
};

}  // namespace

void fuse_attention(Graph& g) { Fuser(g).run(); }

}  // namespace trigon::onnx
