#include <algorithm>

#include "base/units.hpp"
#include "hardware/listing.hpp"
#include "present/catalog_report.hpp"
#include "present/numbers.hpp"
#include "present/page.hpp"

namespace trigon {
namespace {

std::string value_text(const FactValue& v) {
  struct Visitor {
    std::string operator()(bool b) const { return b ? "yes" : "no"; }
    std::string operator()(double d) const { return write_number(d); }
    std::string operator()(const std::string& s) const { return printable(s); }
    std::string operator()(const std::vector<double>& list) const {
      std::string out;
      for (double d : list) out += (out.empty() ? "" : ", ") + write_number(d);
      return out;
    }
    std::string operator()(const std::vector<std::string>& list) const {
      std::string out;
      for (const std::string& s : list) out += (out.empty() ? "" : ", ") + printable(s);
      return out;
    }
  };
  return std::visit(Visitor{}, v);
}

JsonNode value_json(const FactValue& v) {
  struct Visitor {
    JsonNode operator()(bool b) const { return b; }
    JsonNode operator()(double d) const { return d; }
    JsonNode operator()(const std::string& s) const { return s; }
    JsonNode operator()(const std::vector<double>& list) const {
      JsonNode out = JsonNode::array();
      for (double d : list) out.add(d);
      return out;
    }
    JsonNode operator()(const std::vector<std::string>& list) const {
      JsonNode out = JsonNode::array();
      for (const std::string& s : list) out.add(s);
      return out;
    }
  };
  return std::visit(Visitor{}, v);
}

JsonNode facts_json(const FactSheet& sheet, const std::vector<Fact>& facts) {
  JsonNode out = JsonNode::object();
  for (const Fact& f : facts)
    out.set(f.key, JsonNode::object()
                       .set("value", value_json(f.value))
                       .set("source", f.source.empty() ? sheet.source : f.source)
                       .set("date", f.date.empty() ? sheet.date : f.date));
  return out;
}

}  // namespace

std::string sheet_text(const FactSheet& sheet, const TextStyle& style) {
  Language l = style.language;
  Page page(style);
  page.paragraph(printable(sheet.kind + "/" + sheet.id), Tone::strong);
  page.blank();
  auto name = [&](PresentMessage id) { return std::string(label(id, l)); };
  Table t({{name(PresentMessage::col_fact), false, 0, 24},
           {name(PresentMessage::col_value), false, 0, 20},
           {name(PresentMessage::col_unit)},
           {name(PresentMessage::col_source), true}});
  // Sources are long: the table has their numbers, the texts follow it, like long values.
  std::vector<std::string> sources;
  std::vector<const FactRow*> notes;
  std::vector<FactRow> rows = list_facts(sheet);
  int keys = 0, units = 0;
  for (const FactRow& f : rows) {
    keys = std::max(keys, display_width(printable(f.key)));
    units = std::max(units, display_width(f.unit));
  }
  const int longest = style.width - keys - std::max(units, 4) - 12;  // source and gaps
  for (const FactRow& f : rows) {
    std::string source = printable(f.source) + " (" + printable(f.date) + ")";
    auto at = std::find(sources.begin(), sources.end(), source);
    std::string number = "[" + std::to_string(at - sources.begin() + 1) + "]";
    if (at == sources.end()) sources.push_back(source);
    std::string value = printable(f.value);
    if (display_width(value) > longest) {
      notes.push_back(&f);
      value = "...";
    }
    t.row({printable(f.key), value, f.unit.empty() ? "-" : f.unit, number});
  }
  page.table(t);
  if (!notes.empty()) page.blank();
  for (const FactRow* f : notes)
    page.paragraph(printable(f->key) + ": " + printable(f->value), Tone::plain, 0, 2);
  page.heading(label(PresentMessage::heading_sources, l));
  for (std::size_t i = 0; i < sources.size(); ++i)
    page.paragraph("[" + std::to_string(i + 1) + "] " + sources[i], Tone::plain, 0, 4);
  return page.finish();
}

JsonNode sheet_json(const FactSheet& sheet) {
  JsonNode groups = JsonNode::array();
  for (const FactGroup& g : sheet.groups)
    groups.add(JsonNode::object().set("name", g.name).set("facts", facts_json(sheet, g.facts)));
  return JsonNode::object()
      .set("kind", sheet.kind)
      .set("id", sheet.id)
      .set("source", sheet.source)
      .set("date", sheet.date)
      .set("facts", facts_json(sheet, sheet.facts))
      .set("groups", groups);
}

std::string accelerators_text(const std::vector<const Accelerator*>& shown, std::size_t total,
                              const TextStyle& style) {
  Language l = style.language;
  Page page(style);
  page.paragraph(
      say(PresentMessage::catalog_count, l, {std::to_string(shown.size()), std::to_string(total)}));
  if (shown.empty()) return page.finish();
  page.blank();
  auto name = [&](PresentMessage id) { return std::string(label(id, l)); };
  Table t({{name(PresentMessage::col_id)},
           {name(PresentMessage::col_vendor), false, 3},
           {name(PresentMessage::col_architecture), false, 2},
           {name(PresentMessage::col_memory) + " GB", true},
           {name(PresentMessage::col_bandwidth) + " GB/s", true},
           {name(PresentMessage::col_peak16) + " TFLOPS", true, 1},
           {name(PresentMessage::col_peak8) + " TFLOPS", true, 2},
           {name(PresentMessage::col_link) + " GB/s", true, 4},
           {name(PresentMessage::col_power) + " W", true, 3},
           {name(PresentMessage::col_launch), false, 5}});
  auto rate = [](const Accelerator& a, std::initializer_list<MathMode> modes) {
    double best = 0;
    for (MathMode m : modes)
      if (a.peak_of(m)) best = std::max(best, a.peak_of(m)->in_base());
    return best > 0 ? significant(best / 1e12) : std::string("-");
  };
  for (const Accelerator* a : shown)
    t.row({a->id, a->vendor, a->architecture, trimmed_number(a->memory_nominal.in_base() / 1e9),
           significant(a->memory_bandwidth.in_base() / 1e9),
           rate(*a, {MathMode::bf16_matrix, MathMode::fp16_matrix_fp32_accumulate,
                     MathMode::fp16_matrix_fp16_accumulate, MathMode::fp16_vector}),
           rate(*a, {MathMode::fp8_matrix, MathMode::int8_matrix}),
           a->peer_link.one_way.in_base() > 0 ? significant(a->peer_link.one_way.in_base() / 1e9)
                                              : std::string("-"),
           a->board_power ? significant(a->board_power->in_base()) : std::string("-"),
           a->launch_date.empty() ? std::string("-") : a->launch_date.substr(0, 7)});
  page.table(t, 0, style.top);
  return page.finish();
}

std::string sheets_text(const std::vector<const FactSheet*>& shown, std::size_t total,
                        const std::vector<std::string>& keys, const TextStyle& style) {
  Language l = style.language;
  Page page(style);
  page.paragraph(
      say(PresentMessage::catalog_count, l, {std::to_string(shown.size()), std::to_string(total)}));
  if (shown.empty()) return page.finish();
  page.blank();
  std::vector<Column> columns{{std::string(label(PresentMessage::col_id, l))}};
  int priority = 1;
  for (const std::string& key : keys) {
    bool number = std::any_of(shown.begin(), shown.end(),
                              [&](const FactSheet* s) { return s->number(key).has_value(); });
    columns.push_back({key, number, priority++, number ? 0 : 12});
  }
  Table t(std::move(columns));
  for (const FactSheet* s : shown) {
    std::vector<Cell> cells{printable(s->id)};
    for (const std::string& key : keys) {
      const Fact* f = s->find(key);
      cells.emplace_back(f ? value_text(f->value) : std::string("-"));
    }
    t.row(std::move(cells));
  }
  page.table(t, 0, style.top);
  return page.finish();
}

}  // namespace trigon
