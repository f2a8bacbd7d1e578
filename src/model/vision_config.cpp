// Sources: the modelling code published with each model (transformers).

#include "model/vision_config.hpp"

#include <algorithm>
#include <array>

#include "model/messages.hpp"

namespace trigon {
namespace {

enum class Projector : std::uint8_t {
  merged_mlp,  // neighbours side by side, then two layers (Qwen-VL)
  mlp,         // two layers from the tower's width (LLaVA)
  single,      // one layer (Gemma 3)
  shuffled,    // pixel shuffle through an adapter of its own, then one layer (Llama 4)
  stacked,     // neighbours side by side, a norm, then two layers (InternVL)
  merged_two   // a merging layer back to the tower's width, then two (Mistral 3)
};

struct TowerRow {
  std::string_view type;  // vision_config.model_type
  bool rms = false, bias = true, gated = false;
  bool patch_bias = false, learned_positions = true, class_token = false;
  bool scaled_layers = false;
  std::int64_t outer_norms = 0;  // of the tower's width, outside the layers
  Projector projector = Projector::mlp;
  bool projector_bias = true;
  // Of the processor published with the checkpoints (preprocessor_config.json): the most pixels of
  // an image, the most tiles that an image is cut into, a thumbnail included.
  std::int64_t most_pixels = 0, most_tiles = 1;
  bool films = false;  // each pair of a film's frames may be as large as an image
};

constexpr std::array kTowers = {
    TowerRow{.type = "qwen2_vl",
             .learned_positions = false,
             .outer_norms = 1,
             .projector = Projector::merged_mlp,
             .most_pixels = 12845056,
             .films = true},
    TowerRow{.type = "qwen2_5_vl",
             .rms = true,
             .gated = true,
             .learned_positions = false,
             .outer_norms = 1,
             .projector = Projector::merged_mlp,
             .most_pixels = 12845056,
             .films = true},
    // A film has 25,165,824 pixels over all its frames, in pairs: fewer tokens than an image.
    TowerRow{.type = "qwen3_vl",
             .patch_bias = true,
             .outer_norms = 1,
             .projector = Projector::merged_mlp,
             .most_pixels = 16777216},
    TowerRow{.type = "siglip_vision_model",
             .patch_bias = true,
             .outer_norms = 1,
             .projector = Projector::single,
             .projector_bias = false},
    TowerRow{.type = "clip_vision_model", .class_token = true, .outer_norms = 2},
    TowerRow{.type = "pixtral",
             .rms = true,
             .bias = false,
             .gated = true,
             .learned_positions = false,
             .outer_norms = 2,
             .projector = Projector::merged_two,
             .projector_bias = false},
    TowerRow{.type = "llama4_vision_model",
             .class_token = true,
             .outer_norms = 2,
             .projector = Projector::shuffled,
             .projector_bias = false,
             .most_tiles = 17},
    // InternViT scales each sub-layer's output by a learned vector; its last norm is in the
    // projector.
    TowerRow{.type = "intern_vit_6b",
             .patch_bias = true,
             .class_token = true,
             .scaled_layers = true,
             .projector = Projector::stacked,
             .most_tiles = 13},
    TowerRow{.type = "glm4v_moe_vision",
             .rms = true,
             .bias = false,
             .gated = true,
             .patch_bias = true,
             .outer_norms = 2,
             .projector = Projector::merged_mlp,
             .projector_bias = false},
};

// Names that one kind of tower goes by.
constexpr std::pair<std::string_view, std::string_view> kSame[] = {
    {"qwen3_vl_moe", "qwen3_vl"},       {"qwen3_5", "qwen3_vl"},
    {"qwen3_5_moe", "qwen3_vl"},        {"qwen3_5_vision", "qwen3_vl"},
    {"qwen3_5_moe_vision", "qwen3_vl"}, {"glm4v_vision", "glm4v_moe_vision"},
    {"glm4v_moe", "glm4v_moe_vision"},
};

const TowerRow* find_tower(std::string_view type) {
  for (const auto& [name, same] : kSame)
    if (name == type) type = same;
  for (const TowerRow& t : kTowers)
    if (t.type == type) return &t;
  return nullptr;
}

std::int64_t capped(std::optional<std::int64_t> v, std::int64_t otherwise) {
  return std::clamp<std::int64_t>(v.value_or(otherwise), 0, 1 << 20);
}

Linear projection(std::int64_t in, std::int64_t out, bool bias) {
  return Linear{in, out, 1, Format::bf16, Split::replicated, bias};
}

void add_projector(const TowerRow& t, ConfigReader& c, std::int64_t text, VisionSpec& v) {
  const std::int64_t merge =
      std::min<std::int64_t>(capped(c.integer({"spatial_merge_size"}), 1), 64);
  const std::int64_t wide = v.hidden * merge * merge;
  const std::int64_t out = capped(c.integer({"out_hidden_size"}), text);
  switch (t.projector) {
    case Projector::merged_mlp: {
      v.projector = {projection(wide, wide, true), projection(wide, out, true)};
      // Deep stacks merge some layers' outputs too, each with a norm of the merged width.
      const Json* deep = c.any({"deepstack_visual_indexes"});
      const std::size_t extra =
          deep && deep->array() ? std::min<std::size_t>(deep->array()->size(), 64) : 0;
      for (std::size_t i = 0; i < extra; ++i) {
        v.projector.push_back(projection(wide, wide, true));
        v.projector.push_back(projection(wide, out, true));
        v.vectors += 2 * wide;
      }
      return;
    }
    case Projector::mlp:
      v.projector = {projection(v.hidden, text, t.projector_bias),
                     projection(text, text, t.projector_bias)};
      return;
    case Projector::single:
      v.projector = {projection(v.hidden, text, t.projector_bias)};
      v.vectors += v.hidden;  // a norm before it, without a bias
      return;
    case Projector::shuffled: {
      const std::int64_t inner = capped(c.integer({"projector_input_dim"}), 4096);
      const std::int64_t outer = capped(c.integer({"projector_output_dim"}), 4096);
      v.projector = {projection(v.ffn, inner, false), projection(inner, outer, false),
                     projection(capped(c.integer({"vision_output_dim"}), outer), text, false)};
      return;
    }
    case Projector::stacked: {
      // pixel_shuffle by a half: four neighbours.
      v.projector = {projection(4 * v.hidden, text, true), projection(text, text, true)};
      v.vectors += 2 * 4 * v.hidden;
      return;
    }
    case Projector::merged_two:
      v.projector = {projection(wide, v.hidden, false),
                     projection(v.hidden, text, t.projector_bias),
                     projection(text, text, t.projector_bias)};
      return;
  }
}

// Tokens of the largest image where it is cut into tiles of the tower's size by a list of grids
// (LLaVA-NeXT, arXiv:2310.03744 and its code): the whole image once more, rows end with a token.
std::int64_t tiled_tokens(ConfigReader& outer, std::int64_t side, std::int64_t in_side,
                          std::int64_t* tiles) {
  const Json* grids = outer.any({"image_grid_pinpoints"});
  if (!grids || !grids->array() || side < 1) return 0;
  std::int64_t most = 0;
  for (const Json& grid : *grids->array()) {
    if (!grid.array() || grid.array()->size() != 2) continue;
    const auto height = (*grid.array())[0].integer(), width = (*grid.array())[1].integer();
    if (!height || !width || *height < side || *width < side || *height > (1 << 15) ||
        *width > (1 << 15))
      continue;
    const std::int64_t rows = *height / side * in_side, columns = *width / side * in_side;
    const std::int64_t tokens = rows * columns + rows + in_side * in_side;
    if (tokens <= most) continue;
    most = tokens;
    *tiles = (*height / side) * (*width / side) + 1;
  }
  return most;
}

// The largest image and what it takes, where the processor's limits are known.
std::optional<MediaInput> largest_image(const TowerRow& t, ConfigReader& outer, const VisionSpec& v,
                                        std::int64_t patch, std::int64_t side, std::int64_t merge,
                                        std::int64_t text) {
  if (!v.recognised || patch < 1) return std::nullopt;
  MediaInput m;
  m.patch_elements = v.patch_elements;
  m.token_width = v.projector.empty() ? text : v.projector.back().out;
  const std::int64_t in_side = side / patch;
  if (t.most_pixels > 0) {
    m.patches = t.most_pixels / (patch * patch);
    m.tokens = m.patches / (merge * merge);
    // What deep stacks give lies beside each token (qwen3_vl.py of vLLM).
    if (t.projector == Projector::merged_mlp)
      m.token_width *= static_cast<std::int64_t>(v.projector.size() / 2);
  } else if (in_side > 0 && v.image_tokens) {
    std::int64_t tiles = t.most_tiles;
    const std::int64_t cut = tiled_tokens(outer, side, in_side, &tiles);
    m.patches = tiles * (in_side * in_side + (t.class_token ? 1 : 0));
    m.tokens = cut > 0 ? cut : tiles * *v.image_tokens;
  } else {
    return std::nullopt;
  }
  if (t.films) m.frames_of_patch = 2;
  return m;
}

}  // namespace

std::optional<VisionSpec> read_vision(ConfigReader& outer, std::int64_t text_hidden) {
  ConfigReader c = outer.nested({"vision_config"});
  const std::string type = c.text({"model_type"}).value_or("");
  const TowerRow* known = find_tower(type);
  const TowerRow t = known ? *known : TowerRow{};
  VisionSpec v;
  v.type = type;
  v.recognised = known != nullptr;
  v.layers = c.integer({"depth", "num_hidden_layers", "n_layers"}).value_or(0);
  // Qwen2-VL calls the tower's width embed_dim, and the language model's hidden_size.
  v.hidden =
      capped(c.has({"embed_dim"}) ? c.integer({"embed_dim"}) : c.integer({"hidden_size"}), 0);
  v.heads = capped(c.integer({"num_heads", "num_attention_heads"}), 16);
  const std::int64_t ratio = std::min<std::int64_t>(capped(c.integer({"mlp_ratio"}), 4), 64);
  v.ffn = capped(c.integer({"intermediate_size"}), ratio * v.hidden);
  v.rms = t.rms;
  v.bias = t.bias;
  v.gated = t.gated;
  v.outer_norms = t.outer_norms;
  std::int64_t patch = 0;
  if (const Json* p = c.any({"patch_size"}); p && p->integer()) patch = *p->integer();
  patch = std::clamp<std::int64_t>(patch, 0, 256);
  const std::int64_t channels =
      std::min<std::int64_t>(capped(c.integer({"in_channels", "in_chans", "num_channels"}), 3), 64);
  const std::int64_t frames =
      std::min<std::int64_t>(capped(c.integer({"temporal_patch_size"}), 1), 64);
  v.patch_elements = channels * patch * patch * frames;
  v.patch_bias = t.patch_bias;
  std::int64_t side = 0;
  if (const Json* s = c.any({"image_size"}); s && s->integer()) side = *s->integer();
  side = std::clamp<std::int64_t>(side, 0, 1 << 15);
  const std::int64_t patches = patch > 0 ? (side / patch) * (side / patch) : 0;
  if (t.learned_positions)
    v.positions = capped(c.integer({"num_position_embeddings"}), patches + (t.class_token ? 1 : 0));
  if (t.class_token) v.vectors += v.hidden;
  if (v.layers < 1 || v.hidden < 1 || v.patch_elements < 1) return std::nullopt;
  add_projector(t, c, text_hidden, v);
  const std::int64_t merge =
      std::clamp<std::int64_t>(c.integer({"spatial_merge_size"}).value_or(1), 1, 64);
  if (auto tokens = outer.integer({"mm_tokens_per_image"}))
    v.image_tokens = *tokens;
  else if (auto shuffle = c.real({"pixel_shuffle_ratio"}); shuffle && *shuffle > 0 && *shuffle <= 1)
    v.image_tokens = static_cast<std::int64_t>(static_cast<double>(patches) * *shuffle * *shuffle);
  else if (patches > 0)
    v.image_tokens = patches / (merge * merge);
  if (t.projector == Projector::stacked) v.image_tokens = patches / 4;
  if (t.scaled_layers) v.vectors += 2 * v.layers * v.hidden;
  v.patch_pixels = patch * merge;
  v.media = largest_image(t, outer, v, patch, side, merge, text_hidden);
  outer.merge(c);
  return v;
}

Result<Stack> build_vision(const VisionSpec& v, const std::string& where) {
  constexpr std::int64_t most = 1 << 20;
  if (v.layers > 4096 || v.hidden > most || v.heads < 1 || v.ffn < 1)
    return fail(ErrorCode::malformed,
                message(ModelMessage::field_out_of_range, "vision_config", v.layers, 1, 4096),
                where);
  Stack s;
  s.hidden = v.hidden;
  s.generates = false;
  const Norm norm{v.hidden, !v.rms, v.format};
  auto column = [&](std::int64_t in, std::int64_t out) {
    return Linear{in, out, 1, v.format, Split::column, v.bias};
  };
  Attention a;
  a.heads = a.kv_heads = v.heads;
  a.head_dim = a.value_dim = v.hidden / v.heads;
  a.q = a.k = a.v = column(v.hidden, v.hidden);
  a.o = Linear{v.hidden, v.hidden, 1, v.format, Split::row, v.bias};
  a.causal = false;
  Mlp m;
  m.width = v.ffn;
  m.gated = v.gated;
  m.up = column(v.hidden, v.ffn);
  if (v.gated) m.gate = m.up;
  m.down = Linear{v.ffn, v.hidden, 1, v.format, Split::row, v.bias};
  Layer layer;
  layer.parts = {norm, a, norm, m};
  s.runs.push_back({layer, v.layers});
  if (v.positions > 0)
    s.positions = Linear{v.positions, v.hidden, 1, v.format, Split::replicated, false};
  s.projections.push_back(
      Linear{v.patch_elements, v.hidden, 1, v.format, Split::replicated, v.patch_bias});
  for (Linear l : v.projector) {
    l.format = v.format;
    s.projections.push_back(l);
  }
  for (std::int64_t i = 0; i < v.outer_norms; ++i) s.final_norms.push_back(norm);
  if (v.vectors > 0) s.final_norms.push_back(Norm{v.vectors, false, v.format});
  s.media = v.media;
  return s;
}

}  // namespace trigon
