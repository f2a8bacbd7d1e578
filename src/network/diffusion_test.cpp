#include <gtest/gtest.h>

#include "network/catalog.hpp"

namespace trigon {
namespace {

const NetworkCatalog& networks() {
  static const FactStore store = *FactStore::embedded();
  static const NetworkCatalog catalog = *NetworkCatalog::from(store);
  return catalog;
}

Model model_of(std::string_view name, const ItemOptions& item = {}) {
  auto m = networks().find(name, item);
  EXPECT_TRUE(m) << name;
  return m ? *m : Model{};
}

const Component& component(const Model& m, std::string_view name) {
  for (const Component& c : m.components)
    if (c.name == name) return c;
  ADD_FAILURE() << m.id << " has no " << name;
  return m.components.front();
}

const Graph& graph_of(const Model& m, std::string_view name) {
  return std::get<Graph>(component(m, name).body);
}

struct Published {
  const char* model;
  const char* component;
  std::int64_t parameters;
};

// Elements of the tensors in the published weights.
constexpr Published kParameters[] = {
    {"SD-1.5", "clip_l", 123060480},
    {"SD-1.5", "denoiser", 859520964},
    {"SD-2.1", "clip_h", 340387840},
    {"SD-2.1", "denoiser", 865910724},
    {"stable-diffusion-v2-512", "denoiser", 865910724},
    {"SDXL", "clip_g", 694659840},
    {"SDXL", "denoiser", 2567463684},
    {"SD3-medium", "clip_l_projected", 123650304},
    {"SD3-medium", "t5_xxl", 4762310656},
    // Beside 192 x 192 positions that are not trained.
    {"SD3-medium", "denoiser", 2084951104 - 192 * 192 * 1536},
    {"SD3.5-large", "denoiser", 8056627520},
    {"FLUX.1-dev", "denoiser", 11901408320},
    {"FLUX.1-schnell", "denoiser", 11891178560},
    // SDXL's with a wider condition and a projection of the text.
    {"Kolors", "denoiser", 2567463684 + (5632 - 2816) * 1280 + 4096 * 2048 + 2048},
    // THUDM/chatglm3-6b has 6,243,584,000 with its head.
    {"Kolors", "chatglm3", 6243584000 - 65024 * 4096},
    // Peebles and Xie's 675,129,632 hold 256 fixed positions.
    {"DiT-XL/2", "denoiser", 675129632 - 256 * 1152},
};

TEST(Diffusion, ComponentsHaveTheParametersOfThePublishedWeights) {
  for (const Published& p : kParameters)
    EXPECT_EQ(count_parameters(graph_of(model_of(p.model), p.component)), p.parameters)
        << p.model << " " << p.component;
  // The autoencoder as one file.
  for (const auto& [name, both] : {std::pair{"SD-1.5", 83653863}, {"FLUX.1-dev", 83819683}}) {
    const Model m = model_of(name);
    EXPECT_EQ(count_parameters(graph_of(m, "decoder")) + count_parameters(graph_of(m, "encoder")),
              both);
  }
}

// arXiv:2401.01808, table 1: a transformer of 603 million parameters, a VQ-GAN of 146, a text
// encoder of 123.
TEST(Diffusion, AmusedHasThePublishedParts) {
  const Model m = model_of("amused-256");
  auto millions = [&](std::string_view name) {
    return static_cast<double>(count_parameters(graph_of(m, name))) / 1e6;
  };
  EXPECT_NEAR(millions("denoiser"), 603, 2);
  EXPECT_NEAR(millions("decoder") + millions("encoder"), 146, 2);
  EXPECT_NEAR(millions("clip_l"), 123, 2);
  // At 512 pixels the transformer sees as many tokens, between two convolutions of side two.
  EXPECT_EQ(count_parameters(graph_of(model_of("amused-512"), "denoiser")) -
                count_parameters(graph_of(m, "denoiser")),
            2 * (768 * 768 * 4 + 768));
}

double work_outside_attention(const Graph& g) {
  double sum = 0;
  for (const GraphNode& n : g.nodes)
    if (!std::holds_alternative<AttentionCore>(n.operation)) sum += multiply_accumulates(g, n);
  return sum;
}

// Modules only, as github:Nota-NetsPresso/BK-SDM issue 53 prints for one image of 512 pixels; the
// counter (thop) does not see the products inside attention.
TEST(Diffusion, StableDiffusionHasItsPublishedWork) {
  const Model m = model_of("SD-1.4");
  EXPECT_NEAR(work_outside_attention(graph_of(m, "clip_l")) / 6545882112, 1, 0.001);
  EXPECT_NEAR(work_outside_attention(graph_of(m, "denoiser")) / 338749194240, 1, 0.001);
  EXPECT_NEAR(work_outside_attention(graph_of(m, "decoder")) / 1240079532032, 1, 0.001);
  // Attention over 64 x 64 positions and 77 tokens adds a sixth.
  EXPECT_NEAR(multiply_accumulates(graph_of(m, "denoiser")), 401.6e9, 0.1e9);
}

// Peebles and Xie 2022, arXiv:2212.09748, tables 1 and 3: 118.64 and 524.60 "Gflops", which are
// multiply-accumulates.
TEST(Diffusion, DitHasItsPublishedWork) {
  EXPECT_NEAR(multiply_accumulates(graph_of(model_of("DiT-XL/2"), "denoiser")) / 118.64e9, 1,
              0.001);
  EXPECT_NEAR(multiply_accumulates(graph_of(model_of("DiT-XL/2-512"), "denoiser")) / 524.60e9, 1,
              0.001);
}

TEST(Diffusion, GuidanceEvaluatesTwoRowsAtEachStep) {
  const Model m = model_of("SDXL");
  EXPECT_EQ(m.item->steps, 50);
  EXPECT_EQ(component(m, "denoiser").rows, 2);
  EXPECT_EQ(component(m, "denoiser").runs, Runs::each_step);
  EXPECT_EQ(component(m, "clip_l").rows, 2);
  EXPECT_EQ(component(m, "clip_l").runs, Runs::once);
  EXPECT_EQ(component(m, "decoder").rows, 1);
  ItemOptions item;
  item.steps = 8;
  item.guidance = false;
  const Model turbo = model_of("SDXL", item);
  EXPECT_EQ(turbo.item->steps, 8);
  EXPECT_EQ(component(turbo, "denoiser").rows, 1);
  // The guidance of FLUX.1 is an input of its network.
  EXPECT_EQ(component(model_of("FLUX.1-dev"), "denoiser").rows, 1);
  // MLPerf inference: github:mlcommons/inference text_to_image/backend_pytorch.py.
  EXPECT_EQ(model_of("stable-diffusion-xl").item->steps, 20);
}

TEST(Diffusion, TrainingUpdatesTheDenoiserAlone) {
  using Training = Component::Training;
  const Model m = model_of("SD-2.1");
  EXPECT_EQ(component(m, "denoiser").training, Training::trained);
  EXPECT_EQ(component(m, "clip_h").training, Training::frozen);
  EXPECT_EQ(component(m, "encoder").training, Training::frozen);
  EXPECT_EQ(component(m, "decoder").training, Training::absent);
  EXPECT_FALSE(component(m, "encoder").serves);
  // MLPerf training reads latents, later texts too, that were made beforehand.
  EXPECT_EQ(component(model_of("flux1"), "t5_xxl").training, Training::absent);
  EXPECT_EQ(component(model_of("stable-diffusion-v2-512"), "encoder").training, Training::absent);
}

// A latent has an eighth of the image's sides: work outside attention grows with its area.
// Rank-4 adapters on every attention projection, as diffusers trains them, by hand: 56 c + 8 w of a
// block of width c that reads texts of width w. 3.19 MB in 32 bit for SD 1.5, 23.2 for SDXL, as
// published files of rank 4 have.
TEST(Diffusion, AttentionProjectionsAreThoseOfAdapters) {
  auto adapters = [](const char* name) {
    const Model m = model_of(name);
    const Graph& g = graph_of(m, "denoiser");
    const std::vector<AttentionPart> parts = attention_parts(g);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (parts[i] != AttentionPart::none)
        sum += 4 * (g.values[g.nodes[i].inputs.front()].shape.back() +
                    g.values[g.nodes[i].outputs.front()].shape.back());
    return sum;
  };
  EXPECT_EQ(adapters("sd-1.5"), 56 * (5 * 320 + 5 * 640 + 6 * 1280) + 16 * 8 * 768);
  EXPECT_EQ(adapters("sdxl"), 56 * (10 * 640 + 60 * 1280) + 70 * 8 * 2048);
  // Both streams' q, k, v and outputs in 19 joint blocks, q, k and v in 38 single ones.
  EXPECT_EQ(adapters("flux.1-dev"), 4 * 2 * 3072 * (19 * 8 + 38 * 3));
}

TEST(Diffusion, WorkGrowsWithTheImage) {
  ItemOptions small, large;
  small.size = {512};
  large.size = {512, 1024};
  const double one = work_outside_attention(graph_of(model_of("SD-1.5", small), "denoiser"));
  const double two = work_outside_attention(graph_of(model_of("SD-1.5", large), "denoiser"));
  EXPECT_NEAR(two / one, 2, 0.02);
}

// Elements of the published weights; the scale of the logits is one more.
TEST(Clip, TowersHaveTheParametersOfThePublishedWeights) {
  EXPECT_EQ(count_parameters(model_of("openai/clip-vit-base-patch32")).total, 151277313 - 1);
  EXPECT_EQ(count_parameters(model_of("openai/clip-vit-base-patch16")).total, 149620737 - 1);
  EXPECT_EQ(count_parameters(model_of("openai/clip-vit-large-patch14")).total, 427616513 - 1);
  EXPECT_EQ(count_parameters(model_of("openai/clip-vit-large-patch14-336")).total, 427944193 - 1);
  EXPECT_EQ(count_parameters(model_of("CLIP-ViT-H/14")).total, 986109441 - 1);
  // Image tower of ViT-B/32 (87,456,000), RoBERTa (124,645,632), two projections of 768 x 512.
  EXPECT_EQ(count_parameters(model_of("clip-roberta")).total, 87456000 + 124645632 + 2 * 768 * 512);
}

// Whatever size a sheet allows can be built.
TEST(Networks, EveryAllowedImageBuilds) {
  for (const NetworkCatalog::Entry& e : networks().all()) {
    const std::string builder = *e.family->text("builder");
    if (builder != "vit" && builder != "swin" && builder != "maxvit" && builder != "clip" &&
        builder != "diffusion")
      continue;
    ItemOptions none;
    const NetworkSpec spec(*e.family, *e.variant, none);
    const std::int64_t least = spec.whole("image_least"), most = spec.whole("image_most");
    const std::int64_t multiple = spec.whole("image_multiple", 1);
    const std::int64_t first = (least + multiple - 1) / multiple * multiple;
    for (std::int64_t side :
         {first, first + multiple, first + 5 * multiple, first + 6 * multiple}) {
      ItemOptions item;
      item.size = {side, std::min(most, side + 3 * multiple) / multiple * multiple};
      EXPECT_TRUE(build_network(e, item)) << e.id << " " << side;
    }
  }
}

}  // namespace
}  // namespace trigon
