#include <array>

#include "model/decoder_spec.hpp"
#include "model/messages.hpp"
#include "model/vision_config.hpp"

namespace trigon {
namespace {

// Far above any published model, and low enough that sums of products stay within 64 bits.
constexpr std::int64_t kMaxLayers = 8192, kMaxWidth = 1 << 26, kMaxHeads = 1 << 16,
                       kMaxExperts = 1 << 16, kMaxRows = 1 << 28,
                       kMaxTokens = std::int64_t{1} << 40;
constexpr double kMaxParameters = 1e15;

struct Range {
  const char* name;
  std::int64_t value, low, high;
};

std::optional<Error> out_of_range(const Range& r, const std::string& where) {
  if (r.value >= r.low && r.value <= r.high) return std::nullopt;
  return Error{ErrorCode::malformed,
               message(ModelMessage::field_out_of_range, r.name, r.value, r.low, r.high), where,
               std::nullopt};
}

std::optional<Error> check(const RecurrentMixer& m, const std::string& where) {
  for (const Range& r :
       std::initializer_list<Range>{{"mixer_heads", m.heads, 1, kMaxWidth},
                                    {"mixer_head_dim", m.head_dim, 1, kMaxWidth},
                                    {"state_size", m.state, 0, kMaxWidth},
                                    {"groups", m.groups, 1, kMaxHeads},
                                    {"conv_kernel", m.conv_kernel, 0, kMaxHeads},
                                    {"conv_channels", m.conv_channels, 0, kMaxWidth},
                                    {"chunk_size", m.chunk, 0, kMaxTokens},
                                    {"mixer_vectors", m.vectors, 0, kMaxTokens}})
    if (auto e = out_of_range(r, where)) return e;
  for (const MixerLinear& p : m.projections) {
    if (auto e = out_of_range({p.role, p.linear.in, 1, kMaxWidth}, where)) return e;
    if (auto e = out_of_range({p.role, p.linear.out, 1, kMaxWidth}, where)) return e;
  }
  if (m.heads * m.head_dim > kMaxWidth)
    return out_of_range({"mixer_width", m.heads * m.head_dim, 1, kMaxWidth}, where);
  return std::nullopt;
}

std::optional<Error> check(const LayerSpec& l, const std::string& where) {
  const bool attends = l.attention != AttentionKind::none;
  const bool latent = l.attention == AttentionKind::latent;
  const bool compressed = l.attention == AttentionKind::compressed;
  const std::int64_t some = attends ? 1 : 0, dense = l.mlp == MlpKind::dense ? 1 : 0;
  const std::int64_t moe = l.mlp == MlpKind::experts ? 1 : 0;
  for (const Range& r : std::initializer_list<Range>{
           {"heads", l.heads, some, kMaxHeads},
           {"kv_heads", l.kv_heads, attends && !latent ? 1 : 0, kMaxHeads},
           {"head_dim", l.head_dim, attends && !latent ? 1 : 0, kMaxWidth},
           {"value_dim", l.value_dim, some, kMaxWidth},
           {"kv_lora_rank", l.kv_lora_rank, latent ? 1 : 0, kMaxWidth},
           {"q_lora_rank", l.q_lora_rank, compressed ? 1 : 0, kMaxWidth},
           {"o_lora_rank", l.output_rank, compressed ? 1 : 0, kMaxWidth},
           {"o_groups", l.output_groups, compressed ? 1 : 0, kMaxHeads},
           {"compress_ratio", l.compress_ratio, 0, kMaxTokens},
           {"hc_mult", l.streams, 1, kMaxHeads},
           {"moe_latent_size", l.expert_hidden, 0, kMaxWidth},
           {"gate_width", l.gate_width, 0, kMaxWidth},
           {"nope_dim", l.nope_dim, 0, kMaxWidth},
           {"rope_dim", l.rope_dim, 0, kMaxWidth},
           {"index_heads", l.index_heads, 0, kMaxHeads},
           {"index_head_dim", l.index_head_dim, 0, kMaxWidth},
           {"ffn", l.ffn, dense, kMaxWidth},
           {"experts", l.experts, moe, kMaxExperts},
           {"active_experts", l.active, moe, moe ? l.experts : 0},
           {"expert_ffn", l.expert_width, moe, kMaxWidth},
           {"shared_ffn", l.shared_width, 0, kMaxWidth},
           {"window", l.window.value_or(1), 1, kMaxTokens},
           {"chunk", l.chunk.value_or(1), 1, kMaxTokens},
           {"extra_norm_parameters", l.extra_norm_parameters, 0, kMaxRows}})
    if (auto e = out_of_range(r, where)) return e;
  if (attends && !latent && l.heads % l.kv_heads != 0)
    return out_of_range({"kv_heads", l.kv_heads, l.heads, l.heads}, where);
  if (compressed && !l.window) return out_of_range({"sliding_window", 0, 1, kMaxTokens}, where);
  if (l.mixer) return check(*l.mixer, where);
  return std::nullopt;
}

double rough_parameters(const LayerSpec& l, std::int64_t hidden) {
  auto d = [](std::int64_t v) { return static_cast<double>(v); };
  double h = d(hidden);
  double n = d(l.heads) * (h + d(l.q_lora_rank)) *
             (d(l.head_dim) + d(l.nope_dim) + d(l.rope_dim) + d(l.value_dim));
  n += d(l.kv_heads) * h * (d(l.head_dim) + d(l.value_dim));
  n += h * (d(l.q_lora_rank) + d(l.kv_lora_rank) + d(l.rope_dim));
  n += d(l.kv_lora_rank) * d(l.heads) * (d(l.nope_dim) + d(l.value_dim));
  n += d(l.index_heads + 1) * d(l.index_head_dim) * (h + d(l.q_lora_rank));
  n += 3 * h * (d(l.ffn) + d(l.shared_width));
  n += 3 * h * d(l.experts + 1) * d(l.expert_width) + h * d(l.experts);
  n += d(l.gate_width) * h + d(l.output_groups) * d(l.output_rank) * h;
  n += 4 * h * d(l.head_dim) + d(l.heads) * d(l.head_dim) * d(l.output_rank);
  n += 2 * d(l.streams) * d(l.streams) * d(l.streams + 2) * h;
  if (l.mixer) {
    n += d(l.mixer->vectors);
    for (const MixerLinear& p : l.mixer->projections) n += d(p.linear.in) * d(p.linear.out);
  }
  return n + d(l.extra_norm_parameters);
}

class LayerBuilder {
 public:
  LayerBuilder(const DecoderSpec& spec, const LayerSpec& l) : spec_(spec), l_(l), f_(l.formats) {}

  Layer build() const {
    Layer layer;
    layer.parallel_residual = l_.parallel_residual;
    const bool attends = l_.attention != AttentionKind::none;
    if (attends || l_.mixer) {
      if (l_.streams > 1) layer.parts.emplace_back(streams());
      if (l_.norm_before_attention) layer.parts.emplace_back(norm(spec_.hidden));
      if (l_.attention == AttentionKind::latent)
        layer.parts.emplace_back(latent());
      else if (l_.attention == AttentionKind::compressed)
        layer.parts.emplace_back(compressed());
      else if (attends)
        layer.parts.emplace_back(grouped());
      if (l_.mixer) {
        layer.parts.emplace_back(*l_.mixer);
        std::get<RecurrentMixer>(layer.parts.back()).vector_format = f_.norm;
      }
      if (l_.norm_after_attention) layer.parts.emplace_back(norm(spec_.hidden));
    }
    if (l_.cross && !spec_.encoder.empty()) {
      if (l_.norm_before_attention) layer.parts.emplace_back(norm(spec_.hidden));
      layer.parts.emplace_back(cross());
      if (l_.norm_after_attention) layer.parts.emplace_back(norm(spec_.hidden));
    }
    if (l_.mlp != MlpKind::none) {
      if (l_.streams > 1) layer.parts.emplace_back(streams());
      if (l_.norm_before_mlp) layer.parts.emplace_back(norm(spec_.hidden));
      if (l_.mlp == MlpKind::dense)
        layer.parts.emplace_back(dense(l_.ffn, l_.mlp_bias, f_.gate, f_.up, f_.down));
      else
        layer.parts.emplace_back(experts());
      if (l_.norm_after_mlp) layer.parts.emplace_back(norm(spec_.hidden));
    }
    if (l_.extra_norm_parameters > 0)
      layer.parts.emplace_back(Norm{l_.extra_norm_parameters, false, f_.norm});
    return layer;
  }

 private:
  Norm norm(std::int64_t width) const {
    if (spec_.norm == NormKind::no_parameters) return Norm{0, false, f_.norm};
    return Norm{width, spec_.norm == NormKind::layer_norm, f_.norm};
  }
  static Linear linear(std::int64_t in, std::int64_t out, Format f, Split split, bool bias = false,
                       std::int64_t count = 1) {
    return Linear{in, out, count, f, split, bias};
  }

  Attention grouped() const {
    Attention a;
    a.heads = l_.heads;
    a.kv_heads = l_.kv_heads;
    a.head_dim = l_.head_dim;
    a.value_dim = l_.value_dim;
    const std::int64_t h = spec_.hidden;
    a.q = linear(h, l_.heads * l_.head_dim, f_.q, Split::column, l_.q_bias);
    a.k = linear(h, l_.kv_heads * l_.head_dim, f_.k, Split::column, l_.k_bias);
    a.v = linear(h, l_.kv_heads * l_.value_dim, f_.v, Split::column, l_.v_bias);
    if (l_.keys_are_values) a.v = linear(0, 0, f_.v, Split::column);
    a.o = linear(l_.heads * l_.value_dim, h, f_.o, Split::row, l_.o_bias);
    if (l_.shares_cache_of) {
      a.k = linear(0, 0, f_.k, Split::column);
      a.v = linear(0, 0, f_.v, Split::column);
    }
    if (l_.qk_norm != QkNorm::none) {
      const bool one = l_.qk_norm == QkNorm::shared;
      a.q_norm = Norm{l_.head_dim * (one ? 1 : l_.heads), l_.qk_norm_bias, f_.norm};
      if (!l_.shares_cache_of)
        a.k_norm = Norm{l_.head_dim * (one ? 1 : l_.kv_heads), l_.qk_norm_bias, f_.norm};
    }
    a.window = l_.window;
    a.chunk = l_.chunk;
    a.sinks = l_.sinks;
    a.keys_are_values = l_.keys_are_values;
    a.values_cached_apart = l_.values_cached_apart;
    a.shares_cache_of = l_.shares_cache_of;
    a.causal = l_.causal;
    a.score_bias = l_.score_bias;
    a.position_terms = l_.position_terms;
    if (l_.gate_width > 0) a.gate = linear(h, l_.gate_width, f_.q, Split::column);
    if (l_.index_heads > 0) a.indexer = indexer(h, 0);
    return a;
  }

  // `weighted`: outputs of the projection that weighs the heads.
  SparseIndexer indexer(std::int64_t query_in, std::int64_t weighted) const {
    SparseIndexer i;
    i.heads = l_.index_heads;
    i.head_dim = l_.index_head_dim;
    i.top_k = l_.index_top_k;
    i.eight_bit = l_.index_eight_bit;
    i.q = linear(query_in, i.heads * i.head_dim, f_.indexer, Split::replicated);
    i.k = linear(spec_.hidden, i.head_dim, f_.indexer, Split::replicated);
    i.weights = linear(weighted > 0 ? spec_.hidden : 0, weighted, f_.norm, Split::replicated);
    // One norm with a bias on the keys, or one without on keys and queries each.
    i.k_norm = Norm{i.head_dim, true, f_.norm};
    return i;
  }

  StreamMixer streams() const {
    StreamMixer s;
    s.streams = l_.streams;
    const std::int64_t out = l_.streams * (l_.streams + 2);
    s.mix = linear(l_.streams * spec_.hidden, out, Format::f32, Split::replicated);
    s.vectors = out + 3;
    return s;
  }

  KeyCompressor compressor(std::int64_t width, bool overlapping, Format f) const {
    KeyCompressor c;
    c.ratio = l_.compress_ratio;
    c.overlapping = overlapping;
    const std::int64_t out = width * (overlapping ? 2 : 1);
    c.keys = linear(spec_.hidden, out, f, Split::replicated);
    c.gate = c.keys;
    c.norm = Norm{width, false, f_.norm};
    c.position_parameters = std::min(c.ratio, kMaxRows / (out + 1)) * out;
    return c;
  }

  CompressedAttention compressed() const {
    CompressedAttention a;
    a.heads = l_.heads;
    a.head_dim = l_.head_dim;
    a.rope_dim = l_.rope_dim;
    a.window = l_.window.value_or(0);
    a.sinks = l_.sinks;
    const std::int64_t h = spec_.hidden, wide = l_.heads * l_.head_dim;
    a.q_down = linear(h, l_.q_lora_rank, f_.q_down, Split::replicated);
    a.q_norm = Norm{l_.q_lora_rank, false, f_.norm};
    a.q_up = linear(l_.q_lora_rank, wide, f_.q, Split::column);
    a.kv = linear(h, l_.head_dim, f_.kv_down, Split::replicated);
    a.kv_norm = Norm{l_.head_dim, false, f_.norm};
    // Each group of heads has its own projection: the stored matrix is one group wide.
    a.o_down =
        linear(wide / l_.output_groups, l_.output_groups * l_.output_rank, f_.o, Split::column);
    a.o_up = linear(l_.output_groups * l_.output_rank, h, f_.o, Split::row);
    if (l_.compress_ratio == 0) return a;
    a.compressor = compressor(l_.head_dim, l_.compress_overlapping, f_.norm);
    if (l_.index_heads == 0) return a;
    CompressedAttention::Indexer i;
    i.heads = l_.index_heads;
    i.head_dim = l_.index_head_dim;
    i.top_k = l_.index_top_k;
    i.q = linear(l_.q_lora_rank, i.heads * i.head_dim, f_.indexer, Split::replicated);
    i.weights = linear(h, i.heads, f_.norm, Split::replicated);
    i.compressor = compressor(i.head_dim, true, f_.norm);
    a.indexer = i;
    return a;
  }

  CrossAttention cross() const {
    CrossAttention c{grouped()};
    Attention& a = c.attention;
    const std::int64_t source = spec_.encoder.front().hidden;
    a.k.in = a.v.in = source;
    a.window.reset();
    a.chunk.reset();
    a.causal = a.score_bias = false;
    a.position_terms = 0;
    return c;
  }

  LatentAttention latent() const {
    LatentAttention a;
    a.heads = l_.heads;
    a.q_lora_rank = l_.q_lora_rank;
    a.kv_lora_rank = l_.kv_lora_rank;
    a.nope_dim = l_.nope_dim;
    a.rope_dim = l_.rope_dim;
    a.value_dim = l_.value_dim;
    const std::int64_t h = spec_.hidden, query = l_.heads * (l_.nope_dim + l_.rope_dim);
    if (l_.q_lora_rank > 0) {
      // The latent projections are whole on every rank.
      a.q_down = linear(h, l_.q_lora_rank, f_.q_down, Split::replicated, l_.q_bias);
      a.q_norm = Norm{l_.q_lora_rank, false, f_.norm};
      a.q_up = linear(l_.q_lora_rank, query, f_.q, Split::column);
    } else {
      a.q_up = linear(h, query, f_.q, Split::column, l_.q_bias);
    }
    a.kv_down = linear(h, l_.kv_lora_rank + l_.rope_dim, f_.kv_down, Split::replicated, l_.k_bias);
    a.kv_norm = Norm{l_.kv_lora_rank, false, f_.norm};
    a.kv_up =
        linear(l_.kv_lora_rank, l_.heads * (l_.nope_dim + l_.value_dim), f_.kv_up, Split::column);
    a.o = linear(l_.heads * l_.value_dim, h, f_.o, Split::row, l_.o_bias);
    if (l_.index_heads > 0)
      a.indexer = indexer(l_.q_lora_rank > 0 ? l_.q_lora_rank : h, l_.index_heads);
    return a;
  }

  Mlp dense(std::int64_t width, bool bias, Format gate, Format up, Format down) const {
    Mlp m;
    m.width = width;
    m.gated = l_.gated;
    m.up = linear(spec_.hidden, width, up, Split::column, bias);
    m.down = linear(width, spec_.hidden, down, Split::row, bias);
    if (l_.gated) m.gate = linear(spec_.hidden, width, gate, Split::column, bias);
    return m;
  }

  MixtureOfExperts experts() const {
    MixtureOfExperts m;
    const std::int64_t w = l_.expert_width;
    const std::int64_t h = l_.expert_hidden > 0 ? l_.expert_hidden : spec_.hidden;
    m.experts = l_.experts;
    m.active = l_.active;
    m.width = w;
    m.gated = l_.gated;
    m.router = linear(spec_.hidden, l_.experts, f_.router, Split::replicated, l_.router_bias);
    m.router_bias = l_.router_correction;
    m.up = linear(h, w, f_.expert_up, Split::expert, l_.expert_bias, l_.experts);
    m.down = linear(w, h, f_.expert_down, Split::expert, l_.expert_bias, l_.experts);
    if (l_.gated) m.gate = linear(h, w, f_.expert_gate, Split::expert, l_.expert_bias, l_.experts);
    if (l_.shared_width > 0)
      m.shared = dense(l_.shared_width, l_.mlp_bias, f_.shared_gate, f_.shared_up, f_.shared_down);
    if (l_.shared_gate) m.shared_gate = linear(spec_.hidden, 1, f_.norm, Split::replicated);
    if (l_.expert_hidden > 0) {
      // GGUF files keep norms in 32 bit, and quantise these as other matrices.
      const Format f = f_.norm == Format::f32 ? f_.shared_up : f_.norm;
      m.latent_in = linear(spec_.hidden, h, f, Split::replicated);
      m.latent_out = linear(h, spec_.hidden, f, Split::replicated);
    }
    return m;
  }

  const DecoderSpec& spec_;
  const LayerSpec& l_;
  const LayerFormats& f_;
};

Result<Stack> build_stack(const DecoderSpec& spec, const std::string& where) {
  const auto layers = static_cast<std::int64_t>(spec.layers.size());
  for (const Range& r :
       std::initializer_list<Range>{{"hidden", spec.hidden, 1, kMaxWidth},
                                    {"vocabulary", spec.vocabulary, spec.embeds ? 1 : 0, kMaxRows},
                                    {"layers", layers, 1, kMaxLayers},
                                    {"positions", spec.positions, 0, kMaxRows},
                                    {"embedding_width", spec.embedding_width, 0, kMaxWidth},
                                    {"relative_positions", spec.relative_positions, 0, kMaxRows},
                                    {"relative_width", spec.relative_width, 0, kMaxWidth},
                                    {"token_types", spec.token_types, 0, kMaxRows},
                                    {"max_context", spec.max_context.value_or(1), 1, kMaxTokens}})
    if (auto e = out_of_range(r, where)) return tl::unexpected(std::move(*e));
  double total = 2.0 * static_cast<double>(spec.vocabulary + spec.positions) *
                 static_cast<double>(spec.hidden + spec.embedding_width);
  for (const LayerSpec& l : spec.layers) {
    if (auto e = check(l, where)) return tl::unexpected(std::move(*e));
    total += rough_parameters(l, spec.hidden);
  }
  for (const FrontEnd& f : spec.front)
    for (const Range& r : std::initializer_list<Range>{
             {"front_end", f.linear.in, 1, kMaxRows},
             {"front_end", f.linear.out, 1, kMaxWidth},
             {"front_end_rows", static_cast<std::int64_t>(f.rows), 1, kMaxRows}})
      if (auto e = out_of_range(r, where)) return tl::unexpected(std::move(*e));
  for (const Tail& t : spec.tail)
    for (const Range& r : std::initializer_list<Range>{{"projection", t.linear.in, 1, kMaxRows},
                                                       {"projection", t.linear.out, 1, kMaxRows}})
      if (auto e = out_of_range(r, where)) return tl::unexpected(std::move(*e));
  if (total > kMaxParameters)
    return fail(ErrorCode::malformed, message(ModelMessage::model_too_large, kMaxParameters),
                where);

  Stack s;
  s.hidden = spec.hidden;
  s.vocabulary = spec.vocabulary;
  s.max_context = spec.max_context;
  s.tied = spec.embeds && spec.has_head && spec.tied;
  s.tied_bias = s.tied && spec.tied_bias;
  s.generates = spec.generates;
  s.front = spec.front;
  s.tail = spec.tail;
  s.label_share = spec.label_share;
  s.fixed_length = spec.fixed_length;
  s.seconds_of_input = spec.seconds_of_input;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    if (i > 0 && spec.layers[i] == spec.layers[i - 1]) {
      ++s.runs.back().count;
      continue;
    }
    s.runs.push_back({LayerBuilder(spec, spec.layers[i]).build(), 1, spec.shared_layers});
  }
  const std::int64_t width = spec.embedding_width > 0 ? spec.embedding_width : spec.hidden;
  if (spec.embeds)
    s.embedding =
        Linear{spec.vocabulary, width, 1, spec.embedding_format, Split::vocabulary, false};
  if (spec.has_head && !spec.tied)
    s.head = Linear{width, spec.vocabulary, 1, spec.head_format, Split::vocabulary, spec.head_bias};
  if (width != spec.hidden) {
    s.projections.push_back(Linear{width, spec.hidden, 1, spec.embedding_format, Split::replicated,
                                   spec.projection_bias});
    if (spec.projects_out)
      s.projections.push_back(
          Linear{spec.hidden, width, 1, spec.embedding_format, Split::replicated, false});
  }
  if (spec.positions > 0)
    s.positions = Linear{spec.positions,
                         spec.generates ? spec.hidden : width,
                         1,
                         spec.embedding_format,
                         Split::replicated,
                         false};
  if (spec.relative_positions > 0)
    s.relative_positions = Linear{spec.relative_positions, spec.relative_width, 1,
                                  spec.embedding_format,   Split::replicated,   false};
  if (spec.token_types > 0)
    s.token_types =
        Linear{spec.token_types, width, 1, spec.embedding_format, Split::replicated, false};
  const bool norm_bias = spec.norm == NormKind::layer_norm;
  const std::int64_t norm_width = spec.norm == NormKind::no_parameters ? 0 : spec.hidden;
  // Encoders with a narrow embedding normalise it before they project it (ELECTRA, ALBERT).
  if (spec.embedding_norm)
    s.embedding_norm = Norm{spec.generates ? norm_width : width, norm_bias, spec.norm_format};
  if (spec.relative_norm) s.relative_norm = Norm{norm_width, norm_bias, spec.norm_format};
  if (spec.final_norm) s.final_norms.push_back(Norm{norm_width, norm_bias, spec.norm_format});

  return s;
}

// Layers for multi-token prediction: the hidden state and the next token's embedding, each with a
// norm, are projected to the model's width; embedding and head are the model's own (DeepSeek-V3,
// arXiv:2412.19437 section 2.2).
Result<Stack> build_draft(const DecoderSpec& spec, const std::string& where) {
  DecoderSpec draft = spec;
  draft.layers = spec.drafts;
  auto s = build_stack(draft, where);
  if (!s) return s;
  s->embedding.reset();
  s->head.reset();
  s->positions.reset();
  s->embedding_norm.reset();
  s->tied = false;
  s->projections = {
      Linear{2 * spec.hidden, spec.hidden, 1, spec.norm_format, Split::replicated, false}};
  s->final_norms.assign(3, Norm{spec.hidden, false, spec.norm_format});
  return s;
}

}  // namespace

Result<Model> build_decoder(const DecoderSpec& spec, const std::string& where) {
  Model m;
  m.id = spec.id;
  m.architecture = spec.architecture;
  m.weight_format = spec.weight_format;
  m.kv_format = spec.kv_format;
  m.notes = spec.notes;
  for (const DecoderSpec& encoder : spec.encoder) {
    auto s = build_stack(encoder, where);
    if (!s) return tl::unexpected(s.error());
    m.components.push_back({"encoder", ComponentRole::encoder, std::move(*s)});
  }
  auto s = build_stack(spec, where);
  if (!s) return tl::unexpected(s.error());
  if (spec.generates)
    m.components.push_back({"language_model", ComponentRole::language_model, std::move(*s)});
  else
    m.components.push_back({"encoder", ComponentRole::encoder, std::move(*s)});
  if (spec.vision) {
    auto tower = build_vision(*spec.vision, where);
    if (!tower) return tl::unexpected(tower.error());
    m.components.push_back({"vision_tower", ComponentRole::vision_tower, std::move(*tower)});
  }
  if (!spec.drafts.empty()) {
    auto draft = build_draft(spec, where);
    if (!draft) return tl::unexpected(draft.error());
    m.components.push_back({"draft", ComponentRole::draft, std::move(*draft)});
  }
  return m;
}

}  // namespace trigon
