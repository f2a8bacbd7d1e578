#include "base/facts.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <tuple>

namespace trigon {

namespace {

// The packed text has one line per item, fields separated by tabs:
//   S kind id source date where      a sheet
//   G name                           a group of that sheet; facts after it belong to it
//   F key type value source date     a fact; type is b, n, t, N (numbers) or T (texts)
// Tabs, newlines, backslashes and \x1f in values are escaped; \x1f ends each element of a list.
std::string escaped(std::string_view s) {
  std::string out;
  for (char c : s) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\n')
      out += "\\n";
    else if (c == '\x1f')
      out += "\\u";
    else
      out += c;
  }
  return out;
}

std::string unescaped(std::string_view s) {
  if (s.find('\\') == s.npos) return std::string(s);
  std::string out;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '\\' && i + 1 < s.size()) {
      ++i;
      out += s[i] == 't' ? '\t' : s[i] == 'n' ? '\n' : s[i] == 'u' ? '\x1f' : s[i];
    } else {
      out += s[i];
    }
  }
  return out;
}

std::string number_text(double v) {
  char buffer[40];
  auto r = std::to_chars(buffer, buffer + sizeof buffer, v);
  return std::string(buffer, r.ptr);
}

double number_of(std::string_view s) {
  double v = 0;
  std::from_chars(s.data(), s.data() + s.size(), v);
  return v;
}

// The elements of a packed list.
template <class F>
void each_element(std::string_view s, F&& f) {
  for (auto at = s.find('\x1f'); at != s.npos; at = s.find('\x1f')) {
    f(s.substr(0, at));
    s.remove_prefix(at + 1);
  }
}

template <class F>
void each_part(std::string_view s, char separator, F&& f) {
  while (true) {
    auto at = s.find(separator);
    f(s.substr(0, at));
    if (at == s.npos) return;
    s.remove_prefix(at + 1);
  }
}

void pack_facts(const std::vector<Fact>& facts, std::string& out) {
  for (const Fact& f : facts) {
    char type = "bntNT"[f.value.index()];
    std::string value;
    if (auto b = std::get_if<bool>(&f.value)) value = *b ? "1" : "0";
    if (auto n = std::get_if<double>(&f.value)) value = number_text(*n);
    if (auto t = std::get_if<std::string>(&f.value)) value = escaped(*t);
    if (auto l = std::get_if<std::vector<double>>(&f.value))
      for (double e : *l) value += number_text(e) + "\x1f";
    if (auto l = std::get_if<std::vector<std::string>>(&f.value))
      for (const std::string& e : *l) value += escaped(e) + "\x1f";
    out += "F\t" + escaped(f.key) + "\t" + type + "\t" + value + "\t" + escaped(f.source) + "\t" +
           escaped(f.date) + "\n";
  }
}

Fact unpack_fact(const std::string_view* field) {
  Fact f{unescaped(field[1]), {}, unescaped(field[4]), unescaped(field[5])};
  std::string_view v = field[3];
  switch (field[2].empty() ? 't' : field[2][0]) {
    case 'b':
      f.value = v == "1";
      break;
    case 'n':
      f.value = number_of(v);
      break;
    case 'N': {
      std::vector<double> list;
      each_element(v, [&](std::string_view e) { list.push_back(number_of(e)); });
      f.value = std::move(list);
      break;
    }
    case 'T': {
      std::vector<std::string> list;
      each_element(v, [&](std::string_view e) { list.push_back(unescaped(e)); });
      f.value = std::move(list);
      break;
    }
    default:
      f.value = unescaped(v);
  }
  return f;
}

}  // namespace

const Fact* find_fact(const std::vector<Fact>& facts, std::string_view key) {
  for (const Fact& f : facts)
    if (f.key == key) return &f;
  return nullptr;
}

const Fact* FactSheet::find(std::string_view key) const { return find_fact(facts, key); }

std::optional<double> FactSheet::number(std::string_view key) const {
  const Fact* f = find(key);
  if (auto v = f ? std::get_if<double>(&f->value) : nullptr) return *v;
  return std::nullopt;
}
std::optional<bool> FactSheet::flag(std::string_view key) const {
  const Fact* f = find(key);
  if (auto v = f ? std::get_if<bool>(&f->value) : nullptr) return *v;
  return std::nullopt;
}
std::optional<std::string> FactSheet::text(std::string_view key) const {
  const Fact* f = find(key);
  if (auto v = f ? std::get_if<std::string>(&f->value) : nullptr) return *v;
  return std::nullopt;
}
std::vector<std::string> FactSheet::texts(std::string_view key) const {
  const Fact* f = find(key);
  if (auto v = f ? std::get_if<std::vector<std::string>>(&f->value) : nullptr) return *v;
  return {};
}
std::vector<double> FactSheet::numbers(std::string_view key) const {
  const Fact* f = find(key);
  if (auto v = f ? std::get_if<std::vector<double>>(&f->value) : nullptr) return *v;
  return {};
}
std::string FactSheet::fact_id(std::string_view key) const {
  return kind + "/" + id + "#" + std::string(key);
}
Error FactSheet::missing(std::string_view key) const {
  return Error{ErrorCode::missing_fact, message(BaseMessage::missing_fact, key, id), fact_id(key),
               std::nullopt};
}

void FactStore::put(FactSheet sheet) {
  for (FactSheet& s : sheets_)
    if (s.kind == sheet.kind && s.id == sheet.id) {
      s = std::move(sheet);
      return;
    }
  sheets_.push_back(std::move(sheet));
}

void FactStore::add(FactSheet sheet) {
  put(std::move(sheet));
  sort();
}

void FactStore::sort() {
  std::sort(sheets_.begin(), sheets_.end(), [](const FactSheet& a, const FactSheet& b) {
    return std::tie(a.kind, a.id, a.where) < std::tie(b.kind, b.id, b.where);
  });
}

const FactSheet* FactStore::find(std::string_view kind, std::string_view id) const {
  auto it = std::lower_bound(
      sheets_.begin(), sheets_.end(), std::pair(kind, id), [](const FactSheet& s, const auto& key) {
        return std::pair<std::string_view, std::string_view>(s.kind, s.id) < key;
      });
  return it != sheets_.end() && it->kind == kind && it->id == id ? &*it : nullptr;
}

std::vector<const FactSheet*> FactStore::of_kind(std::string_view kind) const {
  std::vector<const FactSheet*> out;
  for (const FactSheet& s : sheets_)
    if (s.kind == kind) out.push_back(&s);
  return out;
}

std::string FactStore::packed() const {
  std::string out;
  for (const FactSheet& s : sheets_) {
    out += "S\t" + escaped(s.kind) + "\t" + escaped(s.id) + "\t" + escaped(s.source) + "\t" +
           escaped(s.date) + "\t" + escaped(s.where) + "\n";
    pack_facts(s.facts, out);
    for (const FactGroup& g : s.groups) {
      out += "G\t" + escaped(g.name) + "\n";
      pack_facts(g.facts, out);
    }
  }
  return out;
}

Result<FactStore> FactStore::from_packed(std::string_view packed) {
  FactStore store;
  std::vector<Fact>* into = nullptr;
  while (!packed.empty()) {
    auto end = packed.find('\n');
    std::string_view line = packed.substr(0, end);
    packed.remove_prefix(end == packed.npos ? packed.size() : end + 1);
    std::string_view field[6];
    std::size_t n = 0;
    each_part(line, '\t', [&](std::string_view p) {
      if (n < 6) field[n] = p;
      ++n;
    });
    if (field[0] == "S" && n == 6) {
      FactSheet s;
      s.kind = unescaped(field[1]);
      s.id = unescaped(field[2]);
      s.source = unescaped(field[3]);
      s.date = unescaped(field[4]);
      s.where = unescaped(field[5]);
      store.sheets_.push_back(std::move(s));
      into = &store.sheets_.back().facts;
    } else if (field[0] == "G" && n == 2 && !store.sheets_.empty()) {
      store.sheets_.back().groups.push_back({unescaped(field[1]), {}});
      into = &store.sheets_.back().groups.back().facts;
    } else if (field[0] == "F" && n == 6 && into) {
      into->push_back(unpack_fact(field));
    } else {
      return fail(ErrorCode::malformed,
                  message(BaseMessage::bad_syntax, "packed facts", std::string(line)));
    }
  }
  store.sort();
  return store;
}

}  // namespace trigon
