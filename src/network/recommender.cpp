// Recommenders over tables of users, items and categories: NeuMF (He et al. 2017,
// arXiv:1708.05031), DLRM (Naumov et al. 2019, arXiv:1906.00091) with dot or cross interactions
// (Wang et al. 2020, arXiv:2008.13535), and wide and deep (Cheng et al. 2016, arXiv:1606.07792).
//
// A sample reads the rows of its categories and nothing else of the tables. Where tables are
// divided over cards, a card reads its tables' rows for the samples of all cards, so its work is
// that of its own samples; the exchange of rows between cards is no part of the graph.

#include <string>

#include "network/builder.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

ValueId mlp(NetworkBuilder& b, const std::string& name, ValueId x,
            const std::vector<std::int64_t>& widths, bool last_linear = false) {
  auto in_mlp = b.scope(name);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    x = b.linear(std::to_string(i), x, widths[i]);
    if (!last_linear || i + 1 < widths.size()) x = b.activation("relu", x, Activation::relu);
  }
  return x;
}

Model sample_model(const NetworkSpec& spec, Graph graph) {
  return network_model(spec, std::move(graph), WorkUnit::sample, {});
}

}  // namespace

Model build_ncf(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const std::int64_t users = spec.whole("users"), items = spec.whole("items");
  const std::int64_t factors = spec.whole("factors");
  auto layers = spec.wholes("layers");
  const std::int64_t half = layers.front() / 2;
  const ValueId user = b.input({1}, Format::i64), item = b.input({1}, Format::i64);
  const ValueId gmf = b.multiply("mf", b.embedding("mf_user_embed", user, users, factors),
                                 b.embedding("mf_item_embed", item, items, factors));
  ValueId x = b.concatenate("mlp_input",
                            {b.embedding("mlp_user_embed", user, users, half),
                             b.embedding("mlp_item_embed", item, items, half)},
                            1);
  for (std::size_t i = 1; i < layers.size(); ++i) {
    x = b.activation("relu", b.linear("mlp" + std::to_string(i), x, layers[i]), Activation::relu);
    x = b.dropout("dropout", x);
  }
  x = b.linear("final", b.concatenate("both", {gmf, x}, 1), 1);
  x = b.activation("sigmoid", x, Activation::sigmoid);
  return sample_model(spec, b.finish({x}));
}

Model build_dlrm(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const auto rows = spec.wholes("table_rows");
  const std::int64_t width = spec.whole("embedding"), numbers = spec.whole("numeric", 13);
  const auto tables = static_cast<std::int64_t>(rows.size());
  std::int64_t reads = tables;
  if (spec.has("rows_of_sample")) {
    reads = 0;
    for (std::int64_t n : spec.wholes("rows_of_sample")) reads += n;
  }
  std::vector<WeightId> weights;
  for (std::size_t i = 0; i < rows.size(); ++i)
    weights.push_back(b.weight("table" + std::to_string(i), {rows[i], width}));
  ValueId e = b.node("embeddings", TableLookup{reads}, {b.input({reads}, Format::i64)}, weights,
                     {reads, width});
  if (reads != tables) e = b.reduce("pool", e, {tables, width});
  auto bottom_widths = spec.wholes("bottom_mlp");
  const ValueId dense = mlp(b, "bottom", b.input({1, numbers}), bottom_widths);
  const ValueId all = b.concatenate("features", {dense, e}, 0);
  const std::int64_t features = tables + 1;
  ValueId x;
  if (spec.text("interaction", "dot") == "dot") {
    const ValueId pairs = b.product("dot", all, all, true);
    const std::int64_t distinct = features * (features - 1) / 2;
    const ValueId lower = b.copy("lower_triangle", {pairs}, {1, distinct});
    // The sum of the width and the pairs is padded to an even number.
    std::vector<ValueId> parts{dense, lower};
    if ((width + distinct) % 2 != 0) parts.push_back(b.input({1, 1}));
    x = b.concatenate("interactions", parts, 1);
  } else {
    const ValueId first = b.reshape("flat", all, {1, features * width});
    x = first;
    for (std::int64_t i = 0; i < spec.whole("cross_layers"); ++i) {
      auto in_layer = b.scope("cross" + std::to_string(i));
      ValueId y = b.linear("v", x, spec.whole("cross_rank"), false);
      y = b.linear("w", y, features * width);
      x = b.elementwise("combine", {first, y, x}, "multiply_add", 2, Keeps::inputs);
    }
  }
  x = mlp(b, "top", x, spec.wholes("top_mlp"), true);
  return sample_model(spec, b.finish({b.activation("sigmoid", x, Activation::sigmoid)}));
}

Model build_wide_deep(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const auto rows = spec.wholes("table_rows"), widths = spec.wholes("table_widths");
  const ValueId numbers = b.input({1, spec.whole("numeric")});
  std::vector<ValueId> deep{numbers}, wide{numbers};
  for (std::size_t i = 0; i < rows.size() && i < widths.size(); ++i) {
    const ValueId id = b.input({1}, Format::i64);
    deep.push_back(b.embedding("deep" + std::to_string(i), id, rows[i], widths[i]));
    wide.push_back(b.embedding("wide" + std::to_string(i), id, rows[i], 1));
  }
  ValueId x = b.concatenate("deep_input", deep, 1);
  for (std::int64_t h : spec.wholes("hidden")) {
    x = b.activation("relu", b.linear("dense" + std::to_string(b.next_node()), x, h),
                     Activation::relu);
    x = b.dropout("dropout", x);
  }
  const ValueId linear = b.linear("linear", b.concatenate("wide_input", wide, 1), 1);
  x = b.add("sum", b.linear("logit", x, 1), linear);
  return sample_model(spec, b.finish({b.activation("sigmoid", x, Activation::sigmoid)}));
}

}  // namespace trigon
