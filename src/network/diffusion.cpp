// Latent diffusion as a model of several components: Rombach et al. 2021 (arXiv:2112.10752). Text
// encoders and the decoder run once for an image, the denoiser at each step. Classifier-free
// guidance (Ho and Salimans 2022, arXiv:2207.12598) evaluates each step with and without the text:
// two rows of a batch for one image.

#include "network/autoencoder.hpp"
#include "network/diffusion_transformer.hpp"
#include "network/families.hpp"
#include "network/text_encoder.hpp"
#include "network/unet.hpp"

namespace trigon {
namespace {

// Tokens that the denoiser reads: encoders that read the same text side by side give one sequence,
// one after another they give two.
std::int64_t context_tokens(const NetworkSpec& spec) {
  return spec.has("context_tokens") ? spec.whole("context_tokens") : 0;
}

Graph denoiser(const NetworkSpec& spec) {
  const std::string kind = spec.text("denoiser");
  const std::int64_t tokens = context_tokens(spec);
  if (kind == "dit") return dit_graph(spec);
  if (kind == "pixart") return pixart_graph(spec, tokens);
  if (kind == "mmdit") return mmdit_graph(spec, tokens);
  if (kind == "uvit") return uvit_graph(spec, tokens);
  if (kind == "flux") return flux_graph(spec, tokens);
  return unet_graph(spec, tokens);
}

}  // namespace

Model build_diffusion(const NetworkSpec& spec) {
  using Training = Component::Training;
  Model m;
  m.id = spec.id();
  m.architecture = spec.text("denoiser");
  m.source = spec.source();
  m.date = spec.family().date;
  m.weight_format = Format::f32;
  m.item = Item{WorkUnit::image, {spec.height(), spec.image_width()}, spec.steps()};
  const std::int64_t rows = spec.guidance() ? 2 : 1;
  auto add = [&](std::string name, ComponentRole role, Graph graph, Runs runs, std::int64_t n,
                 bool serves, Training training) {
    m.components.push_back({std::move(name), role, std::move(graph), runs, n, serves, training});
  };
  // Some train on latents and texts that were encoded beforehand.
  const Training text = spec.flag("texts_given") ? Training::absent : Training::frozen;
  const Training image = spec.flag("latents_given") ? Training::absent : Training::frozen;
  if (spec.has("text_encoders")) {
    for (const std::string& name : spec.texts("text_encoders"))
      add(name, ComponentRole::text_encoder,
          text_encoder_graph(spec, name, spec.whole("tokens." + name, 0)), Runs::once, rows, true,
          text);
  }
  add("denoiser", ComponentRole::denoiser, denoiser(spec), Runs::each_step, rows, true,
      Training::trained);
  add("decoder", ComponentRole::autoencoder, autoencoder_decoder_graph(spec), Runs::once, 1, true,
      Training::absent);
  add("encoder", ComponentRole::autoencoder, autoencoder_encoder_graph(spec), Runs::once, 1, false,
      image);
  return m;
}

}  // namespace trigon
