#pragma once
// JSON of untrusted files as a plain tree, bounded in depth and in number of values.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace trigon {

struct Json;
struct JsonMember;
using JsonArray = std::vector<Json>;
using JsonObject = std::vector<JsonMember>;  // in the order of the text

struct Json {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, JsonArray, JsonObject>
      value;

  bool is_null() const { return value.index() == 0; }
  const JsonObject* object() const { return std::get_if<JsonObject>(&value); }
  const JsonArray* array() const { return std::get_if<JsonArray>(&value); }
  const std::string* text() const { return std::get_if<std::string>(&value); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&value); }
  const double* real() const { return std::get_if<double>(&value); }
  const bool* flag() const { return std::get_if<bool>(&value); }
  // The member of that name, the last one where it repeats; nothing for null and non-objects.
  const Json* find(std::string_view key) const;
};

// Not a std::pair: clang 14 asks a pair for its traits while Json is incomplete.
struct JsonMember {
  std::string first;
  Json second;
};

struct JsonLimits {
  int depth = 64;
  std::int64_t values = 4'000'000;
};

// `where` names the file in errors, which add the offset: "config.json:120".
Result<Json> parse_json(std::string_view text, std::string_view where, JsonLimits limits = {});

// Text of a file, fit for a message: control bytes become "?", long text is cut.
std::string printable(std::string_view s, std::size_t longest = 120);

// Appends a key to a JSON pointer, with its escapes.
std::string pointer_to(std::string_view pointer, std::string_view key);

}  // namespace trigon
