#pragma once
// A reader for the embedded po/zh_CN.po. gettext's own run time depends on the process's locale;
// a server speaks both languages at once.

#include <map>
#include <string>
#include <string_view>

namespace trigon {

struct Translation {
  std::string original, translated;
};
// msgctxt -> texts. Understands what msgfmt accepts of singular entries; entries marked fuzzy or
// empty are skipped.
std::map<std::string, Translation, std::less<>> parse_po(std::string_view po);

// The embedded file.
std::string_view chinese_po();
// The Chinese text of a message's JSON name, empty when there is none.
std::string_view chinese(std::string_view name);

}  // namespace trigon
