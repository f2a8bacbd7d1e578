// Transformer-XL: Dai et al. 2019, arXiv:1901.02860. A segment of tokens attends to itself and to
// the kept states of the segment before, with positions relative to the query.
//
// The adaptive softmax (Grave et al. 2016, arXiv:1609.04309) scores `cutoffs`' first words and one
// word a cluster for every token, and a cluster's words for the tokens inside it; Francis and
// Kucera 1982 find 97.8 % of running text in the 15,851 most frequent lemmas.

#include <algorithm>
#include <cmath>
#include <string>

#include "network/builder.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

struct Shape {
  std::int64_t heads, head, inner;
};
// Of queries to contents and to positions, one pair for all layers.
struct Biases {
  WeightId content, position;
};

ValueId layer(NetworkBuilder& b, ValueId x, const Shape& s, std::int64_t memory,
              const Biases& biases) {
  const std::int64_t d = b.width(x), n = b.tokens(x), keys = n + memory, h = s.heads, e = s.head;
  const ValueId both = b.concatenate("with_memory", {b.input({memory, d}), x}, 0);
  const ValueId qkv = b.linear("qkv_net", both, 3 * h * e, false);
  // Positions are projected once for all items of a batch; an item counts one of them.
  b.linear("r_net", b.input({1, d}), h * e, false);
  const ValueId q =
      b.transpose("q", b.slice("q_part", b.slice("own", qkv, 0, n), 1, h * e), {h, n, e});
  const ValueId k = b.transpose("k", b.slice("k_part", qkv, 1, h * e), {h, keys, e});
  const ValueId v = b.transpose("v", b.slice("v_part", qkv, 1, h * e), {h, keys, e});
  auto biased = [&](const char* name, WeightId w) {
    return b.node(name, Elementwise{"add", 1, Keeps::nothing}, {q}, {w}, {h, n, e});
  };
  const ValueId content = b.product("content", biased("q_content", biases.content), k, true);
  const ValueId r = b.input({h, keys, e});
  ValueId place = b.product("position", biased("q_position", biases.position), r, true);
  place = b.copy("relative_shift", {place}, {h, n, keys});
  ValueId scores =
      b.elementwise("add_and_scale", {content, place}, "add_and_scale", 2, Keeps::nothing);
  scores = b.elementwise("mask", {scores}, "mask", 1, Keeps::mask);
  scores = b.dropout("drop_attention", b.softmax("softmax", scores));
  const ValueId a = b.transpose("rows", b.product("values", scores, v), {n, h * e});
  x = b.layer_norm("attention_norm",
                   b.add("residual", x, b.dropout("drop", b.linear("o_net", a, d, false))));
  ValueId y = b.activation("relu", b.linear("ff1", x, s.inner), Activation::relu);
  y = b.dropout("drop", b.linear("ff2", b.dropout("drop", y), d));
  return b.layer_norm("ff_norm", b.add("residual", x, y));
}

}  // namespace

Model build_transformer_xl(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const std::int64_t n = spec.tokens(), d = spec.whole("width");
  const std::int64_t vocabulary = spec.whole("vocabulary"), ratio = spec.whole("cluster_ratio", 1);
  const Shape s{spec.whole("heads"), 64, spec.whole("inner")};
  std::vector<std::int64_t> ends;
  if (spec.has("cutoffs")) ends = spec.wholes("cutoffs");
  ends.push_back(vocabulary);
  // One table a cluster, each narrower than the one before by `ratio` and projected to the width.
  struct Cluster {
    std::int64_t words, columns;
    WeightId table, projection;
  };
  std::vector<Cluster> clusters;
  std::vector<WeightId> tables;
  std::int64_t begin = 0, columns = d;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::string c = std::to_string(i);
    Cluster k{std::max<std::int64_t>(1, ends[i] - begin), columns, 0, 0};
    tables.push_back(k.table = b.weight("emb" + c, {k.words, columns}));
    if (ratio > 1) k.projection = b.weight("emb_proj" + c, {columns, d});
    clusters.push_back(k);
    begin = ends[i];
    columns = std::max<std::int64_t>(1, columns / ratio);
  }
  ValueId x = b.node("embedding", TableLookup{n}, {b.input({n}, Format::i64)}, tables, {n, d});
  if (ratio > 1) x = b.node("emb_proj", Projection{}, {x}, {clusters[0].projection}, {n, d});
  x = b.dropout("drop", x);
  const Biases biases{b.weight("r_w_bias", {s.heads, s.head}),
                      b.weight("r_r_bias", {s.heads, s.head})};
  for (std::int64_t i = 0; i < spec.whole("layers"); ++i) {
    auto in_layer = b.scope(std::to_string(i));
    x = layer(b, x, s, spec.whole("memory"), biases);
  }
  x = b.dropout("drop", x);
  const auto tail = std::clamp<std::int64_t>(
      std::llround(0.022 * static_cast<double>(n) / static_cast<double>(ends.size())), 1, n);
  std::vector<ValueId> outputs;
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    auto in_cluster = b.scope("cluster" + std::to_string(i));
    const Cluster& k = clusters[i];
    ValueId rows = i == 0 ? x : b.slice("rows", x, 0, tail);
    if (ratio > 1) {
      // The first cluster has a projection of its own, the others use the embedding's.
      const WeightId w = i == 0 ? b.weight("out_proj", {d, d}) : k.projection;
      rows = b.node("projected", Projection{}, {rows}, {w}, {b.tokens(rows), k.columns});
    }
    // Tied to the embedding: its rows are read, nothing is stored again.
    ValueId y = b.node("logits", Projection{}, {rows}, {k.table, b.weight("bias", {k.words})},
                       {b.tokens(rows), k.words});
    if (i == 0 && clusters.size() > 1)
      y = b.concatenate(
          "with_clusters",
          {y, b.linear("cluster", rows, static_cast<std::int64_t>(clusters.size()) - 1)}, 1);
    outputs.push_back(b.softmax("log_softmax", y));
  }
  return network_model(spec, b.finish(outputs), WorkUnit::sequence, {n});
}

}  // namespace trigon
