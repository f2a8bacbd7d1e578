#include "hardware/aliases.hpp"

#include <algorithm>

#include "hardware/names.hpp"

namespace trigon {
namespace {

std::string_view key_of(std::string_view row) { return row.substr(0, row.find('|')); }

// The fields of one CSV line; quotes may enclose commas and doubled quotes.
std::vector<std::string> csv_fields(std::string_view line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (quoted) {
      if (c != '"')
        out.back() += c;
      else if (i + 1 < line.size() && line[i + 1] == '"')
        out.back() += line[++i];
      else
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      out.emplace_back();
    } else if (c != '\r') {
      out.back() += c;
    }
  }
  return out;
}

}  // namespace

Result<AliasTable> AliasTable::from(const FactSheet& sheet) {
  const Fact* rows = sheet.find("rows");
  auto list = rows ? std::get_if<std::vector<std::string>>(&rows->value) : nullptr;
  if (!list)
    return fail(ErrorCode::malformed, message(BaseMessage::missing_key, "rows"), sheet.where);
  AliasTable t;
  t.rows_.assign(list->begin(), list->end());
  auto before = [](std::string_view a, std::string_view b) { return key_of(a) < key_of(b); };
  if (!std::is_sorted(t.rows_.begin(), t.rows_.end(), before))
    std::sort(t.rows_.begin(), t.rows_.end(), before);
  return t;
}

std::optional<Alias> AliasTable::find(std::string_view name) const {
  std::string key = normalised_name(name);
  auto it =
      std::lower_bound(rows_.begin(), rows_.end(), std::string_view(key),
                       [](std::string_view row, std::string_view k) { return key_of(row) < k; });
  if (it == rows_.end() || key_of(*it) != key) return std::nullopt;
  Alias a;
  std::string_view rest = *it;
  auto next = [&rest](char separator) {
    auto at = rest.find(separator);
    std::string_view field = rest.substr(0, at);
    rest.remove_prefix(at == rest.npos ? rest.size() : at + 1);
    return field;
  };
  a.key = next('|');
  std::string_view kind = next('|');
  a.kind = kind.empty() ? AliasKind::unknown : static_cast<AliasKind>(kind[0]);
  std::string_view targets = next('|');
  a.note = rest;
  rest = targets;
  while (!rest.empty()) a.targets.push_back(next(';'));
  return a;
}

Result<FactSheet> read_alias_table(std::string_view csv, std::string_view where) {
  std::vector<std::string> rows;
  std::size_t line_number = 0;
  while (!csv.empty()) {
    auto end = csv.find('\n');
    std::string_view line = csv.substr(0, end);
    csv.remove_prefix(end == csv.npos ? csv.size() : end + 1);
    if (++line_number == 1 || line.empty()) continue;
    std::vector<std::string> f = csv_fields(line);
    std::string at = std::string(where) + ":" + std::to_string(line_number);
    bool known_kind =
        f.size() == 5 && (f[1] == "accelerator" || f[1] == "system" || f[1] == "unknown");
    if (!known_kind || f[0].find('|') != f[0].npos)
      return fail(ErrorCode::malformed,
                  message(BaseMessage::bad_syntax, "alias row", std::string(line)), at);
    std::string targets = f[2] == "ambiguous" ? f[3] : f[1] == "unknown" ? "" : f[2];
    if (targets.empty() != (f[1] == "unknown"))
      return fail(ErrorCode::malformed, message(BaseMessage::missing_key, "target"), at);
    rows.push_back(normalised_name(f[0]) + "|" + f[1][0] + "|" + targets + "|" + f[4]);
  }
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return key_of(a) < key_of(b); });
  auto twice = std::adjacent_find(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return key_of(a) == key_of(b);
  });
  if (twice != rows.end())
    return fail(ErrorCode::malformed,
                message(BaseMessage::bad_syntax, "alias table", std::string(key_of(*twice))),
                std::string(where));
  FactSheet s;
  s.kind = "aliases";
  s.id = "hardware";
  s.source = "tools/import_aliases.py";
  s.date = "2026-10-19";
  s.where = where;
  s.facts.push_back({"rows", std::move(rows), {}, {}});
  return s;
}

}  // namespace trigon
