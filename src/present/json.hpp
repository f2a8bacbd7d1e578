#pragma once
// JSON values with ordered keys. The text is written by one file that includes the JSON library;
// numbers have at most 9 significant digits, so that the same answer gives the same bytes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/estimate.hpp"

namespace trigon {

class JsonNode {
 public:
  enum class Kind : std::uint8_t { null, boolean, integer, number, text, array, object };

  JsonNode() = default;
  JsonNode(bool v) : kind_(Kind::boolean), integer_(v) {}
  JsonNode(int v) : kind_(Kind::integer), integer_(v) {}
  JsonNode(std::int64_t v) : kind_(Kind::integer), integer_(v) {}
  JsonNode(std::size_t v) : kind_(Kind::integer), integer_(static_cast<std::int64_t>(v)) {}
  JsonNode(double v) : kind_(Kind::number), number_(v) {}
  JsonNode(const char* v) : kind_(Kind::text), text_(v) {}
  JsonNode(std::string_view v) : kind_(Kind::text), text_(v) {}
  JsonNode(std::string v) : kind_(Kind::text), text_(std::move(v)) {}
  template <class T>
  JsonNode(const std::optional<T>& v) {
    if (v) *this = JsonNode(*v);
  }

  static JsonNode object() { return JsonNode(Kind::object); }
  static JsonNode array() { return JsonNode(Kind::array); }
  // Appends a key to an object, an element to an array.
  JsonNode& set(std::string_view key, JsonNode v) {
    keys_.emplace_back(key);
    items_.push_back(std::move(v));
    return *this;
  }
  JsonNode& add(JsonNode v) {
    items_.push_back(std::move(v));
    return *this;
  }
  Kind kind() const { return kind_; }
  std::int64_t integer() const { return integer_; }  // also of a boolean
  double number() const { return number_; }
  const std::string& text() const { return text_; }
  const std::vector<JsonNode>& items() const { return items_; }
  const std::vector<std::string>& keys() const { return keys_; }  // of an object, as items

 private:
  explicit JsonNode(Kind k) : kind_(k) {}
  Kind kind_ = Kind::null;
  std::int64_t integer_ = 0;
  double number_ = 0;
  std::string text_;
  std::vector<std::string> keys_;
  std::vector<JsonNode> items_;
};

// {"value", "low", "high", "basis"}.
JsonNode json_of(const Estimate<double>& e);
std::string_view basis_name(Basis b);

// The text, two spaces of indentation, a line end at the end. NaN and infinities become null;
// malformed UTF-8 is replaced.
std::string write_json(const JsonNode& value);

}  // namespace trigon
