#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "network/catalog.hpp"

namespace trigon {
namespace {

const NetworkCatalog& networks() {
  static const FactStore store = *FactStore::embedded();
  static const NetworkCatalog catalog = *NetworkCatalog::from(store);
  return catalog;
}

Graph graph_of(const std::string& name, std::int64_t image = 0) {
  ItemOptions item;
  if (image > 0) item.size = {image};
  auto m = networks().find(name, item);
  EXPECT_TRUE(m) << name;
  return m ? std::get<Graph>(m->components.front().body) : Graph{};
}

// As the counter of timm's benchmarks (fvcore) does: beside the products two for each element that
// batch statistics of training normalise, five for each that its own statistics do. Networks with
// weight standardisation normalise their kernels too.
double as_timm_counts(const Graph& g, bool standardised) {
  double sum = multiply_accumulates(g);
  for (const GraphNode& n : g.nodes) {
    if (const auto* norm = std::get_if<Normalization>(&n.operation))
      sum += (norm->kind == Statistics::batch ? 2 : 5) *
             static_cast<double>(elements(g.values[n.outputs.front()].shape));
    if (standardised && std::holds_alternative<Convolution>(n.operation))
      sum += 5 * static_cast<double>(elements(g.weights[n.weights.front()].shape));
  }
  return sum;
}

// What timm's benchmarks print of these families. 21,843 classes in place of 1,000 make one row of
// ViT-Huge larger.
TEST(VisionTransformers, HaveTheParametersAndTheWorkThatTimmPrints) {
  std::ifstream facts(TRIGON_SOURCE_DIR "/tests/facts/timm_networks.csv");
  ASSERT_TRUE(facts);
  std::string line;
  std::getline(facts, line);
  int compared = 0;
  while (std::getline(facts, line)) {
    std::istringstream cells(line);
    std::string name, image, gmacs, activations, millions;
    std::getline(cells, name, ',');
    std::getline(cells, image, ',');
    std::getline(cells, gmacs, ',');
    std::getline(cells, activations, ',');
    std::getline(cells, millions, ',');
    const NetworkCatalog::Entry* entry = networks().entry(name);
    if (!entry) continue;
    const std::string builder = *entry->family->text("builder");
    if (builder != "vit" && builder != "swin" && builder != "maxvit") continue;
    const Graph g = graph_of(name, std::stoll(image));
    if (name != "vit_huge_patch14_224" || millions == "632.05") {
      EXPECT_NEAR(static_cast<double>(count_parameters(g)) / 1e6 / std::stod(millions), 1, 0.001)
          << name << " " << millions;
    }
    const Fact* stem = find_fact(entry->variant->facts, "stem");
    const bool standardised = stem && std::get<std::string>(stem->value) == "resnetv2";
    if (!gmacs.empty()) {
      EXPECT_NEAR(as_timm_counts(g, standardised) / 1e9 / std::stod(gmacs), 1, 0.01) << name;
    }
    ++compared;
  }
  EXPECT_GT(compared, 60);
}

// MaxViT's TensorFlow weights have their biases picked by products with ones and zeros, in two
// steps of w positions each: rows and then columns of a table of 2w - 1 by 2w - 1, once for a
// batch.
double bias_lookups(const Graph& g) {
  double sum = 0;
  for (const GraphNode& n : g.nodes)
    if (const auto* a = std::get_if<AttentionCore>(&n.operation)) {
      const double positions = static_cast<double>(a->queries),
                   table = 2 * std::sqrt(positions) - 1;
      sum += static_cast<double>(a->heads) * positions * table * (table + positions);
    }
  return sum;
}

struct Published {
  const char* name;
  std::int64_t image;
  double gmacs, millions;
};

// Of relatives, as timm prints them: github:huggingface/pytorch-image-models
// results/benchmark-infer-amp-nchw-pt113-cu117-rtx3090.csv at 89b0452, columns infer_gmacs and
// param_count.
constexpr Published kRelatives[] = {
    {"swin_small_patch4_window7_224", 224, 8.77, 49.61},
    {"swin_base_patch4_window12_384", 384, 47.19, 87.9},
    {"swin_large_patch4_window7_224", 224, 34.53, 196.53},
    {"swin_large_patch4_window12_384", 384, 104.08, 196.74},
    {"swin_s3_tiny_224", 224, 4.64, 28.33},
    {"swin_s3_small_224", 224, 9.43, 49.74},
    {"swin_s3_base_224", 224, 13.69, 71.13},
    {"swinv2_tiny_window8_256", 256, 5.96, 28.35},
    {"swinv2_tiny_window16_256", 256, 6.68, 28.35},
    {"swinv2_small_window8_256", 256, 11.58, 49.73},
    {"swinv2_small_window16_256", 256, 12.82, 49.73},
    {"swinv2_base_window8_256", 256, 20.37, 87.92},
    {"swinv2_base_window16_256", 256, 22.02, 87.92},
    {"swinv2_base_window12to24_192to384_22kft1k", 384, 55.25, 87.92},
    {"swinv2_large_window12to16_192to256_22kft1k", 256, 47.81, 196.74},
    {"swinv2_large_window12to24_192to384_22kft1k", 384, 116.15, 196.74},
    {"maxvit_tiny_tf_384", 384, 17.53, 30.98},
    {"maxvit_tiny_tf_512", 512, 33.49, 31.05},
    {"maxvit_small_tf_224", 224, 11.66, 68.93},
    {"maxvit_base_tf_224", 224, 24.04, 119.47},
    {"maxvit_base_tf_384", 384, 73.8, 119.65},
    {"maxvit_large_tf_224", 224, 43.68, 211.79},
    {"maxvit_large_tf_512", 512, 244.75, 212.33},
    {"maxvit_xlarge_tf_224", 224, 97.49, 474.95},
    {"maxvit_xlarge_tf_512", 512, 534.14, 475.77},
    {"deit3_small_patch16_384", 384, 15.52, 22.21},
    {"deit3_medium_patch16_224", 224, 8.0, 38.85},
    {"deit3_base_patch16_224", 224, 17.58, 86.59},
    {"deit3_large_patch16_384", 384, 191.21, 304.76},
    {"deit3_huge_patch14_224", 224, 167.4, 632.13},
    {"beitv2_large_patch16_224", 224, 61.6, 304.43},
    {"vit_medium_patch16_gap_256", 256, 10.59, 38.86},
    {"vit_medium_patch16_gap_384", 384, 26.08, 39.03},
    {"vit_base_patch16_gap_224", 224, 17.49, 86.57},
    {"vit_base_patch32_clip_448", 448, 17.93, 88.34},
    {"vit_large_patch14_clip_336", 336, 191.11, 304.53},
    {"vit_huge_patch14_clip_336", 336, 390.97, 632.46},
    {"vit_gigantic_patch14_224", 224, 483.95, 1844.44},
    {"vit_gigantic_patch14_clip_224", 224, 483.96, 1844.91},
    {"eva_large_patch14_196", 196, 61.57, 304.14},
    {"eva_large_patch14_336", 336, 191.1, 304.53},
    {"eva_giant_patch14_224", 224, 267.18, 1012.56},
    {"eva_giant_patch14_560", 560, 1906.76, 1014.45},
    {"coatnet_0_224", 224, 4.58, 25.04},
    {"coatnet_1_224", 224, 8.7, 42.23},
    {"coatnet_2_224", 224, 16.5, 74.68},
    {"coatnet_3_224", 224, 36.56, 166.97},
    {"coatnet_4_224", 224, 62.48, 275.43},
    {"coatnet_5_224", 224, 145.49, 687.47},
    // benchmark-infer-amp-nchw-pt240-cu124-rtx3090.csv at 7479d45
    {"eva02_base_patch14_224", 224, 23.22, 85.76},
    {"eva02_large_patch14_224", 224, 81.15, 303.27},
    {"eva02_large_patch14_clip_224", 224, 81.18, 304.11},
    {"vit_small_patch14_dinov2", 518, 46.76, 22.06},
    {"vit_small_patch14_reg4_dinov2", 518, 46.95, 22.06},
    {"vit_base_patch16_siglip_384", 384, 56.12, 93.18},
    {"vit_base_patch16_siglip_512", 512, 108.22, 93.52},
    {"vit_large_patch16_siglip_256", 256, 81.34, 315.96},
    {"vit_so400m_patch14_siglip_224", 224, 110.26, 427.68},
};

TEST(VisionTransformers, AgreeWithTheirRelatives) {
  for (const Published& p : kRelatives) {
    const Graph g = graph_of(p.name, p.image);
    EXPECT_NEAR(static_cast<double>(count_parameters(g)) / 1e6 / p.millions, 1, 0.001) << p.name;
    const double picked = std::string_view(p.name).substr(0, 6) == "maxvit" ? bias_lookups(g) : 0;
    EXPECT_NEAR((as_timm_counts(g, false) + picked) / 1e9 / p.gmacs, 1, 0.01) << p.name;
  }
}

// The model card of MIT/ast-finetuned-audioset-10-10-0.4593 says 86.6 million parameters. Frames of
// 10 ms and patches every ten of them (arXiv:2104.01778, 2.1): 12 x 101 and two special tokens.
TEST(VisionTransformers, SpectrogramsAreImages) {
  auto m = networks().find("ast-finetuned-audioset-10-10-0.4593");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->item->unit, WorkUnit::utterance);
  EXPECT_DOUBLE_EQ(m->item->audio_seconds, 10.24);
  const Graph& g = std::get<Graph>(m->components.front().body);
  EXPECT_NEAR(static_cast<double>(count_parameters(g)), 86.6e6, 0.05e6);
  bool found = false;
  for (const GraphNode& n : g.nodes)
    if (const auto* a = std::get_if<AttentionCore>(&n.operation)) {
      EXPECT_EQ(a->queries, 12 * 101 + 2);
      found = true;
    }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace trigon
