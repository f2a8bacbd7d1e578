// Every named network against counts that others printed for it: the parameters that its sheet
// states, and the parameters and multiply-accumulates in tests/facts/timm_networks.csv.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "network/catalog.hpp"

namespace trigon {
namespace {

const NetworkCatalog& networks() {
  static const FactStore store = *FactStore::embedded();
  static const NetworkCatalog catalog = *NetworkCatalog::from(store);
  return catalog;
}

const Graph& graph_of(const Model& m) { return std::get<Graph>(m.components.front().body); }

// What fvcore, timm's profiler, adds to products: two for each element of a batch normalization in
// inference, five of a layer or group normalization, one of a pooled mean.
double profiled(const Graph& g) {
  double sum = multiply_accumulates(g);
  for (const GraphNode& n : g.nodes) {
    const auto in = static_cast<double>(elements(g.values[n.inputs.front()].shape));
    if (const auto* norm = std::get_if<Normalization>(&n.operation))
      sum += in * (norm->kind == Statistics::batch ? 2 : 5);
    else if (std::holds_alternative<Reduction>(n.operation))
      sum += in;
  }
  return sum;
}

TEST(PublishedCounts, EveryVariantHasTheParametersOfItsSheet) {
  for (const NetworkCatalog::Entry& e : networks().all()) {
    const Fact* stated = find_fact(e.variant->facts, "parameters");
    if (!stated) continue;
    auto m = build_network(e, {});
    ASSERT_TRUE(m) << e.id;
    // Printed in millions with two digits.
    EXPECT_NEAR(static_cast<double>(count_parameters(graph_of(*m))),
                std::get<double>(stated->value), 5100)
        << e.id;
  }
}

struct Published {
  std::string name, gmacs;
  std::int64_t image = 0;
  double parameters = 0;
};

std::vector<Published> published() {
  std::ifstream in(std::string(TRIGON_SOURCE_DIR) + "/tests/facts/timm_networks.csv");
  std::string line;
  std::getline(in, line);
  std::vector<Published> out;
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::string image, activations, parameters;
    Published p;
    std::getline(fields, p.name, ',');
    std::getline(fields, image, ',');
    std::getline(fields, p.gmacs, ',');
    std::getline(fields, activations, ',');
    std::getline(fields, parameters, ',');
    p.image = std::stoll(image);
    p.parameters = std::stod(parameters) * 1e6;
    out.push_back(p);
  }
  return out;
}

const std::set<std::string> kTransformers{"vit", "swin", "maxvit", "clip"};

TEST(PublishedCounts, NetworksOfTimmDoTheWorkItsProfilerPrints) {
  int held = 0;
  for (const Published& p : published()) {
    const NetworkCatalog::Entry* e = networks().entry(p.name);
    // Transformers are held to it by the tests of their own families.
    if (!e || kTransformers.count(*e->family->text("builder"))) continue;
    ItemOptions item;
    item.size = {p.image};
    auto m = build_network(*e, item);
    ASSERT_TRUE(m) << p.name << " at " << p.image;
    const Graph& g = graph_of(*m);
    EXPECT_NEAR(static_cast<double>(count_parameters(g)), p.parameters, 0.01 * p.parameters)
        << p.name;
    if (!p.gmacs.empty()) {
      const double gmacs = std::stod(p.gmacs);
      EXPECT_NEAR(profiled(g) / 1e9, gmacs, 0.01 * gmacs + 0.005) << p.name << " at " << p.image;
      ++held;
    }
  }
  EXPECT_GE(held, 120);
}

// Sides between which a user may ask: the extremes and what divides badly.
TEST(PublishedCounts, EveryVariantBuildsForEverySideItAllows) {
  for (const NetworkCatalog::Entry& e : networks().all()) {
    const NetworkSpec spec(*e.family, *e.variant, {});
    if (!spec.has("image")) continue;
    const std::int64_t step = spec.whole("image_multiple", 1);
    const std::int64_t least = (spec.whole("image_least", 32) + step - 1) / step * step;
    const std::int64_t most = spec.whole("image_most", 4096) / step * step;
    for (std::int64_t i = 0; i < 8 && least + i * step <= most; i = 2 * i + 1)
      for (std::vector<std::int64_t> size : {std::vector<std::int64_t>{least + i * step},
                                             {least, most},
                                             {least + i * step, least}}) {
        ItemOptions item;
        item.size = std::move(size);
        EXPECT_TRUE(build_network(e, item)) << e.id;
      }
  }
}

}  // namespace
}  // namespace trigon
