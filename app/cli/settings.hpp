#pragma once
// What is set, by flag name, and where each value came from: flags over TRIGON_* variables over
// ./trigon.toml over the user's configuration over defaults.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "flags.hpp"

namespace trigon {

struct Setting {
  std::string text;
  std::string origin;  // "--isl", "TRIGON_ISL", "./trigon.toml", ...
};

class Settings {
 public:
  // Later calls override earlier ones. The value is checked.
  // `verb` is set for values of another verb's table, kept under "verb.flag" for display.
  Result<void> put(const Flag& f, std::string text, std::string origin, std::string_view verb = {});
  void drop(std::string_view name);
  const Setting* find(std::string_view name) const;
  // The text, or the flag's default.
  std::string text(std::string_view name) const;
  bool on(std::string_view name) const;
  const std::map<std::string, Setting, std::less<>>& all() const { return values_; }

 private:
  std::map<std::string, Setting, std::less<>> values_;
};

struct CommandLine {
  const VerbInfo* verb = nullptr;  // null: no arguments at all
  std::vector<std::string> arguments;
  struct Given {
    const Flag* flag;
    std::string as_written;  // "--isl"
    std::string text;
  };
  std::vector<Given> given;
};
Result<CommandLine> parse_command_line(const std::vector<std::string>& words);

// The configuration files that count here, the weaker first.
std::vector<std::string> config_paths();
// The values of a file for a verb: keys at the top, then those of its own [verb] table.
Result<void> load_config(const std::string& path, std::string_view verb, Settings& into);
// TRIGON_INPUT_TOKENS and so on. Unknown TRIGON_* names become warnings.
Result<void> load_environment(Settings& into, std::vector<Message>& warnings);

}  // namespace trigon
