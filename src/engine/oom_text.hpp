#pragma once
// Lines and figures of a log. Everything here is bounded: a line is looked at up to kOomLineBytes,
// and no search goes back.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trigon {

constexpr std::size_t kOomLineBytes = 16384;
constexpr std::int64_t kOomMostLines = 20'000'000;

// The lines of a text. A line ends at a line feed, a carriage return (progress bars) or a written
// "\n" (messages inside JSON).
class LogLines {
 public:
  explicit LogLines(std::string_view text) : rest_(text) {}
  // False at the end. `line` is cut to kOomLineBytes.
  bool next(std::string_view& line);
  std::int64_t number() const { return number_; }  // of the line, by line feeds, from 1

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
  bool starts_line_ = true;
};

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

// "12", "12,345", "0.25", "-0.3" at the start of `text` after blanks, '(', '=' and ':'; `used` is
// how far it was read.
std::optional<double> leading_number(std::string_view text, std::size_t* used = nullptr);
// A size at the start: a number with bytes, B, KiB, MiB, GiB, TiB, kB, MB, GB. Every tool read
// here divides by powers of 1024 whatever it writes: torch and DeepSpeed (2**30), SGLang
// (1 << 30), the kernel (kB of 1024).
std::optional<double> leading_size(std::string_view text);

// The number, or size, that follows the first `needle`.
std::optional<double> number_after(std::string_view text, std::string_view needle);
std::optional<double> size_after(std::string_view text, std::string_view needle);
// The size right before the first `needle`: "9.58 GiB" of "9.58 GiB already allocated".
std::optional<double> size_before(std::string_view text, std::string_view needle);

// Text in two bytes a character, narrowed; nothing when it is not.
std::optional<std::string> narrowed(std::string_view text);
// A line for people: no leading blanks, at most 160 characters, not cut inside one.
std::string quotable(std::string_view line);

}  // namespace trigon
