#include <algorithm>

#include "present/inspect_graph.hpp"
#include "present/inspect_report.hpp"
#include "present/numbers.hpp"
#include "present/page.hpp"

namespace trigon {
namespace {

std::string size_text(ByteCount b) { return in_words(b.as_bytes().in_base(), "B"); }
// Exact count beside the short one: "8.03B (8,030,261,248)".
std::string count_text(std::int64_t n) {
  std::string exact = whole(n), brief = short_count(static_cast<double>(n));
  return exact == brief ? exact : brief + " (" + exact + ")";
}

std::string or_dash(std::int64_t n) { return n ? std::to_string(n) : std::string("-"); }

void put_formats(Page& page, PresentMessage heading, const std::vector<FormatShare>& formats) {
  if (formats.empty()) return;
  Language l = page.language();
  auto name = [&](PresentMessage id) { return std::string(label(id, l)); };
  page.heading(label(heading, l));
  Table t({{name(PresentMessage::col_type)},
           {name(PresentMessage::col_tensors), true},
           {name(PresentMessage::col_parameters), true},
           {"GiB", true}});
  for (const FormatShare& f : formats)
    t.row({printable(f.format), whole(f.tensors), short_count(static_cast<double>(f.parameters)),
           significant(f.bytes.as_bytes().in_base() / kGi)});
  page.table(t, 2);
}

void put_component(Page& page, const ComponentDescription& c, const ModelDescription& m) {
  Language l = page.language();
  auto name = [&](PresentMessage id) { return std::string(label(id, l)); };
  if (m.components.size() > 1) page.heading(say(PresentMessage::heading_component, l, {c.name}));
  std::vector<std::pair<std::string, std::string>> lines;
  if (c.graph)
    put_graph_lines(lines, *c.graph, m, l);
  else
    lines.emplace_back(name(PresentMessage::inspect_shape),
                       whole(c.layers) + ", " + whole(c.hidden) + ", " + whole(c.vocabulary));
  lines.emplace_back(name(PresentMessage::col_parameters), count_text(c.parameters.total));
  if (c.parameters.active != c.parameters.total)
    lines.emplace_back(name(PresentMessage::col_active), count_text(c.parameters.active));
  if (!c.graph)
    lines.emplace_back(name(PresentMessage::inspect_embedding),
                       count_text(c.parameters.embedding) +
                           (c.tied ? "; " + name(PresentMessage::inspect_tied) : std::string()));
  lines.emplace_back(name(PresentMessage::inspect_size), size_text(c.bytes));
  if (m.stored_bytes)
    lines.emplace_back(name(PresentMessage::inspect_stored), size_text(*m.stored_bytes));
  if (!c.graph)
    lines.emplace_back(
        say(c.windows ? PresentMessage::inspect_kv_windowed : PresentMessage::inspect_kv, l,
            {m.kv_format}),
        in_words(c.kv_bytes_per_token, "B"));
  if (c.bytes_per_sequence > 0)
    lines.emplace_back(name(PresentMessage::inspect_state), in_words(c.bytes_per_sequence, "B"));
  if (c.max_context)
    lines.emplace_back(name(PresentMessage::inspect_context),
                       in_words(static_cast<double>(*c.max_context), "tokens"));
  if (!m.source.empty()) lines.emplace_back(name(PresentMessage::inspect_source), m.source);
  int width = 0;
  for (const auto& line : lines) width = std::max(width, display_width(line.first));
  for (const auto& [what, text] : lines)
    page.paragraph(what +
                       std::string(static_cast<std::size_t>(width - display_width(what) + 2), ' ') +
                       printable(text),
                   Tone::plain, 2, width + 2);

  if (c.graph) {
    put_graph_tables(page, *c.graph);
    put_formats(page, PresentMessage::heading_formats, c.formats);
    return;
  }
  page.heading(label(PresentMessage::heading_layers, l));
  Table t({{name(PresentMessage::col_layers), true},
           {name(PresentMessage::col_kind)},
           {name(PresentMessage::col_heads), true, 2},
           {name(PresentMessage::col_kv_heads), true, 2},
           {name(PresentMessage::col_head_dim), true, 3},
           {name(PresentMessage::col_ffn), true, 1},
           {name(PresentMessage::col_experts), true, 1},
           {name(PresentMessage::col_parameters), true},
           {"MiB", true}});
  for (const LayerRunDescription& r : c.runs)
    t.row({r.count == 1 ? std::to_string(r.first)
                        : std::to_string(r.first) + "-" + std::to_string(r.first + r.count - 1),
           printable(r.kind), or_dash(r.heads), or_dash(r.kv_heads), or_dash(r.head_dim),
           or_dash(r.ffn),
           r.experts ? std::to_string(r.active) + " of " + std::to_string(r.experts)
                     : std::string("-"),
           short_count(static_cast<double>(r.parameters)),
           significant(r.bytes.as_bytes().in_base() / kMi)});
  page.table(t, 2, page.style().top);
  if (!c.outside.empty()) {
    page.heading(label(PresentMessage::heading_outside, l));
    Table o({{name(PresentMessage::col_role)},
             {name(PresentMessage::col_shape)},
             {name(PresentMessage::col_type)},
             {name(PresentMessage::col_parameters), true},
             {"MiB", true}});
    for (const WeightDescription& w : c.outside)
      o.row({printable(w.role), w.in && w.out ? sizes_text({w.in, w.out}) : std::string("-"),
             printable(w.format), short_count(static_cast<double>(w.parameters)),
             significant(w.bytes.as_bytes().in_base() / kMi)});
    page.table(o, 2);
  }
  put_formats(page, PresentMessage::heading_formats, c.formats);
}

JsonNode parameters_json(const ParameterCount& p) {
  return JsonNode::object()
      .set("total", p.total)
      .set("active", p.active)
      .set("embedding", p.embedding);
}

JsonNode weights_json(const std::vector<WeightDescription>& weights) {
  JsonNode out = JsonNode::array();
  for (const WeightDescription& w : weights)
    out.add(JsonNode::object()
                .set("role", w.role)
                .set("in", w.in)
                .set("out", w.out)
                .set("count", w.count)
                .set("format", w.format)
                .set("parameters", w.parameters)
                .set("bytes", w.bytes.value()));
  return out;
}

JsonNode formats_json(const std::vector<FormatShare>& formats) {
  JsonNode out = JsonNode::array();
  for (const FormatShare& f : formats)
    out.add(JsonNode::object()
                .set("format", f.format)
                .set("tensors", f.tensors)
                .set("parameters", f.parameters)
                .set("bytes", f.bytes.value()));
  return out;
}

JsonNode component_json(const ComponentDescription& c) {
  JsonNode runs = JsonNode::array();
  for (const LayerRunDescription& r : c.runs)
    runs.add(JsonNode::object()
                 .set("first_layer", r.first)
                 .set("layers", r.count)
                 .set("kind", r.kind)
                 .set("heads", r.heads)
                 .set("kv_heads", r.kv_heads)
                 .set("head_dim", r.head_dim)
                 .set("ffn", r.ffn)
                 .set("experts", r.experts)
                 .set("active_experts", r.active)
                 .set("parameters_per_layer", r.parameters)
                 .set("bytes_per_layer", r.bytes.value())
                 .set("weights", weights_json(r.weights)));
  if (c.graph)
    return JsonNode::object()
        .set("name", c.name)
        .set("parameters", parameters_json(c.parameters))
        .set("weights_bytes", c.bytes.value())
        .set("graph", graph_json(*c.graph))
        .set("formats", formats_json(c.formats));
  return JsonNode::object()
      .set("name", c.name)
      .set("layers", c.layers)
      .set("hidden", c.hidden)
      .set("vocabulary", c.vocabulary)
      .set("max_context_tokens", JsonNode(c.max_context))
      .set("tied_head", c.tied)
      .set("parameters", parameters_json(c.parameters))
      .set("weights_bytes", c.bytes.value())
      .set("kv_bytes_per_token", c.kv_bytes_per_token)
      .set("bytes_per_sequence", c.bytes_per_sequence)
      .set("windows", c.windows)
      .set("runs", runs)
      .set("outside", weights_json(c.outside))
      .set("formats", formats_json(c.formats));
}

}  // namespace

std::string inspect_text(const ModelDescription& m, const TextStyle& style) {
  Language l = style.language;
  Page page(style);
  std::string total = short_count(static_cast<double>(m.parameters.total));
  std::string title =
      m.parameters.active == m.parameters.total
          ? say(PresentMessage::inspect_title, l, {m.id, m.architecture, total, m.weight_format})
          : say(PresentMessage::inspect_title_active, l,
                {m.id, m.architecture, total, short_count(static_cast<double>(m.parameters.active)),
                 m.weight_format});
  page.paragraph(title, Tone::strong);
  page.blank();
  for (const ComponentDescription& c : m.components) put_component(page, c, m);
  put_formats(page, PresentMessage::heading_stored, m.stored);
  if (!m.tensors.empty()) {
    auto name = [&](PresentMessage id) { return std::string(label(id, l)); };
    page.heading(label(PresentMessage::heading_tensors, l));
    Table t({{name(PresentMessage::col_name), false, 0, 20},
             {name(PresentMessage::col_type)},
             {name(PresentMessage::col_shape)},
             {"MiB", true, 1}});
    for (const Tensor& x : m.tensors)
      t.row({printable(x.name), printable(x.stored_type), sizes_text(x.shape),
             x.bytes ? significant(x.bytes->as_bytes().in_base() / kMi) : std::string("-")});
    page.table(t, 2, style.top);
  }
  put_messages(page, PresentMessage::heading_notes, m.notes);
  return page.finish();
}

JsonNode inspect_json(const ModelDescription& m, const Asked& asked) {
  JsonNode components = JsonNode::array(), tensors = JsonNode::array();
  for (const ComponentDescription& c : m.components) components.add(component_json(c));
  for (const Tensor& t : m.tensors) {
    JsonNode shape = JsonNode::array();
    for (std::int64_t d : t.shape) shape.add(d);
    tensors.add(JsonNode::object()
                    .set("name", t.name)
                    .set("type", t.stored_type)
                    .set("shape", shape)
                    .set("bytes", t.bytes ? JsonNode(t.bytes->value()) : JsonNode())
                    .set("file", t.file));
  }
  JsonNode results = JsonNode::object();
  results.set("id", m.id)
      .set("architecture", m.architecture)
      .set("source", m.source)
      .set("weight_format", m.weight_format)
      .set("kv_format", m.kv_format)
      .set("item", m.item ? item_json(*m.item) : JsonNode())
      .set("parameters", parameters_json(m.parameters))
      .set("stored_bytes", m.stored_bytes ? JsonNode(m.stored_bytes->value()) : JsonNode())
      .set("components", components)
      .set("stored_types", formats_json(m.stored))
      .set("tensors", tensors);
  return envelope(asked, nullptr, {}, results, m.notes);
}

}  // namespace trigon
