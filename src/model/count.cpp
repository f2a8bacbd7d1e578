// Parameters and bytes of what a model is made of.

#include <variant>

#include "model/model.hpp"

namespace trigon {
namespace {

template <class... F>
struct Visitor : F... {
  using F::operator()...;
};
template <class... F>
Visitor(F...) -> Visitor<F...>;

std::int64_t parameters(const Norm& n) { return n.width * (n.bias ? 2 : 1); }
std::int64_t parameters(const std::optional<Norm>& n) { return n ? parameters(*n) : 0; }
std::int64_t parameters(const std::optional<Linear>& l) { return l ? l->parameters() : 0; }
ByteCount bytes(const std::optional<Norm>& n) { return n ? weight_bytes(*n) : ByteCount(); }
ByteCount bytes(const std::optional<Linear>& l) { return l ? weight_bytes(*l) : ByteCount(); }

// Vectors beside a quantised matrix stay in 16 bit, in GGUF and 32-bit checkpoints in 32.
std::int64_t vector_element_bytes(Format matrix) {
  return matrix == Format::f32 || info(matrix).gguf ? 4 : 2;
}

std::int64_t parameters(const Mlp& m) {
  return m.up.parameters() + m.down.parameters() + parameters(m.gate);
}

std::int64_t parameters(const std::optional<SparseIndexer>& i) {
  return i ? i->q.parameters() + i->k.parameters() + i->weights.parameters() + parameters(i->k_norm)
           : 0;
}
ByteCount bytes(const std::optional<SparseIndexer>& i) {
  return i ? weight_bytes(i->q) + weight_bytes(i->k) + weight_bytes(i->weights) +
                 weight_bytes(i->k_norm)
           : ByteCount();
}

std::int64_t parameters(const KeyCompressor& c) {
  return c.keys.parameters() + c.gate.parameters() + parameters(c.norm) + c.position_parameters;
}
ByteCount bytes(const KeyCompressor& c) {
  // The position biases are kept in 32 bit.
  return weight_bytes(c.keys) + weight_bytes(c.gate) + weight_bytes(c.norm) +
         ByteCount(4 * c.position_parameters);
}

std::int64_t parameters(const CompressedAttention& a) {
  std::int64_t n = a.q_down.parameters() + parameters(a.q_norm) + a.q_up.parameters() +
                   a.kv.parameters() + parameters(a.kv_norm) + a.o_down.parameters() +
                   a.o_up.parameters() + (a.sinks ? a.heads : 0);
  if (a.compressor) n += parameters(*a.compressor);
  if (a.indexer)
    n += a.indexer->q.parameters() + a.indexer->weights.parameters() +
         parameters(a.indexer->compressor);
  return n;
}
ByteCount bytes(const CompressedAttention& a) {
  ByteCount n = weight_bytes(a.q_down) + weight_bytes(a.q_norm) + weight_bytes(a.q_up) +
                weight_bytes(a.kv) + weight_bytes(a.kv_norm) + weight_bytes(a.o_down) +
                weight_bytes(a.o_up) + ByteCount(a.sinks ? 4 * a.heads : 0);
  if (a.compressor) n += bytes(*a.compressor);
  if (a.indexer)
    n += weight_bytes(a.indexer->q) + weight_bytes(a.indexer->weights) +
         bytes(a.indexer->compressor);
  return n;
}

std::int64_t parameters(const RecurrentMixer& m) {
  std::int64_t n = m.vectors;
  for (const MixerLinear& l : m.projections) n += l.linear.parameters();
  return n;
}
ByteCount bytes(const RecurrentMixer& m) {
  auto own = bytes_of(m.vector_format, 1, m.vectors);
  ByteCount n = own.value_or(ByteCount());
  for (const MixerLinear& l : m.projections) n += weight_bytes(l.linear);
  return n;
}

std::int64_t parameters(const Attention& a) {
  return a.q.parameters() + a.k.parameters() + a.v.parameters() + a.o.parameters() +
         parameters(a.q_norm) + parameters(a.k_norm) + (a.sinks ? a.heads : 0) +
         parameters(a.gate) + parameters(a.indexer);
}

ByteCount bytes_of_attention(const Attention& a) {
  return weight_bytes(a.q) + weight_bytes(a.k) + weight_bytes(a.v) + weight_bytes(a.o) +
         bytes(a.q_norm) + bytes(a.k_norm) + bytes(a.gate) + bytes(a.indexer) +
         ByteCount(a.sinks ? a.heads * vector_element_bytes(a.q.format) : 0);
}

std::int64_t parameters(const SubLayer& part, bool active_only) {
  return std::visit(
      Visitor{
          [](const Norm& n) { return parameters(n); },
          [](const Attention& a) { return parameters(a); },
          [](const CrossAttention& c) { return parameters(c.attention); },
          [](const LatentAttention& a) {
            return parameters(a.q_down) + parameters(a.q_norm) + a.q_up.parameters() +
                   a.kv_down.parameters() + a.kv_up.parameters() + a.o.parameters() +
                   parameters(a.kv_norm) + parameters(a.indexer);
          },
          [](const CompressedAttention& a) { return parameters(a); },
          [](const RecurrentMixer& m) { return parameters(m); },
          [](const StreamMixer& m) { return m.mix.parameters() + m.vectors; },
          [](const Mlp& m) { return parameters(m); },
          [&](const MixtureOfExperts& m) {
            std::int64_t experts = m.up.parameters() + m.down.parameters() + parameters(m.gate);
            if (active_only && m.experts > 0) experts = experts / m.experts * m.active;
            return experts + m.router.parameters() + (m.router_bias ? m.experts : 0) +
                   (m.shared ? parameters(*m.shared) : 0) + parameters(m.shared_gate) +
                   parameters(m.latent_in) + parameters(m.latent_out);
          },
      },
      part);
}

ByteCount bytes_of_mlp(const Mlp& m) {
  return weight_bytes(m.up) + weight_bytes(m.down) + bytes(m.gate);
}

ByteCount bytes_of_part(const SubLayer& part) {
  return std::visit(
      Visitor{
          [](const Norm& n) { return weight_bytes(n); },
          [](const Attention& a) { return bytes_of_attention(a); },
          [](const CrossAttention& c) { return bytes_of_attention(c.attention); },
          [](const LatentAttention& a) {
            return bytes(a.q_down) + bytes(a.q_norm) + weight_bytes(a.q_up) +
                   weight_bytes(a.kv_down) + weight_bytes(a.kv_up) + weight_bytes(a.o) +
                   weight_bytes(a.kv_norm) + bytes(a.indexer);
          },
          [](const CompressedAttention& a) { return bytes(a); },
          [](const RecurrentMixer& m) { return bytes(m); },
          [](const StreamMixer& m) { return weight_bytes(m.mix) + ByteCount(4 * m.vectors); },
          [](const Mlp& m) { return bytes_of_mlp(m); },
          [](const MixtureOfExperts& m) {
            // The correction bias is kept in 32 bit.
            return weight_bytes(m.up) + weight_bytes(m.down) + bytes(m.gate) +
                   weight_bytes(m.router) + ByteCount(m.router_bias ? 4 * m.experts : 0) +
                   (m.shared ? bytes_of_mlp(*m.shared) : ByteCount()) + bytes(m.shared_gate) +
                   bytes(m.latent_in) + bytes(m.latent_out);
          },
      },
      part);
}

std::int64_t outside_layers(const Stack& s) {
  std::int64_t n = parameters(s.embedding) + parameters(s.positions) + parameters(s.head) +
                   parameters(s.embedding_norm) + parameters(s.relative_norm) +
                   parameters(s.token_types) + parameters(s.relative_positions) +
                   (s.tied_bias ? s.vocabulary : 0);
  for (const FrontEnd& f : s.front) n += f.linear.parameters() + parameters(f.norm);
  for (const Tail& t : s.tail) n += t.linear.parameters() + parameters(t.norm);
  for (const Norm& norm : s.final_norms) n += parameters(norm);
  for (const Linear& l : s.projections) n += l.parameters();
  return n;
}

void add_indexer(std::vector<NamedLinear>& out, const std::optional<SparseIndexer>& i) {
  if (!i) return;
  out.push_back({"indexer.q", &i->q});
  out.push_back({"indexer.k", &i->k});
  if (i->weights.out > 0) out.push_back({"indexer.weights", &i->weights});
}

void add_attention(std::vector<NamedLinear>& out, const Attention& a, bool cross) {
  out.push_back({cross ? "cross.q" : "q", &a.q});
  out.push_back({cross ? "cross.k" : "k", &a.k});
  if (!a.keys_are_values) out.push_back({cross ? "cross.v" : "v", &a.v});
  if (a.gate) out.push_back({"o_gate", &*a.gate});
  add_indexer(out, a.indexer);
  out.push_back({cross ? "cross.o" : "o", &a.o});
}

void add_mlp(std::vector<NamedLinear>& out, const Mlp& m, bool shared) {
  if (m.gate) out.push_back({shared ? "shared.gate" : "gate", &*m.gate});
  out.push_back({shared ? "shared.up" : "up", &m.up});
  out.push_back({shared ? "shared.down" : "down", &m.down});
}

void add_compressed(std::vector<NamedLinear>& out, const CompressedAttention& a) {
  out.push_back({"q_down", &a.q_down});
  out.push_back({"q_up", &a.q_up});
  out.push_back({"kv", &a.kv});
  if (a.compressor) {
    out.push_back({"compressor.kv", &a.compressor->keys});
    out.push_back({"compressor.gate", &a.compressor->gate});
  }
  if (a.indexer) {
    out.push_back({"indexer.q", &a.indexer->q});
    out.push_back({"indexer.kv", &a.indexer->compressor.keys});
    out.push_back({"indexer.gate", &a.indexer->compressor.gate});
    out.push_back({"indexer.weights", &a.indexer->weights});
  }
  out.push_back({"o_down", &a.o_down});
  out.push_back({"o_up", &a.o_up});
}

}  // namespace

std::int64_t count_parameters(const Layer& l) {
  std::int64_t n = 0;
  for (const SubLayer& part : l.parts) n += parameters(part, false);
  return n;
}

std::int64_t active_parameters(const Layer& l) {
  std::int64_t n = 0;
  for (const SubLayer& part : l.parts) n += parameters(part, true);
  return n;
}

ParameterCount count_parameters(const Stack& s) {
  ParameterCount c;
  c.total = c.active = outside_layers(s);
  c.embedding = parameters(s.embedding);
  for (const LayerRun& r : s.runs) {
    c.total += r.stored() * count_parameters(r.layer);
    c.active += r.stored() * active_parameters(r.layer);
  }
  return c;
}

ParameterCount count_parameters(const Model& m) {
  ParameterCount c;
  for (const Component& component : m.components) {
    // Published totals leave the layers for multi-token prediction out.
    if (component.role == ComponentRole::draft) continue;
    if (auto s = std::get_if<Stack>(&component.body)) {
      ParameterCount one = count_parameters(*s);
      c.total += one.total;
      c.active += one.active;
      c.embedding += one.embedding;
    } else if (auto g = std::get_if<Graph>(&component.body)) {
      const std::int64_t one = count_parameters(*g);
      c.total += one;
      c.active += one;
    }
  }
  return c;
}

std::vector<NamedLinear> linears_of(const Layer& l) {
  std::vector<NamedLinear> out;
  for (const SubLayer& part : l.parts)
    std::visit(Visitor{
                   [](const Norm&) {},
                   [&](const Attention& a) { add_attention(out, a, false); },
                   [&](const CrossAttention& c) { add_attention(out, c.attention, true); },
                   [&](const LatentAttention& a) {
                     if (a.q_down) out.push_back({"q_down", &*a.q_down});
                     out.push_back({"q_up", &a.q_up});
                     out.push_back({"kv_down", &a.kv_down});
                     out.push_back({"kv_up", &a.kv_up});
                     add_indexer(out, a.indexer);
                     out.push_back({"o", &a.o});
                   },
                   [&](const CompressedAttention& a) { add_compressed(out, a); },
                   [&](const RecurrentMixer& m) {
                     for (const MixerLinear& p : m.projections) out.push_back({p.role, &p.linear});
                   },
                   [&](const StreamMixer& m) {
                     out.push_back({"stream_mix", &m.mix});
                   },
                   [&](const Mlp& m) { add_mlp(out, m, false); },
                   [&](const MixtureOfExperts& m) {
                     out.push_back({"router", &m.router});
                     if (m.gate) out.push_back({"experts.gate", &*m.gate});
                     out.push_back({"experts.up", &m.up});
                     out.push_back({"experts.down", &m.down});
                     if (m.shared) add_mlp(out, *m.shared, true);
                     if (m.shared_gate) out.push_back({"shared_gate", &*m.shared_gate});
                     if (m.latent_in) out.push_back({"experts.latent_in", &*m.latent_in});
                     if (m.latent_out) out.push_back({"experts.latent_out", &*m.latent_out});
                   },
               },
               part);
  return out;
}

ByteCount weight_bytes(const Linear& l) {
  auto one = bytes_of(l.format, l.out, l.in);
  if (!one) broken_invariant("a weight has no size", l.in, l.out);
  return (*one + ByteCount(l.bias ? l.out * vector_element_bytes(l.format) : 0)) * l.count;
}

ByteCount weight_bytes(const Norm& n) {
  auto bytes = bytes_of(n.format, 1, n.width * (n.bias ? 2 : 1));
  if (!bytes) broken_invariant("a norm has no size", n.width, 0);
  return *bytes;
}

ByteCount embedding_bytes(const Linear& l) {
  auto bytes = bytes_of(l.format, l.in, l.out);
  if (!bytes) broken_invariant("an embedding has no size", l.in, l.out);
  return *bytes;
}

ByteCount weight_bytes(const Layer& l) {
  ByteCount total;
  for (const SubLayer& part : l.parts) total += bytes_of_part(part);
  return total;
}

ByteCount weight_bytes(const Stack& s) {
  ByteCount total = bytes(s.head) + bytes(s.embedding_norm) + bytes(s.relative_norm);
  if (s.token_types) total += embedding_bytes(*s.token_types);
  if (s.relative_positions) total += embedding_bytes(*s.relative_positions);
  for (const FrontEnd& f : s.front) total += weight_bytes(f.linear) + bytes(f.norm);
  for (const Tail& t : s.tail) total += weight_bytes(t.linear) + bytes(t.norm);
  if (s.tied_bias && s.embedding)
    total += ByteCount(s.vocabulary * vector_element_bytes(s.embedding->format));
  if (s.embedding) total += embedding_bytes(*s.embedding);
  if (s.positions) total += embedding_bytes(*s.positions);
  for (const Norm& n : s.final_norms) total += weight_bytes(n);
  for (const Linear& l : s.projections) total += weight_bytes(l);
  for (const LayerRun& r : s.runs) total += weight_bytes(r.layer) * r.stored();
  return total;
}

const char* mixer_name(MixerKind k) {
  switch (k) {
    case MixerKind::selective_scan:
      return "mamba";
    case MixerKind::state_space:
      return "mamba-2";
    case MixerKind::linear_attention:
      return "linear attention";
    case MixerKind::gated_delta:
      return "gated delta";
    case MixerKind::gated_linear:
      return "gated recurrence";
    case MixerKind::convolution:
      return "convolution";
  }
  return "";
}

namespace {
const Stack* first_stack(const Model& m, ComponentRole role) {
  for (const Component& c : m.components)
    if (c.role == role)
      if (auto s = std::get_if<Stack>(&c.body)) return s;
  return nullptr;
}
}  // namespace

const Stack* language_stack(const Model& m) {
  const Stack* s = first_stack(m, ComponentRole::language_model);
  return s ? s : first_stack(m, ComponentRole::encoder);
}

const Stack* source_stack(const Model& m) {
  return first_stack(m, ComponentRole::language_model) ? first_stack(m, ComponentRole::encoder)
                                                       : nullptr;
}

std::vector<const Stack*> stacks_in_order(const Model& m) {
  std::vector<const Stack*> out;
  if (const Stack* s = source_stack(m)) out.push_back(s);
  if (const Stack* s = language_stack(m)) out.push_back(s);
  return out;
}

bool has_experts(const Stack& s) {
  for (const LayerRun& r : s.runs)
    for (const SubLayer& p : r.layer.parts)
      if (std::holds_alternative<MixtureOfExperts>(p)) return true;
  return false;
}

}  // namespace trigon
