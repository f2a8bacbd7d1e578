#include "help.hpp"

#include <algorithm>

#include "present/numbers.hpp"
#include "present/page.hpp"

namespace trigon {
namespace {

std::string say_app(AppMessage id, Language l, std::initializer_list<std::string> args = {}) {
  Message m{message_id(id), {}};
  for (const std::string& a : args) m.args.emplace_back(a);
  return render(m, l);
}

// "--input-tokens TOKENS".
std::string spelling(const Flag& f) {
  std::string out = "--" + std::string(f.name);
  if (f.kind == ValueKind::optional) return out + "[=" + std::string(f.value) + "]";
  if (f.kind != ValueKind::on_off) out += " " + std::string(f.value);
  return out;
}

// "tokens of a prompt (also --isl; default 1024)".
std::string description(const Flag& f, Language l) {
  std::string out(label(f.doc, l)), notes;
  auto note = [&](const std::string& s) { notes += (notes.empty() ? "" : "; ") + s; };
  std::string others;
  for (std::string_view n : split_words(f.other, ' '))
    others += (others.empty() ? "" : ", ") + ((n.size() == 1 ? "-" : "--") + std::string(n));
  if (!others.empty()) note(say_app(AppMessage::flag_same, l, {others}));
  if (!f.fallback.empty()) note(say_app(AppMessage::flag_default, l, {std::string(f.fallback)}));
  return notes.empty() ? out : out + " (" + notes + ")";
}

void put_entries(Page& page, const std::vector<std::pair<std::string, std::string>>& entries) {
  int width = 0;
  for (const auto& e : entries) width = std::max(width, display_width(e.first));
  width = std::min({width, 28, page.style().width / 3});
  for (const auto& [name, text] : entries) {
    std::string first = "  " + name;
    int used = display_width(first);
    if (used > width + 2) {
      page.raw(first + "\n");
      first.clear();
      used = 0;
    }
    auto lines = wrapped(text, std::max(20, page.style().width - width - 4));
    for (const std::string& line : lines) {
      page.raw(first + std::string(static_cast<std::size_t>(width + 4 - used), ' ') + line + "\n");
      first.clear();
      used = 0;
    }
  }
}

std::string usage_line(const VerbInfo& v, Language l) {
  std::string out = std::string(label(AppMessage::usage, l)) + " trigon " + std::string(v.name);
  if (!v.arguments.empty()) out += " " + std::string(v.arguments);
  return out;
}

constexpr AppMessage kGroups[] = {AppMessage::group_job, AppMessage::group_limits,
                                  AppMessage::group_plan, AppMessage::group_output,
                                  AppMessage::group_data};

// Text in a manual page: backslashes, dashes and leading dots mean something to roff.
std::string roff(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  if (!out.empty() && (out[0] == '.' || out[0] == '\'')) out.insert(0, "\\&");
  return out;
}

}  // namespace

std::string short_help(const TextStyle& style) {
  Language l = style.language;
  Page page(style);
  page.paragraph("trigon: " + std::string(label(AppMessage::summary, l)));
  page.heading(label(AppMessage::verbs_are, l));
  std::vector<std::pair<std::string, std::string>> entries;
  for (const VerbInfo& v : verbs())
    entries.emplace_back(std::string(v.name), std::string(label(v.summary, l)));
  put_entries(page, entries);
  page.heading(label(AppMessage::examples, l));
  for (Verb verb : {verb_fit, verb_recommend, verb_compare})
    for (const VerbInfo& v : verbs())
      if (v.verb == verb) page.paragraph(v.examples.front(), Tone::plain, 2, 4);
  page.blank();
  page.paragraph(label(AppMessage::more_help, l), Tone::faint);
  return page.finish();
}

std::string verb_help_text(const VerbInfo& verb, const TextStyle& style) {
  Language l = style.language;
  Page page(style);
  page.paragraph(usage_line(verb, l));
  page.paragraph(label(verb.summary, l), Tone::plain, 2, 0);
  for (AppMessage group : kGroups) {
    std::vector<std::pair<std::string, std::string>> entries;
    for (const Flag& f : flags())
      if (f.group == group && (f.verbs & verb.verb))
        entries.emplace_back(spelling(f), description(f, l));
    if (entries.empty()) continue;
    page.heading(label(group, l));
    put_entries(page, entries);
  }
  if (!verb.examples.empty()) {
    page.heading(label(AppMessage::examples, l));
    for (std::string_view e : verb.examples) page.paragraph(e, Tone::plain, 2, 4);
  }
  return page.finish();
}

std::string manual(Language l) {
  std::string out = ".TH TRIGON 1\n.SH NAME\ntrigon \\- " + roff(label(AppMessage::summary, l)) +
                    "\n.SH SYNOPSIS\n";
  for (const VerbInfo& v : verbs())
    out += ".B trigon " + std::string(v.name) + "\n" + roff(v.arguments) + "\n.br\n";
  out += ".SH VERBS\n";
  for (const VerbInfo& v : verbs())
    out += ".TP\n.B " + std::string(v.name) + "\n" + roff(label(v.summary, l)) + "\n";
  out += ".SH OPTIONS\n";
  for (AppMessage group : kGroups) {
    out += ".SS \"" + roff(label(group, l)) + "\"\n";
    for (const Flag& f : flags()) {
      if (f.group != group) continue;
      std::string users;
      for (const VerbInfo& v : verbs())
        if (f.verbs & v.verb) users += (users.empty() ? "" : ", ") + std::string(v.name);
      out += ".TP\n.B " + roff(spelling(f)) + "\n" + roff(description(f, l)) + "\n.br\n" +
             roff(say_app(AppMessage::flag_used_by, l, {"--" + std::string(f.name), users})) + "\n";
    }
  }
  out += ".SH EXAMPLES\n";
  for (const VerbInfo& v : verbs())
    for (std::string_view e : v.examples) out += ".PP\n.EX\n" + roff(e) + "\n.EE\n";
  out += ".SH \"EXIT STATUS\"\n";
  for (const auto& [code, id] :
       {std::pair{"0", AppMessage::exit_done}, std::pair{"1", AppMessage::exit_no},
        std::pair{"2", AppMessage::exit_bad_input}, std::pair{"70", AppMessage::exit_bug},
        std::pair{"130", AppMessage::exit_interrupted}})
    out += std::string(".TP\n.B ") + code + "\n" + roff(label(id, l)) + "\n";
  return out;
}

std::string completion(std::string_view shell) {
  auto words_of = [](const Flag& f) {
    std::vector<std::string> out;
    for (std::string_view n : names_of(f))
      out.push_back((n.size() == 1 ? "-" : "--") + std::string(n));
    return out;
  };
  auto choices = [](const Flag& f) {
    std::string out;
    if (f.kind == ValueKind::choice)
      for (std::string_view c : split_words(f.value, '|'))
        out += (out.empty() ? "" : " ") + std::string(c);
    return out;
  };
  std::string verb_names, out;
  for (const VerbInfo& v : verbs())
    verb_names += (verb_names.empty() ? "" : " ") + std::string(v.name);
  if (shell == "fish") {
    out += "complete -c trigon -n __fish_use_subcommand -f\n";
    for (const VerbInfo& v : verbs())
      out += "complete -c trigon -n __fish_use_subcommand -a " + std::string(v.name) + " -d '" +
             std::string(label(v.summary, Language::english)) + "'\n";
    for (const Flag& f : flags()) {
      std::string users;
      for (const VerbInfo& v : verbs())
        if (f.verbs & v.verb) users += " " + std::string(v.name);
      out += "complete -c trigon -n '__fish_seen_subcommand_from" + users + "'";
      for (std::string_view n : names_of(f))
        out += (n.size() == 1 ? " -s " : " -l ") + std::string(n);
      if (f.kind != ValueKind::on_off && f.kind != ValueKind::optional) out += " -r";
      if (!choices(f).empty()) out += " -f -a '" + choices(f) + "'";
      std::string doc(label(f.doc, Language::english));
      for (std::size_t i = 0; (i = doc.find('\'', i)) != doc.npos; i += 2) doc.replace(i, 1, "\\'");
      out += " -d '" + doc + "'\n";
    }
    return out;
  }
  // zsh reads bash's completion through bashcompinit.
  if (shell == "zsh") out += "autoload -U +X bashcompinit && bashcompinit\n";
  out +=
      "_trigon() {\n  local word=\"${COMP_WORDS[COMP_CWORD]}\" "
      "before=\"${COMP_WORDS[COMP_CWORD-1]}\"\n";
  out += "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W \"" + verb_names +
         "\" -- \"$word\"))\n    return\n  fi\n  case \"$before\" in\n";
  for (const Flag& f : flags()) {
    if (choices(f).empty()) continue;
    std::string pattern;
    for (const std::string& w : words_of(f)) pattern += (pattern.empty() ? "" : "|") + w;
    out += "    " + pattern + ") COMPREPLY=($(compgen -W \"" + choices(f) +
           "\" -- \"$word\")); return ;;\n";
  }
  out += "  esac\n  case \"$word\" in\n  -*)\n    case \"${COMP_WORDS[1]}\" in\n";
  for (const VerbInfo& v : verbs()) {
    std::string words;
    for (const Flag& f : flags())
      if (f.verbs & v.verb)
        for (const std::string& w : words_of(f)) words += (words.empty() ? "" : " ") + w;
    out += "    " + std::string(v.name) + ") COMPREPLY=($(compgen -W \"" + words +
           "\" -- \"$word\")) ;;\n";
  }
  out += "    esac ;;\n  *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n  esac\n}\n";
  out += "complete -o filenames -F _trigon trigon\n";
  return out;
}

}  // namespace trigon
