// The rules are those of llama.cpp, src/llama-quant.cpp (llama_tensor_get_type), 2024-05 to 2025,
// without an importance matrix. Those of Unsloth's "dynamic" files (UD-Q4_K_XL) were read from logs
// of their loading and from their sizes.

#include "model/gguf_file_type.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace trigon {

namespace {

struct FileType {
  std::string_view name;
  Format base;
};
constexpr std::array kFileTypes = {
    FileType{"BF16", Format::bf16},       FileType{"F16", Format::f16},
    FileType{"F32", Format::f32},         FileType{"IQ1_M", Format::iq1_m},
    FileType{"IQ1_S", Format::iq1_s},     FileType{"IQ2_M", Format::iq2_s},
    FileType{"IQ2_S", Format::iq2_xs},    FileType{"IQ2_XS", Format::iq2_xs},
    FileType{"IQ2_XXS", Format::iq2_xxs}, FileType{"IQ3_M", Format::iq3_s},
    FileType{"IQ3_S", Format::iq3_s},     FileType{"IQ3_XS", Format::iq3_s},
    FileType{"IQ3_XXS", Format::iq3_xxs}, FileType{"IQ4_NL", Format::iq4_nl},
    FileType{"IQ4_XS", Format::iq4_xs},   FileType{"Q2_K", Format::q2_k},
    FileType{"Q2_K_S", Format::q2_k},     FileType{"Q3_K_L", Format::q3_k},
    FileType{"Q3_K_M", Format::q3_k},     FileType{"Q3_K_S", Format::q3_k},
    FileType{"Q4_0", Format::q4_0},       FileType{"Q4_1", Format::q4_1},
    FileType{"Q4_K_M", Format::q4_k},     FileType{"Q4_K_S", Format::q4_k},
    FileType{"Q4_K_XL", Format::q4_k},    FileType{"Q5_0", Format::q5_0},
    FileType{"Q5_1", Format::q5_1},       FileType{"Q5_K_M", Format::q5_k},
    FileType{"Q5_K_S", Format::q5_k},     FileType{"Q5_K_XL", Format::q5_k},
    FileType{"Q6_K", Format::q6_k},       FileType{"Q6_K_XL", Format::q6_k},
    FileType{"Q8_0", Format::q8_0},       FileType{"Q8_K_XL", Format::q8_0},
};

bool is_k_or_i(Format f) { return info(f).block_elements == 256; }

// Rows that are no multiple of 256 cannot hold the large blocks.
Format for_row(Format f, std::int64_t row) {
  if (!is_k_or_i(f) || row % 256 == 0) return f;
  switch (f) {
    case Format::q4_k:
      return Format::q5_0;
    case Format::q5_k:
      return Format::q5_1;
    case Format::q6_k:
      return Format::q8_0;
    default:
      return Format::iq4_nl;
  }
}

// The first and last eighth of the layers and every third between are given more bits.
bool more_bits(std::int64_t i, std::int64_t n) {
  return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

struct Rules {
  std::string_view type;
  Format base;
  std::int64_t layers;
  bool sparse = false, hybrid = false;  // the model has experts, mixers

  bool is(std::initializer_list<std::string_view> names) const {
    return std::find(names.begin(), names.end(), type) != names.end();
  }
  // Unsloth's dynamic types of models with experts: what every token reads is kept in 8 bit or, in
  // the largest type, attention and mixers in 16; the experts' down projection gets a step more
  // than gate and up. ikawrakow/ik_llama.cpp issue 1420 lists UD-Q6_K_XL of Qwen3.5-35B-A3B: 78
  // matrices in Q6_K (gate and up of 39 layers), 264 in Q8_0, 90 in 16 bit. Sizes of seven such
  // files of 2026 agree within 2 %. Dense models: as the medium type; mixers of hybrids in the
  // largest type as above (Qwen3.6-27B, 33.31 GiB).
  bool dynamic() const { return is({"Q4_K_XL", "Q5_K_XL", "Q6_K_XL", "Q8_K_XL"}); }
  bool kept() const { return dynamic() && sparse; }
  // Matrices that every token reads, attention's and mixers' among them.
  Format common(Format f) const { return kept() && !info(f).floating ? Format::q8_0 : f; }
  Format mixing(Format f) const {
    return type == "Q8_K_XL" && (sparse || hybrid) ? Format::bf16 : common(f);
  }
  Format expert_down(Format f) const {
    if (!kept()) return f;
    if (base == Format::q4_k) return Format::q5_k;
    return base == Format::q5_k ? Format::q6_k : Format::q8_0;
  }
  bool low_iq() const { return is({"IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M"}); }

  Format output() const {
    if (kept()) return Format::q8_0;
    return info(base).floating || base == Format::q8_0 ? base : Format::q6_k;
  }
  Format embedding() const {
    if (is({"IQ2_XXS", "IQ2_XS", "IQ1_S", "IQ1_M"})) return Format::q2_k;
    if (is({"IQ2_S", "IQ2_M", "IQ3_XXS"})) return Format::iq3_s;
    return common(base);
  }
  Format value(const LayerSpec& l, std::int64_t i) const {
    if (info(base).floating) return base;
    const std::int64_t group = l.kv_heads > 0 ? l.heads / l.kv_heads : 1;
    const bool shared = group >= 4;
    Format f = base;
    if (low_iq())
      f = shared || l.experts >= 4 ? Format::q4_k
                                   : (is({"IQ2_S", "IQ2_M"}) ? Format::iq3_s : Format::q2_k);
    else if (type == "Q2_K")
      f = shared ? Format::q4_k : Format::q3_k;
    else if (type == "Q2_K_S" && shared)
      f = Format::q4_k;
    else if (type == "IQ3_XXS")
      f = shared ? Format::q4_k : Format::iq3_s;
    else if ((is({"IQ3_XS", "IQ3_S"}) && shared) || type == "IQ3_M")
      f = Format::q4_k;
    else if (type == "Q3_K_M")
      f = i < 2 ? Format::q5_k : Format::q4_k;
    else if (type == "Q3_K_L" || (is({"IQ4_NL", "IQ4_XS"}) && shared))
      f = Format::q5_k;
    else if (is({"Q4_K_M", "Q5_K_M", "Q4_K_XL", "Q5_K_XL"}) && more_bits(i, layers))
      f = Format::q6_k;
    else if (type == "Q4_K_S" && i < 4)
      f = Format::q5_k;
    // A value matrix shared by eight heads is small: more bits cost next to nothing.
    if (layers == 80 && group == 8 && (f == Format::q3_k || f == Format::q4_k)) f = Format::q5_k;
    if (l.experts == 8) f = Format::q8_0;
    return f;
  }
  Format key(const LayerSpec& l) const {
    if (info(base).floating) return base;
    if (l.experts == 8) return Format::q8_0;
    if (type == "IQ3_XS") return Format::iq3_xxs;
    if (type == "IQ3_XXS") return Format::iq2_s;
    return base;
  }
  Format query() const {
    if (type == "IQ3_XS") return Format::iq3_xxs;
    if (type == "IQ3_XXS") return Format::iq2_s;
    return base;
  }
  Format attention_output(const LayerSpec& l) const {
    if (l.experts == 8 && is({"Q2_K", "IQ3_XS", "IQ3_XXS", "Q3_K_S", "Q3_K_M", "IQ4_NL", "Q4_K_S",
                              "Q4_K_M", "IQ3_S", "IQ3_M", "IQ4_XS"}))
      return Format::q5_k;
    if (low_iq()) return is({"IQ2_S", "IQ2_M"}) ? Format::iq3_s : base;
    if (type == "Q2_K") return Format::q3_k;
    if (type == "IQ3_XXS") return Format::iq3_s;
    if (is({"Q3_K_M", "IQ3_M"})) return Format::q4_k;
    if (type == "Q3_K_L") return Format::q5_k;
    return base;
  }
  Format down(std::int64_t i) const {
    const std::int64_t eighth = layers / 8;
    if (low_iq())
      return i < eighth ? (is({"IQ2_S", "IQ2_M"}) ? Format::iq3_s : Format::q2_k) : base;
    if (type == "Q2_K") return Format::q3_k;
    if (type == "Q2_K_S") return i < eighth ? Format::q4_k : base;
    if (type == "IQ3_XXS") return i < eighth ? Format::q4_k : Format::q3_k;
    if (type == "Q3_K_M") return i < layers / 16 ? Format::q5_k : Format::q4_k;
    if (type == "Q3_K_L") return Format::q5_k;
    if (type == "IQ3_M") return i < eighth ? Format::q4_k : base;
    if (is({"Q4_K_M", "Q5_K_M", "Q4_K_XL", "Q5_K_XL"}))
      return more_bits(i, layers) ? Format::q6_k : base;
    if (is({"Q4_K_S", "IQ4_NL", "IQ4_XS"})) return i < eighth ? Format::q5_k : base;
    if (type == "Q5_K_S" && i < eighth) return Format::q5_k;
    return base;
  }
};

const FileType* find_type(std::string_view name) {
  std::string upper(name);
  if (upper.size() > 3 && (upper.substr(0, 3) == "UD-" || upper.substr(0, 3) == "ud-"))
    upper.erase(0, 3);  // UD-Q4_K_XL
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  const auto found = std::find_if(kFileTypes.begin(), kFileTypes.end(),
                                  [&](const FileType& t) { return t.name == upper; });
  return found == kFileTypes.end() ? nullptr : &*found;
}

void store(Linear& l, Format f) { l.format = for_row(f, l.in); }
void store(std::optional<Linear>& l, Format f) {
  if (l) store(*l, f);
}
void store(Norm& n) { n.format = Format::f32; }
void store(std::optional<Norm>& n) {
  if (n) store(*n);
}

void store(Mlp& m, const Rules& r, std::int64_t i) {
  store(m.up, r.common(r.base));
  store(m.gate, r.common(r.base));
  store(m.down, r.common(r.down(i)));
}

void store(Attention& a, const Rules& r, const LayerSpec& l, std::int64_t i) {
  store(a.q, r.mixing(r.query()));
  store(a.k, r.mixing(r.key(l)));
  store(a.v, r.mixing(r.value(l, i)));
  store(a.o, r.mixing(r.attention_output(l)));
  store(a.gate, r.mixing(r.base));
  store(a.q_norm);
  store(a.k_norm);
}

// What the rules look at of a layer.
LayerSpec rule_facts(const Layer& layer) {
  LayerSpec l;
  for (const SubLayer& part : layer.parts) {
    if (auto a = std::get_if<Attention>(&part)) l.heads = a->heads, l.kv_heads = a->kv_heads;
    if (auto a = std::get_if<LatentAttention>(&part)) l.heads = l.kv_heads = a->heads;
    if (auto x = std::get_if<MixtureOfExperts>(&part)) l.experts = x->experts;
  }
  return l;
}

void store(Layer& layer, const Rules& r, std::int64_t i) {
  const LayerSpec l = rule_facts(layer);
  for (SubLayer& part : layer.parts) {
    if (auto n = std::get_if<Norm>(&part)) store(*n);
    if (auto a = std::get_if<Attention>(&part)) store(*a, r, l, i);
    if (auto c = std::get_if<CrossAttention>(&part)) store(c->attention, r, l, i);
    if (auto a = std::get_if<LatentAttention>(&part)) {
      store(a->q_down, r.mixing(r.base));
      store(a->q_up, r.mixing(r.base));
      store(a->kv_down, r.mixing(r.base));
      store(a->kv_up, r.mixing(r.base));
      store(a->o, r.mixing(r.attention_output(l)));
      store(a->q_norm);
      store(a->kv_norm);
    }
    if (auto m = std::get_if<RecurrentMixer>(&part)) {
      for (MixerLinear& p : m->projections) store(p.linear, r.mixing(r.base));
      m->vector_format = Format::f32;
    }
    if (auto m = std::get_if<Mlp>(&part)) store(*m, r, i);
    if (auto x = std::get_if<MixtureOfExperts>(&part)) {
      x->router.format = Format::f32;
      store(x->up, r.base);
      store(x->gate, r.base);
      store(x->down, r.expert_down(r.down(i)));
      if (x->shared) store(*x->shared, r, i);
    }
  }
}

bool stored_alike(const Layer& a, const Layer& b) {
  const auto x = linears_of(a), y = linears_of(b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto& p, const auto& q) {
    return p.linear->format == q.linear->format;
  });
}

}  // namespace

std::vector<std::string_view> gguf_file_types() {
  std::vector<std::string_view> names;
  for (const FileType& t : kFileTypes) names.push_back(t.name);
  return names;
}

std::optional<Format> gguf_base_format(std::string_view file_type) {
  const FileType* found = find_type(file_type);
  return found ? std::optional(found->base) : std::nullopt;
}

bool apply_gguf_file_type(DecoderSpec& spec, std::string_view file_type) {
  const FileType* found = find_type(file_type);
  if (!found) return false;
  Rules rules{found->name, found->base, static_cast<std::int64_t>(spec.layers.size())};
  for (const LayerSpec& l : spec.layers) {
    if (l.experts > 0) rules.sparse = true;
    if (l.mixer) rules.hybrid = true;
  }
  spec.weight_format = found->base;
  spec.norm_format = Format::f32;
  spec.head_format = for_row(rules.output(), spec.hidden);
  // A tied embedding serves as the head and is stored as such.
  spec.embedding_format = spec.tied ? spec.head_format : for_row(rules.embedding(), spec.hidden);
  for (std::size_t n = 0; n < spec.layers.size(); ++n) {
    LayerSpec& l = spec.layers[n];
    const auto i = static_cast<std::int64_t>(n);
    LayerFormats& f = l.formats;
    f.norm = f.router = Format::f32;
    const Format mixed = rules.mixing(found->base);
    f.q = for_row(rules.mixing(rules.query()), spec.hidden);
    f.k = for_row(rules.mixing(rules.key(l)), spec.hidden);
    f.v = for_row(rules.mixing(rules.value(l, i)), spec.hidden);
    f.o = for_row(rules.mixing(rules.attention_output(l)), l.heads * l.value_dim);
    f.q_down = f.kv_down = f.indexer = for_row(mixed, spec.hidden);
    f.kv_up = for_row(mixed, std::max<std::int64_t>(l.kv_lora_rank, 256));
    f.gate = f.up = for_row(rules.common(found->base), spec.hidden);
    f.down = for_row(rules.common(rules.down(i)), l.ffn);
    f.shared_gate = f.shared_up = f.gate;
    f.expert_gate = f.expert_up = for_row(found->base, spec.hidden);
    f.expert_down = for_row(rules.expert_down(rules.down(i)), l.expert_width);
    f.shared_down = for_row(rules.common(rules.down(i)), l.shared_width);
    if (l.mixer)
      for (MixerLinear& p : l.mixer->projections) store(p.linear, mixed);
  }
  return true;
}

std::optional<Model> in_gguf_file_type(const Model& model, std::string_view file_type) {
  const FileType* found = find_type(file_type);
  if (!found || !language_stack(model)) return std::nullopt;
  Model out = model;
  for (Component& part : out.components) {
    auto* stack = std::get_if<Stack>(&part.body);
    if (!stack || part.role == ComponentRole::vision_tower) continue;
    Rules rules{found->name, found->base, stack->layers()};
    for (const LayerRun& run : stack->runs)
      for (const SubLayer& sub : run.layer.parts) {
        if (std::holds_alternative<MixtureOfExperts>(sub)) rules.sparse = true;
        if (std::holds_alternative<RecurrentMixer>(sub)) rules.hybrid = true;
      }
    std::vector<LayerRun> runs;
    std::int64_t i = 0;
    for (const LayerRun& run : stack->runs) {
      bool fresh = true;
      for (std::int64_t c = 0; c < run.count; ++c, ++i) {
        Layer layer = run.layer;
        store(layer, rules, i);
        if (!fresh && (run.shared || stored_alike(runs.back().layer, layer)))
          ++runs.back().count;
        else
          runs.push_back({std::move(layer), 1, run.shared});
        fresh = false;
      }
    }
    stack->runs = std::move(runs);
    if (stack->head) store(*stack->head, rules.output());
    // A tied embedding serves as the head and is stored as such.
    if (stack->embedding)
      stack->embedding->format =
          for_row(stack->tied ? rules.output() : rules.embedding(), stack->hidden);
    for (Norm& n : stack->final_norms) store(n);
    store(stack->embedding_norm);
  }
  out.weight_format = found->base;
  out.tensors.clear();
  out.stored_bytes.reset();
  return out;
}

}  // namespace trigon
