#pragma once
// Text on a terminal: safe to print, measured in columns, wrapped, coloured.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "present/words.hpp"

namespace trigon {

// The text with control bytes (C0, DEL, C1, bidirectional overrides) and malformed UTF-8 written
// as \x1b or \u202e, so that a file's text cannot steer the terminal.
std::string printable(std::string_view text);
// Columns the text takes: combining marks none, East Asian wide characters two.
int display_width(std::string_view text);
// At most `width` columns; what was cut is marked by "~".
std::string truncated(std::string_view text, int width);
// Lines of at most `width` columns, the first of at most `first` (0: as the others), broken at
// spaces and between wide characters.
std::vector<std::string> wrapped(std::string_view text, int width, int first = 0);

// How an answer is written.
struct TextStyle {
  int width = 80;
  bool colour = false;
  Language language = Language::english;
  bool explain = false;
  std::string explain_term;  // only derivation steps of this name
  bool one_line = false;
  int top = 20;         // rows of a ranked table; 0: all
  std::string why_not;  // accelerator whose rejection is explained
};

// Meaning never rests on colour alone: the words say the same.
enum class Tone : std::uint8_t { plain, strong, good, warning, bad, faint };
std::string painted(std::string_view text, Tone tone, bool colour);

}  // namespace trigon
