// The SE(3)-Transformer: Fuchs et al. 2020, arXiv:2006.10503, as NVIDIA/DeepLearningExamples fuses
// it. Features of degree d have 2 d + 1 components; an edge's kernel is a sum of fixed bases,
// 2 min(i, o) + 1 of them from degree i to o, weighed by a small network of its length and kind.

#include <algorithm>
#include <string>

#include "network/builder.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

struct Shape {
  std::int64_t nodes, edges, degrees, channels, heads, edge_features;
  std::int64_t components() const { return degrees * degrees; }  // 1 + 3 + 5 + ...
};

// Weights of every basis from each channel to each: an MLP 32 wide with norms.
ValueId radial(NetworkBuilder& b, ValueId edges, std::int64_t out) {
  ValueId x = edges;
  for (int i = 0; i < 2; ++i) {
    const std::string n = std::to_string(i);
    x = b.layer_norm("norm" + n, b.linear("radial" + n, x, 32));
    x = b.activation("relu", x, Activation::relu);
  }
  return b.linear("radial2", x, out, false);
}

// Node features [nodes, in * from] to edge features [edges, out, to]: `from` and `to` are
// components of all degrees together, `bases` their number.
ValueId convolve(NetworkBuilder& b, const char* name, ValueId x, ValueId edges, std::int64_t in,
                 std::int64_t out, std::int64_t from, std::int64_t to, std::int64_t bases) {
  auto in_conv = b.scope(name);
  const std::int64_t e = b.tokens(edges);
  const ValueId weights =
      b.reshape("weights", radial(b, edges, bases * in * out), {e, out, in * bases});
  const ValueId source = b.copy("gather", {x}, {e, in, from});
  const ValueId basis = b.input({e, from, bases * to});
  const ValueId projected = b.product("with_basis", source, basis);
  return b.product("with_weights", weights, b.reshape("by_basis", projected, {e, in * bases, to}));
}

std::int64_t bases_between(std::int64_t degrees) {
  std::int64_t n = 0;
  for (std::int64_t i = 0; i < degrees; ++i)
    for (std::int64_t o = 0; o < degrees; ++o) n += 2 * std::min(i, o) + 1;
  return n;
}

// One product a degree: channels are mixed, components are not. Degrees above the first may have
// fewer channels (`above`).
ValueId mix(NetworkBuilder& b, const std::string& name, ValueId x, std::int64_t in,
            std::int64_t above, std::int64_t out, std::int64_t degrees, std::int64_t nodes) {
  std::vector<ValueId> parts;
  for (std::int64_t d = 0; d < degrees; ++d) {
    const std::int64_t rows = nodes * (2 * d + 1);
    const ValueId part = b.copy("degree", {x}, {rows, d == 0 ? in : above});
    parts.push_back(b.reshape("flat", b.linear(name + std::to_string(d), part, out, false),
                              {nodes, (2 * d + 1) * out}));
  }
  return b.concatenate("degrees", parts, 1);
}

}  // namespace

Model build_se3_transformer(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const Shape s{spec.whole("nodes"),    spec.whole("edges"), spec.whole("degrees"),
                spec.whole("channels"), spec.whole("heads"), spec.whole("edge_features")};
  const std::int64_t c = s.channels, half = c / 2, comp = s.components();
  const std::int64_t bases = bases_between(s.degrees);
  const ValueId edges = b.input({s.edges, s.edge_features + 1});  // and their length
  std::int64_t in = spec.whole("node_features");
  ValueId x = b.input({s.nodes, in});
  for (std::int64_t i = 0; i < spec.whole("layers"); ++i) {
    auto in_layer = b.scope("layer" + std::to_string(i));
    // Nodes come with scalars only; afterwards with all degrees. Keys have the degrees of the
    // input.
    const std::int64_t from = i == 0 ? 1 : comp, kinds = i == 0 ? s.degrees : bases;
    const std::int64_t key = i == 0 ? half : half * comp;
    const ValueId kv = convolve(b, "to_key_value", x, edges, in, c, from, comp, kinds);
    const ValueId query = mix(b, "to_query", x, in, in, half, i == 0 ? 1 : s.degrees, s.nodes);
    const ValueId pairs = b.copy("query_of_edge", {query}, {s.edges, key});
    const ValueId keys = b.slice("keys", b.reshape("rows", kv, {s.edges, c * comp}), 1, key);
    const ValueId scores =
        b.reduce("dot", b.elementwise("times", {keys, pairs}, "multiply_add", 2, Keeps::inputs),
                 {s.edges, s.heads});
    const ValueId where = b.softmax("edge_softmax", scores);
    const ValueId values =
        b.slice("values", b.reshape("rows", kv, {s.edges, c * comp}), 1, half * comp);
    const ValueId weighed = b.node("weigh", Elementwise{"multiply", 1, Keeps::inputs},
                                   {values, where}, {}, {s.edges, half * comp});
    const ValueId heard = b.reduce("sum_of_edges", weighed, {s.nodes, half * comp});
    const ValueId both = b.concatenate("with_input", {heard, x}, 1);
    x = mix(b, "project", both, half + in, i == 0 ? half : half + in, c, s.degrees, s.nodes);
    // Lengths are normalized, directions kept.
    for (std::int64_t d = 0; d < s.degrees; ++d)
      b.layer_norm("norm" + std::to_string(d), b.copy("lengths", {x}, {s.nodes, c}));
    x = b.elementwise("rescale", {x}, "divide_by_length", 3, Keeps::inputs);
    in = c;
  }
  const std::int64_t out = s.degrees * c;
  const ValueId last = convolve(b, "last", x, edges, in, out, comp, 1, s.degrees);
  ValueId y = b.reduce("mean_of_edges", last, {s.nodes, out});
  y = b.reduce("max_of_nodes", y, {1, out});
  y = b.activation("relu", b.linear("mlp0", y, out), Activation::relu);
  return network_model(spec, b.finish({b.linear("mlp1", y, 1)}), WorkUnit::sample, {});
}

}  // namespace trigon
