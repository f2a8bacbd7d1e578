// The only file that includes CLI11.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "hardware/names.hpp"
#include "settings.hpp"

namespace trigon {
namespace {

std::string dashed(std::string_view name) {
  return (name.size() == 1 ? "-" : "--") + std::string(name);
}

Result<CommandLine> unknown_verb(const std::string& word) {
  std::vector<std::string_view> names;
  for (const VerbInfo& v : verbs()) names.push_back(v.name);
  auto near = nearest_name(word, names);
  return fail(ErrorCode::unknown_name, message(BaseMessage::unknown_name, "verb", word), "",
              !near ? message(AppMessage::try_command, "trigon help")
                    : message(BaseMessage::nearest_name, "trigon " + *near));
}

Result<CommandLine> unknown_flag(const VerbInfo& verb, const std::string& written) {
  std::string name = written.substr(0, written.find('='));
  std::string bare = name.substr(
      name.find_first_not_of('-') == name.npos ? name.size() : name.find_first_not_of('-'));
  if (const Flag* f = find_flag(bare); f && bare.size() > 1) {
    std::string users;
    for (const VerbInfo& v : verbs())
      if (f->verbs & v.verb) users += (users.empty() ? "" : ", ") + std::string(v.name);
    return fail(ErrorCode::bad_argument, message(AppMessage::flag_of_other_verb, verb.name, name),
                "", message(AppMessage::flag_used_by, name, users));
  }
  std::vector<std::string_view> names;
  for (const Flag& f : flags())
    if (f.verbs & verb.verb)
      for (std::string_view n : names_of(f)) names.push_back(n);
  auto near = nearest_name(bare, names);
  return fail(ErrorCode::unknown_name, message(BaseMessage::unknown_name, "flag", name), "",
              !near ? message(AppMessage::see_help, verb.name)
                    : message(BaseMessage::nearest_name, dashed(*near)));
}

// The word behind a bare `flag`, taken out of `arguments`, of which the first is never taken.
std::string word_behind(const std::vector<std::string>& words, const std::string& flag,
                        std::vector<std::string>& arguments) {
  const auto at = std::find(words.begin(), words.end(), flag);
  if (at == words.end() || at + 1 == words.end() || arguments.size() < 2) return "";
  const auto word = std::find(arguments.begin() + 1, arguments.end(), at[1]);
  if (word == arguments.end()) return "";
  std::string out = *word;
  arguments.erase(word);
  return out;
}

}  // namespace

Result<CommandLine> parse_command_line(const std::vector<std::string>& words) {
  CommandLine out;
  if (words.empty()) return out;
  std::string first = words[0];
  if (first == "--help" || first == "-h") first = "help";
  if (first == "--version" || first == "-V") first = "version";
  out.verb = find_verb(first);
  if (!out.verb) return unknown_verb(first);

  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  struct Slot {
    const Flag* flag;
    std::string name;  // one option for each name, to know which was written
    std::vector<std::string> texts;
    CLI::Option* option = nullptr;
  };
  std::vector<Slot> slots;
  for (const Flag& f : flags())
    if (f.verbs & out.verb->verb)
      for (std::string_view n : names_of(f)) slots.push_back({&f, dashed(n), {}});
  for (Slot& s : slots) {
    bool no_value = s.flag->kind == ValueKind::on_off || s.flag->kind == ValueKind::optional;
    s.option = no_value ? app.add_flag(s.name) : app.add_option(s.name)->expected(1);
    s.option->take_all();
  }
  app.add_option("arguments", out.arguments);
  // CLI11 takes the words from the back.
  std::vector<std::string> rest(words.rbegin(), words.rend() - 1);
  // One dash before a name of several letters, as llama.cpp writes them.
  for (std::string& w : rest)
    if (w.size() > 2 && w[0] == '-' && w[1] != '-' &&
        find_flag(std::string_view(w).substr(1, w.find('=') - 1)))
      w.insert(0, 1, '-');
  try {
    app.parse(rest);
  } catch (const CLI::ArgumentMismatch& e) {
    std::string what = e.what();
    return fail(ErrorCode::bad_argument,
                message(AppMessage::flag_needs_value, what.substr(0, what.find_first_of(": "))), "",
                message(AppMessage::see_help, out.verb->name));
  } catch (const CLI::Error& e) {
    return fail(ErrorCode::bad_argument, message(AppMessage::bad_command_line, e.what()), "",
                message(AppMessage::see_help, out.verb->name));
  }
  for (const std::string& extra : app.remaining())
    if (extra.size() > 1 && extra[0] == '-') return unknown_flag(*out.verb, extra);
  for (Slot& s : slots) {
    std::vector<std::string> texts = s.option->results();
    if (texts.empty()) continue;
    std::string text = texts.back();
    if (s.flag->kind == ValueKind::list || s.flag->kind == ValueKind::shapes) {
      text.clear();
      for (const std::string& t : texts) text += (text.empty() ? "" : ",") + t;
    }
    if (s.flag->kind == ValueKind::changes) {
      text.clear();
      for (const std::string& t : texts) text += (text.empty() ? "" : "\n") + t;
    }
    // A bare --explain means all of it; with a word behind it that is one argument too many, that
    // word's part.
    if (s.flag->kind == ValueKind::optional && text == "true")
      text = word_behind(words, s.name, out.arguments);
    out.given.push_back({s.flag, s.name, text});
  }
  return out;
}

}  // namespace trigon
