// MoFlow: Zang and Wang 2020, arXiv:2006.10137. Molecules through two flows: one over the bonds,
// folded 20 by 20 into channels, with convolutional couplings; one over the atoms, whose couplings
// convolve over the graph.

#include <string>

#include "network/builder.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

// A learned scale and shift of each of `n` channels or nodes.
ValueId act_norm(NetworkBuilder& b, ValueId x, std::int64_t n) {
  return b.node("actnorm", Elementwise{"scale_shift", 2, Keeps::inputs}, {x},
                {b.weight("actnorm.scale", {n}), b.weight("actnorm.bias", {n})},
                TensorShape(b.shape(x)));
}

// (x + t) sigmoid(s), its logarithm summed for the likelihood.
ValueId affine(NetworkBuilder& b, ValueId x, ValueId scale_and_shift) {
  return b.node("affine", Elementwise{"shift_sigmoid_scale", 12, Keeps::inputs},
                {x, scale_and_shift}, {}, TensorShape(b.shape(x)));
}

ValueId bond_flow(NetworkBuilder& b, ValueId x, std::int64_t hidden) {
  const std::int64_t c = b.channels(x);
  x = act_norm(b, x, c);
  const ValueId a = b.slice("kept", x, 0, c / 2), rest = b.slice("moved", x, 0, c / 2);
  ConvolutionOptions o;
  o.bias = true;
  ValueId y = a;
  for (int i = 0; i < 2; ++i) {
    const std::string n = std::to_string(i);
    y = b.activation("relu", b.batch_norm("bn" + n, b.convolution("conv" + n, y, hidden, o)),
                     Activation::relu);
  }
  y = b.convolution("conv2", y, c, o);
  return b.concatenate("halves", {a, affine(b, rest, y)});
}

// Over the nodes, which are the channels of these norms.
ValueId node_norm(NetworkBuilder& b, const std::string& name, ValueId x) {
  return b.activation("relu", b.batch_norm(name, x), Activation::relu);
}

ValueId atom_flow(NetworkBuilder& b, ValueId x, ValueId bonds, const NetworkSpec& spec) {
  const std::int64_t types = b.width(x), nodes = b.tokens(x), kinds = b.channels(bonds);
  const std::int64_t out = spec.whole("graph_hidden");
  x = act_norm(b, x, nodes);
  const ValueId masked = b.elementwise("mask", {x}, "mask", 1, Keeps::nothing);
  const ValueId self = b.linear("graph_linear_self", masked, out);
  const ValueId along = b.linear("graph_linear_edge", masked, kinds * out);
  const ValueId messages = b.transpose("by_bond", along, {kinds, nodes, out});
  const ValueId heard =
      b.reduce("sum_of_bonds", b.product("neighbours", bonds, messages), {nodes, out});
  ValueId y = node_norm(b, "bn_graph", b.add("graph", self, heard));
  int i = 0;
  for (std::int64_t h : spec.wholes("atom_hidden")) {
    const std::string n = std::to_string(i++);
    y = node_norm(b, "bn" + n, b.linear("lin" + n, y, h));
  }
  return affine(b, masked, b.linear("last", y, 2 * types));
}

}  // namespace

Model build_moflow(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const std::int64_t nodes = spec.whole("nodes"), types = spec.whole("atom_types");
  const std::int64_t kinds = spec.whole("bond_types"), fold = spec.whole("fold");
  const ValueId bonds = b.input({kinds, nodes, nodes});
  ValueId atoms = b.input({nodes, types});
  for (std::int64_t i = 0; i < spec.whole("atom_flows"); ++i) {
    auto in_flow = b.scope("atom" + std::to_string(i));
    atoms = atom_flow(b, atoms, bonds, spec);
  }
  const std::int64_t side = nodes / fold;
  ValueId x = b.transpose("squeeze", b.elementwise("noise", {bonds}, "add", 1, Keeps::nothing),
                          {kinds * fold * fold, side, side});
  for (std::int64_t i = 0; i < spec.whole("bond_flows"); ++i) {
    auto in_flow = b.scope("bond" + std::to_string(i));
    x = bond_flow(b, x, spec.whole("bond_hidden"));
  }
  x = b.transpose("unsqueeze", x, {kinds, nodes, nodes});
  return network_model(spec, b.finish({atoms, x}), WorkUnit::sample, {});
}

}  // namespace trigon
