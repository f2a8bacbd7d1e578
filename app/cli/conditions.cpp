#include "conditions.hpp"

#include <algorithm>
#include <set>

#include "base/units.hpp"
#include "flags.hpp"
#include "hardware/names.hpp"

namespace trigon {
namespace {

// How a unit at the end of a key scales base units.
struct KeyUnit {
  std::string_view suffix;
  double base;
};
constexpr KeyUnit kUnits[] = {{"_gb_per_s", 1e9}, {"_gb", 1e9}, {"_mib", kMi}, {"_mb", 1e6}};

bool has_key(const std::vector<const FactSheet*>& sheets, std::string_view key) {
  return key == "id" || std::any_of(sheets.begin(), sheets.end(),
                                    [&](const FactSheet* s) { return s->find(key) != nullptr; });
}

Result<std::string> resolve(const std::vector<const FactSheet*>& sheets, const std::string& written,
                            std::string_view where) {
  if (has_key(sheets, written)) return written;
  std::set<std::string> keys;
  for (const FactSheet* s : sheets)
    for (const Fact& f : s->facts) keys.insert(f.key);
  for (const std::string& key : keys)
    if (key.substr(key.rfind('.') + 1) == written) return key;
  std::vector<std::string_view> names(keys.begin(), keys.end());
  auto near = nearest_name(written, names);
  return fail(
      ErrorCode::unknown_name, message(BaseMessage::unknown_name, "fact", written),
      std::string(where),
      near ? message(BaseMessage::nearest_name, *near) : message(AppMessage::condition_examples));
}

// A plain number is in the fact's own unit; a size or bandwidth is brought to it.
std::optional<double> number_in_unit_of(const std::string& key, const std::string& text) {
  if (auto n = parse_number(text)) return *n;
  for (const KeyUnit& u : kUnits) {
    if (key.size() < u.suffix.size() ||
        key.compare(key.size() - u.suffix.size(), u.suffix.size(), u.suffix) != 0)
      continue;
    if (auto b = parse_bytes(text)) return b->in_base() / u.base;
    if (auto b = parse_bandwidth(text)) return b->in_base() / u.base;
  }
  if (auto w = parse_watts(text)) return w->in_base();
  return std::nullopt;
}

template <class T>
bool compares(const T& a, const std::string& op, const T& b) {
  return op == "="    ? a == b
         : op == "!=" ? a != b
         : op == "<"  ? a < b
         : op == "<=" ? a <= b
         : op == ">"  ? a > b
                      : a >= b;
}

bool holds(const FactSheet& sheet, const std::string& key, const FactCondition& c) {
  if (key == "id") return compares(sheet.id, c.op, c.text);
  const Fact* f = sheet.find(key);
  if (!f) return false;
  if (auto d = std::get_if<double>(&f->value)) {
    auto n = number_in_unit_of(key, c.text);
    return n && compares(*d, c.op, *n);
  }
  if (auto b = std::get_if<bool>(&f->value))
    return compares(std::string(*b ? "yes" : "no"), c.op,
                    c.text == "true"    ? std::string("yes")
                    : c.text == "false" ? std::string("no")
                                        : c.text);
  if (auto s = std::get_if<std::string>(&f->value)) return compares(*s, c.op, c.text);
  if (auto list = std::get_if<std::vector<std::string>>(&f->value))
    return (std::find(list->begin(), list->end(), c.text) != list->end()) == (c.op == "=");
  return false;
}

}  // namespace

std::vector<std::string> split_conditions(std::string_view text) {
  std::vector<std::string> out;
  for (std::string_view part : split_words(text, ',')) {
    if (out.empty() || part.find_first_of("=!<>") != part.npos)
      out.emplace_back(part);
    else
      out.back() += "," + std::string(part);
  }
  return out;
}

Result<std::vector<FactCondition>> parse_conditions(std::string_view text, std::string_view where) {
  std::vector<FactCondition> out;
  for (const std::string& part : split_conditions(text)) {
    auto at = part.find_first_of("=!<>");
    std::string op =
        at == part.npos ? "" : part.substr(at, at + 1 < part.size() && part[at + 1] == '=' ? 2 : 1);
    if (at == part.npos || at == 0 || op == "!" || op == "==" || at + op.size() >= part.size())
      return fail(ErrorCode::bad_argument, message(AppMessage::bad_condition, part),
                  std::string(where), message(AppMessage::condition_examples));
    out.push_back({std::string(part.substr(0, at)), std::string(op),
                   std::string(part.substr(at + op.size()))});
  }
  return out;
}

Result<std::vector<const FactSheet*>> matching(const std::vector<const FactSheet*>& sheets,
                                               const std::vector<FactCondition>& conditions,
                                               std::string_view where) {
  std::vector<const FactSheet*> out = sheets;
  for (const FactCondition& c : conditions) {
    auto key = resolve(sheets, c.key, where);
    if (!key) return tl::unexpected(key.error());
    out.erase(std::remove_if(out.begin(), out.end(),
                             [&](const FactSheet* s) { return !holds(*s, *key, c); }),
              out.end());
  }
  return out;
}

}  // namespace trigon
