#pragma once
// Small builders of published models for the tests of this room.

#include "memory/memory_model.hpp"
#include "model/model.hpp"

namespace trigon::test {

inline Linear linear(std::int64_t in, std::int64_t out, Split split, std::int64_t count = 1,
                     Format format = Format::bf16) {
  Linear l;
  l.in = in;
  l.out = out;
  l.split = split;
  l.count = count;
  l.format = format;
  return l;
}

struct Shape {
  std::int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary;
  bool tied = false;
  std::optional<std::int64_t> window{};
  std::int64_t experts = 0, active = 0;
  Format format = Format::bf16;
};

inline Layer decoder_layer(const Shape& s) {
  Layer layer;
  Norm norm{s.hidden, false, Format::bf16};
  Attention a;
  a.heads = s.heads;
  a.kv_heads = s.kv_heads;
  a.head_dim = a.value_dim = s.head_dim;
  a.q = linear(s.hidden, s.heads * s.head_dim, Split::column, 1, s.format);
  a.k = a.v = linear(s.hidden, s.kv_heads * s.head_dim, Split::column, 1, s.format);
  a.o = linear(s.heads * s.head_dim, s.hidden, Split::row, 1, s.format);
  a.window = s.window;
  layer.parts = {norm, a, norm};
  if (s.experts > 0) {
    MixtureOfExperts m;
    m.experts = s.experts;
    m.active = s.active;
    m.width = s.ffn;
    m.router = linear(s.hidden, s.experts, Split::replicated);
    m.up = linear(s.hidden, s.ffn, Split::expert, s.experts, s.format);
    m.gate = m.up;
    m.down = linear(s.ffn, s.hidden, Split::expert, s.experts, s.format);
    layer.parts.push_back(m);
  } else {
    Mlp m;
    m.width = s.ffn;
    m.up = linear(s.hidden, s.ffn, Split::column, 1, s.format);
    m.gate = m.up;
    m.down = linear(s.ffn, s.hidden, Split::row, 1, s.format);
    layer.parts.push_back(m);
  }
  return layer;
}

inline Model decoder(const std::string& id, const Shape& s) {
  Stack stack;
  stack.hidden = s.hidden;
  stack.vocabulary = s.vocabulary;
  stack.runs = {{decoder_layer(s), s.layers}};
  stack.embedding = linear(s.vocabulary, s.hidden, Split::vocabulary);
  stack.final_norms = {Norm{s.hidden, false, Format::bf16}};
  if (s.tied)
    stack.tied = true;
  else
    stack.head = linear(s.hidden, s.vocabulary, Split::vocabulary);
  stack.max_context = 131072;
  Model m;
  m.id = id;
  m.architecture = "LlamaForCausalLM";
  m.weight_format = s.format;
  m.components = {{"language model", ComponentRole::language_model, stack}};
  return m;
}

inline Model llama2_7b() { return decoder("llama-2-7b", {32, 4096, 32, 32, 128, 11008, 32000}); }
inline Model llama31_8b() { return decoder("llama-3.1-8b", {32, 4096, 32, 8, 128, 14336, 128256}); }
inline Model mixtral_8x7b() {
  return decoder("mixtral-8x7b", {32, 4096, 32, 8, 128, 14336, 32000, false, std::nullopt, 8, 2});
}

// DeepSeek-V3: three dense layers, then 256 experts of which 8 are active and one shared.
inline Model deepseek_v3() {
  Shape s{61, 7168, 128, 128, 192, 18432, 129280};
  LatentAttention a;
  a.heads = 128;
  a.q_lora_rank = 1536;
  a.kv_lora_rank = 512;
  a.nope_dim = 128;
  a.rope_dim = 64;
  a.value_dim = 128;
  a.q_down = linear(7168, 1536, Split::replicated);
  a.q_norm = Norm{1536, false, Format::bf16};
  a.q_up = linear(1536, 128 * 192, Split::column);
  a.kv_down = linear(7168, 576, Split::replicated);
  a.kv_norm = Norm{512, false, Format::bf16};
  a.kv_up = linear(512, 128 * 256, Split::column);
  a.o = linear(128 * 128, 7168, Split::row);
  Model m = decoder("deepseek-v3", s);
  Stack& stack = std::get<Stack>(m.components[0].body);
  Norm norm{7168, false, Format::bf16};
  Layer dense = decoder_layer(s);
  dense.parts[1] = a;
  Layer sparse;
  MixtureOfExperts x;
  x.experts = 256;
  x.active = 8;
  x.width = 2048;
  x.router_bias = true;
  x.router = linear(7168, 256, Split::replicated);
  x.up = linear(7168, 2048, Split::expert, 256);
  x.gate = x.up;
  x.down = linear(2048, 7168, Split::expert, 256);
  Mlp shared;
  shared.width = 2048;
  shared.up = linear(7168, 2048, Split::column);
  shared.gate = shared.up;
  shared.down = linear(2048, 7168, Split::row);
  x.shared = shared;
  sparse.parts = {norm, a, norm, x};
  stack.runs = {{dense, 3}, {sparse, 58}};
  return m;
}

inline Serve serve(std::int64_t input, std::int64_t output) {
  Serve s;
  s.concurrency = 1;
  s.input_tokens = input;
  s.output_tokens = output;
  return s;
}

inline Cluster cluster(int per_node, int nodes = 1) {
  Cluster c;
  c.per_node = per_node;
  c.nodes = nodes;
  return c;
}

inline Range exactly_gib(double gib) { return {gib * kGi, gib * kGi, gib * kGi}; }

}  // namespace trigon::test
