#pragma once
// Help, manual page and shell completions, all from the table of flags.

#include <string>

#include "flags.hpp"
#include "present/screen.hpp"

namespace trigon {

// What `trigon` alone prints: verbs and three examples.
std::string short_help(const TextStyle& style);
std::string verb_help_text(const VerbInfo& verb, const TextStyle& style);
std::string manual(Language language);
std::string completion(std::string_view shell);

}  // namespace trigon
