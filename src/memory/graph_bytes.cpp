#include "memory/graph_bytes.hpp"

#include <algorithm>
#include <cstddef>

namespace trigon {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

bool floating(Format f) {
  return f == Format::f32 || f == Format::f16 || f == Format::bf16 || f == Format::f64;
}

class Keeper {
 public:
  Keeper(const Graph& graph, bool flash, bool in_place, const GraphAdapters* adapters, bool casts)
      : g_(graph), flash_(flash), in_place_(in_place), adapters_(adapters), casts_(casts) {
    if (adapters_) adapted_ = adapted_nodes(graph, adapters_->targets);
    storage_.resize(g_.values.size());
    for (std::size_t v = 0; v < storage_.size(); ++v) storage_[v] = static_cast<ValueId>(v);
    needs_gradient_.assign(g_.values.size(), false);
    saved_.assign(g_.values.size(), false);
    last_use_.assign(g_.values.size(), 0);
    uses_.assign(g_.values.size(), 0);
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      const GraphNode& n = g_.nodes[i];
      // A reinterpretation is the same bytes; a function in place takes over its input's.
      for (ValueId v : n.inputs) ++uses_[v];
    }
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      const GraphNode& n = g_.nodes[i];
      const bool view = std::holds_alternative<Reinterpret>(n.operation);
      if (!n.inputs.empty() && (view || overwrites(n)))
        for (ValueId v : n.outputs) storage_[v] = storage_[n.inputs.front()];
      for (ValueId v : n.inputs) last_use_[storage_[v]] = i;
      for (ValueId v : n.outputs) last_use_[storage_[v]] = std::max(last_use_[storage_[v]], i);
    }
    for (ValueId v : g_.outputs) last_use_[storage_[v]] = g_.nodes.size();
  }

  GraphBytes run() {
    GraphBytes out;
    for (const GraphWeight& w : g_.weights) {
      const double n = d(elements(w.shape)), bytes = n * bits_per_element(w.format) / 8;
      out.stored_bytes += bytes;
      if (w.by_row) {
        out.row_bytes += bytes;
        continue;
      }
      if (w.trains) out.parameters += n;
      (floating(w.format) ? out.weight_floats : out.weight_bytes) += floating(w.format) ? n : bytes;
    }
    ItemBytes alive;
    std::vector<std::vector<ValueId>> ends(g_.nodes.size() + 1);
    std::vector<bool> counted(g_.values.size(), false);
    auto born = [&](ValueId v) {
      const ValueId s = storage_[v];
      if (counted[s]) return;
      counted[s] = true;
      add(alive, s, 1);
      ends[last_use_[s]].push_back(s);
    };
    for (ValueId v : g_.inputs) born(v);
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      const GraphNode& n = g_.nodes[i];
      for (ValueId v : n.outputs) born(v);
      ItemBytes here = alive;
      const double scores = scores_of(n);
      here.floats += scores;
      if (here.at(2) > out.forward.at(2)) out.forward = here;
      ItemBytes node;
      node.floats = scores;
      for (ValueId v : n.inputs) add(node, v, 1);
      for (ValueId v : n.outputs) add(node, v, 1);
      if (node.at(2) > out.largest.at(2)) out.largest = node;
      for (ValueId s : ends[i]) add(alive, s, -1);
      out.attention = out.attention || std::holds_alternative<AttentionCore>(n.operation);
      keep(n, i);
      if (!adapters_ || !adapted_[i]) continue;
      ++out.adapted;
      out.adapter_in_out += d(g_.values[n.inputs.front()].shape.back()) +
                            d(g_.values[n.outputs.front()].shape.back());
    }
    out.saved = kept_;
    return out;
  }

 private:
  bool overwrites(const GraphNode& n) const {
    auto e = std::get_if<Elementwise>(&n.operation);
    if (!in_place_ || !e || n.inputs.empty() || e->keeps == Keeps::inputs || n.outputs.size() != 1)
      return false;
    const ValueId in = n.inputs.front();
    return uses_[in] == 1 &&
           elements(g_.values[in].shape) == elements(g_.values[n.outputs.front()].shape);
  }
  void add(ItemBytes& to, ValueId v, double sign) const {
    const GraphValue& x = g_.values[v];
    const double n = sign * d(elements(x.shape));
    if (floating(x.format))
      to.floats += n;
    else
      to.bytes += n * bits_per_element(x.format) / 8;
  }
  void save(ValueId v) {
    const ValueId s = storage_[v];
    if (saved_[s]) return;
    saved_[s] = true;
    add(kept_, s, 1);
  }
  // Attention scores that a node writes out.
  double scores_of(const GraphNode& n) const {
    auto a = std::get_if<AttentionCore>(&n.operation);
    if (!a || (a->fused && flash_)) return 0;
    return d(a->sequences) * d(a->heads) * d(a->queries) * d(a->keys);
  }

  void keep(const GraphNode& n, std::size_t i) {
    bool trains = false, flows = false;
    if (adapters_)
      trains = adapted_[i];
    else
      for (WeightId w : n.weights) trains = trains || g_.weights[w].trains;
    for (ValueId v : n.inputs) flows = flows || needs_gradient_[v];
    for (ValueId v : n.outputs) needs_gradient_[v] = trains || flows;
    if ((!trains && !flows) || n.inputs.empty()) return;
    const double before_floats = kept_.floats, before_bytes = kept_.bytes;
    std::visit([&](const auto& op) { keep(n, op, trains); }, n.operation);
    // Every step of a loop keeps its own.
    kept_.floats = before_floats + (kept_.floats - before_floats) * d(n.repeat);
    kept_.bytes = before_bytes + (kept_.bytes - before_bytes) * d(n.repeat);
  }
  double outputs(const GraphNode& n) const {
    double sum = 0;
    for (ValueId v : n.outputs) sum += d(elements(g_.values[v].shape));
    return sum;
  }
  void keep(const GraphNode& n, const Convolution&, bool trains) {
    if (trains) save(n.inputs.front());
  }
  void keep(const GraphNode& n, const Projection&, bool trains) {
    if (!trains) return;
    const TensorShape& x = g_.values[n.inputs.front()].shape;
    // The narrow tensor between an adapter's two matrices. An adapter in 32 bit beside a 16-bit
    // base casts its input, and autocast casts that back: no two share one (peft
    // tuners/lora/layer.py, Linear.forward and _cast_input_dtype).
    if (adapters_) kept_.floats += adapters_->rank * d(elements(x)) / d(x.back());
    if (adapters_ && casts_)
      kept_.floats += d(elements(x));
    else
      save(n.inputs.front());
  }
  void keep(const GraphNode& n, const MatrixProduct&, bool) {
    for (ValueId v : n.inputs) save(v);
  }
  void keep(const GraphNode& n, const AttentionCore& a, bool) {
    for (std::size_t i = 0; i < 3 && i < n.inputs.size(); ++i) save(n.inputs[i]);
    const double scores = scores_of(n);
    if (scores > 0) {
      kept_.floats += scores;
    } else {
      save(n.outputs.front());
      kept_.bytes += 4 * d(a.sequences) * d(a.heads) * d(a.queries);  // log of the row sums
    }
  }
  void keep(const GraphNode& n, const Normalization& x, bool) {
    save(n.inputs.front());
    // Mean and reciprocal deviation in 32 bit; those of a batch do not grow with it.
    const TensorShape& s = g_.values[n.inputs.front()].shape;
    if (!s.empty() && (x.kind == Statistics::layer || x.kind == Statistics::rms))
      kept_.bytes += 8 * d(elements(s)) / d(s.back());
  }
  void keep(const GraphNode& n, const Elementwise& e, bool) {
    switch (e.keeps) {
      case Keeps::nothing:
        break;
      case Keeps::inputs:
        for (ValueId v : n.inputs) save(v);
        break;
      case Keeps::output:
        save(n.outputs.front());
        break;
      case Keeps::mask:
        kept_.bytes += outputs(n);
        break;
    }
  }
  void keep(const GraphNode& n, const Softmax&, bool) { save(n.outputs.front()); }
  void keep(const GraphNode& n, const Pooling& p, bool) {
    if (p.kind == Pooling::Kind::average) return;
    save(n.inputs.front());
    kept_.bytes += 8 * outputs(n);  // 64-bit positions of the maxima
  }
  void keep(const GraphNode& n, const TableLookup&, bool) { save(n.inputs.front()); }
  void keep(const GraphNode& n, const Recurrence& r, bool) {
    save(n.inputs.front());
    const double gates = r.cell == RecurrentCell::lstm ? 4 : r.cell == RecurrentCell::gru ? 3 : 1;
    // Gates, cell and hidden state of each step.
    kept_.floats += d(r.steps) * d(r.directions) * d(r.hidden) * (gates + 2);
  }
  void keep(const GraphNode&, const Reduction&, bool) {}
  void keep(const GraphNode&, const Reinterpret&, bool) {}
  void keep(const GraphNode&, const Move&, bool) {}
  void keep(const GraphNode&, const Selection&, bool) {}

  const Graph& g_;
  bool flash_, in_place_;
  const GraphAdapters* adapters_;
  bool casts_;
  std::vector<bool> adapted_;
  std::vector<ValueId> storage_;
  std::vector<bool> needs_gradient_, saved_;
  std::vector<std::size_t> last_use_;
  std::vector<int> uses_;
  ItemBytes kept_;
};

}  // namespace

std::vector<bool> adapted_nodes(const Graph& graph, AdapterTargets targets) {
  const std::vector<AttentionPart> parts = attention_parts(graph);
  auto stands = [&](AttentionPart p) {
    return (p == AttentionPart::query && targets.has(AdapterTarget::query)) ||
           (p == AttentionPart::key && targets.has(AdapterTarget::key)) ||
           (p == AttentionPart::value && targets.has(AdapterTarget::value)) ||
           (p == AttentionPart::output && targets.has(AdapterTarget::output));
  };
  std::vector<bool> adapted;
  for (AttentionPart p : parts) adapted.push_back(stands(p));
  return adapted;
}

GraphBytes bytes_of_graph(const Graph& graph, bool flash, bool in_place,
                          const GraphAdapters* adapters) {
  GraphBytes out = Keeper(graph, flash, in_place, adapters, false).run();
  if (adapters) out.saved_casts = Keeper(graph, flash, in_place, adapters, true).run().saved;
  return out;
}

}  // namespace trigon
