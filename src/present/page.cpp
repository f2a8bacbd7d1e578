#include "present/page.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include "present/numbers.hpp"

namespace trigon {

void Page::paragraph(std::string_view text, Tone tone, int indent, int hang) {
  bool first = true;
  for (const std::string& line :
       wrapped(text, std::max(20, style_.width - indent - hang), style_.width - indent)) {
    out_ += std::string(static_cast<std::size_t>(first ? indent : indent + hang), ' ');
    out_ += painted(line, tone, style_.colour) + "\n";
    first = false;
  }
}

void Page::blank() {
  if (!out_.empty()) out_ += "\n";
}

void Page::heading(std::string_view text) {
  blank();
  paragraph(text, Tone::strong);
}

void Page::table(const Table& t, int indent, int top) { out_ += t.text(style_, indent, top); }

std::string sentence(std::string text) {
  if (text.empty()) return text;
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  auto ends = [&](std::string_view with) {
    return text.size() >= with.size() &&
           std::string_view(text).substr(text.size() - with.size()) == with;
  };
  // A text whose last character is East Asian takes its full stop.
  if (ends(".") || ends("\u3002")) return text;
  return text + (static_cast<unsigned char>(text.back()) >= 0x80 ? "\u3002" : ".");
}

std::string say(PresentMessage id, Language language, std::initializer_list<std::string> args) {
  Message m{message_id(id), {}};
  for (const std::string& a : args) m.args.emplace_back(a);
  return render(m, language);
}

std::string label_for(Metric m, const Job& job, Language l) {
  auto serve = std::get_if<Serve>(&job);
  auto tail = [&](Metric mean, const std::optional<LatencyLimit>& limit) {
    double percentile = limit ? limit->percentile : LatencyLimit().percentile;
    return say(PresentMessage::percentile_label, l,
               {metric_label(mean, l), trimmed_number(percentile, 4)});
  };
  if (serve && m == Metric::ttft_percentile_seconds)
    return tail(Metric::ttft_seconds, serve->limits.ttft);
  if (serve && m == Metric::tpot_percentile_seconds)
    return tail(Metric::tpot_seconds, serve->limits.tpot);
  if (serve && m == Metric::e2e_percentile_seconds)
    return tail(Metric::e2e_seconds, serve->limits.e2e);
  if (serve && m == Metric::usd_total) return std::string(label(PresentMessage::usd_month, l));
  return metric_label(m, item_of(job), l);
}

namespace {

// "4,000 W (3,000 to 5,000)"; what is only bounded from above says so.
std::string estimate_in_words(const Estimate<double>& e, const std::string& unit, Language l) {
  if (e.basis == Basis::bound && e.low == 0)
    return say(PresentMessage::up_to, l, {in_words(e.high, unit)});
  return in_words(e, unit, label(PresentMessage::between, l));
}

}  // namespace

void put_metrics(Page& page, const PlanReport& r, const std::vector<Metric>& metrics,
                 const Job& job) {
  struct Line {
    std::string name, value, basis;
  };
  std::vector<Line> lines;
  int names = 0, values = 0;
  for (Metric m : metrics) {
    if (!r[m]) continue;
    lines.push_back(
        {label_for(m, job, page.language()),
         estimate_in_words(*r[m], unit_in_words(m, item_of(job), page.language()), page.language()),
         std::string(basis_label(r[m]->basis, page.language()))});
    names = std::max(names, display_width(lines.back().name));
    values = std::max(values, display_width(lines.back().value));
  }
  bool basis_fits = names + values + 18 <= page.style().width;
  bool values_fit = names + values + 4 <= page.style().width;
  for (const Line& l : lines) {
    if (!values_fit) {
      page.paragraph(l.name + ": " + l.value, Tone::plain, 2, 2);
      continue;
    }
    auto space = [](int n) { return std::string(static_cast<std::size_t>(std::max(0, n)), ' '); };
    std::string text = "  " + l.name + space(names - display_width(l.name) + 2) + l.value;
    if (basis_fits)
      text += space(values - display_width(l.value) + 2) +
              painted(l.basis, Tone::faint, page.style().colour);
    page.raw(text + "\n");
  }
}

namespace {

// Parameters, gradients and optimizer state: what training holds between two steps.
double steady_bytes(const RankMemory& m) {
  return m[MemoryTerm::weights] + m[MemoryTerm::gradients] + m[MemoryTerm::master_weights] +
         m[MemoryTerm::optimizer] + m[MemoryTerm::adapters] + m[MemoryTerm::workspaces];
}

void put_stages(Page& page, const PlanReport& r, bool training) {
  Language l = page.language();
  page.heading(label(PresentMessage::heading_stages, l));
  auto name = [&](MemoryTerm t) { return std::string(label(memory_term_label(t), l)); };
  Table t(
      {{std::string(label(PresentMessage::col_stage, l)), true},
       {name(MemoryTerm::weights), true},
       {training ? std::string(label(PresentMessage::col_states, l)) : name(MemoryTerm::kv_cache),
        true},
       {name(MemoryTerm::activations), true},
       {std::string(label(PresentMessage::col_other, l)), true, 1},
       {std::string(label(PresentMessage::row_sum, l)), true}});
  const auto most = static_cast<std::size_t>(page.style().top > 0 ? page.style().top : 1 << 30);
  for (std::size_t i = 0; i < r.stages.size() && i < most; ++i) {
    const RankMemory& m = r.stages[i];
    const double states =
        training ? steady_bytes(m) - m[MemoryTerm::weights] : m[MemoryTerm::kv_cache];
    const double alive = m[MemoryTerm::activations] + m[MemoryTerm::logits];
    const double rest = m.total() - m[MemoryTerm::weights] - states - alive;
    t.row({std::to_string(i), significant(m[MemoryTerm::weights] / kGi), significant(states / kGi),
           significant(alive / kGi), significant(rest / kGi), significant(m.total() / kGi)});
  }
  page.table(t, 2);
}

}  // namespace

void put_memory(Page& page, const PlanReport& r, bool training) {
  Language l = page.language();
  page.heading(label(PresentMessage::heading_memory, l));
  Table t({{std::string(label(PresentMessage::col_component, l)), false, 0, 12},
           {"GiB", true},
           {std::string(label(PresentMessage::col_share, l)), true, 1}});
  double total = r.memory.total();
  for (std::size_t i = 0; i < kMemoryTerms; ++i) {
    double b = r.memory.bytes[i];
    if (!(b > 0)) continue;
    t.row({label(memory_term_label(static_cast<MemoryTerm>(i)), l), significant(b / kGi),
           significant(100 * b / total, 2)});
  }
  t.row({label(PresentMessage::row_sum, l), significant(total / kGi), "100"});
  if (r[Metric::usable_bytes]) {
    double usable = r[Metric::usable_bytes]->value;
    t.row({metric_label(Metric::usable_bytes, l), significant(usable / kGi),
           significant(100 * usable / total, usable >= total ? 3 : 2)});
  }
  if (const double host = r.memory.host.total(); host > 0)
    t.row({label(PresentMessage::row_host_memory, l), significant(host / kGi), ""});
  page.table(t, 2);
  const RankMemory& m = r.memory;
  if (training) {
    // The counters of torch and of the driver, so that either can be held against this.
    const double device =
        m[MemoryTerm::context] + m[MemoryTerm::collectives] + m[MemoryTerm::graphs];
    const double reserved = total - device;
    page.paragraph(
        say(PresentMessage::memory_counters, l,
            {in_words(steady_bytes(m), "B"), in_words(reserved - m[MemoryTerm::fragmentation], "B"),
             in_words(reserved, "B"), in_words(total, "B")}),
        Tone::faint, 2, 2);
  }
  if (!r.stages.empty()) put_stages(page, r, training);
}

void put_assumptions(Page& page, const std::vector<Assumption>& assumptions) {
  if (assumptions.empty()) return;
  page.heading(label(PresentMessage::heading_assumptions, page.language()));
  for (const Assumption& a : assumptions)
    page.paragraph(printable(a.input) + ": " + render(a.what, page.language()), Tone::plain, 2, 2);
}

void put_messages(Page& page, PresentMessage heading, const std::vector<Message>& messages) {
  if (messages.empty()) return;
  page.heading(label(heading, page.language()));
  for (const Message& m : messages)
    page.paragraph("- " + render(m, page.language()), Tone::plain, 2, 2);
}

void put_warnings(Page& page, const std::vector<Message>& warnings) {
  put_messages(page, PresentMessage::heading_warnings, warnings);
}

std::string substituted(const DerivationStep& step) {
  std::string_view e = step.formula->expression;
  std::string out;
  auto part_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  for (std::size_t i = 0; i < e.size();) {
    if (!part_of_name(e[i])) {
      out += e[i++];
      continue;
    }
    std::size_t end = i;
    while (end < e.size() && part_of_name(e[end])) ++end;
    std::string_view name = e.substr(i, end - i);
    auto s = std::find_if(step.symbols.begin(), step.symbols.end(),
                          [&](const Symbol& symbol) { return name == symbol.name; });
    out += s == step.symbols.end() ? std::string(name) : trimmed_number(s->value, 4);
    i = end;
  }
  return out;
}

namespace {

// Components of the memory table and the formulas that they come from, where names differ.
constexpr std::pair<std::string_view, std::string_view> kComponents[] = {
    {"activations", "memory.forward_peak"},
    {"activations", "memory.compute_buffer"},
    {"activations", "memory.saved_activations"},
    {"activations", "memory.graph_activations"},
    {"weights", "memory.graph_weights"},
    {"kv", "memory.kv_cache"},
    {"cache", "memory.kv_cache"},
    {"master_weights", "memory.optimizer"},
    {"context", "memory.runtime"},
    {"collectives", "memory.runtime"},
    {"graphs", "memory.runtime"},
    {"compute_buffer", "memory.compute_buffer"}};

bool is_called(const Formula& f, std::string_view term) {
  std::string_view name = f.name;
  for (const auto& [component, formula] : kComponents)
    if (component == term && formula == name) return true;
  auto dot = name.find('.');
  return name == term || name.substr(0, dot) == term ||
         (dot != name.npos && name.substr(dot + 1) == term);
}

}  // namespace

void put_derivation(Page& page, const Derivation& d) {
  Language l = page.language();
  const std::string& term = page.style().explain_term;
  std::set<std::string> names;
  bool any = false;
  for (const DerivationStep& step : d.steps) {
    names.insert(step.formula->name);
    if (!term.empty() && !is_called(*step.formula, term)) continue;
    if (!any) page.heading(label(PresentMessage::heading_derivation, l));
    any = true;
    std::string title = step.formula->name;
    if (!step.subject.empty()) title += " [" + printable(step.subject) + "]";
    page.paragraph(title, Tone::plain, 2, 2);
    page.paragraph("= " + std::string(step.formula->expression), Tone::plain, 4, 2);
    if (!step.symbols.empty()) page.paragraph("= " + substituted(step), Tone::plain, 4, 2);
    std::string value = std::string(step.unit).empty()
                            ? trimmed_number(step.value, 4)
                            : trimmed_number(step.value, 4) + " " + step.unit;
    std::string nice = in_words(step.value, step.unit);
    bool scaled = scale_for(step.value, step.unit).factor != 1;
    page.paragraph("= " + (scaled ? value + " = " + nice : value), Tone::plain, 4, 2);
    std::string facts;
    for (const Symbol& s : step.symbols)
      if (!s.fact.empty()) facts += (facts.empty() ? "" : ", ") + s.fact;
    if (!facts.empty())
      page.paragraph(say(PresentMessage::where_facts, l, {facts}), Tone::faint, 4, 2);
  }
  if (any || term.empty()) return;
  page.blank();
  std::string list;
  for (const std::string& n : names) list += (list.empty() ? "" : ", ") + n;
  page.paragraph(say(PresentMessage::no_such_term, l, {term}), Tone::warning);
  page.paragraph(say(PresentMessage::terms_are, l, {list}));
}

}  // namespace trigon
