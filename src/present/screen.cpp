#include "present/screen.hpp"

#include <algorithm>
#include <cstdio>

namespace trigon {
namespace {

struct CodePoint {
  char32_t value = 0;
  std::size_t length = 0;  // bytes; 0 for a malformed byte
};

// The code point at the start of `s`, which is not empty. Overlong forms, surrogates and values
// beyond U+10FFFF are malformed.
CodePoint decode(std::string_view s) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  unsigned char b = byte(0);
  if (b < 0x80) return {b, 1};
  std::size_t n = b >= 0xF0 && b < 0xF8   ? 4
                  : b >= 0xE0 && b < 0xF0 ? 3
                  : b >= 0xC0 && b < 0xE0 ? 2
                                          : 0;
  if (n == 0 || s.size() < n) return {};
  char32_t v = b & (0xFFu >> (n + 1));
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    v = (v << 6) | (byte(i) & 0x3Fu);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (v < smallest[n] || v > 0x10FFFF || (v >= 0xD800 && v < 0xE000)) return {};
  return {v, n};
}

bool steers_terminal(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x200E && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

bool is_wide(char32_t c) {
  return (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0x303E) ||
         (c >= 0x3041 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) ||
         (c >= 0xFF00 && c <= 0xFF60) || (c >= 0xFFE0 && c <= 0xFFE6) ||
         (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
}

// Closing punctuation, which may not begin a line.
bool closes(char32_t c) {
  for (char32_t x : {0x3001, 0x3002, 0x300B, 0x300D, 0x300F, 0x3011, 0xFF01, 0xFF09, 0xFF0C, 0xFF1A,
                     0xFF1B, 0xFF1F})
    if (c == x) return true;
  return false;
}

int width_of(char32_t c) {
  if ((c >= 0x300 && c <= 0x36F) || c == 0x200B || c == 0x200D || (c >= 0xFE00 && c <= 0xFE0F))
    return 0;
  return is_wide(c) ? 2 : 1;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  char escape[16];
  while (!text.empty()) {
    CodePoint c = decode(text);
    std::size_t n = std::max<std::size_t>(c.length, 1);
    if (c.length == 0 || (steers_terminal(c.value) && c.value < 0x80))
      std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned char>(text[0])),
          out += escape;
    else if (steers_terminal(c.value))
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c.value)),
          out += escape;
    else
      out += text.substr(0, n);
    text.remove_prefix(n);
  }
  return out;
}

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    CodePoint c = decode(text);
    width += c.length ? width_of(c.value) : 1;
    text.remove_prefix(std::max<std::size_t>(c.length, 1));
  }
  return width;
}

std::string truncated(std::string_view text, int width) {
  if (display_width(text) <= width) return std::string(text);
  std::string out;
  int used = 0;
  while (!text.empty()) {
    CodePoint c = decode(text);
    std::size_t n = std::max<std::size_t>(c.length, 1);
    int w = c.length ? width_of(c.value) : 1;
    if (used + w > width - 1) break;
    out += text.substr(0, n);
    used += w;
    text.remove_prefix(n);
  }
  return width > 0 ? out + "~" : out;
}

std::vector<std::string> wrapped(std::string_view text, int width, int first) {
  std::vector<std::string> lines;
  std::string line, word;
  int line_width = 0;
  auto flush_word = [&] {
    if (word.empty()) return;
    std::string_view w = word;
    // A space that would end the line or start the next one is dropped.
    if (line_width > 0 &&
        line_width + display_width(word) > (lines.empty() && first > 0 ? first : width)) {
      while (!line.empty() && line.back() == ' ') line.pop_back();
      lines.push_back(line);
      line.clear();
      line_width = 0;
      while (!w.empty() && w.front() == ' ') w.remove_prefix(1);
    }
    line += w;
    line_width += display_width(w);
    word.clear();
  };
  while (!text.empty()) {
    CodePoint c = decode(text);
    std::size_t n = std::max<std::size_t>(c.length, 1);
    if (text[0] == '\n') {
      flush_word();
      lines.push_back(line);
      line.clear();
      line_width = 0;
    } else {
      bool wide = c.length != 0 && is_wide(c.value);
      if (text[0] == ' ' && !word.empty() && word.back() != ' ') flush_word();
      if (wide && !closes(c.value)) flush_word();
      word += text.substr(0, n);
    }
    text.remove_prefix(n);
  }
  flush_word();
  lines.push_back(line);
  return lines;
}

std::string painted(std::string_view text, Tone tone, bool colour) {
  if (!colour || tone == Tone::plain || text.empty()) return std::string(text);
  const char* code = tone == Tone::strong    ? "1"
                     : tone == Tone::good    ? "32"
                     : tone == Tone::warning ? "33"
                     : tone == Tone::bad     ? "31"
                                             : "2";
  return std::string("\x1b[") + code + "m" + std::string(text) + "\x1b[0m";
}

}  // namespace trigon
