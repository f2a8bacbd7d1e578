#include "model/inspect.hpp"

#include <algorithm>
#include <map>

#include "model/json_value.hpp"
#include "model/safetensors.hpp"

namespace trigon {
namespace {

std::string name_of(Format f) { return std::string(info(f).name); }

WeightDescription describe_weight(std::string role, const Linear& l, ByteCount bytes) {
  return {std::move(role), l.in, l.out, l.count, name_of(l.format), l.parameters(), bytes};
}

struct Sums {
  std::map<std::string, FormatShare> by_format;
  void add(const std::string& format, std::int64_t tensors, std::int64_t parameters,
           ByteCount bytes) {
    FormatShare& s = by_format[format];
    s.format = format;
    s.tensors += tensors;
    s.parameters += parameters;
    s.bytes += bytes;
  }
  std::vector<FormatShare> sorted() const {
    std::vector<FormatShare> out;
    for (const auto& [name, share] : by_format) out.push_back(share);
    std::stable_sort(out.begin(), out.end(),
                     [](const FormatShare& a, const FormatShare& b) { return a.bytes > b.bytes; });
    return out;
  }
};

void describe_parts(const Layer& layer, LayerRunDescription& d) {
  auto join = [&](const char* word) { d.kind += (d.kind.empty() ? "" : "+") + std::string(word); };
  for (const SubLayer& part : layer.parts) {
    if (auto a = std::get_if<Attention>(&part)) {
      join("attention");
      d.heads = a->heads;
      d.kv_heads = a->kv_heads;
      d.head_dim = a->head_dim;
    } else if (auto l = std::get_if<LatentAttention>(&part)) {
      join("latent attention");
      d.heads = d.kv_heads = l->heads;
      d.head_dim = l->nope_dim + l->rope_dim;
    } else if (std::holds_alternative<CrossAttention>(part)) {
      join("cross-attention");
    } else if (auto c = std::get_if<CompressedAttention>(&part)) {
      join(c->indexer ? "sparse attention" : c->compressor ? "compressed attention" : "attention");
      d.heads = c->heads;
      d.kv_heads = 1;
      d.head_dim = c->head_dim;
    } else if (auto r = std::get_if<RecurrentMixer>(&part)) {
      join(mixer_name(r->kind));
      if (d.heads == 0) {
        d.heads = r->heads;
        d.head_dim = r->head_dim;
      }
    } else if (auto m = std::get_if<Mlp>(&part)) {
      join("mlp");
      d.ffn = m->width;
    } else if (auto e = std::get_if<MixtureOfExperts>(&part)) {
      join("experts");
      d.ffn = e->width;
      d.experts = e->experts;
      d.active = e->active;
    }
  }
}

LayerRunDescription describe_run(const LayerRun& r, std::int64_t first) {
  LayerRunDescription d;
  d.first = first;
  d.count = r.count;
  d.stored = r.stored();
  describe_parts(r.layer, d);
  d.parameters = count_parameters(r.layer);
  d.bytes = weight_bytes(r.layer);
  std::int64_t named = 0, named_bytes = 0;
  for (const NamedLinear& l : linears_of(r.layer)) {
    ByteCount bytes = weight_bytes(*l.linear);
    named += l.linear->parameters();
    named_bytes += bytes.value();
    d.weights.push_back(describe_weight(l.role, *l.linear, bytes));
  }
  if (d.parameters > named) {
    // Norms, sinks and correction biases.
    WeightDescription rest{
        "norms", 0, 0, 1, "", d.parameters - named, ByteCount(d.bytes.value() - named_bytes)};
    Format f = Format::bf16;
    for (const SubLayer& part : r.layer.parts)
      if (auto n = std::get_if<Norm>(&part)) f = n->format;
    rest.format = name_of(f);
    d.weights.push_back(std::move(rest));
  }
  return d;
}

std::vector<WeightDescription> describe_outside(const Stack& s) {
  std::vector<WeightDescription> out;
  if (s.embedding)
    out.push_back(describe_weight("embedding", *s.embedding, embedding_bytes(*s.embedding)));
  if (s.positions)
    out.push_back(describe_weight("positions", *s.positions, embedding_bytes(*s.positions)));
  if (s.relative_positions)
    out.push_back(describe_weight("relative_positions", *s.relative_positions,
                                  embedding_bytes(*s.relative_positions)));
  if (s.token_types)
    out.push_back(describe_weight("token_types", *s.token_types, embedding_bytes(*s.token_types)));
  for (const FrontEnd& f : s.front)
    out.push_back(describe_weight("front", f.linear, weight_bytes(f.linear)));
  for (const Linear& l : s.projections)
    out.push_back(describe_weight("projection", l, weight_bytes(l)));
  for (const Tail& t : s.tail)
    out.push_back(describe_weight(t.name, t.linear, weight_bytes(t.linear)));
  auto norm = [&](const char* role, const Norm& n) {
    out.push_back({role, n.width, n.bias ? 2 : 1, 1, name_of(n.format), n.width * (n.bias ? 2 : 1),
                   weight_bytes(n)});
  };
  if (s.tied_bias && s.embedding) norm("head_bias", Norm{s.vocabulary, false, s.embedding->format});
  if (s.embedding_norm) norm("embedding_norm", *s.embedding_norm);
  if (s.relative_norm) norm("relative_norm", *s.relative_norm);
  for (const FrontEnd& f : s.front)
    if (f.norm) norm("front_norm", *f.norm);
  for (const Norm& n : s.final_norms) norm("final_norm", n);
  for (const Tail& t : s.tail)
    if (t.norm) norm("tail_norm", *t.norm);
  if (s.head) out.push_back(describe_weight("head", *s.head, weight_bytes(*s.head)));
  return out;
}

ComponentDescription describe_stack(const Component& c, const Stack& s, Format kv) {
  ComponentDescription d;
  d.name = c.name;
  d.layers = s.layers();
  d.hidden = s.hidden;
  d.vocabulary = s.vocabulary;
  d.max_context = s.max_context;
  d.tied = s.tied;
  d.parameters = count_parameters(s);
  d.bytes = weight_bytes(s);
  d.outside = describe_outside(s);
  d.kv_bytes_per_token = kv_bytes_per_token(s, kv);
  d.source_kv_bytes_per_token = source_kv_bytes_per_token(s, kv);
  d.bytes_per_sequence = fixed_bytes_per_sequence(s, kv);
  const CacheLayout layout = cache_layout(s);
  d.windows = layout.windows;
  Sums sums;
  for (const WeightDescription& w : d.outside) sums.add(w.format, 1, w.parameters, w.bytes);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < s.runs.size(); ++i) {
    LayerRunDescription r = describe_run(s.runs[i], first);
    r.cache = layout.runs[i];
    first += s.runs[i].count;
    for (const WeightDescription& w : r.weights)
      sums.add(w.format, r.stored, r.stored * w.parameters, w.bytes * r.stored);
    d.runs.push_back(std::move(r));
  }
  d.formats = sums.sorted();
  return d;
}

}  // namespace

ModelDescription describe(const Model& m, std::optional<Format> kv) {
  ModelDescription d;
  d.id = m.id;
  d.architecture = m.architecture;
  d.source = m.source;
  d.weight_format = name_of(m.weight_format);
  const Format cache = kv.value_or(m.kv_format.value_or(Format::bf16));
  d.kv_format = name_of(cache);
  d.parameters = count_parameters(m);
  d.stored_bytes = m.stored_bytes;
  d.item = m.item;
  d.notes = m.notes;
  for (const Component& c : m.components)
    if (auto s = std::get_if<Stack>(&c.body))
      d.components.push_back(describe_stack(c, *s, cache));
    else
      d.components.push_back(describe_graph(c, std::get<Graph>(c.body)));
  Sums sums;
  for (const Tensor& t : m.tensors) {
    if (t.stored_type.empty()) continue;  // a bare name of an index
    sums.add(printable(t.stored_type, 32), 1, stored_parameters(t).count,
             t.bytes.value_or(ByteCount()));
  }
  d.stored = sums.sorted();
  d.tensors = m.tensors;
  for (Tensor& t : d.tensors) t.name = printable(t.name, 400);
  if (d.components.empty())
    for (const FormatShare& s : d.stored) {
      d.parameters.total += s.parameters;
      d.parameters.active += s.parameters;
    }
  return d;
}

std::vector<ExpectedTensor> tensors_of(const Stack& s) {
  std::vector<ExpectedTensor> out;
  auto outside = [&](const char* role, const Linear& l, ByteCount bytes) {
    out.push_back({std::nullopt, role, l.parameters(), bytes, l.format, l.split});
  };
  if (s.embedding) outside("embedding", *s.embedding, embedding_bytes(*s.embedding));
  if (s.positions) outside("positions", *s.positions, embedding_bytes(*s.positions));
  for (const Linear& l : s.projections) outside("projection", l, weight_bytes(l));
  std::int64_t layer = 0;
  if (s.relative_positions)
    outside("relative_positions", *s.relative_positions, embedding_bytes(*s.relative_positions));
  if (s.token_types) outside("token_types", *s.token_types, embedding_bytes(*s.token_types));
  for (const FrontEnd& f : s.front) outside("front", f.linear, weight_bytes(f.linear));
  for (const Tail& t : s.tail) outside("tail", t.linear, weight_bytes(t.linear));
  for (const LayerRun& r : s.runs)
    for (std::int64_t i = 0; i < r.stored(); ++i, ++layer) {
      std::int64_t parameters = count_parameters(r.layer), bytes = weight_bytes(r.layer).value();
      for (const NamedLinear& l : linears_of(r.layer)) {
        ByteCount own = weight_bytes(*l.linear);
        out.push_back(
            {layer, l.role, l.linear->parameters(), own, l.linear->format, l.linear->split});
        parameters -= l.linear->parameters();
        bytes -= own.value();
      }
      if (parameters > 0)
        out.push_back(
            {layer, "norms", parameters, ByteCount(bytes), Format::bf16, Split::replicated});
    }
  auto norm = [&](const char* role, const Norm& n) {
    out.push_back({std::nullopt, role, n.width * (n.bias ? 2 : 1), weight_bytes(n), n.format,
                   Split::replicated});
  };
  if (s.embedding_norm) norm("embedding_norm", *s.embedding_norm);
  for (const Norm& n : s.final_norms) norm("final_norm", n);
  if (s.head) outside("head", *s.head, weight_bytes(*s.head));
  return out;
}

}  // namespace trigon
