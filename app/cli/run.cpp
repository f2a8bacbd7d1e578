#include "call.hpp"
#include "help.hpp"
#include "present/app_messages.hpp"
#include "present/page.hpp"
#include "verbs.hpp"

namespace trigon {

Result<void> expect_arguments(const Call& call, std::size_t most) {
  if (call.line.arguments.size() <= most) return {};
  return fail(
      ErrorCode::bad_argument,
      message(AppMessage::too_many_arguments, call.line.verb->name, call.line.arguments[most]), "",
      message(AppMessage::see_help, call.line.verb->name));
}

Asked asked_of(const Call& call) {
  Asked a;
  a.command = call.line.verb->name;
  for (const auto& [name, setting] : call.settings.all()) {
    const Flag* f = find_flag(name);
    if (!f) continue;  // of another verb
    // How the answer is written is no input of it.
    if (f->group == AppMessage::group_output || !(f->verbs & call.line.verb->verb)) continue;
    std::string key(name);
    for (char& c : key)
      if (c == '-') c = '_';
    a.given.push_back({key, setting.text, setting.origin});
  }
  a.warnings = call.warnings;
  return a;
}

namespace {

Result<Output> run_help(const Call& call) {
  Language l = call.style.language;
  if (auto good = expect_arguments(call, 1); !good) return tl::unexpected(good.error());
  if (call.settings.on("man")) return Output{manual(l)};
  if (const Setting* shell = call.settings.find("completion"))
    return Output{completion(shell->text)};
  if (call.line.arguments.empty()) return Output{short_help(call.style)};
  const std::string& name = call.line.arguments[0];
  if (const VerbInfo* verb = find_verb(name)) return Output{verb_help_text(*verb, call.style)};
  auto known = parse_command_line({name});  // its error names the nearest verb
  return tl::unexpected(known.error());
}

Result<Output> run_config(const Call& call) {
  if (auto good = expect_arguments(call, 0); !good) return tl::unexpected(good.error());
  Language l = call.style.language;
  if (call.json) {
    JsonNode settings = JsonNode::object();
    for (const Flag& f : flags()) {
      const Setting* set = call.settings.find(f.name);
      if (f.only_here || (!set && f.fallback.empty())) continue;
      settings.set(f.name, JsonNode::object()
                               .set("value", call.settings.text(f.name))
                               .set("from", set ? set->origin : "default"));
    }
    for (const auto& [name, set] : call.settings.all())
      if (!find_flag(name))
        settings.set(name, JsonNode::object().set("value", set.text).set("from", set.origin));
    JsonNode results = JsonNode::object();
    results.set("settings", settings);
    return Output{write_json(envelope(asked_of(call), nullptr, {}, results))};
  }
  Table t({{std::string(label(AppMessage::col_setting, l))},
           {std::string(label(PresentMessage::col_value, l))},
           {std::string(label(AppMessage::col_from, l))}});
  for (const Flag& f : flags()) {
    const Setting* set = call.settings.find(f.name);
    if (f.only_here || (!set && f.fallback.empty())) continue;
    t.row({f.name, printable(call.settings.text(f.name)),
           set ? printable(set->origin) : std::string(label(AppMessage::from_default, l))});
  }
  for (const auto& [name, set] : call.settings.all())
    if (!find_flag(name)) t.row({name, printable(set.text), printable(set.origin)});
  return Output{t.text(call.style)};
}

Result<Output> run_version(const Call& call) {
  if (auto good = expect_arguments(call, 0); !good) return tl::unexpected(good.error());
  std::string data = data_version_of(call);
  if (!call.json) return Output{"trigon " TRIGON_VERSION " (data " + data + ")\n"};
  Asked asked = asked_of(call);
  asked.data_version = data;
  JsonNode results = JsonNode::object();
  results.set("version", TRIGON_VERSION);
  return Output{write_json(envelope(asked, nullptr, {}, results))};
}

}  // namespace

Result<Output> run(Call& call) {
  const VerbInfo* verb = call.line.verb;
  if (!verb) return Output{short_help(call.style)};
  if (call.settings.on("help") && verb->verb != verb_help)
    return Output{verb_help_text(*verb, call.style)};
  switch (verb->verb) {
    case verb_help:
      return run_help(call);
    case verb_config:
      return run_config(call);
    case verb_version:
      return run_version(call);
    case verb_fit:
      return run_fit(call);
    case verb_estimate:
      return run_estimate(call);
    case verb_recommend:
      return run_recommend(call);
    case verb_plan:
      return run_plan(call);
    case verb_compare:
      return run_compare(call);
    case verb_inspect:
      return run_inspect(call);
    case verb_check:
      return run_check(call);
    case verb_catalog:
      return run_catalog(call);
    case verb_validate:
      return run_validate(call);
    case verb_calibrate:
      return run_calibrate(call);
  }
  return Output{short_help(call.style)};
}

}  // namespace trigon
