#pragma once
// The one table of flags. Parsing, range checks, help, manual, completions, configuration keys
// and TRIGON_* variables all come from it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "present/app_messages.hpp"

namespace trigon {

enum Verb : std::uint16_t {
  verb_fit = 1,
  verb_estimate = 2,
  verb_recommend = 4,
  verb_compare = 8,
  verb_inspect = 16,
  verb_catalog = 32,
  verb_validate = 64,
  verb_config = 128,
  verb_version = 256,
  verb_help = 512,
  verb_calibrate = 1024,
  verb_check = 2048,
  verb_plan = 4096
};

struct VerbInfo {
  Verb verb;
  std::string_view name;
  AppMessage summary;
  std::string_view arguments;  // "MODEL [--on HARDWARE]"
  std::vector<std::string_view> examples;
};
const std::vector<VerbInfo>& verbs();
const VerbInfo* find_verb(std::string_view name);

enum class ValueKind : std::uint8_t {
  on_off,    // no value
  optional,  // a value only after '='
  text,
  list,  // texts with commas between them; may be given several times
  whole,
  number,
  count,
  length,
  duration,
  rate,
  money,
  latency,  // "1s", "p99:1s"
  slo,      // "ttft=1s,tpot=50ms"
  fraction,
  size,
  bandwidth,
  format,  // of weights or caches
  date,
  pixels,   // "224" or "512x768"
  changes,  // "bandwidth=2x,quant=fp8"; each time it is given stands for itself
  shapes,   // "input=1x3x224x224"; may be given several times
  choice
};

struct Flag {
  std::string_view name;   // without dashes: also the configuration key
  std::string_view other;  // further names, a space between them
  ValueKind kind;
  std::string_view value;  // placeholder in help; for choices "a|b|c"
  AppMessage doc;
  std::string_view fallback;  // default as shown; empty: chosen, asked for or none
  double low, high;           // bounds of numbers, in base units; low > high: none
  std::uint16_t verbs;
  AppMessage group;
  bool only_here;  // not a configuration key: makes sense for one call only
};
const std::vector<Flag>& flags();
// By name or other name, without dashes.
const Flag* find_flag(std::string_view name);
std::vector<std::string_view> names_of(const Flag& f);
std::vector<std::string_view> split_words(std::string_view text, char separator);

// Whether a text is a value of this flag; the error says what would be.
Result<void> check_value(const Flag& f, std::string_view text, std::string_view where);

}  // namespace trigon
