#include "present/translation.hpp"

// From zh_cn.S, which the build makes of po/zh_CN.po.
extern "C" const char trigon_zh_cn_begin[];
extern "C" const char trigon_zh_cn_end[];

namespace trigon {
namespace {

// Appends the text between the outer quotes of a line, escapes undone.
void append_quoted(std::string_view line, std::string& out) {
  auto first = line.find('"');
  auto last = line.rfind('"');
  if (first == line.npos || last <= first) return;
  for (std::size_t i = first + 1; i < last; ++i) {
    if (line[i] != '\\' || i + 1 >= last) {
      out += line[i];
      continue;
    }
    char c = line[++i];
    out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
  }
}

}  // namespace

std::map<std::string, Translation, std::less<>> parse_po(std::string_view po) {
  std::map<std::string, Translation, std::less<>> entries;
  std::string context;
  Translation entry;
  bool fuzzy = false;
  std::string* field = nullptr;
  auto finish = [&] {
    if (!fuzzy && !context.empty() && !entry.translated.empty()) entries[context] = entry;
    context.clear();
    entry = {};
    fuzzy = false;
    field = nullptr;
  };
  while (!po.empty()) {
    auto end = po.find('\n');
    std::string_view line = po.substr(0, end);
    po.remove_prefix(end == po.npos ? po.size() : end + 1);
    if (line.empty()) {
      finish();
    } else if (line[0] == '#') {
      if (line.substr(0, 2) == "#," && line.find("fuzzy") != line.npos) fuzzy = true;
    } else {
      if (line.substr(0, 7) == "msgctxt") field = &context;
      if (line.substr(0, 5) == "msgid") field = &entry.original;
      if (line.substr(0, 6) == "msgstr") field = &entry.translated;
      if (field) append_quoted(line, *field);
    }
  }
  finish();
  return entries;
}

std::string_view chinese_po() {
  return {trigon_zh_cn_begin, static_cast<std::size_t>(trigon_zh_cn_end - trigon_zh_cn_begin)};
}

std::string_view chinese(std::string_view name) {
  static const auto entries = parse_po(chinese_po());
  auto found = entries.find(name);
  return found == entries.end() ? std::string_view() : found->second.translated;
}

}  // namespace trigon
