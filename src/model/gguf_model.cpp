#include "model/gguf_model.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <span>

#include "model/gguf_block.hpp"
#include "model/json_value.hpp"
#include "model/messages.hpp"

namespace trigon {
namespace {

constexpr std::int64_t kMaxLayers = 8192;

// Architectures whose layers are not those of a decoder, by the word of general.architecture.
constexpr std::pair<std::string_view, std::string_view> kUnsupported[] = {
    {"clip", "a vision model"},
    {"rwkv6", "a state-space or recurrent model"},
    {"rwkv7", "a state-space or recurrent model"},
};

// Encoders: their layers see the whole sequence and nothing is decoded.
constexpr std::string_view kEncoders[] = {"bert", "nomic-bert", "jina-bert-v2", "modern-bert"};
// T5 keeps its two stacks under "enc." and "dec.".
constexpr std::string_view kT5 = "t5", kT5Encoder = "t5encoder";

class LayerReader : GgufBlock {
 public:
  LayerReader(const GgufHeader& h, const std::string& arch, const GgufNames& names,
              const DecoderSpec& spec, std::string side = "")
      : GgufBlock(h, arch, names, std::move(side)), spec_(spec) {}

  Result<LayerSpec> read(std::int64_t i, const std::string& where) {
    move_to(i);
    LayerSpec l;
    l.causal = spec_.generates;
    l.cross = has("cross_attn_q.weight");
    l.score_bias = arch_ == kT5 || arch_ == kT5Encoder;
    l.mixer = read_gguf_mixer(*this, spec_.hidden);
    read_attention(l);
    read_mlp(l);
    read_norms(l);
    if (problem_.empty()) return l;
    return fail(ErrorCode::malformed,
                message(ModelMessage::missing_fields, printable(arch_), problem_), where);
  }

 private:
  std::int64_t needed(std::string_view k) {
    auto v = number(k);
    if (!v && problem_.find(key(k)) == problem_.npos)
      problem_ += (problem_.empty() ? "" : ", ") + key(k);
    return v.value_or(0);
  }
  void read_attention(LayerSpec& l) {
    LayerFormats& f = l.formats;
    const GgufShape q = at("attn_q.weight"), k = at("attn_k.weight"), v = at("attn_v.weight");
    const GgufShape fused = at("attn_qkv.weight");
    const GgufShape o = has("attn_o.weight") ? at("attn_o.weight") : at("attn_output.weight");
    if (has("attn_kv_a_mqa.weight")) return read_latent(l);
    // Linear attention calls its own matrices by the same names.
    const bool recurrent = l.mixer && !has("ssm_in.weight");
    if ((!q && !fused) || recurrent) {
      l.attention = AttentionKind::none;
      return;
    }
    l.heads = needed("attention.head_count");
    l.kv_heads = number("attention.head_count_kv").value_or(l.heads);
    l.head_dim = number("attention.key_length").value_or(0);
    // Queries and the output's gate in one matrix.
    if (q && l.heads > 0 && l.head_dim > 0 && q.out() / 2 == l.heads * l.head_dim)
      l.gate_width = l.heads * l.head_dim;
    else if (q && l.heads > 0)
      l.head_dim = q.out() / l.heads;
    if (l.head_dim == 0 && l.heads > 0) l.head_dim = spec_.hidden / l.heads;
    l.value_dim = number("attention.value_length").value_or(l.head_dim);
    if (q && k && l.head_dim > 0) l.kv_heads = k.out() / l.head_dim;
    if (v && l.kv_heads > 0) l.value_dim = v.out() / l.kv_heads;
    if (q && !v && k) {
      l.keys_are_values = true;
      l.values_cached_apart = has("attn_k_norm.weight");
      l.value_dim = l.head_dim;
    }
    if (fused && l.head_dim > 0) {
      const std::int64_t kv = (fused.out() - l.heads * l.head_dim) / 2;
      if (kv > 0) l.kv_heads = kv / l.head_dim;
      l.value_dim = l.head_dim;
    }
    f.q = known(fused ? fused.format() : q.format());
    f.k = known(fused ? fused.format() : k.format());
    f.v = known(fused ? fused.format() : v ? v.format() : k.format());
    f.o = known(o.format());
    l.q_bias = has("attn_q.bias") || has("attn_qkv.bias");
    l.k_bias = has("attn_k.bias") || has("attn_qkv.bias");
    l.v_bias = has("attn_v.bias") || has("attn_qkv.bias");
    l.o_bias = has("attn_output.bias");
    if (const GgufShape n = at("attn_q_norm.weight")) {
      const std::int64_t width = n.in() * std::max<std::int64_t>(n.out(), 1);
      l.qk_norm = width == l.head_dim ? QkNorm::shared : QkNorm::per_head;
      l.qk_norm_bias = has("attn_q_norm.bias");
    }
    l.sinks = has("attn_sinks.weight") || has("attn_sinks");
    read_window(l);
  }

  void read_latent(LayerSpec& l) {
    LayerFormats& f = l.formats;
    l.attention = AttentionKind::latent;
    l.heads = l.kv_heads = needed("attention.head_count");
    l.kv_lora_rank = needed("attention.kv_lora_rank");
    l.rope_dim = needed("rope.dimension_count");
    // Files made for the absorbed form give the sizes of one head apart.
    const std::int64_t head =
        number("attention.key_length_mla").value_or(number("attention.key_length").value_or(0));
    l.value_dim =
        number("attention.value_length_mla").value_or(number("attention.value_length").value_or(0));
    const GgufShape q = at("attn_q.weight"), q_a = at("attn_q_a.weight"),
                    q_b = at("attn_q_b.weight");
    const std::int64_t query = q ? q.out() : q_b.out();
    const std::int64_t one = l.heads > 0 ? query / l.heads : head;
    l.nope_dim = one - l.rope_dim;
    if (q_a) l.q_lora_rank = q_a.out();
    const GgufShape o = at("attn_output.weight");
    if (o && l.heads > 0) l.value_dim = o.in() / l.heads;
    l.head_dim = one;
    // Some files hold kv_b whole and its two halves as well: it is one weight.
    const GgufShape kv_b = at("attn_kv_b.weight"), k_b = at("attn_k_b.weight");
    f.q = known(q ? q.format() : q_b.format());
    f.q_down = known(q_a.format());
    f.kv_down = known(at("attn_kv_a_mqa.weight").format());
    f.kv_up = known(kv_b ? kv_b.format() : k_b.format());
    f.o = known(o.format());
    if (l.nope_dim < 0) problem_ += (problem_.empty() ? "" : ", ") + key("attention.key_length");
  }

  void read_window(LayerSpec& l) const {
    auto window = h_.integer(key("attention.sliding_window"));
    if (arch_ == "llama4") {
      if ((layer_ + 1) % 4 != 0)
        l.chunk = h_.integer(key("attention.chunk_size")).value_or(8192);  // of the class
      return;
    }
    if (!window || *window <= 0) return;
    std::int64_t every = 0;  // each n-th layer sees everything; 0: none does
    if (arch_ == "gemma2" || arch_ == "gpt-oss") every = 2;
    if (arch_ == "gemma3" || arch_ == "gemma3n") every = 6;
    if (arch_ == "cohere2" || arch_ == "exaone4" || arch_ == "olmo2") every = 4;
    if (auto n = h_.integer(key("attention.sliding_window_pattern"))) every = *n;
    if (const GgufList* list = h_.list(key("attention.sliding_window_pattern"));
        list && layer_ < static_cast<std::int64_t>(list->numbers.size())) {
      if (list->numbers[static_cast<std::size_t>(layer_)] != 0) l.window = window;
      return;
    }
    if (every <= 0 || (layer_ + 1) % every != 0) l.window = window;
  }

  void read_mlp(LayerSpec& l) {
    LayerFormats& f = l.formats;
    GgufShape up = at("ffn_up_exps.weight"), gate = at("ffn_gate_exps.weight"),
              down = at("ffn_down_exps.weight");
    // Old Mixtral files hold each expert apart.
    const GgufShape first = at("ffn_up.0.weight");
    if (!up && first) {
      up = first;
      gate = at("ffn_gate.0.weight");
      down = at("ffn_down.0.weight");
    }
    if (up) {
      l.mlp = MlpKind::experts;
      l.experts = up.count() > 1 ? up.count() : needed("expert_count");
      l.active = needed("expert_used_count");
      l.expert_width = up.out();
      l.gated = static_cast<bool>(gate);
      if (const GgufShape both = at("ffn_gate_up_exps.weight")) {
        l.gated = true;
        l.expert_width = both.out() / 2;
      }
      l.expert_bias = has("ffn_up_exps.bias");
      l.router_bias = has("ffn_gate_inp.bias");
      l.router_correction = has("exp_probs_b.bias") || has("exp_probs_b");
      f.expert_up = known(up.format());
      f.expert_gate = known(gate ? gate.format() : up.format());
      f.expert_down = known(down.format());
      f.router = known(at("ffn_gate_inp.weight").format());
      if (const GgufShape shared = at("ffn_up_shexp.weight")) {
        l.shared_width = shared.out();
        f.shared_up = known(shared.format());
        f.shared_gate = known(at("ffn_gate_shexp.weight").format());
        f.shared_down = known(at("ffn_down_shexp.weight").format());
        l.shared_gate = has("ffn_gate_inp_shexp.weight");
      }
      return;
    }
    const GgufShape dense_up = at("ffn_up.weight"), dense_gate = at("ffn_gate.weight"),
                    dense_down = at("ffn_down.weight");
    if (!dense_up || !dense_down) {
      l.mlp = MlpKind::none;
      return;
    }
    l.ffn = dense_down.in();
    // Gate and up in one tensor are twice as wide as down.
    const bool fused = !dense_gate && dense_up.out() % 2 == 0 && dense_up.out() / 2 == l.ffn;
    l.gated = dense_gate || fused;
    l.mlp_bias = has("ffn_up.bias");
    f.up = known(dense_up.format());
    f.gate = known(dense_gate ? dense_gate.format() : dense_up.format());
    f.down = known(dense_down.format());
  }

  void read_norms(LayerSpec& l) const {
    l.norm_before_attention = has("attn_norm.weight");
    l.norm_before_mlp = has("ffn_norm.weight") || has("attn_norm_2.weight");
    l.norm_after_attention = has("post_attention_norm.weight") || has("attn_post_norm.weight");
    l.norm_after_mlp = has("post_ffw_norm.weight") || has("ffn_post_norm.weight");
    if (has("attn_output_norm.weight") || has("layer_output_norm.weight")) {
      // BERT normalises after each half.
      l.norm_after_attention = has("attn_output_norm.weight");
      l.norm_after_mlp = has("layer_output_norm.weight");
      l.formats.norm = known(at("layer_output_norm.weight").format());
      return;
    }
    // Where there is none before the MLP, this is it, whatever its name.
    if (!l.norm_before_mlp && l.norm_after_attention && !l.norm_after_mlp &&
        l.norm_before_attention) {
      l.norm_before_mlp = true;
      l.norm_after_attention = false;
    }
    l.parallel_residual = l.mlp != MlpKind::none && l.norm_before_attention && !l.norm_before_mlp;
    for (std::string_view extra : {"attn_sub_norm.weight", "ffn_sub_norm.weight"})
      if (const GgufShape s = at(extra))
        l.extra_norm_parameters += std::min(s.in(), std::int64_t{1} << 40);
    l.formats.norm = Format::f32;
    for (std::string_view n : {"attn_norm.weight", "ffn_norm.weight"})
      if (const GgufShape s = at(n)) l.formats.norm = known(s.format());
  }

  const DecoderSpec& spec_;
  std::string problem_;
};

// The format that holds most parameters.
Format most_common(const std::vector<Tensor>& tensors) {
  std::map<Format, double> held;
  for (const Tensor& t : tensors) {
    double n = 1;
    for (std::int64_t d : t.shape) n *= static_cast<double>(d);
    if (t.format != Format::unknown) held[t.format] += n;
  }
  Format most = Format::bf16;
  double best = 0;
  for (auto [format, n] : held)
    if (n > best) {
      best = n;
      most = format;
    }
  return most;
}

bool foreign(const Tensor& t) {
  for (std::string_view part : {".time_mix", ".cross_attn"})
    if (t.name.find(part) != t.name.npos) return true;
  return t.name.rfind("enc.", 0) == 0 || t.name.rfind("dec.", 0) == 0;
}

bool contains(std::span<const std::string_view> list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

Result<GgufModel> read_gguf_model(const GgufHeader& h, const std::vector<Tensor>& tensors,
                                  const std::string& where) {
  auto arch = h.text("general.architecture");
  if (!arch)
    return fail(ErrorCode::malformed, message(BaseMessage::missing_key, "general.architecture"),
                where);
  for (const auto& [name, why] : kUnsupported)
    if (*arch == name)
      return fail(ErrorCode::unsupported,
                  message(ModelMessage::unsupported_architecture, printable(*arch), why), where);
  GgufNames names;
  for (const Tensor& t : tensors) {
    names.emplace(t.name, &t);
    if (foreign(t) && *arch != kT5 && *arch != kT5Encoder)
      return fail(ErrorCode::unsupported,
                  message(ModelMessage::unsupported_architecture, printable(*arch),
                          "a hybrid with state-space or linear-attention layers"),
                  where);
  }
  GgufModel out;
  DecoderSpec& spec = out.spec;
  spec.architecture = printable(*arch, 64);
  const std::string a = *arch;
  auto layers = h.integer(a + ".block_count");
  auto hidden = h.integer(a + ".embedding_length");
  const auto embedding = names.find("token_embd.weight");
  std::string missing;
  auto lack = [&](const std::string& name) { missing += (missing.empty() ? "" : ", ") + name; };
  if (!layers) lack(a + ".block_count");
  if (!hidden) lack(a + ".embedding_length");
  if (embedding == names.end()) lack("token_embd.weight");
  if (!missing.empty())
    return fail(ErrorCode::unsupported,
                message(ModelMessage::missing_fields, printable(a), printable(missing)), where);
  if (*layers < 1 || *layers > kMaxLayers)
    return fail(ErrorCode::malformed,
                message(ModelMessage::field_out_of_range, "block_count", *layers, 1, kMaxLayers),
                where);
  out.layers_left_out =
      std::clamp<std::int64_t>(h.integer(a + ".nextn_predict_layers").value_or(0), 0, *layers - 1);
  if (out.layers_left_out > 0)
    spec.notes.push_back(message(ModelMessage::note_draft_left_out, out.layers_left_out));
  spec.hidden = *hidden;
  const GgufShape table{embedding->second};
  spec.vocabulary = table.out();
  spec.embedding_format = table.format();
  auto optional = [&](const char* name) {
    auto it = names.find(name);
    return it == names.end() ? GgufShape{} : GgufShape{it->second};
  };
  const bool t5 = a == kT5 || a == kT5Encoder;
  const bool encoder = contains(kEncoders, a) || a == kT5Encoder;
  const std::string side = a == kT5 ? "dec." : a == kT5Encoder ? "enc." : "";
  const GgufShape head = optional("output.weight"),
                  final = optional((side + "output_norm.weight").c_str());
  spec.generates = spec.has_head = !encoder;
  if (const GgufShape types = optional("token_types.weight")) spec.token_types = types.out();
  spec.tied = !head;
  spec.head_format = head ? head.format() : table.format();
  spec.head_bias = static_cast<bool>(optional("output.bias"));
  spec.final_norm = static_cast<bool>(final);
  spec.norm_format = final ? final.format() : Format::f32;
  spec.embedding_norm = static_cast<bool>(optional("token_embd_norm.weight"));
  spec.norm = optional("output_norm.bias") || optional("token_embd_norm.bias")
                  ? NormKind::layer_norm
                  : NormKind::rms;
  if (const GgufShape p = optional("position_embd.weight")) spec.positions = p.out();
  for (Format* f : {&spec.embedding_format, &spec.head_format, &spec.norm_format})
    if (*f == Format::unknown) *f = Format::bf16;
  spec.max_context = h.integer(a + ".context_length");
  if (spec.max_context && *spec.max_context < 1) spec.max_context.reset();
  auto read_layers = [&](DecoderSpec& into, const std::string& from,
                         std::int64_t count) -> Result<void> {
    LayerReader reader(h, a, names, into, from);
    for (std::int64_t i = 0; i < count; ++i) {
      auto l = reader.read(i, where);
      if (!l) return tl::unexpected(l.error());
      into.layers.push_back(std::move(*l));
    }
    if (const GgufShape bias = optional((from + "blk.0.attn_rel_b.weight").c_str()); t5 && bias) {
      into.relative_positions = bias.out();
      into.relative_width = bias.in();
    }
    return {};
  };
  if (a == kT5) {
    DecoderSpec e;
    e.architecture = spec.architecture;
    e.hidden = spec.hidden;
    e.generates = e.embeds = e.has_head = false;
    e.norm = spec.norm;
    e.norm_format = spec.norm_format;
    if (auto read = read_layers(e, "enc.", *layers); !read) return tl::unexpected(read.error());
    e.weight_format = most_common(tensors);
    spec.encoder.push_back(std::move(e));
    layers = std::clamp<std::int64_t>(h.integer(a + ".decoder_block_count").value_or(*layers), 1,
                                      kMaxLayers);
    spec.max_context.reset();  // positions are relative
  }
  if (auto read = read_layers(spec, side, *layers - out.layers_left_out); !read)
    return tl::unexpected(read.error());
  spec.weight_format = most_common(tensors);
  return out;
}

}  // namespace trigon
