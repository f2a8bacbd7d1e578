#include "engine/oom_text.hpp"

#include <algorithm>

namespace trigon {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Bytes of the unit at the start of `text`, 0 for none.
double unit_bytes(std::string_view text) {
  if (!text.empty() && text[0] == ' ') text.remove_prefix(1);
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr double k = 1024;
  static constexpr Unit kUnits[] = {{"bytes", 1},
                                    {"Bytes", 1},
                                    {"byte", 1},
                                    {"KiB", k},
                                    {"kB", k},
                                    {"KB", k},
                                    {"MiB", k * k},
                                    {"MB", k * k},
                                    {"GiB", k * k * k},
                                    {"GB", k * k * k},
                                    {"TiB", k * k * k * k},
                                    {"B", 1}};
  for (const Unit& u : kUnits)
    if (text.substr(0, u.name.size()) == u.name) return u.bytes;
  return 0;
}

}  // namespace

bool LogLines::next(std::string_view& line) {
  if (rest_.empty()) return false;
  if (starts_line_) ++number_;
  std::size_t end = 0, skip = 1;
  starts_line_ = true;
  for (; end < rest_.size(); ++end) {
    const char c = rest_[end];
    if (c == '\n') break;
    if (c == '\r') {
      // "\r\n" is one end.
      starts_line_ = end + 1 < rest_.size() && rest_[end + 1] == '\n';
      skip = starts_line_ ? 2 : 1;
      break;
    }
    if (c == '\\' && end + 1 < rest_.size() && rest_[end + 1] == 'n') {
      starts_line_ = false;
      skip = 2;
      break;
    }
  }
  line = rest_.substr(0, std::min(end, kOomLineBytes));
  rest_.remove_prefix(std::min(rest_.size(), end + skip));
  return true;
}

std::optional<double> leading_number(std::string_view text, std::size_t* used) {
  std::size_t i = 0;
  while (i < text.size() && i < 8 &&
         (text[i] == ' ' || text[i] == '(' || text[i] == '=' || text[i] == ':' || text[i] == '~'))
    ++i;
  const bool minus = i < text.size() && text[i] == '-';
  if (minus) ++i;
  double v = 0, place = 1;
  int digits = 0;
  bool fraction = false;
  for (; i < text.size() && digits < 18; ++i) {
    const char c = text[i];
    if (is_digit(c)) {
      ++digits;
      if (fraction)
        v += (c - '0') * (place /= 10);
      else
        v = v * 10 + (c - '0');
    } else if (c == '.' && !fraction && i + 1 < text.size() && is_digit(text[i + 1])) {
      fraction = true;
    } else if (!(c == ',' && !fraction && i + 3 < text.size() && is_digit(text[i + 1]) &&
                 is_digit(text[i + 2]) && is_digit(text[i + 3]))) {
      break;
    }
  }
  if (digits == 0) return std::nullopt;
  if (used) *used = i;
  return minus ? -v : v;
}

std::optional<double> leading_size(std::string_view text) {
  std::size_t used = 0;
  auto v = leading_number(text, &used);
  if (!v) return std::nullopt;
  const double unit = unit_bytes(text.substr(used));
  return unit > 0 ? std::optional<double>(*v * unit) : std::nullopt;
}

std::optional<double> number_after(std::string_view text, std::string_view needle) {
  auto at = text.find(needle);
  if (at == text.npos) return std::nullopt;
  return leading_number(text.substr(at + needle.size()));
}

std::optional<double> size_after(std::string_view text, std::string_view needle) {
  auto at = text.find(needle);
  if (at == text.npos) return std::nullopt;
  return leading_size(text.substr(at + needle.size()));
}

std::optional<double> size_before(std::string_view text, std::string_view needle) {
  auto at = text.find(needle);
  if (at == text.npos) return std::nullopt;
  // The two words before: a number and its unit.
  std::size_t from = at;
  for (int words = 0; from > 0 && words < 2;) {
    --from;
    if (text[from] == ' ' && from + 1 < at && text[from + 1] != ' ') ++words;
    if (at - from > 40) break;
  }
  if (from > 0 || text[0] == ' ') {
    auto start = text.find_first_not_of(" (;", from);
    if (start == text.npos || start >= at) return std::nullopt;
    from = start;
  }
  return leading_size(text.substr(from, at - from));
}

std::optional<std::string> narrowed(std::string_view text) {
  const bool marked = text.size() > 1 && text[0] == '\xff' && text[1] == '\xfe';
  if (!marked) {
    // Two bytes a character without a mark: every second byte of plain text is zero.
    std::size_t zeros = 0, looked = std::min<std::size_t>(text.size(), 512) / 2;
    for (std::size_t i = 0; i < looked; ++i) zeros += text[2 * i + 1] == '\0';
    if (looked < 16 || zeros * 10 < looked * 9) return std::nullopt;
  }
  std::string out;
  out.reserve(text.size() / 2);
  for (std::size_t i = marked ? 2 : 0; i + 1 < text.size(); i += 2)
    out += text[i + 1] == '\0' ? text[i] : '?';
  return out;
}

std::string quotable(std::string_view line) {
  auto start = line.find_first_not_of(" \t");
  if (start == line.npos) return {};
  line.remove_prefix(start);
  constexpr std::size_t kMost = 160;
  if (line.size() <= kMost) return std::string(line);
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;
  return std::string(line.substr(0, end)) + "...";
}

}  // namespace trigon
