// The only file of the program that includes toml++.
// A slip in a file is an error value of the parser, not an abort.
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>

#include <filesystem>

#include "base/small_file.hpp"
#include "base/units.hpp"
#include "hardware/names.hpp"
#include "settings.hpp"

namespace trigon {
namespace {

std::string place(const std::string& path, const toml::node& node) {
  return path + ":" + std::to_string(node.source().begin.line);
}

Result<std::string> text_of(const toml::node& node, std::string_view key, const std::string& at) {
  if (auto s = node.value_exact<std::string>()) return *s;
  if (auto b = node.value_exact<bool>()) return std::string(*b ? "true" : "false");
  if (auto i = node.value_exact<std::int64_t>()) return std::to_string(*i);
  if (auto d = node.value_exact<double>()) return write_number(*d);
  if (const toml::array* list = node.as_array()) {
    std::string out;
    for (const toml::node& e : *list) {
      auto s = e.value_exact<std::string>();
      if (!s) break;
      out += (out.empty() ? "" : ",") + *s;
    }
    if (!out.empty()) return out;
  }
  return fail(ErrorCode::malformed, message(AppMessage::config_value_type, key), at);
}

tl::unexpected<Error> unknown_key(std::string_view key, bool top, const std::string& at) {
  std::vector<std::string_view> names;
  for (const Flag& f : flags())
    if (!f.only_here)
      for (std::string_view n : names_of(f)) names.push_back(n);
  if (top)
    for (const VerbInfo& v : verbs()) names.push_back(v.name);
  auto near = nearest_name(key, names);
  return fail(ErrorCode::unknown_name, message(BaseMessage::unknown_key, key), at,
              !near ? message(AppMessage::try_command, "trigon config --show")
                    : message(BaseMessage::nearest_name, *near));
}

Result<void> load_table(const toml::table& table, bool top, std::string_view of_other,
                        const std::string& path, Settings& into) {
  for (const auto& [key, node] : table) {
    std::string name(key.str());
    if (top && node.is_table() && find_verb(name)) continue;
    std::string at = place(path, node);
    const Flag* f = find_flag(name);
    if (!f || f->only_here) return unknown_key(name, top, at);
    auto text = text_of(node, name, at);
    if (!text) return tl::unexpected(text.error());
    auto good = into.put(*f, *text, at, of_other);
    if (!good) return good;
  }
  return {};
}

}  // namespace

Result<void> load_config(const std::string& path, std::string_view verb, Settings& into) {
  std::error_code code;
  if (std::filesystem::status(path, code).type() == std::filesystem::file_type::not_found)
    return {};
  if (code == std::errc::not_a_directory) return {};  // a parent is no folder: none there
  auto text = read_small_file(path);
  if (!text) return tl::unexpected(text.error());
  toml::parse_result parsed = toml::parse(*text, path);
  if (!parsed) {
    return fail(ErrorCode::malformed,
                message(BaseMessage::bad_syntax, "TOML", std::string(parsed.error().description())),
                path + ":" + std::to_string(parsed.error().source().begin.line));
  }
  toml::table table = std::move(parsed).table();
  auto top = load_table(table, true, {}, path, into);
  if (!top) return top;
  for (const VerbInfo& v : verbs())
    if (const toml::table* own = table[v.name].as_table()) {
      auto good = load_table(*own, false, v.name == verb ? std::string_view() : v.name, path, into);
      if (!good) return good;
    }
  return {};
}

}  // namespace trigon
