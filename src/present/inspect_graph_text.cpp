// What a graph holds, as text and JSON.

#include "present/inspect_graph.hpp"

#include "present/numbers.hpp"

namespace trigon {
namespace {

std::string shapes_text(const std::vector<TensorShape>& shapes) {
  std::string out;
  for (const TensorShape& s : shapes) out += (out.empty() ? "" : ", ") + sizes_text(s);
  return out;
}

JsonNode shape_json(const TensorShape& shape) {
  JsonNode out = JsonNode::array();
  for (std::int64_t d : shape) out.add(d);
  return out;
}

JsonNode shapes_json(const std::vector<TensorShape>& shapes) {
  JsonNode out = JsonNode::array();
  for (const TensorShape& s : shapes) out.add(shape_json(s));
  return out;
}

PresentMessage unit_word(WorkUnit u) {
  switch (u) {
    case WorkUnit::sequence:
      return PresentMessage::unit_sequence;
    case WorkUnit::image:
      return PresentMessage::unit_image;
    case WorkUnit::volume:
      return PresentMessage::unit_volume;
    case WorkUnit::sample:
      return PresentMessage::unit_sample;
    case WorkUnit::utterance:
      return PresentMessage::unit_utterance;
  }
  return PresentMessage::unit_sample;
}

const char* unit_name(WorkUnit u) {
  switch (u) {
    case WorkUnit::sequence:
      return "sequence";
    case WorkUnit::image:
      return "image";
    case WorkUnit::volume:
      return "volume";
    case WorkUnit::sample:
      return "sample";
    case WorkUnit::utterance:
      return "utterance";
  }
  return "sample";
}

}  // namespace

std::string sizes_text(const std::vector<std::int64_t>& shape) {
  std::string out;
  for (std::int64_t d : shape) out += (out.empty() ? "" : " x ") + std::to_string(d);
  return out.empty() ? "-" : out;
}

std::string item_text(const Item& item, Language l) {
  std::string out(label(unit_word(item.unit), l));
  if (!item.size.empty()) out += ", " + sizes_text(item.size);
  if (item.audio_seconds > 0) out += ", " + in_words(item.audio_seconds, "s");
  if (item.steps > 1)
    out += ", " + say(PresentMessage::inspect_steps, l, {std::to_string(item.steps)});
  return out;
}

void put_graph_lines(std::vector<std::pair<std::string, std::string>>& lines,
                     const GraphDescription& g, const ModelDescription& m, Language l) {
  auto name = [&](PresentMessage id) { return std::string(label(id, l)); };
  if (m.item) lines.emplace_back(name(PresentMessage::inspect_item), item_text(*m.item, l));
  lines.emplace_back(name(PresentMessage::inspect_inputs), shapes_text(g.inputs));
  lines.emplace_back(name(PresentMessage::inspect_outputs), shapes_text(g.outputs));
  if (g.each_step || g.rows > 1)
    lines.emplace_back(
        name(PresentMessage::inspect_runs),
        say(g.each_step ? PresentMessage::inspect_each_step : PresentMessage::inspect_once, l,
            {std::to_string(g.rows)}));
  lines.emplace_back(name(PresentMessage::inspect_macs),
                     significant(g.multiply_accumulates / 1e9) + " GMAC");
  lines.emplace_back(name(PresentMessage::inspect_flops), in_words(g.flops, "FLOP"));
  lines.emplace_back(name(PresentMessage::inspect_written),
                     in_words(g.written.as_bytes().in_base(), "B"));
}

void put_graph_tables(Page& page, const GraphDescription& g) {
  const Language l = page.language();
  auto name = [&](PresentMessage id) { return std::string(label(id, l)); };
  auto giga = [](double v) { return significant(v / 1e9); };
  page.heading(label(PresentMessage::heading_operators, l));
  Table t({{name(PresentMessage::col_kind)},
           {name(PresentMessage::col_nodes), true},
           {name(PresentMessage::col_parameters), true},
           {name(PresentMessage::col_weights_mib), true, 1},
           {"GMAC", true},
           {"GFLOP", true},
           {name(PresentMessage::col_written_mib), true, 2}});
  for (const OperatorShare& s : g.operators)
    t.row({s.kind, whole(s.nodes), short_count(static_cast<double>(s.parameters)),
           significant(s.weights.as_bytes().in_base() / kMi), giga(s.multiply_accumulates),
           giga(s.flops), significant(s.written.as_bytes().in_base() / kMi)});
  page.table(t, 2, page.style().top);
  page.heading(label(PresentMessage::heading_largest_nodes, l));
  Table n({{name(PresentMessage::col_name), false, 0, 20},
           {name(PresentMessage::col_kind)},
           {name(PresentMessage::col_shape), false, 1},
           {name(PresentMessage::col_parameters), true},
           {"GMAC", true},
           {"GFLOP", true}});
  for (const NodeDescription& d : g.largest)
    n.row({printable(d.name), d.kind, sizes_text(d.output),
           short_count(static_cast<double>(d.parameters)), giga(d.multiply_accumulates),
           giga(d.flops)});
  page.table(n, 2, page.style().top);
}

JsonNode item_json(const Item& item) {
  return JsonNode::object()
      .set("unit", unit_name(item.unit))
      .set("size", shape_json(item.size))
      .set("steps", item.steps)
      .set("audio_seconds", item.audio_seconds);
}

JsonNode graph_json(const GraphDescription& g) {
  JsonNode operators = JsonNode::array(), largest = JsonNode::array();
  for (const OperatorShare& s : g.operators)
    operators.add(JsonNode::object()
                      .set("kind", s.kind)
                      .set("nodes", s.nodes)
                      .set("parameters", s.parameters)
                      .set("weights_bytes", s.weights.value())
                      .set("multiply_accumulates", s.multiply_accumulates)
                      .set("flops", s.flops)
                      .set("written_bytes", s.written.value()));
  for (const NodeDescription& d : g.largest)
    largest.add(JsonNode::object()
                    .set("name", d.name)
                    .set("kind", d.kind)
                    .set("output", shape_json(d.output))
                    .set("parameters", d.parameters)
                    .set("multiply_accumulates", d.multiply_accumulates)
                    .set("flops", d.flops));
  return JsonNode::object()
      .set("inputs", shapes_json(g.inputs))
      .set("outputs", shapes_json(g.outputs))
      .set("nodes", g.nodes)
      .set("each_step", g.each_step)
      .set("rows", g.rows)
      .set("multiply_accumulates", g.multiply_accumulates)
      .set("flops", g.flops)
      .set("written_bytes", g.written.value())
      .set("operators", operators)
      .set("largest_nodes", largest);
}

}  // namespace trigon
