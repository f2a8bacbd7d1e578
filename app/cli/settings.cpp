#include "settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

extern char** environ;

namespace trigon {

Result<void> Settings::put(const Flag& f, std::string text, std::string origin,
                           std::string_view verb) {
  auto good = check_value(f, text, origin);
  if (!good) return good;
  std::string name(f.name);
  if (!verb.empty()) name = std::string(verb) + "." + name;
  values_[name] = {std::move(text), std::move(origin)};
  return {};
}

void Settings::drop(std::string_view name) {
  if (auto i = values_.find(name); i != values_.end()) values_.erase(i);
}

const Setting* Settings::find(std::string_view name) const {
  auto i = values_.find(name);
  return i == values_.end() ? nullptr : &i->second;
}

std::string Settings::text(std::string_view name) const {
  if (const Setting* s = find(name)) return s->text;
  return std::string(find_flag(name)->fallback);
}

bool Settings::on(std::string_view name) const {
  const Setting* s = find(name);
  return s && s->text != "false";
}

std::vector<std::string> config_paths() {
  std::vector<std::string> out;
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  if (config && *config)
    out.push_back(std::string(config) + "/trigon/trigon.toml");
  else if (home && *home)
    out.push_back(std::string(home) + "/.config/trigon/trigon.toml");
  out.push_back("./trigon.toml");
  return out;
}

Result<void> load_environment(Settings& into, std::vector<Message>& warnings) {
  std::vector<std::string> mine;
  for (char** e = environ; e && *e; ++e) {
    std::string entry(*e);
    if (entry.compare(0, 7, "TRIGON_") == 0) mine.push_back(entry);
  }
  std::sort(mine.begin(), mine.end());
  // Of the build and the tests, not settings.
  static const std::set<std::string> others{"TRIGON_SHARED", "TRIGON_UPDATE_GOLDEN"};
  for (const std::string& entry : mine) {
    auto equals = entry.find('=');
    std::string variable = entry.substr(0, equals);
    std::string name = variable.substr(7);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
      return c == '_' ? '-' : static_cast<char>(std::tolower(c));
    });
    const Flag* f = find_flag(name);
    if (!f || f->only_here) {
      if (others.count(variable) == 0)
        warnings.push_back(message(AppMessage::unknown_environment, variable));
      continue;
    }
    auto good = into.put(*f, entry.substr(equals + 1), variable);
    if (!good) return good;
  }
  return {};
}

}  // namespace trigon
