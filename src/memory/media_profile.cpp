// What a server runs through a vision tower at start, so that requests with images find memory.
//
// vLLM (V1, since 0.8): vllm/v1/worker/gpu_model_runner.py profile_run takes the kind of item with
// most tokens, as many as the encoder's budget allows, which is the step's token budget or one such
// item (vllm/v1/core/encoder_cache_manager.py), and keeps the outputs while the language model runs
// its own profile. V0: vllm/worker/model_runner.py profile_run makes prompts with their limits of
// images and films, no more than the token budget divided by the tokens of one.

#include <algorithm>
#include <cmath>

#include "memory/formulas.hpp"
#include "memory/memory_model.hpp"

namespace trigon {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

}  // namespace

struct MemoryModel::MediaRun {
  double items = 0, patches = 0, tokens = 0;  // `patches` and `tokens` of one item
  bool kept = false;                          // the outputs stay
};

// Tokens of a film follow vllm/model_executor/models/qwen2_vl.py: as many frames as the context
// holds, up to the engine's bound, each pair as large as the largest image.
MemoryModel::MediaRun MemoryModel::media_run(const Load& load, double budget) const {
  const MediaInput& m = *tower_->media;
  const double image = d(m.tokens);
  const double most_images = d(engine_.media_images), most_films = d(engine_.media_films);
  MediaRun run;
  double film_patches = 0;
  if (m.frames_of_patch > 0 && most_films >= 0) {
    const double films = std::max(1.0, most_films), per = d(m.frames_of_patch);
    const double images = most_images < 0 ? 0 : std::max(1.0, most_images);
    const double room = load.context - (engine_.media_takes_images ? images * image : 0);
    const double frames =
        std::min(std::floor(std::max(0.0, room) / image) * per / films, d(engine_.media_frames));
    film_patches = std::max(1.0, std::ceil(frames / per));  // in images
  }
  const bool film = film_patches > 1 || (most_images < 0 && film_patches > 0);
  if (!film && most_images < 0) return run;
  run.patches = d(m.patches) * (film ? film_patches : 1);
  run.tokens = image * (film ? film_patches : 1);
  const double limit = film ? most_films : most_images;
  const double sequences = std::max(1.0, d(engine_.max_sequences));
  if (engine_.media_profile == MediaProfile::prompts) {
    const double prompt =
        std::max(0.0, most_images) * image +
        (most_films > 0 && m.frames_of_patch > 0 ? most_films : 0) * film_patches * image;
    const double prompts = std::clamp(std::floor(budget / std::max(prompt, image)), 1.0, sequences);
    run.items = prompts * std::max(1.0, limit);
    return run;
  }
  const double fitting = std::max(1.0, std::floor(load.context / run.tokens));
  const double of_prompt = limit > 0 ? std::min(limit, fitting) : fitting;
  run.items = std::max(
      1.0, std::min(std::floor(std::max(budget, run.tokens) / run.tokens), sequences * of_prompt));
  run.kept = true;
  return run;
}

// Beyond `others`, the activations and logits of the language model.
template <class Recorder>
double MemoryModel::media_bytes(const Plan& plan, const Load& load, double budget, double others,
                                Recorder& recorder) const {
  if (engine_.media_profile == MediaProfile::none) return 0;
  const MediaRun run = media_run(load, budget);
  if (run.items <= 0) return 0;
  ActivationRules rules;
  rules.autograd = engine_.autograd;
  rules.flash_attention = engine_.flash_attention;
  rules.tensor = std::max(1, plan.tensor);
  const double element = activation_element(plan);
  double layer = 0;
  for (const LayerRun& r : tower_->runs)
    layer = std::max(layer, forward_peak(r.layer, tower_->hidden, rules).at(run.patches));
  layer *= element / 2;
  const MediaInput& m = *tower_->media;
  const double encoder = run.items * run.patches * (layer + d(m.patch_elements) * element);
  const double kept = run.kept ? run.items * run.tokens * d(m.token_width) * element : 0;
  recorder.step([&] {
    return DerivationStep{&memory_formula::encoder_run,
                          encoder,
                          "B",
                          "start of the server",
                          {{"items", run.items, "", engine_.fact_id("media_profile")},
                           {"patches", run.patches, ""},
                           {"layer_peak", layer, "B"},
                           {"input", d(m.patch_elements), ""},
                           {"element", element, "B"}}};
  });
  recorder.step([&] {
    return DerivationStep{&memory_formula::encoder_cache,
                          kept,
                          "B",
                          "start of the server",
                          {{"items", run.kept ? run.items : 0, ""},
                           {"tokens", run.tokens, "tokens"},
                           {"width", d(m.token_width), ""},
                           {"element", element, "B"}}};
  });
  return std::max(kept, encoder - others);
}

template double MemoryModel::media_bytes(const Plan&, const Load&, double, double, NoRecord&) const;
template double MemoryModel::media_bytes(const Plan&, const Load&, double, double, Record&) const;

// The share of its fraction that SGLang keeps when a tower is there: 0.95, and a tenth less for
// each doubling of layers x width^2 over those of ViT-L/14 (server_args.py,
// adjust_mem_fraction_for_vlm).
double MemoryModel::media_share() const {
  if (!engine_.media_reserve || !tower_) return 1;
  const double size = d(tower_->layers()) * d(tower_->hidden) * d(tower_->hidden);
  return 0.95 * std::clamp(1 - 0.1 * (size / (24.0 * 1024 * 1024) - 1), 0.8, 1.05);
}

}  // namespace trigon
