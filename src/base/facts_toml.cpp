#include <algorithm>
#include <sstream>
// A slip in a file is an error value of the parser, not an abort.
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>

#include "base/facts.hpp"
#include "base/small_file.hpp"

namespace trigon {
namespace {

std::string position(std::string_view where, const toml::node& n) {
  return std::string(where) + ":" + std::to_string(n.source().begin.line);
}

Result<FactValue> value_of(const toml::node& n, std::string_view key, std::string_view where) {
  if (auto b = n.as_boolean()) return FactValue(b->get());
  if (auto i = n.as_integer()) return FactValue(static_cast<double>(i->get()));
  if (auto f = n.as_floating_point()) return FactValue(f->get());
  if (auto s = n.as_string()) return FactValue(s->get());
  if (auto d = n.as_date()) {
    std::ostringstream out;
    out << d->get();
    return FactValue(out.str());
  }
  if (auto a = n.as_array()) {
    std::vector<double> numbers;
    std::vector<std::string> texts;
    for (const auto& e : *a) {
      if (auto s = e.as_string())
        texts.push_back(s->get());
      else if (e.is_number())
        numbers.push_back(*e.value<double>());
      else
        return fail(ErrorCode::malformed,
                    message(BaseMessage::wrong_type, key, "a list of numbers or of texts"),
                    position(where, e));
    }
    if (!texts.empty() && !numbers.empty())
      return fail(ErrorCode::malformed,
                  message(BaseMessage::wrong_type, key, "a list of numbers or of texts"),
                  position(where, n));
    if (!texts.empty()) return FactValue(std::move(texts));
    return FactValue(std::move(numbers));
  }
  return fail(ErrorCode::malformed,
              message(BaseMessage::wrong_type, key, "a number, text, flag or list"),
              position(where, n));
}

Result<void> flatten(const toml::table& table, const std::string& prefix, std::string_view where,
                     std::vector<Fact>& out) {
  for (const auto& [k, node] : table) {
    std::string key = prefix.empty() ? std::string(k.str()) : prefix + "." + std::string(k.str());
    if (auto t = node.as_table()) {
      if (auto r = flatten(*t, key, where, out); !r) return r;
      continue;
    }
    auto v = value_of(node, key, where);
    if (!v) return tl::unexpected(v.error());
    out.push_back({std::move(key), std::move(*v), {}, {}});
  }
  return {};
}

std::string take_text(std::vector<Fact>& facts, std::string_view key) {
  auto it = std::find_if(facts.begin(), facts.end(), [&](const Fact& f) { return f.key == key; });
  if (it == facts.end() || !std::holds_alternative<std::string>(it->value)) return {};
  std::string s = std::get<std::string>(it->value);
  facts.erase(it);
  return s;
}

}  // namespace

Result<FactSheet> parse_fact_sheet(std::string_view text, std::string_view where) {
  toml::parse_result parsed = toml::parse(text, where);
  if (!parsed)
    return fail(ErrorCode::malformed,
                message(BaseMessage::bad_syntax, "TOML", parsed.error().description()),
                std::string(where) + ":" + std::to_string(parsed.error().source().begin.line));
  toml::table table = std::move(parsed).table();
  FactSheet sheet;
  sheet.where = where;
  toml::table provenance;
  // Moved, not copied: a copy forgets the lines its values came from.
  if (auto* p = table["provenance"].as_table()) provenance = std::move(*p);
  table.erase("provenance");
  // Lists of tables become groups.
  std::vector<std::string> group_keys;
  for (const auto& [k, node] : table)
    if (node.is_array_of_tables()) group_keys.emplace_back(k.str());
  std::vector<std::pair<unsigned, FactGroup>> groups;
  for (const auto& k : group_keys) {
    for (const auto& element : *table[k].as_array()) {
      FactGroup g{k, {}};
      if (auto r = flatten(*element.as_table(), "", where, g.facts); !r)
        return tl::unexpected(r.error());
      groups.emplace_back(element.source().begin.line, std::move(g));
    }
    table.erase(k);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& g : groups) sheet.groups.push_back(std::move(g.second));
  if (auto r = flatten(table, "", where, sheet.facts); !r) return tl::unexpected(r.error());
  sheet.kind = take_text(sheet.facts, "kind");
  sheet.id = take_text(sheet.facts, "id");
  sheet.source = take_text(sheet.facts, "source");
  sheet.date = take_text(sheet.facts, "date");
  for (const auto& [name, value] : {std::pair<const char*, const std::string*>{"kind", &sheet.kind},
                                    {"id", &sheet.id},
                                    {"source", &sheet.source},
                                    {"date", &sheet.date}})
    if (value->empty())
      return fail(ErrorCode::malformed, message(BaseMessage::missing_key, name),
                  std::string(where));
  for (const auto& [k, node] : provenance) {
    auto it = std::find_if(sheet.facts.begin(), sheet.facts.end(),
                           [&, key = k.str()](const Fact& f) { return f.key == key; });
    const toml::table* t = node.as_table();
    if (it == sheet.facts.end() || !t)
      return fail(ErrorCode::malformed, message(BaseMessage::unknown_key, k.str()),
                  position(where, node));
    if (auto s = (*t)["source"].value<std::string>()) it->source = *s;
    if (auto d = (*t)["date"].value<std::string>()) it->date = *d;
  }
  std::sort(sheet.facts.begin(), sheet.facts.end(),
            [](const Fact& a, const Fact& b) { return a.key < b.key; });
  return sheet;
}

Result<FactStore> FactStore::from_directory(const std::filesystem::path& dir) {
  namespace fs = std::filesystem;
  std::error_code ec;
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec))
    if (it->path().extension() == ".toml") files.push_back(it->path());
  if (ec)
    return fail(ErrorCode::unreadable, message(BaseMessage::cannot_open, ec.message()),
                dir.string());
  std::sort(files.begin(), files.end());
  FactStore store;
  for (const auto& file : files) {
    auto text = read_small_file(file);
    if (!text) return tl::unexpected(text.error());
    auto sheet = parse_fact_sheet(*text, fs::relative(file, dir, ec).generic_string());
    if (!sheet) return tl::unexpected(sheet.error());
    store.sheets_.push_back(std::move(*sheet));
  }
  store.sort();
  auto twice = std::adjacent_find(
      store.sheets_.begin(), store.sheets_.end(),
      [](const FactSheet& a, const FactSheet& b) { return a.kind == b.kind && a.id == b.id; });
  if (twice != store.sheets_.end())
    return fail(ErrorCode::malformed,
                message(BaseMessage::ambiguous_name, twice->kind + "/" + twice->id, "sheets"),
                std::next(twice)->where,
                message(BaseMessage::choose_one_of, twice->where + ", " + std::next(twice)->where));
  return store;
}

}  // namespace trigon
